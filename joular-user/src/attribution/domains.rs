//! Readings and CPU times → each domain's energy in a window, divided among
//! the threads that ran on its socket.

use std::collections::BTreeMap;

use super::{
    conservation::{Claims, divide},
    missed::{Missed, identity},
    report::{DomainAudit, Unattributed},
    threads::{Claimant, ThreadJoin},
};
use crate::{
    energy::{
        counter::{Delta, Meters, SocketLoad},
        domain::{Domain, FaultCause},
        policy::IdlePolicy,
    },
    events::{EnergyReading, RunInfo, Window},
    units::MicroJoules,
};

/// A run's energy domains, from one window to the next.
#[derive(Debug)]
pub(super) struct Domains {
    meters: Meters,
    reading: Option<EnergyReading>,
    /// Parallel to the run's domains.
    missed: Vec<Missed>,
}

impl Domains {
    pub(super) fn new(domains: &[Domain]) -> Self {
        let missed = domains.iter().map(|_| Missed::default()).collect();
        Self { meters: Meters::new(domains), reading: None, missed }
    }

    /// The first reading is where the first window starts from; each later one
    /// belongs to the window that follows it in the stream.
    pub(super) fn read(&mut self, reading: &EnergyReading) {
        if self.reading.is_none() {
            self.meters.start(reading.read_at, &reading.readings);
        }
        self.reading = Some(reading.clone());
    }

    /// Divides each domain's ΔE among the threads that ran on its socket, in
    /// this window and in those before it whose read failed.
    pub(super) fn divide(&mut self, run: &RunInfo, window: &Window, join: &mut ThreadJoin) -> Vec<DomainAudit> {
        let nothing = EnergyReading { read_at: window.end, readings: Vec::new() };
        let reading = self.reading.as_ref().unwrap_or(&nothing);
        let deltas = self.meters.advance(reading.read_at, &reading.readings, window.length_ns(), &socket_loads(window));
        let read_delay_ns = signed_difference(reading.read_at.0, window.end.0);
        let mut audits = Vec::with_capacity(run.domains.len());
        for ((domain, delta), missed) in run.domains.iter().zip(&deltas).zip(&mut self.missed) {
            let mut audit = new_audit(domain, delta, read_delay_ns);
            let mut claims = claims_on(domain, window, join);
            if delta.fault.is_some_and(FaultCause::is_failed_read) {
                missed.keep(&claims, identities(join), window.length_ns());
            } else {
                let missed_ns = std::mem::take(missed).claim(&mut claims, identities(join));
                let covered_ns = window.length_ns().saturating_add(missed_ns);
                let parts = divide(&mut audit, static_wish(run, domain, delta, covered_ns), &claims);
                for (thread, part) in join.threads.iter_mut().zip(parts) {
                    thread.energy = thread.energy.saturating_add(part);
                }
            }
            audits.push(audit);
        }
        audits
    }
}

fn identities(join: &ThreadJoin) -> impl Iterator<Item = (crate::units::Pid, crate::units::Tid, u64)> + '_ {
    join.threads.iter().map(|thread| identity(join.processes[thread.process].pid, thread))
}

fn new_audit(domain: &Domain, delta: &Delta, read_delay_ns: i64) -> DomainAudit {
    DomainAudit {
        domain: domain.name.clone(),
        socket: domain.socket,
        source: domain.source.clone(),
        label: domain.label,
        measured: delta.measured,
        attributed: MicroJoules(0),
        static_share: MicroJoules(0),
        unattributed: Unattributed::default(),
        merged: delta.merged,
        fault: delta.fault,
        read_delay_ns,
    }
}

/// Idle energy to set apart: none under `spread`; else what the model says, or
/// what the user gave for a socket, which packages and whole machines draw.
fn static_wish(run: &RunInfo, domain: &Domain, delta: &Delta, covered_ns: u64) -> MicroJoules {
    if run.policy.idle != IdlePolicy::Separate {
        return MicroJoules(0);
    }
    delta.static_floor.unwrap_or_else(|| {
        let (sockets, zones) = match (domain.socket, domain.name.as_str()) {
            (Some(_), "package") => (1, packages_of(run, domain.socket)),
            (Some(_), _) => (0, 1),
            (None, _) => (run.sockets.max(1), 1),
        };
        // mW · ns = 10⁻¹² J = 10⁻⁶ µJ
        let idle = u128::from(run.policy.idle_milliwatts).saturating_mul(u128::from(covered_ns));
        let idle_uj = idle.saturating_mul(u128::from(sockets)) / (1_000_000 * zones);
        MicroJoules(u64::try_from(idle_uj).unwrap_or(u64::MAX))
    })
}

/// Package domains of a socket: one, or one per die, which then share the
/// socket's idle power.
fn packages_of(run: &RunInfo, socket: Option<u32>) -> u128 {
    let is_package = |domain: &&Domain| domain.socket == socket && domain.name == "package";
    run.domains.iter().filter(is_package).count().max(1) as u128
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

/// CPU time on the domain's socket, or anywhere for a domain of the machine.
fn claims_on(domain: &Domain, window: &Window, join: &ThreadJoin) -> Claims {
    let mut claims = Claims { threads: vec![0; join.threads.len()], ..Claims::default() };
    let counts = |socket: u32| domain.socket.is_none_or(|own| own == socket);
    for (time, claimant) in window.threads.iter().zip(&join.claimants) {
        if counts(time.socket) {
            let claim = match claimant {
                Claimant::Target(position) => &mut claims.threads[*position],
                Claimant::Profiler => &mut claims.profiler,
                Claimant::Kernel => &mut claims.kernel,
                Claimant::Other => &mut claims.other_processes,
            };
            *claim = claim.saturating_add(time.cpu_ns);
        }
    }
    let cpus = window.cpus.iter().filter(|cpu| counts(cpu.socket));
    claims.unslotted = cpus.fold(0, |sum, cpu| sum.saturating_add(cpu.unslotted_ns));
    claims
}
