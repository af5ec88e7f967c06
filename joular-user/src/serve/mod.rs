//! Serves a data set to browsers and programs: pages and JSON about a part of it that an address names.
//!
//! [`routes`] has the paths. Each makes a question of what [`crate::query`] understands, and [`desk`] answers it: from what
//! is kept ([`cache`]), with others who ask the same, or by reading the data set ([`scan`]). [`pyroscope`] makes questions of
//! what Grafana posts. It writes nothing, and nobody gets an answer who is not known ([`readers`]), asks by another name
//! ([`hosts`]), or for more than the [`terms`] allow.

mod answer;
mod api;
mod cache;
mod compare;
mod counters;
mod desk;
mod hosts;
mod identity;
mod openapi;
mod pages;
mod parts;
mod pyroscope;
mod question;
mod readers;
mod routes;
mod scan;
mod terms;
#[cfg(test)]
mod walk_tests;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use joular_data::{
    dataset::{
        DataSetError,
        store::{self, Keeper},
    },
    fleet::Tier,
    report::profile::has_run,
    text::escape,
};

use self::{
    desk::{Desk, Setting},
    hosts::Hosts,
    readers::Readers,
    terms::LISTED,
};
use crate::{
    cli::Exit,
    config::{Serving, TlsFiles},
    messages,
    output::{Server, Tls, TlsError, Token, TokenError, http::Limits},
    query::Readings,
    shutdown::Shutdown,
};

/// Of a whole answer, beside waiting for others and reading.
const TRANSFER: Duration = Duration::from_secs(60);

/// Why a data set is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error("reading the token {path}: {source}")]
    Token { path: PathBuf, source: TokenError },
    #[error("serving over TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("serving at {address}: {source}: choose another address with --listen")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("waiting for signals: {0}")]
    Signals(io::Error),
}

impl ServeError {
    /// The exit code that scripts see.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Token { .. } | Self::Tls(_) => Exit::Usage,
            _ => Exit::Failure,
        }
    }
}

/// Serves until a signal ends it.
///
/// # Errors
/// If there is no data set that can be watched, or it cannot be served so.
pub fn run(serving: &Serving) -> Result<(), ServeError> {
    // It has an event loop of its own, so it must not be dropped within another one: here it outlives that.
    let buckets = keep(serving)?;
    if buckets.is_empty() {
        drop(store::open(&serving.data)?);
    } else {
        // Whether it can be read at all is better known now.
        has_run(&serving.data)?;
    }
    warn_of_readers(serving);
    let server = server(serving)?;
    let failed = |source| ServeError::Listen { address: serving.address, source };
    let address = server.address().map_err(failed)?;
    let desk = Desk::new(setting(serving, address.ip(), buckets.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Signals)?;
    runtime.block_on(async {
        let mut shutdown = Shutdown::listen(Exit::Success.code()).map_err(ServeError::Signals)?;
        // There is nothing to lose.
        shutdown.all_is_written();
        let _running = server.start("serve", limits(serving.timeout), Arc::new(desk)).map_err(failed)?;
        let scheme = if serving.tls.is_some() { "https" } else { "http" };
        let data = escape(&serving.data.display().to_string());
        messages::info(&format!("serving {data} at {scheme}://{address}/ until Ctrl-C"));
        shutdown.requested().await;
        Ok::<_, ServeError>(())
    })
}

/// Keeps the place and its tiers, if it is a bucket: there it costs nothing to name a tier that is not there. Sums are few and
/// small, so they have a part of the memory.
fn keep(serving: &Serving) -> Result<Vec<Arc<Keeper>>, DataSetError> {
    let tiers = Tier::ALL.map(|tier| (serving.data.join(tier.folder()), serving.cache_bytes / 4));
    let places = [(serving.data.clone(), serving.cache_bytes / 2)].into_iter().chain(tiers);
    let kept = places.map(|(place, bytes)| store::keep(&place, LISTED, bytes));
    Ok(kept.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn setting(serving: &Serving, listened: IpAddr, buckets: Vec<Arc<Keeper>>) -> Setting {
    let has_token = serving.token.is_some();
    let Serving { token_user, trust, access, .. } = serving.clone();
    let advice = "ask again, or start the server with more --requests";
    let readings = Readings::new(serving.data.clone(), serving.scans, serving.timeout, advice).kept_by(buckets);
    Setting {
        readings,
        hosts: Hosts { listened, has_token },
        readers: Readers { has_token, token_user, trust, rules: access },
        scan_bytes: serving.scan_bytes,
        most_nodes: serving.most_nodes,
        cache_bytes: serving.cache_bytes,
    }
}

/// Says what others on the network could do.
fn warn_of_readers(serving: &Serving) {
    let is_open = serving.tls.is_none() && !serving.address.ip().to_canonical().is_loopback();
    if is_open && serving.trust.is_some() {
        messages::warn(
            "without --certificate, whoever sees the traffic between the proxy and this server can read it, and change who \
             asks: use TLS, or a network of these two alone",
        );
    }
}

fn server(serving: &Serving) -> Result<Server, ServeError> {
    let read = |path: &PathBuf| Token::read(path).map_err(|source| ServeError::Token { path: path.clone(), source });
    let token = serving.token.as_ref().map(read).transpose()?;
    let read = |TlsFiles { certificate, key, client_authority }: &TlsFiles| {
        Tls::read(certificate, key, client_authority.as_deref(), messages::warn)
    };
    let tls = serving.tls.as_ref().map(read).transpose()?;
    let listened = Server::bind(serving.address, token, tls);
    listened.map_err(|source| ServeError::Listen { address: serving.address, source })
}

/// Clients of a proxy have its address, so an address may have as many connections as there are.
fn limits(scan_time: Duration) -> Limits {
    Limits {
        header_time: Duration::from_secs(5),
        // A bucket is listed before it is read.
        connection_time: Readings::WAIT.saturating_add(scan_time).saturating_mul(2).saturating_add(TRANSFER),
        header_bytes: 64 * 1024,
        connections: 256,
        connections_of_address: 256,
    }
}
