//! Says what a Java launcher runs: a class, a module or a jar.
//!
//! The words of the launcher's command line tell, or what the JVM itself says (`sun.java.command`), which is right
//! whatever launched it.

use joular_data::model::target_text::TargetText;

use super::argument_file;

/// Options of the launcher that take the next word as their value (`IsWhiteSpaceOption` in the JDK's `java.c`).
const WITH_VALUE: [&str; 15] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--enable-native-access",
    "--limit-modules",
    "--patch-module",
    "--source",
    "--describe-module",
];
/// As `--describe-module`.
const DESCRIBE: &str = "-d";
/// What runs source files.
const SOURCE_LAUNCHER: &str = "jdk.compiler/com.sun.tools.javac.launcher.";
/// Bytes that are read of what a JVM says: the first word matters.
pub const MAX_COMMAND: usize = 4096;

/// What a launcher runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launched {
    /// A class, a module or a source file.
    Named(TargetText),
    /// A jar, by its path.
    Jar(TargetText),
}

impl Launched {
    /// By the words of a launcher's command line. `read` gives the text of a file of arguments.
    pub fn of_line(line: &[TargetText], read: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let mut next = Next::Option;
        let mut are_files_read = true;
        for word in line.iter().skip(1).map(TargetText::raw) {
            let words = match word.strip_prefix('@').filter(|_| are_files_read) {
                Some(path) if !path.is_empty() && !path.starts_with('@') => {
                    argument_file::words(&read(path).unwrap_or_default())
                }
                // Two of them stand for one.
                Some(path) if path.starts_with('@') => vec![path.to_owned()],
                _ => vec![word.to_owned()],
            };
            are_files_read &= word != "--disable-@files";
            if let Some(found) = words.iter().find_map(|word| next.take(word)) {
                return Some(found);
            }
        }
        None
    }

    /// By what a JVM says: what it runs and the arguments, with spaces between. The words of the command line show where
    /// a path with spaces ends.
    pub fn of_command(command: &str, line: &[TargetText]) -> Option<Self> {
        if command.starts_with(SOURCE_LAUNCHER) {
            return command.split(' ').nth(1).map(|file| Self::Named(file.into()));
        }
        let is_behind_jar = |first: usize| line.get(first.wrapping_sub(1)).is_some_and(|word| word == "-jar");
        if let Some(first) = (1..line.len()).find(|&first| is_joined(line.get(first..).unwrap_or_default(), command)) {
            let word = line.get(first).filter(|word| !word.raw().is_empty())?.clone();
            return Some(if is_behind_jar(first) { Self::Jar(word) } else { Self::Named(word) });
        }
        let word = command.split(' ').next().filter(|word| !word.is_empty())?;
        Some(match command.find(".jar") {
            Some(at) if command.starts_with(['/', '.']) || word.ends_with(".jar") => {
                Self::Jar(command.get(..at + ".jar".len())?.into())
            }
            _ => Self::Named(word.into()),
        })
    }

    /// The path of the jar.
    pub fn jar(&self) -> Option<&str> {
        match self {
            Self::Jar(path) => Some(path.raw()),
            Self::Named(_) => None,
        }
    }

    /// The class, the module, or the file name of the jar.
    pub fn title(&self) -> TargetText {
        match self {
            Self::Named(name) => name.clone(),
            Self::Jar(path) => file_name(path.raw()).into(),
        }
    }
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What the next word of a command line is.
#[derive(Clone, Copy)]
enum Next {
    Option,
    ValueOfOption,
    Jar,
    Module,
}

impl Next {
    fn take(&mut self, word: &str) -> Option<Launched> {
        match *self {
            Self::ValueOfOption => *self = Self::Option,
            Self::Jar => return Some(Launched::Jar(word.into())),
            Self::Module => return Some(Launched::Named(word.into())),
            Self::Option => match word {
                "-jar" => *self = Self::Jar,
                "-m" | "--module" => *self = Self::Module,
                DESCRIBE => *self = Self::ValueOfOption,
                option if WITH_VALUE.contains(&option) => *self = Self::ValueOfOption,
                option if option.starts_with('-') => {
                    return option.strip_prefix("--module=").map(|module| Launched::Named(module.into()));
                }
                "" => {}
                class => return Some(Launched::Named(class.into())),
            },
        }
        None
    }
}

/// Whether these words with spaces between are the command, or begin with it where it was cut.
fn is_joined(words: &[TargetText], command: &str) -> bool {
    let mut rest = command;
    for (index, word) in words.iter().enumerate() {
        let word = word.raw();
        let behind = if index == 0 { Some(rest) } else { rest.strip_prefix(' ') };
        match behind.and_then(|behind| behind.strip_prefix(word)) {
            Some(behind) => rest = behind,
            None => {
                let is_cut_here = rest.is_empty() || behind.is_some_and(|behind| word.starts_with(behind));
                return command.len() >= MAX_COMMAND && is_cut_here;
            }
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> Vec<TargetText> {
        text.split(' ').map(Into::into).collect()
    }

    fn named(name: &str) -> Option<Launched> {
        Some(Launched::Named(name.into()))
    }

    fn jar(path: &str) -> Option<Launched> {
        Some(Launched::Jar(path.into()))
    }

    #[test]
    fn a_launcher_runs_the_first_word_that_is_neither_an_option_nor_its_value() {
        for (command, expected) in [
            ("java -Xmx1g -cp a:b com.acme.Main arg", named("com.acme.Main")),
            ("java -jar /opt/app/server.jar --port 1", jar("/opt/app/server.jar")),
            ("java --module-path mods -m com.acme/com.acme.Main", named("com.acme/com.acme.Main")),
            ("java --module=com.acme/com.acme.Main x", named("com.acme/com.acme.Main")),
            ("java --enable-native-access ALL-UNNAMED Main", named("Main")),
            ("java --add-reads x=y Main", named("Main")),
            ("java --patch-module x=y --limit-modules java.base Main", named("Main")),
            ("java --source 25 F.java", named("F.java")),
            ("java -d java.base", None),
            ("java --describe-module java.base", None),
            ("java -version", None),
            ("java", None),
        ] {
            assert_eq!(Launched::of_line(&line(command), |_| None), expected, "{command}");
        }
    }

    #[test]
    fn files_of_arguments_are_read_up_to_what_is_run() {
        let read = |path: &str| match path {
            "options" => Some("-cp a:b -Xmx1g".to_owned()),
            "all" => Some("-cp a:b\ncom.acme.Main \"x y\"".to_owned()),
            "nested" => Some("@all".to_owned()),
            _ => None,
        };
        for (command, expected) in [
            ("java @options Main", named("Main")),
            ("java @all", named("com.acme.Main")),
            ("java @missing Main", named("Main")),
            ("java Main @all", named("Main")),
            ("java @nested", named("@all")),
            ("java --disable-@files @all", named("@all")),
            ("java @@all", named("@all")),
            ("java @missing", None),
        ] {
            assert_eq!(Launched::of_line(&line(command), read), expected, "{command}");
        }
    }

    #[test]
    fn the_jvm_says_what_it_runs_and_the_command_line_where_that_ends() {
        let words = |words: &[&str]| words.iter().map(|word| TargetText::from(*word)).collect::<Vec<_>>();
        let cut = "x".repeat(MAX_COMMAND);
        for (command, line, expected) in [
            ("com.acme.Main a b", words(&["java", "com.acme.Main", "a", "b"]), named("com.acme.Main")),
            ("/opt/my app/x.jar a", words(&["java", "-jar", "/opt/my app/x.jar", "a"]), jar("/opt/my app/x.jar")),
            ("app.war", words(&["java", "-jar", "app.war"]), jar("app.war")),
            // In a file of arguments, or of a launcher of another kind.
            ("com.acme.Main a b", words(&["java", "@all"]), named("com.acme.Main")),
            ("/opt/my app/x.jar a", words(&["java", "@all"]), jar("/opt/my app/x.jar")),
            ("x.jar a", words(&["server"]), jar("x.jar")),
            ("com.acme/com.acme.Main in.jar", words(&["server"]), named("com.acme/com.acme.Main")),
            (
                "jdk.compiler/com.sun.tools.javac.launcher.Main F.java x",
                words(&["java", "F.java", "x"]),
                named("F.java"),
            ),
            (&format!("Main {cut}")[..MAX_COMMAND], words(&["java", "Main", &cut]), named("Main")),
            ("", words(&["server"]), None),
            ("My \"Main\"\nClass a", words(&["java", "My \"Main\"\nClass", "a"]), named("My \"Main\"\nClass")),
        ] {
            assert_eq!(Launched::of_command(command, &line), expected, "{command}");
        }
    }

    #[test]
    fn a_jar_is_called_by_its_file() {
        assert_eq!(Launched::Jar("/opt/app/server.jar".into()).title(), "server.jar");
        assert_eq!(Launched::Named("com.acme/com.acme.Main".into()).title(), "com.acme/com.acme.Main");
    }

    proptest! {
        #[test]
        fn any_text_is_taken(command in "\\PC{0,40}", words in proptest::collection::vec("\\PC{0,8}", 0..5)) {
            let line: Vec<TargetText> = words.into_iter().map(Into::into).collect();
            let _ = Launched::of_command(&command, &line);
            let _ = Launched::of_line(&line, |_| Some(command.clone()));
        }
    }
}
