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

/// The commands, and as whom they run.
#[derive(Clone, Debug, Default)]
pub struct Around {
    pub prepare: Option<String>,
    pub cleanup: Option<String>,
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
    /// The command there, with the variant's values in their places.
    pub fn command(&self, side: Side, variant: &Variant) -> Option<String> {
        let command = match side {
            Side::Before => self.prepare.as_deref(),
            Side::After => self.cleanup.as_deref(),
        };
        command.map(|command| variant.filled(command))
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
        let around = Around { prepare: Some("make {n} {m} $HOME".into()), cleanup: None, user: None };
        let words = ["sort", "{n}"].map(OsString::from);
        let variants = plan::variants(&words, &[], &["n=10,20".to_owned()]).unwrap();
        let found: Vec<Option<String>> = variants.iter().map(|variant| around.command(Side::Before, variant)).collect();
        assert_eq!(found, [Some("make 10 {m} $HOME".to_owned()), Some("make 20 {m} $HOME".to_owned())]);
        assert_eq!(around.command(Side::After, &variants[0]), None);
    }
}
