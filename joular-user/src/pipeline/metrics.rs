//! Opens what serves live metrics.

use std::sync::Arc;

use super::Failure;
use crate::{
    agent::{Progress, Sums},
    config::Metrics,
    messages,
    output::{MetricsOutput, MetricsServer, ReadShipped, Shipped, Tls, Token},
};

/// Listens already, so that an address in use ends the run before anything is loaded.
pub fn output(metrics: &Metrics, progress: Option<Progress>) -> Result<MetricsOutput, Failure> {
    let read = |path: &std::path::PathBuf| {
        Token::read(path).map_err(|source| Failure::MetricsToken { path: path.clone(), source })
    };
    let token = metrics.token.as_ref().map(read).transpose()?;
    let tls = metrics.certificate.as_ref().map(|(certificate, key)| Tls::read(certificate, key)).transpose();
    let tls = tls.map_err(Failure::MetricsCertificate)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let failed = |source| Failure::Metrics { address: metrics.address, source };
    let server = MetricsServer::bind(metrics.address, token, tls).map_err(failed)?;
    let address = server.address().map_err(failed)?;
    messages::info(&format!("metrics at {scheme}://{address}/metrics"));
    let shipped = progress.map(|progress| Arc::new(move || shipped(&progress.now())) as ReadShipped);
    Ok(MetricsOutput::new(server, metrics.methods, shipped))
}

const fn shipped(sums: &Sums) -> Shipped {
    let Sums { runs, files, bytes, failures, missed_runs, waiting_runs, .. } = *sums;
    Shipped { runs, files, bytes, failures, missed_runs, waiting_runs }
}
