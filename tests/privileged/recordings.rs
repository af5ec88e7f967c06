//! Reads what a recording says of each window, which has more than any table of the data set.

use std::{fs::File, io::BufReader, path::Path};

use anyhow::{Context as _, Result};
use joular_data::events::{Event, Window, recording::RecordingReader};

/// All windows, in order.
pub fn windows(recording: &Path) -> Result<Vec<Window>> {
    let file = File::open(recording).with_context(|| format!("opening {}", recording.display()))?;
    let mut windows = Vec::new();
    for event in RecordingReader::new(BufReader::new(file))? {
        if let Event::Window(window) = event? {
            windows.push(*window);
        }
    }
    Ok(windows)
}
