//! Decides whether a stack is right.

use std::collections::BTreeSet;

use super::{CallLines, Frame, Scenario, language::Match, scenarios::UNWINDING};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A word of the scenario's language, with a native root and the right lines.
    Exact,
    /// The same for the beginning of a word: the leaf was not reached yet, or was left. Stacks
    /// whose innermost inlined methods are not the expected ones count here too.
    OnItsWay,
    /// The stack says itself that something is missing.
    Marked(String),
    /// Methods that can be there, but not in this order.
    WrongPath(String),
    /// A method that this thread never runs.
    WrongMethod(String),
}

/// What is expected above the first Java frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Native frames, from the C library's start of the thread into the JVM.
    Native,
    /// Frame pointers get no further than the JVM's libraries have them.
    Any,
}

pub fn judge(scenario: &Scenario, frames: &[Frame], lines: &CallLines, root: Root) -> Verdict {
    let java: Vec<&Frame> = frames.iter().filter(|frame| frame.is_java()).collect();
    let methods: Vec<String> = java.iter().map(|frame| frame.method()).collect();
    // First of all: what says that something is missing may still say nothing wrong.
    let is_stranger = |method: &&String| !scenario.language.has(method) && !is_constructor(method);
    if let Some(stranger) = methods.iter().find(is_stranger) {
        return Verdict::WrongMethod(format!(
            "{:.120} in {}",
            stranger.escape_debug().to_string(),
            abbreviated(frames)
        ));
    }
    if let Some(marker) = frames.iter().find(|frame| frame.is_marker()) {
        return Verdict::Marked(marker.name.clone());
    }
    let (first, last) = (frames.iter().position(Frame::is_java), frames.iter().rposition(Frame::is_java));
    let (Some(first), Some(last)) = (first, last) else {
        return Verdict::WrongPath(format!("no Java frame: {}", abbreviated(frames)));
    };
    let wrong = |why: &str| Verdict::WrongPath(format!("{why}: {}", abbreviated(frames)));
    let mut methods: Vec<&str> = methods.iter().map(String::as_str).collect();
    if scenario.language.has(UNWINDING) && frames.get(last + 1).is_some_and(is_unwinding) {
        methods.push(UNWINDING);
    }
    let matched = match scenario.language.matches(&methods) {
        Match::No if is_coarse(scenario, frames, &java, &methods) => Match::Prefix,
        matched => matched,
    };
    if matched == Match::No {
        return wrong("no such path");
    }
    if root == Root::Native && !begins_natively(&frames[..first]) {
        return wrong("no native root");
    }
    if !scenario.has_upcalls && frames[first..last].iter().any(|frame| !frame.is_java()) {
        return wrong("something else between Java frames");
    }
    let (_leaf, callers) = java.split_last().unwrap_or((&java[0], &[]));
    if let Some(complaint) = callers.iter().find_map(|frame| lines.complaint(frame)) {
        return wrong(&complaint);
    }
    if matched == Match::Word { Verdict::Exact } else { Verdict::OnItsWay }
}

/// Whether a stub is what compiled code enters with an exception that it does not handle:
/// the JVM finds the handler, of this frame (first name) or of its caller.
fn is_unwinding(frame: &Frame) -> bool {
    frame.kind == "stub" && (frame.name == "ExceptionBlob" || frame.name.contains("rethrow"))
}

/// Whether the path is right but for methods that are inlined where the program
/// was interrupted. By default JVMs say only at safepoints what is inlined: code
/// before the next one counts as that one's, which may be of methods that are about
/// to run. Return addresses are safepoints, so callers are never in doubt.
fn is_coarse(scenario: &Scenario, frames: &[Frame], java: &[&Frame], methods: &[&str]) -> bool {
    let is_interrupted = frames.iter().rev().find(|frame| frame.kind != "kernel").is_some_and(Frame::is_java);
    let inlined = java.iter().rev().take_while(|frame| frame.kind == "inlined").count();
    let is_right = |methods| scenario.language.matches(methods) != Match::No;
    is_interrupted && (1..=inlined).any(|doubtful| is_right(&methods[..methods.len() - doubtful]))
}

/// The C library starts the thread, libjvm goes on.
fn begins_natively(root: &[Frame]) -> bool {
    let is_c_library =
        |frame: &Frame| ["libc.so", "libc-", "libpthread", "ld-musl"].iter().any(|name| frame.module.starts_with(name));
    root.first().is_some_and(is_c_library) && root.iter().any(|frame| frame.module.starts_with("libjvm.so"))
}

/// A path for people: repeated methods once, with their number and kinds. Names
/// may be anything that was in some memory.
pub(super) fn abbreviated(frames: &[Frame]) -> String {
    let mut parts: Vec<(String, usize, BTreeSet<&str>)> = Vec::new();
    for frame in frames {
        let method: String = frame.method().escape_debug().take(120).collect();
        match parts.last_mut() {
            Some((last, count, kinds)) if *last == method => {
                *count += 1;
                kinds.insert(&frame.kind);
            }
            _ => parts.push((method, 1, BTreeSet::from([frame.kind.as_str()]))),
        }
    }
    let texts = parts.into_iter().map(|(method, count, kinds)| {
        let kinds = kinds.into_iter().collect::<Vec<_>>().join("/");
        if count > 1 { format!("{method}({kinds})×{count}") } else { format!("{method}({kinds})") }
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Whether a method is a constructor. Wherever the program makes objects of its own, it may be
/// found in their constructors, for an instruction or two. A language without them lacks a path;
/// the name is not wrong.
fn is_constructor(method: &str) -> bool {
    method.strip_suffix(".<init>").is_some_and(|class| class == "java.lang.Object" || class.starts_with("known."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::scenario;

    fn frame(kind: &str, method: &str) -> Frame {
        let (class, name) = method.rsplit_once('.').unwrap_or(("", method));
        let module = if kind == "native" {
            "libc.so.6"
        } else if kind == "vm" {
            "libjvm.so"
        } else {
            ""
        };
        Frame {
            kind: kind.to_owned(),
            class: class.to_owned(),
            name: name.to_owned(),
            module: module.to_owned(),
            ..Frame::default()
        }
    }

    /// A stack of recurse-10, with so many frames of the recursion.
    fn recursion(depth: usize) -> Vec<Frame> {
        let mut frames = vec![frame("native", "clone3"), frame("vm", "JavaThread__run"), frame("stub", "call_stub")];
        let above = ["java.lang.Thread.run", "known.Scenario.run", "known.Recursion.round"];
        frames.extend(above.map(|method| frame("compiled", method)));
        frames.extend(vec![frame("compiled", "known.Recursion.descend"); depth]);
        frames.push(frame("compiled", "known.Recursion.leaf"));
        frames
    }

    fn verdict(frames: &[Frame]) -> Verdict {
        judge(&scenario("recurse-10").unwrap(), frames, &CallLines::default(), Root::Native)
    }

    #[test]
    fn the_whole_path_and_nothing_else_is_exact() {
        assert_eq!(verdict(&recursion(10)), Verdict::Exact);
        assert_eq!(verdict(&recursion(10)[..12]), Verdict::OnItsWay);
        // The kernel, or the JVM, may be where the leaf was.
        assert_eq!(verdict(&[recursion(10), vec![frame("kernel", "irq")]].concat()), Verdict::Exact);
        for depth in [9, 11] {
            assert!(matches!(verdict(&recursion(depth)), Verdict::WrongPath(_)), "{depth}");
        }
        assert!(matches!(verdict(&recursion(10)[3..]), Verdict::WrongPath(_)), "no native root");
        let mut frames = recursion(10);
        frames.insert(8, frame("vm", "os::sleep"));
        assert!(matches!(verdict(&frames), Verdict::WrongPath(_)), "native frames between Java frames");
    }

    #[test]
    fn only_methods_inlined_where_the_program_was_interrupted_are_in_doubt() {
        let inlined_leaf = |depth: usize| {
            let mut frames = recursion(depth);
            frames.last_mut().unwrap().kind = "inlined".to_owned();
            frames
        };
        assert_eq!(verdict(&inlined_leaf(7)), Verdict::OnItsWay);
        assert_eq!(verdict(&[inlined_leaf(7), vec![frame("kernel", "irq")]].concat()), Verdict::OnItsWay);
        assert_eq!(verdict(&inlined_leaf(10)), Verdict::Exact);
        for others in [inlined_leaf(11), recursion(7), [inlined_leaf(7), vec![frame("vm", "gc")]].concat()] {
            assert!(matches!(verdict(&others), Verdict::WrongPath(_)));
        }
    }

    #[test]
    fn a_thread_whose_exception_looks_for_its_handler_is_where_it_must_be() {
        let thrown = |dives: usize, innermost: &str, stub: &str| {
            let mut frames = recursion(0)[..5].to_vec();
            frames.extend(["round", "catching"].map(|name| frame("compiled-c2", &format!("known.Exceptions.{name}"))));
            frames.extend(vec![frame("inlined", "known.Exceptions.dive"); dives]);
            frames.extend([frame("inlined", innermost), frame("stub", stub), frame("vm", "SomeRuntime::routine")]);
            judge(&scenario("exceptions").unwrap(), &frames, &CallLines::default(), Root::Native)
        };
        let (dive, throwing) = ("known.Exceptions.dive", "known.Exceptions.throwing");
        for stub in ["ExceptionBlob", "_rethrow_Java", "C2 Runtime rethrow"] {
            assert_eq!(thrown(50, throwing, stub), Verdict::Exact, "{stub}");
            assert_eq!(thrown(20, dive, stub), Verdict::Exact, "{stub}");
            assert!(matches!(thrown(50, dive, stub), Verdict::WrongPath(_)), "{stub}: 51 frames");
            assert!(matches!(thrown(20, throwing, stub), Verdict::WrongPath(_)), "{stub}: frames are missing");
        }
        assert_eq!(thrown(20, dive, "SafepointBlob"), Verdict::OnItsWay);
    }

    #[test]
    fn constructors_of_the_programs_own_classes_are_no_strangers() {
        for (name, expected) in [
            ("known.Virtual$Spinner.<init>", true),
            ("java.lang.Object.<init>", true),
            ("java.lang.Thread.<init>", false),
            ("known.Lambdas.round", false),
        ] {
            assert_eq!(is_constructor(name), expected, "{name}");
        }
    }

    #[test]
    fn markers_are_no_errors_and_strangers_are() {
        let mut frames = recursion(10);
        frames[4] = frame("marker", "[evicted]");
        assert!(matches!(verdict(&frames), Verdict::Marked(_)));
        frames[6] = frame("compiled", "known.Lambdas.round");
        assert!(matches!(verdict(&frames), Verdict::WrongMethod(_)), "a marker excuses no wrong name");
        frames = recursion(10);
        frames[4] = frame("compiled", "known.Lambdas.round");
        assert!(matches!(verdict(&frames), Verdict::WrongMethod(_)));
    }
}
