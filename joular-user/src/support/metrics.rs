//! Asks a running service for its own counters: what it lost, wrote, shipped and used.

use std::{
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

use crate::{config::Metrics, output::secret_file};

const TIME: Duration = Duration::from_secs(5);
/// A host with many JVMs has some megabytes.
const MAX_BYTES: u64 = 64 << 20;
const MAX_TOKEN_BYTES: usize = 4098;

/// Beginnings of metrics that are about the service, and name no process.
const OWN: [&str; 12] = [
    "joular_build",
    "joular_run",
    "joular_windows",
    "joular_last_window",
    "joular_window_lag",
    "joular_losses",
    "joular_samples",
    "joular_stack_samples",
    "joular_recorder",
    "joular_unwritten",
    "joular_ship",
    "joular_otlp",
];

pub(super) fn text(metrics: &Metrics) -> String {
    if metrics.tls.is_some() {
        return format!("served over TLS at {}: not asked", metrics.address);
    }
    match ask(metrics) {
        Ok(answer) => own(&answer),
        Err(error) => format!("asking {}: {error}", metrics.address),
    }
}

fn ask(metrics: &Metrics) -> io::Result<String> {
    let token = metrics.token.as_ref().map(|path| secret_file::read(path, MAX_TOKEN_BYTES)).transpose();
    let token = token.map_err(io::Error::other)?.unwrap_or_default();
    let mut stream = TcpStream::connect_timeout(&here(metrics.address), TIME)?;
    stream.set_read_timeout(Some(TIME))?;
    let token = String::from_utf8_lossy(token.trim_ascii());
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(MAX_BYTES).read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::other(answer.lines().next().unwrap_or("no answer").to_owned())),
    }
}

/// Where this host reaches what listens at all of its addresses.
fn here(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

fn own(metrics: &str) -> String {
    let is_own = |line: &&str| OWN.iter().any(|beginning| line.starts_with(beginning));
    metrics.lines().filter(is_own).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_about_the_service_is_shown() {
        let metrics = "# TYPE joular_losses counter\njoular_losses_total{cause=\"x\"} 3\n\
                       joular_process_joules_total{comm=\"secret\"} 1\njoular_ship_runs_total 4\n";
        assert_eq!(own(metrics), "joular_losses_total{cause=\"x\"} 3\njoular_ship_runs_total 4");
    }

    #[test]
    fn all_addresses_are_reached_by_that_of_this_host() {
        for (address, expected) in
            [("0.0.0.0:9897", "127.0.0.1:9897"), ("[::]:1", "[::1]:1"), ("192.0.2.1:2", "192.0.2.1:2")]
        {
            assert_eq!(here(address.parse().unwrap()), expected.parse().unwrap());
        }
    }
}
