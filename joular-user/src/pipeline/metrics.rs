//! Opens what serves live metrics.

use super::Failure;
use crate::{
    config::Metrics,
    messages,
    output::{MetricsOutput, MetricsServer, Token},
};

/// Listens already, so that an address in use ends the run before anything is loaded.
pub fn output(metrics: &Metrics) -> Result<MetricsOutput, Failure> {
    let read = |path: &std::path::PathBuf| {
        Token::read(path).map_err(|source| Failure::MetricsToken { path: path.clone(), source })
    };
    let token = metrics.token.as_ref().map(read).transpose()?;
    let failed = |source| Failure::Metrics { address: metrics.address, source };
    let server = MetricsServer::bind(metrics.address, token).map_err(failed)?;
    let address = server.address().map_err(failed)?;
    messages::info(&format!("metrics at http://{address}/metrics"));
    Ok(MetricsOutput::new(server, metrics.methods))
}
