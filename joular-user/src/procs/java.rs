//! Reads what a `java` command line and installation say about a JVM.

use joular_data::{events::Runtime, model::target_text::TargetText};

/// What the kernel appends to the name of a file that is gone.
pub const DELETED: &str = " (deleted)";

/// Options of the launcher that take the next argument as their value.
const WITH_VALUE: [&str; 9] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--upgrade-module-path",
];

/// What a launcher runs.
enum Launched<'a> {
    /// A class or a module.
    Named(&'a str),
    /// A jar, by its path.
    Jar(&'a str),
}

fn launched(command_line: &[TargetText]) -> Option<Launched<'_>> {
    let mut arguments = command_line.iter().skip(1).map(TargetText::raw);
    while let Some(argument) = arguments.next() {
        match argument {
            "-jar" => return arguments.next().map(Launched::Jar),
            "-m" | "--module" => return arguments.next().map(Launched::Named),
            option if WITH_VALUE.contains(&option) => drop(arguments.next()),
            option if option.starts_with('-') || option.starts_with('@') => {}
            class => return Some(Launched::Named(class)),
        }
    }
    None
}

/// The path of the jar that is run.
pub fn jar(command_line: &[TargetText]) -> Option<&str> {
    match launched(command_line)? {
        Launched::Jar(path) => Some(path),
        Launched::Named(_) => None,
    }
}

/// Its file name.
pub fn jar_name(command_line: &[TargetText]) -> Option<&str> {
    jar(command_line)?.rsplit('/').next()
}

/// What is run: the class, the module or the jar's file name.
pub fn main_class(command_line: &[TargetText]) -> Option<TargetText> {
    match launched(command_line)? {
        Launched::Named(name) => Some(name.into()),
        Launched::Jar(_) => jar_name(command_line).map(Into::into),
    }
}

/// The collector asked for; `None` leaves the JVM's own choice unknown.
pub fn collector(command_line: &[TargetText]) -> Option<&'static str> {
    let names = [
        ("-XX:+UseG1GC", "G1"),
        ("-XX:+UseParallelGC", "Parallel"),
        ("-XX:+UseSerialGC", "Serial"),
        ("-XX:+UseZGC", "Z"),
        ("-XX:+UseShenandoahGC", "Shenandoah"),
        ("-XX:+UseEpsilonGC", "Epsilon"),
        ("-XX:+UseConcMarkSweepGC", "CMS"),
    ];
    command_line.iter().rev().find_map(|arg| names.iter().find(|(flag, _)| arg == flag).map(|(_, name)| *name))
}

/// `JAVA_VERSION="17.0.15"` of an installation's `release` file.
pub fn version(release: &str) -> Option<TargetText> {
    let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let version = Some(line.trim().trim_matches('"')).filter(|version| !version.is_empty() && version.len() <= 64);
    version.map(Into::into)
}

/// Whether an executable's path, as the kernel gives it, is a Java launcher, even one that was
/// deleted or replaced since it was started.
pub fn is_launcher(executable: &str) -> bool {
    executable.strip_suffix(DELETED).unwrap_or(executable).rsplit('/').next() == Some("java")
}

/// A JVM as its command line describes it.
pub fn runtime(command_line: &[TargetText], release: Option<&str>) -> Runtime {
    Runtime::Jvm {
        version: release.and_then(version),
        main_class: main_class(command_line),
        collector: collector(command_line).map(Into::into),
        debug_non_safepoints: None,
        unwinding: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<TargetText> {
        text.split(' ').map(Into::into).collect()
    }

    #[test]
    fn the_main_class_is_the_first_non_option() {
        for (command, expected) in [
            ("java -Xmx1g -cp a:b com.acme.Main arg", Some("com.acme.Main")),
            ("java -jar /opt/app/server.jar --port 1", Some("server.jar")),
            ("java --module-path mods -m com.acme/com.acme.Main", Some("com.acme/com.acme.Main")),
            ("java @argfile -XX:+UseG1GC Main", Some("Main")),
            ("java -version", None),
        ] {
            assert_eq!(main_class(&line(command)), expected.map(Into::into), "{command}");
        }
    }

    #[test]
    fn a_launcher_stays_one_when_its_file_is_replaced() {
        for (executable, expected) in [
            ("/opt/jdk/bin/java", true),
            ("/opt/jdk/bin/java (deleted)", true),
            ("/opt/jdk/bin/javac", false),
            ("/opt/java/bin/sh (deleted)", false),
        ] {
            assert_eq!(is_launcher(executable), expected, "{executable}");
        }
    }

    #[test]
    fn the_last_collector_flag_counts() {
        assert_eq!(collector(&line("java -XX:+UseSerialGC -XX:+UseZGC Main")), Some("Z"));
        assert_eq!(collector(&line("java Main")), None);
    }

    #[test]
    fn the_version_stands_in_the_release_file() {
        assert_eq!(version("IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"21.0.8\"\n"), Some("21.0.8".into()));
        assert_eq!(version("nothing"), None);
    }
}
