//! Writes the model of a board that `validate` fitted, in the form that `--board-models` reads.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use joular_data::{
    report::validate::{BoardFit, Interval},
    text::escape,
};

use crate::{
    energy::board::{
        file::{BoardModel, FitNotes},
        recognise::{self, BoardName},
    },
    messages,
};

/// A code has at most so many letters of the board's name.
const MOST_CODE: usize = 80;

/// A board without a model yet, and where that is written.
pub(super) struct NewBoard {
    name: BoardName,
    path: PathBuf,
}

impl NewBoard {
    /// The board of this name, or this machine.
    ///
    /// # Errors
    /// If there is no name.
    pub(super) fn named(path: &Path, name: Option<&str>) -> anyhow::Result<Self> {
        let name = match name {
            Some(text) => BoardName::parse(text).ok_or_else(|| anyhow!("--board: it is empty"))?,
            None => recognise::board_name(Path::new("/proc")).context(
                "reading /proc/device-tree/model: this machine does not say which board it is: give the name with --board",
            )?,
        };
        Ok(Self { name, path: path.to_owned() })
    }

    /// Writes the file, which must not be there yet.
    ///
    /// # Errors
    /// If the model is of no board, or the file cannot be written.
    pub(super) fn write(&self, fit: &BoardFit) -> anyhow::Result<()> {
        let model = model(&self.name, fit);
        let shown = escape(&self.path.display().to_string());
        model.check().with_context(|| format!("making a model for {}", self.name))?;
        let text = format!(
            "# The model of a board, fitted to a meter's log by joular-bpf {}. docs/boards.md describes the form.\n\n{}",
            env!("CARGO_PKG_VERSION"),
            model.to_toml()
        );
        let mut file = File::create_new(&self.path).with_context(|| format!("writing {shown}: name a new file"))?;
        file.write_all(text.as_bytes()).with_context(|| format!("writing {shown}"))?;
        messages::info(&format!("{shown} has the model of {}: use it with --board-models {shown}", self.name));
        Ok(())
    }
}

/// It is for any revision of the board: nothing else is known of others.
fn model(name: &BoardName, fit: &BoardFit) -> BoardModel {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let revision = name.revision.iter().flat_map(|revision| [" ", revision.as_str()]);
    let text: String = std::iter::once(name.name.as_str()).chain(revision).collect();
    let code: String = text.chars().take(MOST_CODE).map(plain).collect();
    let interval = |of: Interval| [of.low, of.high];
    BoardModel {
        code: format!("{code}-{}", usize::BITS),
        names: vec![name.name.clone()],
        revision: name.revision.clone(),
        bits: Some(usize::BITS),
        preferred: false,
        linear: [fit.idle_w.value, fit.more_w.value],
        polynomial: Vec::new(),
        fit: Some(FitNotes {
            windows: fit.windows,
            use_from: fit.least_use,
            use_to: fit.most_use,
            residual_watts: fit.residual_w,
            idle_interval: interval(fit.idle_w),
            more_interval: interval(fit.more_w),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::energy::board::file;

    const fn fit() -> BoardFit {
        BoardFit {
            idle_w: Interval { value: 2.25, low: 2.125, high: 2.5 },
            more_w: Interval { value: 4.5, low: 4.25, high: 4.75 },
            residual_w: 0.0625,
            windows: 312,
            spans: 300,
            least_use: 0.015625,
            most_use: 1.0,
        }
    }

    #[test]
    fn what_was_fitted_is_found_for_its_board_and_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boards.toml");
        let board = NewBoard::named(&path, Some("Orange \"Pi\" 5 Rev 2.1")).unwrap();
        board.write(&fit()).unwrap();
        let models = file::read(&path).unwrap();
        let find = |name: &str| recognise::find(&models, &BoardName::parse(name).unwrap(), 64);
        let found = find("Orange \"Pi\" 5 Rev 1.0").unwrap();
        assert_eq!((found.code.as_str(), found.linear), ("orange--pi--5-2-1-64", [2.25, 4.5]));
        assert_eq!(found.fit.as_ref().unwrap().windows, 312);
        assert_eq!(found.curve().unwrap().power.power_uw(1, 2), 4_500_000);
        assert!(find("Orange Pi 5 Rev 2.1").is_none());
        let twice = format!("{:#}", board.write(&fit()).unwrap_err());
        assert!(twice.contains("boards.toml: name a new file"), "{twice}");
    }

    #[test]
    fn a_model_of_no_board_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boards.toml");
        let hot = BoardFit { more_w: Interval { value: 5000.0, low: 1.0, high: 9999.0 }, ..fit() };
        assert!(NewBoard::named(&path, Some("a")).unwrap().write(&hot).is_err());
        assert!(NewBoard::named(&path, Some("a\u{1b}[2J")).unwrap().write(&fit()).is_err());
        assert!(NewBoard::named(&path, Some(" ")).is_err());
        assert!(!fs::exists(&path).unwrap());
    }
}
