//! Runs shell commands before and after each run of an experiment. No recording is under way then, so nobody's energy
//! is counted.

use std::ffi::OsString;

use super::{
    launch::{CommandOutput, Held, LaunchError, Launched, Surroundings},
    plan::Variant,
    user::User,
};

/// What the commands are given to.
const SHELL: [&str; 2] = ["sh", "-c"];

/// The commands, and as whom they run. On each side there is none, one for all variants, or one for each in their order.
#[derive(Clone, Debug, Default)]
pub struct Around {
    pub prepare: Vec<String>,
    pub cleanup: Vec<String>,
    /// That of the measured command; `None`: the user of this process.
    pub user: Option<User>,
}

/// On which side of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Before,
    After,
}

impl Side {
    /// The option that names its command.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Before => "--prepare",
            Self::After => "--cleanup",
        }
    }
}

impl Around {
    const fn commands(&self, side: Side) -> &[String] {
        match side {
            Side::Before => self.prepare.as_slice(),
            Side::After => self.cleanup.as_slice(),
        }
    }

    /// The command there of the variant with this number, from 0, with its values in their places.
    pub fn command(&self, side: Side, number: usize, variant: &Variant) -> Option<String> {
        let command = match self.commands(side) {
            [all] => Some(all),
            each => each.get(number),
        };
        command.map(|command| variant.filled(command))
    }

    /// The side whose commands are neither none, nor one, nor one for each of so many variants; how many they are.
    pub fn unfit(&self, variants: usize) -> Option<(Side, usize)> {
        let counts = [Side::Before, Side::After].map(|side| (side, self.commands(side).len()));
        counts.into_iter().find(|(_, count)| ![0, 1, variants].contains(count))
    }

    /// Starts a command. It finds what the measured command finds around it, but for the places of marks, and reads
    /// nothing.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, command: &str, shows_output: bool) -> Result<Launched, LaunchError> {
        let words: Vec<OsString> = SHELL.into_iter().chain([command]).map(Into::into).collect();
        let output = if shows_output { CommandOutput::Ours } else { CommandOutput::Hidden };
        // The input is for the command that is measured.
        let surroundings = Surroundings { user: self.user.as_ref(), variables: Vec::new(), output, has_no_input: true };
        Held::start(&words, &surroundings)?.release()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan, *};

    #[test]
    fn commands_around_a_run_have_the_values_of_its_variant() {
        let around = Around { prepare: vec!["make {n} {m} $HOME".into()], ..Around::default() };
        let words = ["sort", "{n}"].map(OsString::from);
        let variants = plan::variants(&words, &[], &["n=10,20".to_owned()]).unwrap();
        assert_eq!(commands(&around, Side::Before, &variants), ["make 10 {m} $HOME", "make 20 {m} $HOME"]);
        assert_eq!(commands(&around, Side::After, &variants), [""; 0]);
    }

    fn commands(around: &Around, side: Side, variants: &[Variant]) -> Vec<String> {
        let each = variants.iter().enumerate();
        each.filter_map(|(number, variant)| around.command(side, number, variant)).collect()
    }

    #[test]
    fn a_command_is_for_all_variants_or_there_is_one_for_each() {
        let named = ["a=true", "b=false"].map(str::to_owned);
        let variants = plan::variants(&[], &named, &[]).unwrap();
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let of = |prepare: &[&str], cleanup: &[&str]| Around {
            prepare: texts(prepare),
            cleanup: texts(cleanup),
            user: None,
        };
        let around = of(&["x", "y"], &["z"]);
        assert_eq!(commands(&around, Side::Before, &variants), ["x", "y"]);
        assert_eq!(commands(&around, Side::After, &variants), ["z", "z"]);
        assert_eq!(around.unfit(2), None);
        assert_eq!(around.unfit(1), Some((Side::Before, 2)));
        assert_eq!(around.unfit(3), Some((Side::Before, 2)));
        assert_eq!(of(&[], &["1", "2", "3"]).unfit(2), Some((Side::After, 3)));
        assert_eq!(Around::default().unfit(2), None);
    }
}
