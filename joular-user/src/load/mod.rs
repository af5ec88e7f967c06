//! Loads bundles into ClickHouse, once or as they arrive, and compares what is there with them.
//!
//! [`joular_data::loading`] decides what is sent. Here is who sends it ([`client`]), as whom ([`login`]), and what is said
//! of answers ([`answer`]). Whatever ends this in the middle does no harm: what is not known to have arrived is sent again,
//! and the database leaves out what it has.

mod answer;
mod client;
mod login;

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use joular_data::{
    dataset::{
        DataSetError,
        store::{self, Store},
    },
    loading::{self, Checked, LoadError, Loaded, Loader},
    model::units::UnixMicros,
};
use thiserror::Error;
use tokio::{runtime::Builder, sync::oneshot};

use self::{client::Client, login::Login};
use crate::{
    cli::Exit, config::Loading, failing::Failing, messages, output::secret_file::SecretFileError, shutdown::Shutdown,
};

/// Hours that are looked at in every turn of following. Late ones have their turn less often.
const RECENT: Duration = Duration::from_secs(3 * 3600);
const LATE: Duration = Duration::from_secs(3600);

/// Why bundles are not loaded or compared.
#[derive(Debug, Error)]
pub enum LoadingError {
    #[error("reading user and password of {path}: {source}")]
    UserFile { path: PathBuf, source: SecretFileError },
    #[error("{0}: it is not USER:PASSWORD in one line: write it so")]
    User(String),
    #[error("loading into {0}: others could read the password on the way: give an address that begins with https://")]
    Readable(String),
    #[error("reading the certificates {path}: {source}: name a file in PEM with --ca")]
    Authority { path: PathBuf, source: io::Error },
    #[error("preparing to ask {url}: {cause}")]
    Client { url: String, cause: String },
    #[error(transparent)]
    Data(Box<DataSetError>),
    #[error("loading {place} into {url}: {source}")]
    Load { place: String, url: String, source: Box<LoadError> },
    #[error("waiting for signals: {0}")]
    Signals(io::Error),
    #[error("following {0}: the thread that loads has ended: this is a defect, please report it")]
    Ended(String),
}

impl LoadingError {
    /// The exit code that scripts see.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::UserFile { .. } | Self::User(_) | Self::Readable(_) | Self::Authority { .. } => Exit::Usage,
            _ => Exit::Failure,
        }
    }
}

/// A place and a database, ready to be used.
struct Ends<'a> {
    loading: &'a Loading,
    store: Arc<dyn Store>,
    client: Client,
}

impl<'a> Ends<'a> {
    fn open(loading: &'a Loading) -> Result<Self, LoadingError> {
        let login = Login::of(loading.user.as_deref())?;
        if login.as_ref().is_some_and(Login::has_password) && !loading.is_private {
            return Err(LoadingError::Readable(loading.url.clone()));
        }
        let store = store::open(&loading.place).map_err(|error| LoadingError::Data(Box::new(error)))?;
        Ok(Self { loading, store, client: Client::new(loading, login)? })
    }

    fn loader(&self) -> Loader<'_> {
        Loader::new(Arc::clone(&self.store), &self.client, &self.loading.database)
    }

    fn failed(&self, source: LoadError) -> LoadingError {
        let place = self.loading.place.display().to_string();
        LoadingError::Load { place, url: self.loading.url.clone(), source: Box::new(source) }
    }
}

/// Loads what has not arrived.
///
/// # Errors
/// See [`LoadingError`]. What was loaded before it is said as well.
pub fn once(loading: &Loading) -> Result<(Loaded, Result<(), LoadingError>), LoadingError> {
    let ends = Ends::open(loading)?;
    let (loaded, result) = ends.loader().pass(before_now(loading.since));
    Ok((loaded, result.map_err(|error| ends.failed(error))))
}

/// Compares the runs of the place with those of the database.
///
/// # Errors
/// See [`LoadingError`].
pub fn check(loading: &Loading) -> Result<Checked, LoadingError> {
    let ends = Ends::open(loading)?;
    let since = before_now(loading.since);
    let checked = loading::check(&ends.store, &ends.client, &loading.database, since);
    checked.map_err(|error| ends.failed(error))
}

/// Loads what arrives until a signal ends it.
///
/// # Errors
/// If the first turn fails; see [`LoadingError`].
pub fn follow(loading: &Loading, every: Duration) -> Result<(), LoadingError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(LoadingError::Signals)?;
    let (ended, end) = oneshot::channel();
    let own = loading.clone();
    // The client waits for its answers on the thread that asks. A signal leaves it where it is.
    let spawned = thread::Builder::new().name("load".to_owned()).spawn(move || {
        // Nobody listens after a signal.
        let _ = ended.send(turns(&own, every));
    });
    spawned.map_err(LoadingError::Signals)?;
    runtime.block_on(async {
        let mut shutdown = Shutdown::listen(Exit::Success.code()).map_err(LoadingError::Signals)?;
        // What has not arrived is sent again.
        shutdown.all_is_written();
        tokio::select! {
            _ = shutdown.requested() => Ok(()),
            outcome = end => outcome.unwrap_or_else(|_| Err(LoadingError::Ended(loading.place.display().to_string()))),
        }
    })
}

/// Ends with an error of the first turn only.
fn turns(loading: &Loading, every: Duration) -> Result<(), LoadingError> {
    let ends = Ends::open(loading)?;
    let mut loader = ends.loader();
    let mut failing = Failing::default();
    let mut is_first = true;
    let mut late = SystemTime::now();
    loop {
        let is_late = late.elapsed().unwrap_or(LATE) >= LATE;
        if is_late {
            late = SystemTime::now();
        }
        let recent = loading.since.map_or(RECENT, |since| since.min(RECENT));
        let since = if is_first || is_late { loading.since } else { Some(recent) };
        let (loaded, result) = loader.pass(before_now(since));
        loaded.problems.iter().for_each(|problem| messages::warn(problem));
        if loaded.runs > 0 {
            messages::info(&loaded.text());
        }
        let outcome = result.map_err(|error| ends.failed(error));
        if failing.is_news(outcome.as_ref().map(drop).map_err(ToString::to_string)) && !is_first {
            match &outcome {
                Ok(()) => messages::info(&format!("loading into {} works again", loading.url)),
                Err(error) => messages::warn(&format!("{error}: trying again in {every:?}")),
            }
        }
        if is_first {
            outcome?;
            is_first = false;
        }
        thread::sleep(every);
    }
}

/// So long ago.
fn before_now(since: Option<Duration>) -> Option<UnixMicros> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let then = now.saturating_sub(since?);
    i64::try_from(then.as_micros()).ok().map(UnixMicros)
}
