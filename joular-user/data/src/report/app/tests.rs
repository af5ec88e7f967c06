//! Finds the packages of programs as people write and start them, and what they have of the energy.

use proptest::prelude::*;

use super::*;
use crate::{
    attribution::window_report::Category,
    events::RunInfo,
    model::{
        frame::FrameKind,
        units::{Pid, Tid, UnixMicros},
    },
    report::profile::{ProcessIndex, Run, Thread, ThreadIndex, ThreadPath},
    sampling::Sampled,
};

/// A JVM that was started with this, and spent a joule on a path.
struct Jvm<'a> {
    main: Option<&'a str>,
    /// Paths of `class.method`, root → leaf. What begins with `!` is native.
    paths: &'a [&'a [&'a str]],
}

fn frame(method: &str) -> Frame {
    match (method.strip_prefix('!'), method.rsplit_once('.')) {
        (None, Some((class, name))) => {
            Frame { class: Some(class.into()), ..Frame::new(FrameKind::CompiledC2, name) }.of_family()
        }
        (native, _) => Frame::new(FrameKind::Native, native.unwrap_or(method)),
    }
}

fn profile(jvms: &[Jvm<'_>]) -> Profile {
    let mut profile = Profile::default();
    profile.catalog.runs.push(Run { info: RunInfo::default(), ..Run::default() });
    for (number, jvm) in (0..).zip(jvms) {
        let process = Process { pid: Pid(number), main_class: jvm.main.map(Into::into), ..Process::default() };
        profile.catalog.processes.push(process);
        let process = ProcessIndex(number);
        let (name, category) = ("worker".into(), Category::Java);
        profile.catalog.threads.push(Thread { process, tid: Tid(number), start: UnixMicros(0), name, category });
        profile.overview.jvms.insert(process, Default::default());
        for path in jvm.paths {
            let frames: Vec<_> = path.iter().map(|method| profile.catalog.paths.frame_index(frame(method))).collect();
            let path = profile.catalog.paths.push(frames);
            profile.entries.push(ThreadPath {
                thread: ThreadIndex(number),
                path,
                energy: MicroJoules(1_000_000),
                cpu_ns: 1,
                samples: 1,
                inferred: MicroJoules(0),
                squares: 0.0,
                by_bytes: MicroJoules(0),
                charged: Sampled::default(),
            });
        }
    }
    profile
}

fn named(energy: &AppEnergy) -> Vec<&str> {
    energy.packages.iter().map(|package| package.package.as_str()).collect()
}

/// Packages in the order of their names.
fn found(jvms: &[Jvm<'_>], libraries: &[&str]) -> Vec<String> {
    let libraries: Vec<String> = libraries.iter().map(|name| (*name).to_owned()).collect();
    let found = AppEnergy::found(&profile(jvms), &libraries);
    let mut names: Vec<String> = named(&found).into_iter().map(ToOwned::to_owned).collect();
    names.sort();
    names
}

const TOMCAT: &str = "org.apache.catalina.core.ApplicationFilterChain.doFilter";
const SPRING: &str = "org.springframework.web.servlet.DispatcherServlet.doDispatch";
const MAP: &str = "java.util.HashMap.get";

/// What a program is, the main class that is recorded, its paths, and the packages that its people would name.
type Case<'a> = (&'a str, Option<&'a str>, &'a [&'a [&'a str]], &'a [&'a str]);

#[test]
fn packages_are_those_that_the_programs_people_would_name() {
    let cases: &[Case<'_>] = &[
        (
            "Spring's PetClinic, from its jar",
            Some("spring-petclinic-3.1.0.jar"),
            &[
                &[TOMCAT, SPRING, "org.springframework.samples.petclinic.owner.OwnerController.find", MAP],
                &[TOMCAT, SPRING, "org.springframework.samples.petclinic.vet.VetController$$SpringCGLIB$$0.show"],
                &["java.lang.Thread.run", "com.zaxxer.hikari.pool.HikariPool.fill", "org.h2.engine.Engine.open"],
                &["jdk.proxy2.$Proxy143.find", "org.hibernate.query.Query.list", "!zlib"],
            ],
            &["org.springframework.samples.petclinic"],
        ),
        (
            "servlets on Tomcat, of two organisations",
            Some("org.apache.catalina.startup.Bootstrap"),
            &[
                &["org.apache.catalina.startup.Bootstrap.main", TOMCAT, "com.acme.shop.Cart.doGet"],
                &[TOMCAT, "com.acme.billing.Bill.doGet", MAP],
                &[TOMCAT, "uk.co.shop.till.web.Till.doGet"],
            ],
            &["com.acme", "uk.co.shop.till"],
        ),
        ("Tomcat alone", Some("org.apache.catalina.startup.Bootstrap"), &[&[TOMCAT]], &[]),
        (
            "H2's server",
            Some("org.h2.tools.Server"),
            &[&["org.h2.server.TcpServerThread.run", "org.h2.engine.Session.query", MAP]],
            &["org.h2"],
        ),
        (
            "H2's server from its jar",
            Some("h2-2.2.224.jar"),
            &[&["org.h2.tools.Console.main"], &["org.h2.engine.Session.query", MAP]],
            &["org.h2"],
        ),
        (
            "Spark's shell",
            Some("org.apache.spark.deploy.SparkSubmit"),
            &[
                &[
                    "org.apache.spark.executor.Executor.run",
                    "$line14.$read$$iw.count",
                    "scala.collection.Iterator.next",
                ],
                &["org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIterator.next", MAP],
            ],
            &["$line"],
        ),
        (
            "an example of Spark",
            Some("org.apache.spark.deploy.SparkSubmit"),
            &[&["org.apache.spark.deploy.SparkSubmit.main", "org.apache.spark.examples.SparkPi$.main"]],
            &["org.apache.spark.examples"],
        ),
        (
            "Scala",
            Some("shop.Main"),
            &[&["shop.Main$.main", "akka.actor.Actor.receive", "shop.cart.Cart$$anonfun$1.apply", "scala.Option.map"]],
            &["shop"],
        ),
        (
            "Kotlin",
            Some("io.github.acme.shop.MainKt"),
            &[&[
                "io.github.acme.shop.MainKt.main",
                "kotlinx.coroutines.BuildersKt.launch",
                "kotlin.Lazy.get",
                "okio.Buffer.read",
            ]],
            &["io.github.acme.shop"],
        ),
        (
            "a script of Groovy",
            Some("groovy.ui.GroovyMain"),
            &[&[
                "groovy.ui.GroovyMain.main",
                "org.codehaus.groovy.runtime.CallSite.call",
                "Script12$_run_closure3.doCall",
            ]],
            &[UNNAMED_PACKAGE],
        ),
        (
            "Clojure",
            Some("clojure.main"),
            &[&[
                "clojure.main.main",
                "my.shop.core$handler__123.invoke",
                "clojure.lang.RT.get",
                "ring.util.Response.ok",
            ]],
            &["my.shop"],
        ),
        (
            "JRuby, which interprets",
            Some("org.jruby.Main"),
            &[&["org.jruby.Main.main", "org.jruby.ir.interpreter.InterpreterEngine.interpret", "jnr.posix.POSIX.read"]],
            &[],
        ),
        (
            "JRuby, which compiled",
            Some("org.jruby.Main"),
            &[&["org.jruby.Ruby.run", "rubyjit.Object$$fib_3.__file__"]],
            &["rubyjit"],
        ),
        (
            "Python on the JVM",
            Some("org.python.util.jython"),
            &[&["org.python.util.jython.main", "org.python.pycode._pyx0.f", "org.python.core.PyObject.call"]],
            &["org.python.pycode"],
        ),
        (
            "classes in no package",
            Some("Hot"),
            &[&["Hot.main", "Hot$Inner.run"], &["Cold.run", MAP]],
            &[UNNAMED_PACKAGE],
        ),
        (
            "what the JVM generates in no package",
            None,
            &[&["$Proxy12.run", "java.lang.invoke.LambdaForm$MH/0x1.invoke"]],
            &[],
        ),
        ("obfuscated, one package", Some("a.b.c"), &[&["a.b.c.a"], &["a.b.d.a"]], &["a.b"]),
        ("obfuscated, several", Some("a.b.c"), &[&["a.b.c.a"], &["a.c.a.b"], &["b.a.a"]], &["a", "b"]),
        (
            "Xalan, which the JDK has, too",
            Some("org.apache.xalan.xslt.Process"),
            &[
                &[
                    "org.apache.xalan.xslt.Process.main",
                    "org.apache.xml.dtm.DTM.next",
                    "org.apache.commons.io.IOUtils.read",
                ],
                &["com.sun.org.apache.xalan.internal.xsltc.Dom.next"],
            ],
            &["org.apache.xalan", "org.apache.xml"],
        ),
        (
            "Java's compiler",
            Some("jdk.compiler/com.sun.tools.javac.Main"),
            &[&["com.sun.tools.javac.code.Types.erasure"]],
            &["com.sun.tools"],
        ),
        (
            "a source file",
            Some("Shop.java"),
            &[&["com.sun.tools.javac.launcher.Main.main", "Shop.main"]],
            &[UNNAMED_PACKAGE],
        ),
        (
            "a broker of Kafka",
            Some("kafka.Kafka"),
            &[&["kafka.server.KafkaRequestHandler.run", "org.apache.kafka.common.record.Records.write"]],
            &["kafka", "org.apache.kafka"],
        ),
        (
            "a client of Kafka",
            Some("com.acme.Main"),
            &[&["com.acme.Main.main", "org.apache.kafka.clients.consumer.KafkaConsumer.poll"]],
            &["com.acme"],
        ),
        (
            "a program of Google, who have libraries, too",
            Some("com.google.maps.Main"),
            &[&["com.google.maps.Main.main"], &["com.google.routes.Route.find", "com.google.common.collect.Maps.get"]],
            &["com.google.maps", "com.google.routes"],
        ),
        (
            "a benchmark",
            Some("org.openjdk.jmh.runner.ForkedMain"),
            &[&[
                "org.openjdk.jmh.runner.ForkedMain.main",
                "com.acme.jmh_generated.Sort_jmhTest.run",
                "com.acme.Sort.sort",
            ]],
            &["com.acme"],
        ),
        ("a collector at work", None, &[&["!start_thread", "!G1CollectedHeap"]], &[]),
    ];
    for (what, main, paths, expected) in cases {
        assert_eq!(found(&[Jvm { main: *main, paths }], &[]), *expected, "{what}");
    }
}

#[test]
fn libraries_that_a_user_names_are_left_out_whatever_is_known() {
    let paths: &[&[&str]] = &[
        &["com.acme.Main.main", "com.vendor.orm.Mapper.map", MAP],
        &["com.acme.lib.Pool.run"],
        &["org.h2.engine.Session.query"],
    ];
    let jvm = || [Jvm { main: Some("org.h2.tools.Server"), paths }];
    assert_eq!(found(&jvm(), &[]), ["com.acme", "com.vendor.orm", "org.h2"]);
    assert_eq!(found(&jvm(), &["com.vendor.*", "org.h2"]), ["com.acme"]);
    // A package with a library below it cannot be named: its classes are.
    assert_eq!(found(&jvm(), &["com.acme.lib"]), ["com.acme.Main", "com.vendor.orm", "org.h2"]);
}

#[test]
fn each_jvm_says_what_it_was_started_with() {
    let shop = Jvm { main: Some("com.acme.Main"), paths: &[&["com.acme.Main.main", "org.postgresql.Driver.connect"]] };
    let h2 = Jvm { main: Some("org.h2.tools.Server"), paths: &[&["org.h2.engine.Session.query"]] };
    assert_eq!(found(&[shop, h2], &[]), ["com.acme", "org.h2"]);
}

#[test]
fn packages_have_the_paths_through_them_and_what_is_nearest_the_leaf() {
    let paths: &[&[&str]] = &[
        &[TOMCAT, "com.acme.Shop.sell", "org.shop.Till.add", "com.acme.Shop.sell", MAP, "!copy"],
        &[TOMCAT, "org.shop.Till.add", MAP],
        &[TOMCAT, MAP],
        &["!gc"],
    ];
    let mut profile = profile(&[Jvm { main: None, paths }]);
    let found = AppEnergy::found(&profile, &[]);
    let figures = |energy: &AppEnergy| {
        let figures = energy.packages.iter().map(|one| (one.package.clone(), one.total.0, one.own.0));
        figures.collect::<BTreeSet<_>>()
    };
    let expected = [("com.acme", 1_000_000, 1_000_000), ("org.shop", 2_000_000, 1_000_000)];
    let expected = BTreeSet::from(expected.map(|(name, total, own)| (name.to_owned(), total, own)));
    assert_eq!(figures(&found), expected);
    assert_eq!((found.jvms.0, found.java.0, found.reached().0), (4_000_000, 3_000_000, 2_000_000));
    assert_eq!(named(&found), ["org.shop", "com.acme"], "most energy first");
    // Other views have the same.
    let names = named(&found).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>();
    assert_eq!(profile.seen_by(&App::Java, |seen| AppEnergy::found(seen, &[])), found);
    let of_view = profile.seen_by(&App::Of(names.clone()), |seen| AppEnergy::of(seen, &names));
    assert_eq!(figures(&of_view), expected);
}

#[test]
fn what_hardly_ran_is_not_named_and_names_are_few() {
    let mut one = profile(&[Jvm { main: None, paths: &[&["com.acme.Main.run"], &["com.rare.Main.run"]] }]);
    one.entries[1].energy = MicroJoules(1_000);
    assert_eq!(named(&AppEnergy::found(&one, &[])), ["com.acme"]);
    let methods: Vec<String> = (0..2 * MOST).map(|number| format!("com.acme{number}.Main.run")).collect();
    let paths: Vec<[&str; 1]> = methods.iter().map(|method| [method.as_str()]).collect();
    let paths: Vec<&[&str]> = paths.iter().map(<[&str; 1]>::as_slice).collect();
    assert_eq!(AppEnergy::found(&profile(&[Jvm { main: None, paths: &paths }]), &[]).packages.len(), MOST);
}

proptest! {
    /// The names stand for all of the application's classes that ran and no library's, as `--app` takes them.
    #[test]
    fn names_cover_just_what_is_the_apps(
        classes in prop::collection::btree_set("(com|org|a|uk)(\\.(google|co|b|acme)){0,2}(\\.(common|x|y)){0,2}\\.[A-C]", 1..20),
        libraries in prop::collection::vec("(com|org|a)\\.(google|b|acme)(\\.(x|y))?", 0..4),
    ) {
        let methods: Vec<String> = classes.iter().map(|class| format!("{class}.run")).collect();
        let paths: Vec<[&str; 1]> = methods.iter().map(|method| [method.as_str()]).collect();
        let paths: Vec<&[&str]> = paths.iter().map(<[&str; 1]>::as_slice).collect();
        let profile = profile(&[Jvm { main: None, paths: &paths }]);
        let none = BTreeSet::new();
        let names = Judge::new(Known::built_in(), &libraries, &none).packages(classes.iter().map(String::as_str));
        let app = App::of(&names);
        for class in &classes {
            let (package, _) = class.rsplit_once('.').unwrap();
            let is_library = |name: &&str| libraries.iter().any(|library| library == name);
            let is_own = !names_above(package).any(|name| is_library(&name)) && !package.starts_with("com.google.common");
            let seen = app.as_ref().is_some_and(|app| app.has(&frame(&format!("{class}.run"))));
            prop_assert_eq!(seen, is_own, "{} in {:?}", class, names);
        }
        // Each class is a path of its own, so packages do not overlap.
        let energy = AppEnergy::of(&profile, &names);
        prop_assert!(energy.packages.iter().all(|package| package.own == package.total && package.own.0 > 0));
    }
}
