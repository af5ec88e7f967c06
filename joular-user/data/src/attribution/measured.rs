//! Turns readings and CPU times into what each domain measured in a window.

use std::collections::BTreeMap;

use super::work::DomainWork;
use crate::{
    attribution::counter::{Meters, SocketLoad, Usage},
    events::{EnergyReading, Window},
    model::{
        byte_costs::BytesByKind,
        domain::{Domain, Reading},
    },
};

/// A run's meters, from one window to the next.
#[derive(Debug, Default)]
pub(super) struct Measured {
    meters: Meters,
    reading: Option<EnergyReading>,
}

impl Measured {
    pub(super) fn new(domains: &[Domain]) -> Self {
        Self { meters: Meters::new(domains), reading: None }
    }

    /// Takes a reading. The first one is the start of the first window; each later one belongs to
    /// the window that follows it in the stream.
    pub(super) fn read(&mut self, reading: &EnergyReading) {
        if self.reading.is_none() {
            self.meters.start(reading.read_at, &reading.readings);
        }
        self.reading = Some(reading.clone());
    }

    /// What the domains measured in a window, in their order. `suspended_ns` is how long the machine
    /// was suspended since the last reading, `moved` what anybody moved in the window.
    pub(super) fn window(&mut self, window: &Window, suspended_ns: u64, moved: BytesByKind) -> Vec<DomainWork> {
        self.meters.suspended(suspended_ns);
        let nothing = EnergyReading { read_at: window.end, readings: Vec::new() };
        let reading = self.reading.as_ref().unwrap_or(&nothing);
        let read_delay_ns = signed_difference(reading.read_at.0, window.end.0);
        let usage = Usage { sockets: &socket_loads(window), moved };
        let deltas = self.meters.advance(reading.read_at, &reading.readings, window.length_ns(), &usage);
        let detail = |index: usize| match reading.readings.get(index) {
            Some(Reading::Failed(fault)) => Some(fault.text.clone()),
            _ => None,
        };
        let work = |(index, delta)| DomainWork { delta, detail: detail(index), read_delay_ns, owed: None };
        deltas.into_iter().enumerate().map(work).collect()
    }
}

fn socket_loads(window: &Window) -> Vec<SocketLoad> {
    let mut loads: BTreeMap<u32, SocketLoad> = BTreeMap::new();
    for cpu in &window.cpus {
        let load = loads.entry(cpu.socket).or_default();
        load.socket = cpu.socket;
        load.cpus = load.cpus.saturating_add(1);
        load.busy_ns = load.busy_ns.saturating_add(cpu.busy_ns).saturating_add(cpu.unslotted_ns);
    }
    loads.into_values().collect()
}

fn signed_difference(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
