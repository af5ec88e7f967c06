//! Reads what a `java` command line and installation say about a JVM.

mod argument_file;
mod launched;

use joular_data::{events::Runtime, model::target_text::TargetText};

pub use self::launched::{Launched, MAX_COMMAND, file_name};

/// What the kernel appends to the name of a file that is gone.
pub const DELETED: &str = " (deleted)";

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

/// A JVM as its command line describes it. `launched` is not known of a JVM that no launcher of Java started.
pub fn runtime(launched: Option<&Launched>, command_line: &[TargetText], release: Option<&str>) -> Runtime {
    Runtime::Jvm {
        version: release.and_then(version),
        main_class: launched.map(Launched::title),
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
