//! Asks an application for its counters of requests, at the beginning, now and then, and at the end, and appends what
//! they count to a file, for `report --requests`.
//!
//! It runs beside a recording and knows nothing of it. Rows are in the file as soon as they are counted, so nothing that
//! was counted is lost if it is killed. An answer that does not come is no loss either: counters go on, and the next rows
//! are of a longer time.

mod ask;
mod file;
#[cfg(test)]
#[cfg(feature = "requests")]
mod tests;

use std::{fs::File, io, io::Write as _};

use joular_data::output::OutputError;
use thiserror::Error;
use tokio::{
    runtime::Builder,
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};

use self::ask::{Answer, Failed};
use crate::{cli::Exit, config::Scraping, failing::Failing, messages, shutdown::Shutdown};

/// Why requests cannot be counted.
#[derive(Debug, Error)]
pub enum CountError {
    #[error("starting to count requests: {0}")]
    Start(io::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(
        "{0} is not a file of counts that ends with a whole line, so nothing is appended: choose another one with --output"
    )]
    OtherFile(String),
    #[error("asking {url}: {cause}")]
    Refused { url: String, cause: String },
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub requests: u64,
    pub routes: usize,
    /// Answers after the first one.
    pub times: u64,
    /// Whether the last answer came: otherwise requests at the end are missing.
    pub is_whole: bool,
}

/// Counts until a signal comes or the time is over.
///
/// # Errors
/// If the first answer says that nobody may ask, or the file cannot be written.
pub fn run(scraping: Scraping) -> Result<Counted, CountError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(CountError::Start)?;
    runtime.block_on(async {
        let mut shutdown = Shutdown::listen(Exit::Interrupted.code()).map_err(CountError::Start)?;
        // Each row is, as soon as there is one.
        shutdown.all_is_written();
        Scraper::open(scraping)?.count(&mut shutdown).await
    })
}

struct Scraper {
    scraping: Scraping,
    file: File,
    failing: Failing<String>,
    counted: Counted,
}

impl Scraper {
    fn open(scraping: Scraping) -> Result<Self, CountError> {
        let file = file::open(&scraping.output)?;
        Ok(Self { scraping, file, failing: Failing::default(), counted: Counted::default() })
    }

    async fn count(mut self, shutdown: &mut Shutdown) -> Result<Counted, CountError> {
        let every = self.scraping.every;
        let begin = Instant::now();
        let end = self.scraping.duration.and_then(|duration| begin.checked_add(duration));
        let mut turns = interval_at(begin + every, every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let first = self.turn().await?;
        if let Err(Failed::Refused(cause)) = first {
            return Err(CountError::Refused { url: self.scraping.url, cause });
        }
        self.tell(&first);
        if first.is_ok() && self.scraping.counting.routes() == 0 {
            let names: Vec<&str> = self.scraping.counting.names().collect();
            messages::info(&format!("no counter of requests is exposed yet: looking for {}", names.join(", ")));
        }
        loop {
            let is_over = tokio::select! {
                _ = turns.tick() => false,
                _ = shutdown.requested() => true,
                () = reached(end) => true,
            };
            let outcome = self.turn().await?;
            self.tell(&outcome);
            if is_over {
                self.counted.is_whole = outcome.is_ok();
                self.counted.routes = self.scraping.counting.routes();
                self.scraping.counting.routes_not_seen().for_each(|route| {
                    messages::warn(&format!("--handler: no request of {route} was seen"));
                });
                return Ok(self.counted);
            }
        }
    }

    /// Asks once.
    ///
    /// # Errors
    /// If the file cannot be written.
    async fn turn(&mut self) -> Result<Result<(), Failed>, CountError> {
        match ask::ask(&self.scraping).await {
            Ok(answer) => self.take(&answer),
            Err(failed) => Ok(Err(failed)),
        }
    }

    /// Says what went wrong unless it was said before, and that it goes on.
    fn tell(&mut self, outcome: &Result<(), Failed>) {
        let Scraping { url, every, .. } = &self.scraping;
        if !self.failing.is_news(outcome.as_ref().copied().map_err(ToString::to_string)) {
            return;
        }
        match outcome {
            Ok(()) => messages::info(&format!("asking {url} works again")),
            Err(failed) => {
                messages::warn(&format!("asking {url}: {failed}: asking again in {every:?}, its counters go on"));
            }
        }
    }

    fn take(&mut self, answer: &Answer) -> Result<Result<(), Failed>, CountError> {
        let is_first = self.scraping.counting.is_at_beginning();
        let taken = match self.scraping.counting.take(&answer.text, answer.at) {
            Ok(taken) => taken,
            Err(error) => return Ok(Err(Failed::Later(error.to_string()))),
        };
        taken.notes.iter().for_each(|note| messages::info(note));
        let written = self.file.write_all(taken.rows.as_bytes());
        written.map_err(|source| OutputError::from_io("writing", &self.scraping.output, source))?;
        self.counted.requests = self.counted.requests.saturating_add(taken.requests);
        self.counted.times += u64::from(!is_first);
        Ok(Ok(()))
    }
}

/// Resolves then; without a time never.
async fn reached(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}
