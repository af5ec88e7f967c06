//! Opens what serves and pushes live metrics.

use std::{fs, sync::Arc};

use joular_data::{dataset::write::Unwritten, output::Output};

use super::Failure;
use crate::{
    agent::{ServiceState, Shipments},
    config::{Live, Metrics, Otlp, TlsFiles, duration::nanoseconds},
    messages,
    output::{
        Collector, Headers, Hooks, MetricsOutput, OtlpOutput, Pushes, ReadService, Server, ServiceFigures, Shipped,
        Tls, Token,
    },
    privileges,
};

/// Listens and reads secrets already, so that an address in use or a wrong file ends the run before anything is
/// loaded. The outputs stand in the order in which they must have a window.
pub fn outputs(options: &Live, service: &ServiceState) -> Result<Vec<Box<dyn Output>>, Failure> {
    if options.metrics.is_none() && options.otlp.is_none() {
        return Ok(Vec::new());
    }
    let server = options.metrics.as_ref().map(server).transpose()?;
    let collector = options.otlp.as_ref().map(collector).transpose()?;
    let service = service.clone();
    let figures: ReadService = Arc::new(move || ServiceFigures {
        unwritten_windows: service.unwritten.as_ref().map(Unwritten::windows),
        shipped: service.progress.as_ref().map(|progress| shipped(&progress.now())),
    });
    let pushes = collector.is_some().then(Arc::<Pushes>::default);
    let metrics = MetricsOutput::new(server, options.metrics_methods, figures, pushes.clone());
    let live = metrics.live();
    let mut outputs: Vec<Box<dyn Output>> = vec![Box::new(metrics)];
    if let Some((collector, pushes)) = collector.zip(pushes) {
        let hooks = Hooks { info: messages::info, warn: messages::warn, lower_priority: privileges::lower_priority };
        outputs.push(Box::new(OtlpOutput::new(collector, live, pushes, hooks)));
    }
    Ok(outputs)
}

fn server(metrics: &Metrics) -> Result<Server, Failure> {
    let scheme = if metrics.tls.is_some() { "https" } else { "http" };
    let server = listen(metrics)?;
    let address = server.address().map_err(|source| Failure::Metrics { address: metrics.address, source })?;
    messages::info(&format!("metrics at {scheme}://{address}/metrics"));
    Ok(server)
}

/// Reads token and certificate, and listens.
pub fn listen(metrics: &Metrics) -> Result<Server, Failure> {
    let (token, tls) = secrets(metrics)?;
    let failed = |source| Failure::Metrics { address: metrics.address, source };
    Server::bind(metrics.address, token, tls).map_err(failed)
}

/// What a server shows, and what clients have to show.
pub fn secrets(metrics: &Metrics) -> Result<(Option<Token>, Option<Tls>), Failure> {
    let read = |path: &std::path::PathBuf| {
        Token::read(path).map_err(|source| Failure::MetricsToken { path: path.clone(), source })
    };
    let token = metrics.token.as_ref().map(read).transpose()?;
    let read = |TlsFiles { certificate, key, client_authority }: &TlsFiles| {
        Tls::read(certificate, key, client_authority.as_deref(), messages::warn)
    };
    let tls = metrics.tls.as_ref().map(read).transpose();
    Ok((token, tls.map_err(Failure::MetricsCertificate)?))
}

/// Reads what a collector is pushed to with.
pub fn collector(otlp: &Otlp) -> Result<Collector, Failure> {
    let headers = otlp
        .headers
        .as_ref()
        .map(|path| Headers::read(path).map_err(|source| Failure::OtlpHeaders { path: path.clone(), source }));
    let authority = otlp
        .authority
        .as_ref()
        .map(|path| fs::read(path).map_err(|source| Failure::OtlpAuthority { path: path.clone(), source }));
    Ok(Collector {
        url: otlp.url.clone(),
        headers: headers.transpose()?.unwrap_or_default(),
        authority: authority.transpose()?,
        interval_ns: nanoseconds(otlp.interval),
        profiles: otlp.profiles,
    })
}

const fn shipped(sums: &Shipments) -> Shipped {
    let Shipments {
        runs,
        files,
        bytes,
        failures,
        missed_runs,
        waiting_runs,
        unreadable_runs,
        oldest_waiting,
        last_success,
        ..
    } = *sums;
    Shipped { runs, files, bytes, failures, missed_runs, waiting_runs, unreadable_runs, oldest_waiting, last_success }
}
