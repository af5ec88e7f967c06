//! Hands readings on when they are complete. A virtual machine learns from its host what a window used after the window, and
//! the window waits for it.

use std::time::Duration;

use joular_data::events::EnergyReading;

use super::{LiveError, Run};

/// Time between two looks for what comes late, at the end of a run. Before that, every window looks.
const LOOK: Duration = Duration::from_millis(50);

impl Run<'_> {
    /// Hands on readings at a boundary, or holds them back, and hands on those before that are complete now.
    pub(super) fn hand_on_reading(&mut self, reading: EnergyReading) -> Result<(), LiveError> {
        self.consumer.hold(reading);
        self.hand_on_complete()
    }

    /// Waits for what the last windows used. Sources say when to wait no longer.
    pub(super) async fn hand_on_rest(&mut self) -> Result<(), LiveError> {
        while self.consumer.is_holding() {
            tokio::time::sleep(LOOK).await;
            // Only to learn what is new.
            let _ = self.live.source.read();
            self.hand_on_complete()?;
        }
        Ok(())
    }

    fn hand_on_complete(&mut self) -> Result<(), LiveError> {
        let source = &mut self.live.source;
        Ok(self.consumer.release(|reading| source.complete(reading.read_at, &mut reading.readings))?)
    }
}
