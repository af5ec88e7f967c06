//! Reads a data set for several who ask, a few at a time, each for a limited time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use joular_data::{caught::caught, report::profile::Stop};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::Refusal;

/// How a data set may be read.
#[derive(Clone, Debug)]
pub struct Readings {
    place: PathBuf,
    time: Duration,
    seats: Arc<Semaphore>,
    advice: &'static str,
}

impl Readings {
    /// How long one waits until others have read.
    pub const WAIT: Duration = Duration::from_secs(30);

    /// So many at a time, each at most for so long. `advice` says what to do when others have waited too long.
    pub fn new(place: PathBuf, at_a_time: usize, time: Duration, advice: &'static str) -> Self {
        Self { place, time, seats: Arc::new(Semaphore::new(at_a_time)), advice }
    }

    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What `work` reads. `stop` ends it where its filters have it.
    ///
    /// # Errors
    /// As `work`, or if too many others read, or reading takes too long.
    pub async fn read<T: Send + 'static>(
        &self,
        stop: &Stop,
        work: impl FnOnce(&Path) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(Ok(seat)) = timeout(Self::WAIT, Arc::clone(&self.seats).acquire_owned()).await else {
            let message = format!("the data set is being read for others: {}", self.advice);
            return Err(Refusal::later("busy", message));
        };
        let place = self.place.clone();
        // It has its seat until it really ends, which after it is stopped is when the next rows come.
        let work = spawn_blocking(move || {
            let _seat = seat;
            caught(|| work(&place))
        });
        tokio::select! {
            done = work => done.ok().flatten().unwrap_or_else(|| {
                Err(Refusal::broken("this question met a defect: please report it with what you asked".to_owned()))
            }),
            () = sleep(self.time) => {
                stop.now();
                let message = "reading took longer than --timeout: ask for less time or less of the data set";
                Err(Refusal::later("too_long", message.to_owned()))
            }
        }
    }
}
