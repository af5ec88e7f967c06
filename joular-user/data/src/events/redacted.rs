//! Takes secrets out of what is known of a run and of its processes, before any of it is written.

use super::{Event, ProcessInfo, RunInfo, Runtime};
use crate::{
    model::target_text::TargetText,
    redact::{CommandLines, Redaction},
};

impl Event {
    /// The event as it may be written; `None`: as it is.
    pub fn redacted(&self, redaction: &Redaction) -> Option<Self> {
        match self {
            _ if redaction.shown == CommandLines::Full => None,
            Self::RunStarted(run) => Some(Self::RunStarted(Box::new(run.redacted(redaction)))),
            Self::Process(process) => Some(Self::Process(Box::new(process.redacted(redaction)))),
            _ => None,
        }
    }
}

impl RunInfo {
    /// The run, with its command line as it is to be shown.
    #[must_use]
    pub fn redacted(&self, redaction: &Redaction) -> Self {
        Self { command_line: redaction.words(&self.command_line).words, ..self.clone() }
    }
}

impl ProcessInfo {
    /// The process, with its command line as it is to be shown. What it is known by is a part of its command line where
    /// nothing else names it, so that is without secrets, too.
    #[must_use]
    pub fn redacted(&self, redaction: &Redaction) -> Self {
        let words: Vec<&str> = self.command_line.iter().map(TargetText::raw).collect();
        let redacted = redaction.words(&words);
        let mut info = self.clone();
        let named = |text: &mut TargetText| {
            if let Some(shown) = redaction.named(&redacted, text.raw()) {
                *text = shown.into();
            }
        };
        if let Runtime::Jvm { main_class: Some(main_class), .. } = &mut info.runtime {
            named(main_class);
        }
        if let Some(service) = &mut info.service {
            named(&mut service.name);
            service.version.as_mut().map(named);
        }
        info.command_line = redacted.words.into_iter().map(Into::into).collect();
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Service, ServiceFrom};

    fn process(command: &[&str], main_class: &str) -> ProcessInfo {
        let Runtime::Jvm { version, collector, debug_non_safepoints, unwinding, .. } = Runtime::UNKNOWN_JVM else {
            panic!("no JVM")
        };
        let main_class = Some(main_class.into());
        ProcessInfo {
            comm: "java".into(),
            command_line: command.iter().map(|&word| word.into()).collect(),
            service: Some(Service { name: main_class.clone().unwrap(), version: None, from: ServiceFrom::MainClass }),
            runtime: Runtime::Jvm { version, main_class, collector, debug_non_safepoints, unwinding },
            ..ProcessInfo::default()
        }
    }

    #[test]
    fn a_command_line_is_shown_as_it_was_chosen() {
        let info = process(&["java", "-Dpassword=hunter2", "-Xmx1g", "com.acme.Main"], "com.acme.Main");
        let shown = |shown| info.redacted(&Redaction::new(shown, Vec::new()));
        let redacted = shown(CommandLines::Redacted);
        assert_eq!(redacted.command_line, ["java", "-Dpassword=[redacted]", "-Xmx1g", "com.acme.Main"]);
        assert_eq!(ProcessInfo { command_line: info.command_line.clone(), ..redacted }, info, "all else stays");
        assert_eq!(shown(CommandLines::None), ProcessInfo { command_line: Vec::new(), ..info.clone() });
        assert_eq!(shown(CommandLines::Full), info);
        assert_eq!(
            Event::Process(Box::new(info.clone())).redacted(&Redaction::new(CommandLines::Full, Vec::new())),
            None
        );
    }

    #[test]
    fn a_secret_names_no_service() {
        // What the launcher of a JVM takes for the main class.
        for (command, main_class) in [
            (&["server", "--token", "x7"][..], "x7"),
            (&["server", "db.password=hunter2"], "db.password=hunter2"),
            (&["server", "https://u:hunter2@h/"], "https://u:hunter2@h/"),
        ] {
            for shown in [CommandLines::Redacted, CommandLines::None] {
                let info = process(command, main_class).redacted(&Redaction::new(shown, Vec::new()));
                let text = format!("{info:?}");
                assert!(!text.contains("hunter2") && !text.contains("x7"), "{text}");
            }
        }
    }
}
