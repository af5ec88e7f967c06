//! Reads a data set for several who ask, a few at a time, each for a limited time. Of a bucket, which is listed before it is
//! read, as many are listed at a time, too.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use joular_data::{caught::caught, dataset::store::Keeper, report::profile::Stop};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

use super::Refusal;

/// How a data set may be read.
#[derive(Clone, Debug)]
pub struct Readings {
    place: PathBuf,
    time: Duration,
    seats: Arc<Semaphore>,
    /// Of those who list a bucket: they have no seat among those who read yet.
    listing_seats: Arc<Semaphore>,
    /// What keeps the place and its tiers, if it is a bucket.
    buckets: Vec<Arc<Keeper>>,
    advice: &'static str,
}

impl Readings {
    /// How long one waits until others have read.
    pub const WAIT: Duration = Duration::from_secs(30);

    /// So many at a time, each at most for so long. `advice` says what to do when others have waited too long.
    pub fn new(place: PathBuf, at_a_time: usize, time: Duration, advice: &'static str) -> Self {
        let [seats, listing_seats] = [(); 2].map(|()| Arc::new(Semaphore::new(at_a_time)));
        Self { place, time, seats, listing_seats, buckets: Vec::new(), advice }
    }

    /// The same of a place that is kept: what failed may be due to an old listing, which is forgotten then.
    #[must_use]
    pub fn kept_by(self, buckets: Vec<Arc<Keeper>>) -> Self {
        Self { buckets, ..self }
    }

    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Whether the place is kept. A directory is not: looking at it costs nothing.
    pub const fn is_kept(&self) -> bool {
        !self.buckets.is_empty()
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
        let seat = self.seat(&self.seats).await?;
        let buckets = self.buckets.clone();
        let work = move |place: &Path| {
            let outcome = work(place);
            if outcome.as_ref().err().is_some_and(|refusal| refusal.status.is_server_error()) {
                // A file may have gone that was there.
                buckets.iter().for_each(|bucket| bucket.forget());
            }
            outcome
        };
        self.in_time(Some(seat), work).await.unwrap_or_else(|| {
            stop.now();
            let message = "reading took longer than --timeout: ask for less time or less of the data set";
            Err(Refusal::later("too_long", message.to_owned()))
        })
    }

    /// What `work` finds out without reading, by the names of files.
    ///
    /// # Errors
    /// As `work`, or if too many others list, or listing takes too long.
    pub async fn list<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let seat = if self.is_kept() { Some(self.seat(&self.listing_seats).await?) } else { None };
        self.in_time(seat, work).await.unwrap_or_else(|| {
            let message = "listing took longer than --timeout: ask for less time or fewer hosts";
            Err(Refusal::later("too_long", message.to_owned()))
        })
    }

    async fn seat(&self, seats: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
        let Ok(Ok(seat)) = timeout(Self::WAIT, Arc::clone(seats).acquire_owned()).await else {
            let message = format!("the data set is being read for others: {}", self.advice);
            return Err(Refusal::later("busy", message));
        };
        Ok(seat)
    }

    /// What becomes of `work`; `None`: it takes too long.
    async fn in_time<T: Send + 'static>(
        &self,
        seat: Option<OwnedSemaphorePermit>,
        work: impl FnOnce(&Path) -> Result<T, Refusal> + Send + 'static,
    ) -> Option<Result<T, Refusal>> {
        let place = self.place.clone();
        // It has its seat until it really ends, which after it is stopped is when the next rows come.
        let work = spawn_blocking(move || {
            let _seat = seat;
            caught(|| work(&place))
        });
        let done = timeout(self.time, work).await.ok()?;
        Some(done.ok().flatten().unwrap_or_else(|| {
            Err(Refusal::broken("this question met a defect: please report it with what you asked".to_owned()))
        }))
    }
}
