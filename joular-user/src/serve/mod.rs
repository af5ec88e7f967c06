//! Serves a data set to browsers and programs: pages and JSON about a part of it that an address names.
//!
//! [`routes`] has the paths. Each makes a question of what [`crate::query`] understands, and [`desk`] answers it: from what
//! is kept ([`cache`]), with others who ask the same, or by reading the data set ([`scan`]). It writes nothing, and nobody
//! gets an answer who has no token ([`crate::output::http`]) or asks by another name ([`hosts`]). [`pyroscope`] makes
//! questions of what Grafana posts.

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
mod routes;
mod scan;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use joular_data::{
    dataset::{DataSetError, store},
    text::escape,
};

use self::{desk::Desk, hosts::Hosts};
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
    store::refuse_bucket("serving", &serving.data)?;
    drop(store::open(&serving.data)?);
    let server = server(serving)?;
    let failed = |source| ServeError::Listen { address: serving.address, source };
    let address = server.address().map_err(failed)?;
    let hosts = Hosts { listened: address.ip(), has_token: serving.token.is_some() };
    let advice = "ask again, or start the server with more --requests";
    let readings = Readings::new(serving.data.clone(), serving.scans, serving.timeout, advice);
    let desk = Desk::new(readings, hosts, serving.cache_bytes);
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
        connection_time: (Readings::WAIT + TRANSFER).saturating_add(scan_time),
        header_bytes: 64 * 1024,
        connections: 256,
        connections_of_address: 256,
    }
}
