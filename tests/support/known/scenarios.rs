//! Lists the call paths of each scenario of `tests/fixtures/java/known`.

use super::language::{Language, any_of, either, sequence};

/// What a JVM does to load and define a class, and to collect garbage on demand.
const LOADING: &[&str] = &["java.*", "jdk.*", "sun.*", "known.Isolated*"];

/// Name behind the method whose exception the JVM is about to take to a handler.
pub(super) const UNWINDING: &str = "(unwinding)";

/// Names of the threads of those that run by default, as far as Linux keeps them.
pub const SCENARIOS: [&str; 16] = [
    "recurse-10",
    "recurse-100",
    "recurse-1000",
    "lambdas",
    "inlined",
    "megamorphic",
    "defaults",
    "natives",
    "exceptions",
    "deoptimised",
    "static-init",
    "reflected",
    "handles",
    "virtual",
    "ForkJoinPool-1-",
    "hidden",
];

pub struct Scenario {
    pub thread: String,
    pub language: Language,
    /// Whether native code between Java frames calls Java.
    pub has_upcalls: bool,
    /// The largest part of its samples that may be short of a leaf, if the JVM says of
    /// all code what is inlined there.
    pub on_its_way: f64,
    /// Whether its code lives for milliseconds only: JVMs free it when they unload
    /// its classes, before anyone can ask for its name.
    pub is_short_lived: bool,
}

/// The scenario whose thread has this name.
pub fn scenario(thread: &str) -> Option<Scenario> {
    let exact = |language| (language, false, 0.05);
    // These spend much of their time in the JDK and the JVM, on paths that the
    // language leaves open.
    let loading = |language| (language, true, 1.0);
    let (language, has_upcalls, on_its_way) = match thread {
        "recurse-10" => exact(recursion(10)),
        "recurse-100" => exact(recursion(100)),
        "recurse-1000" => exact(recursion(1000)),
        "lambdas" => exact(lambdas()),
        "inlined" => {
            exact(below_round("Inlined", path(&["Inlined.first", "Inlined.second", "Inlined.third", "Inlined.leaf"])))
        }
        "megamorphic" => exact(megamorphic()),
        "defaults" => exact(below_round(
            "Defaults",
            path(&["Defaults$Middle.begin", "Defaults$Root.begin", "Defaults$Concrete.end", "Defaults.leaf"]),
        )),
        "natives" => exact(natives()),
        "exceptions" => exact(exceptions()),
        "deoptimised" => loading(deoptimised()),
        "static-init" => loading(static_init()),
        "reflected" => (reflected(), true, 0.05),
        "handles" => (handles(), true, 0.05),
        // What waits for the virtual thread, and what carries it.
        "virtual" => loading(below_round("Virtual", any_of(&["java.*", "jdk.*", "sun.*"]))),
        "ForkJoinPool-1-" => (carrier(), true, 0.05),
        "hidden" => (hidden(), true, 0.05),
        "churn-0" | "churn-1" => (churn(), true, 1.0),
        _ => return None,
    };
    let is_short_lived = ["deoptimised", "static-init", "hidden"].contains(&thread) || thread.starts_with("churn");
    Some(Scenario { thread: thread.to_owned(), language, has_upcalls, on_its_way, is_short_lived })
}

fn method(pattern: &str) -> Language {
    Language::method(pattern)
}

/// Methods of the workload, one after the other.
fn path(methods: &[&str]) -> Language {
    sequence(methods.iter().map(|name| method(&format!("known.{name}"))))
}

/// Everything is below the round of a scenario in a thread of its own.
fn below_round(class: &str, rest: Language) -> Language {
    sequence([
        method("java.lang.Thread.run"),
        // JDK 21 and later.
        method("java.lang.Thread.runWith").optional(),
        method("known.Scenario.run"),
        method(&format!("known.{class}.round")),
        rest,
    ])
}

fn recursion(depth: usize) -> Language {
    let descend = method("known.Recursion.descend").times(depth, depth);
    below_round("Recursion", sequence([descend, method("known.Recursion.leaf")]))
}

fn lambdas() -> Language {
    let proxy = || method("known.Lambdas$$Lambda*.applyAsLong");
    let body = |number: u32| method(&format!("known.Lambdas.lambda$new${number}"));
    below_round(
        "Lambdas",
        sequence([proxy(), body(2), proxy(), body(1), proxy(), body(0), method("known.Lambdas.leaf")]),
    )
}

fn megamorphic() -> Language {
    let of = |name: &str| path(&[&format!("Megamorphic${name}.step"), &format!("Megamorphic${name}.leaf{name}")]);
    below_round("Megamorphic", either(["A", "B", "C", "D", "E", "F"].map(of)))
}

fn unwinding() -> Language {
    method(UNWINDING)
}

/// The JDK's part, down to the native method, differs by release.
fn natives() -> Language {
    let zip = [
        "java.util.zip.*",
        "java.util.Objects.*",
        "java.lang.ref.*",
        "java.nio.*",
        "jdk.internal.*",
        "java.lang.Math.*",
    ];
    below_round(
        "Natives",
        either([
            sequence([path(&["Natives.copying"]), method("java.lang.System.arraycopy").optional()]),
            sequence([path(&["Natives.checking"]), any_of(&zip)]),
            sequence([path(&["Natives.packing"]), any_of(&zip)]),
            sequence([
                path(&["Natives.computing"]),
                any_of(&["java.lang.StrictMath.sin", "java.lang.FdLibm*", "java.lang.Double.*", "java.lang.Math.*"]),
            ]),
            sequence([
                path(&["Natives.interning"]),
                any_of(&["java.lang.*", "java.util.*", "jdk.internal.*", "sun.nio.cs.*"]),
            ]),
        ]),
    )
}

fn exceptions() -> Language {
    let constructors =
        ["known.Exceptions$Known", "java.lang.RuntimeException", "java.lang.Exception", "java.lang.Throwable"];
    let constructing = sequence([
        sequence(constructors.map(|class| method(&format!("{class}.<init>")))),
        // The second one is native. What every constructor calls first, the interpreter runs.
        either([method("java.lang.Throwable.fillInStackTrace").times(2, 2), method("java.lang.Object.<init>")]),
    ]);
    let down = method("known.Exceptions.dive").times(50, 50);
    let throwing = sequence([
        down,
        path(&["Exceptions.throwing"]),
        either([path(&["Exceptions.leaf"]), constructing, unwinding()]),
    ]);
    // Frame by frame: 5 to 8 % of the time on an AMD CPU, up to 14 % on an Intel one, and
    // twice as much if nothing is inlined. Less than 0.6 % is on its way to somewhere else.
    let going_up = sequence([method("known.Exceptions.dive").times(0, 50), unwinding()]);
    below_round("Exceptions", sequence([path(&["Exceptions.catching"]), either([throwing, going_up])]))
}

fn deoptimised() -> Language {
    let base = path(&["Deoptimised$FreshBase.work", "Deoptimised$FreshBase.leafOne"]);
    let derived = path(&["Deoptimised$FreshOverride.work", "Deoptimised$FreshOverride.leafTwo"]);
    let making = sequence([
        any_of(LOADING),
        // Constructors, the last of all.
        any_of(&["known.Deoptimised$Fresh*.<init>", "java.lang.Object.<init>"]),
    ]);
    let running = sequence([
        path(&["Deoptimised$Fresh.applyAsLong"]),
        either([
            // Before a JVM compiles that one, it loads the classes of its signature.
            sequence([path(&["Deoptimised$Fresh.calling"]), either([base, derived, any_of(LOADING)])]),
            making.clone(),
        ]),
    ]);
    below_round("Deoptimised", either([running, making]))
}

fn static_init() -> Language {
    let initialising = sequence([
        method("java.lang.Class.forName").times(1, 2),
        method("java.lang.Class.forName0"),
        path(&["StaticInit$Lazy.<clinit>", "StaticInit$Lazy.leaf"]),
    ]);
    below_round("StaticInit", either([initialising, any_of(LOADING)]))
}

fn reflected() -> Language {
    let machinery = any_of(&["jdk.internal.reflect.*", "java.lang.invoke.*", "java.lang.reflect.*"]);
    below_round(
        "Reflected",
        either([
            sequence([
                method("java.lang.reflect.Method.invoke"),
                machinery,
                path(&["Reflected.target", "Reflected.leaf"]),
            ]),
            // Boxes of arguments and results, checks of access; after some calls a
            // class is made that calls faster.
            any_of(LOADING),
        ]),
    )
}

fn handles() -> Language {
    // After some calls the handle gets a form of its own, which is compiled then; and the test's
    // outcomes are no longer counted.
    let begin = ["java.lang.invoke.Invokers.*", "java.lang.invoke.MethodHandleImpl$CountingWrapper.*"];
    let customising = sequence([any_of(&["java.lang.invoke.*"]), either(begin.map(method)), any_of(LOADING)]);
    let calling = sequence([
        any_of(&["java.lang.invoke.*"]),
        either([
            path(&["Handles.target", "Handles.leaf"]),
            path(&["Handles.isEven"]),
            path(&["Handles.odd"]),
            // Forms count how often a test holds.
            method("java.lang.Math.addExact"),
        ]),
    ]);
    below_round("Handles", sequence([path(&["Handles.calling"]), either([calling, customising])]))
}

/// The virtual thread's frames stand on those of its carrier.
fn carrier() -> Language {
    let mounted = sequence([
        // Pools and tasks in turn, differently in each release.
        any_of(&["java.util.concurrent.ForkJoin*", "java.lang.VirtualThread*"]),
        method("jdk.internal.vm.Continuation.run"),
        method("jdk.internal.vm.Continuation.enterSpecial").optional(),
        method("jdk.internal.vm.Continuation.enter"),
        method("jdk.internal.vm.Continuation.enter0").optional(),
        method("java.lang.VirtualThread*").times(1, 4),
        method("java.lang.Thread.runWith").optional(),
        path(&["Virtual$Spinner.run"]),
        method("known.Virtual$Spinner.descend").times(20, 20),
        path(&["Virtual$Spinner.leaf"]),
    ]);
    let scheduling = any_of(&["java.util.*", "jdk.internal.*", "java.lang.*"]);
    sequence([method("java.util.concurrent.ForkJoinWorkerThread.run"), either([mounted, scheduling])])
}

fn hidden() -> Language {
    let calling = sequence([method("known.Hidden$Template*.applyAsLong"), method("known.Hidden$Template*.leaf")]);
    let defining = sequence([
        method("known.Hidden.define").optional(),
        any_of(LOADING),
        method("known.Hidden$Template*.<init>").optional(),
        method("java.lang.Object.<init>").optional(),
    ]);
    below_round("Hidden", either([calling, defining]))
}

/// Copies of classes of four kinds, whose memory is used again and again.
fn churn() -> Language {
    let of = |kind: &str| {
        let name = |method: &str| format!("Churn$Fresh{kind}.{method}{kind}");
        path(&[&format!("Churn$Fresh{kind}.applyAsLong"), &name("middle"), &name("leaf")])
    };
    let making = sequence([any_of(LOADING), any_of(&["known.Churn$Fresh*.<init>", "java.lang.Object.<init>"])]);
    below_round("Churn", either([of("A"), of("B"), of("C"), of("D"), making]))
}
