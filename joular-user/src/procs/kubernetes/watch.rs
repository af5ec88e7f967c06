//! Asks for the pods of this node now and then, and when an unknown one appears.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::AtomicU64,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use super::{Listing, Pods, Shared, Source, cri, kubelet};
use crate::failing::Failing;

/// Between two questions.
const PERIOD: Duration = Duration::from_secs(15);
/// Between two questions when unknown containers appear.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);
/// The longest that an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// For the first answer a recording waits at its start, so that most is known in its first window.
const FIRST_ANSWER: Duration = Duration::from_secs(2);

/// Tells whoever started the recording.
#[derive(Clone, Copy, Debug)]
pub struct Say {
    pub info: fn(&str),
    pub warn: fn(&str),
}

impl Pods {
    /// Starts to ask. `say` is told when answers fail to come, and when they come again. Returns when the first answer
    /// is there, and after two seconds at most.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(source: Source, say: Say) -> io::Result<Self> {
        let (ask, asked) = mpsc::sync_channel(1);
        let (answer, first) = mpsc::sync_channel(1);
        let shared =
            Arc::new(Shared { known: Mutex::default(), generation: AtomicU64::new(0), unknown: Mutex::default(), ask });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let watch = Watch { source, runtime, shared: Arc::downgrade(&shared), failing: Failing::default(), say };
        thread::Builder::new().name("joular-pods".to_owned()).spawn(move || watch.run(&asked, &answer))?;
        // Without an answer the recording begins all the same.
        let _ = first.recv_timeout(FIRST_ANSWER);
        Ok(Self(Some(shared)))
    }
}

struct Watch {
    source: Source,
    runtime: Runtime,
    shared: Weak<Shared>,
    failing: Failing<String>,
    say: Say,
}

impl Watch {
    fn run(mut self, asked: &Receiver<()>, first: &mpsc::SyncSender<()>) {
        loop {
            let start = Instant::now();
            let listing = self.ask();
            let Some(shared) = self.shared.upgrade() else { return };
            if let Some(listing) = listing {
                shared.publish(listing);
            } else {
                // Who asked in vain may ask again.
                shared.unknown.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            drop(shared);
            let _ = first.try_send(());
            match asked.recv_timeout(PERIOD) {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) => thread::sleep(SHORTEST_PERIOD.saturating_sub(start.elapsed())),
            }
        }
    }

    /// `None`: no answer. Each cause is told once, and that there are answers again.
    fn ask(&mut self) -> Option<Listing> {
        let source = &self.source;
        match self.runtime.block_on(source.listing()) {
            Ok(listing) => {
                if self.failing.is_news(Ok(())) {
                    (self.say.info)(&format!("{source} answers again"));
                }
                Some(listing)
            }
            Err(cause) => {
                if self.failing.is_news(Err(cause.clone())) {
                    (self.say.warn)(&format!(
                        "asking {source} for pods: {cause}: until it answers, new pods have no names and labels"
                    ));
                }
                None
            }
        }
    }
}

impl Source {
    async fn listing(&self) -> Result<Listing, String> {
        let listing = async {
            match self {
                Self::Kubelet { url, token, trust } => kubelet::list(url, token.as_deref(), trust).await,
                Self::Cri(socket) => cri::list(socket).await,
            }
        };
        timeout(ANSWER, listing).await.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER.as_secs())))
    }

    /// Asks once: how many pods there are.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn count_pods(&self) -> Result<usize, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(self.listing()).map(|listing| listing.by_pod.len())
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kubelet { url, .. } => write!(f, "the kubelet at {url}"),
            Self::Cri(socket) => write!(f, "the container runtime at {}", socket.display()),
        }
    }
}
