//! Hands on what threads moved through sockets and files in each window.

use joular_data::events::WindowIo;

use super::{Live, LiveError, Run, gap::Gap};
use crate::kernel::io::{Drained, FIRST_GAP_BYTES};

/// What is kept between windows.
#[derive(Debug)]
pub(super) struct Io {
    gap: Gap,
    /// How often a program had not run at the end of the last window.
    missed: u64,
}

impl Default for Io {
    fn default() -> Self {
        Self { gap: Gap::new(FIRST_GAP_BYTES), missed: 0 }
    }
}

impl Run<'_> {
    /// Tells the user what `--io` does not see on this kernel.
    pub(super) fn say_what_is_not_seen(&mut self) {
        let Live { programs, notify, .. } = &mut *self.live;
        let Some(io) = programs.io() else { return };
        if io.is_at_tracepoints() {
            let why = "this kernel lets no program be put on its functions";
            notify(&format!("bytes are counted at tracepoints, because {why}: see docs/io.md"));
        }
        let missing = io.missing();
        if !missing.is_empty() {
            notify(&format!("not counted on this kernel: bytes of {}", missing.join(", ")));
        }
    }

    /// What was moved in the window that has ended.
    pub(super) fn moved(&mut self, drained: Drained, window_ns: u64) -> Result<WindowIo, LiveError> {
        let samples = drained.samples.iter().map(|sample| sample.samples).sum();
        if let Some(bytes) = self.io.gap.after(samples, window_ns) {
            self.live.banks.set_io_gap(bytes)?;
        }
        let programs = self.live.programs.io();
        let (missed, counts_devices) = programs.map_or((0, false), |io| (io.missed(), io.counts_devices()));
        let new = missed.saturating_sub(std::mem::replace(&mut self.io.missed, missed));
        if new > 0 {
            self.lost("io_call_missed", new);
        }
        Ok(WindowIo { counts_devices, threads: drained.threads, samples: drained.samples })
    }
}
