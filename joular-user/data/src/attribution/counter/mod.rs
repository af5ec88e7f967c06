//! Turns readings into energy: the ΔE of each domain in each window.
//!
//! A reading is a point and a window is a span. Between two readings counters wrap, reads fail and
//! registers reset. The rules are few. A failed read gives its window nothing. The next good read
//! gives everything since the last good one, marked with how many windows it holds. A counter's
//! difference is taken modulo its own range, per domain, before anything is summed. Whatever cannot
//! be energy (more than the domain could draw in the time) counts as 0 and is marked: nothing is
//! invented.
//!
//! A counter that always moves and did not is treated like one that could not be read. Its windows
//! get nothing until it moves, and then the window gets everything since it last did. So a counter
//! that advances every second is exact in windows of half a second, two by two. A power has no such
//! memory. What was drawn while it could not be read for longer than [`LONGEST_GAP_NS`] is not
//! known, and the reading after that is only where the next window starts.
//!
//! While a machine is suspended, the clock of windows stands still, and a counter goes on or is
//! reset. What it gained over a suspend is marked, because nobody can tell how much of it is the
//! window's. A counter that went back was reset; it has not wrapped.
//!
//! Last, energy that other domains account for is taken off the meters that count it too
//! ([`rest`]).
//!
//! All arithmetic is in integers. The remainder of a division is carried into the next window, so
//! that sums over time are exact.

mod rest;

use self::rest::Rest;
use crate::model::{
    byte_costs::{ByteCosts, BytesByKind},
    domain::{Domain, FaultCause, Meter, Reading},
    units::{MicroJoules, MonotonicNs},
    use_curve::UseCurve,
};

/// A counter may run this much faster than `max_watts` before its difference
/// is taken for a jump: the bound is a guess about the hardware, not a law.
const SAFETY_FACTOR: u128 = 2;

/// Added to the elapsed time of that bound: counters advance in steps (about
/// every 1 ms) that two reads close together may straddle.
const UPDATE_SLACK_NS: u64 = 10_000_000;

/// A processor's counter advances about every 1 ms, even when idle. A counter that did not move for
/// this time has stopped, or advances in longer steps.
const STUCK_AFTER_NS: u64 = 50_000_000;

/// Longest time without a reading over which two powers are averaged. A reported power of this age
/// no longer describes the present either (the source `watts` uses the same limit).
const LONGEST_GAP_NS: u64 = 10_000_000_000;

/// Power (µW) × time (ns) is in 10⁻¹⁵ J: this many are a µJ.
const UW_NS_PER_UJ: u128 = 1_000_000_000;

/// Power (nW) × time (ns) is in 10⁻¹⁸ J: this many are a µJ.
const NW_NS_PER_UJ: u128 = 1_000_000_000_000;

const PJ_PER_UJ: u128 = 1_000_000;

/// Energy of one domain in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// ΔE; 0 if the read failed.
    pub measured: MicroJoules,
    /// How many windows' energy this one holds because earlier reads failed
    /// or the counter stood still; 0 normally, otherwise at least 2.
    pub merged: u32,
    /// What is wrong with the reading. After a failed read, and while a counter is stuck, ΔE is 0
    /// and comes with a later window. Where the counter may have wrapped more than once, ΔE is the
    /// least it can be. After a jump, and without a starting point, it is 0.
    pub fault: Option<FaultCause>,
    /// The part of `measured` that does not depend on load, if the meter knows it: the idle term of
    /// a model. It is never more than `measured`.
    pub static_floor: Option<MicroJoules>,
}

/// What was done in a window. Models are computed from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage<'a> {
    pub sockets: &'a [SocketLoad],
    /// Bytes that anybody moved.
    pub moved: BytesByKind,
}

/// What the CPUs of one socket did in a window, all cores together. Models are computed from it;
/// none is finer than a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketLoad {
    pub socket: u32,
    /// CPUs online in this socket.
    pub cpus: u32,
    /// On-CPU nanoseconds over all of them, 0 to `cpus` × window.
    pub busy_ns: u64,
}

/// All domains' meters, from one window to the next.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    states: Vec<State>,
    rests: Vec<Rest>,
}

#[derive(Clone, Debug)]
struct State {
    meter: Meter,
    socket: Option<u32>,
    /// Of a domain that is divided by bytes.
    costs: Option<ByteCosts>,
    /// Whether standing still is a fault.
    always_moves: bool,
    /// Last good reading. For a counter that always moves: the reading after which it stood still.
    base: Option<(MonotonicNs, u64)>,
    /// Windows since the last one that got its energy.
    missed: u32,
    /// How long the machine was suspended since the last good reading.
    suspended_ns: u64,
    /// CPU time of those windows, for a power that is multiplied by it.
    missed_busy_ns: u64,
    /// Remainders, below one µJ, of the load-dependent and of the static part.
    carry: u128,
    static_carry: u128,
}

impl Meters {
    /// Meters of a run's domains, in the same order, without a starting point.
    pub fn new(domains: &[Domain]) -> Self {
        let state = |domain: &Domain| State {
            meter: domain.meter,
            socket: domain.socket,
            costs: domain.byte_costs().copied(),
            always_moves: domain.always_moves(),
            base: None,
            missed: 0,
            suspended_ns: 0,
            missed_busy_ns: 0,
            carry: 0,
            static_carry: 0,
        };
        Self { states: domains.iter().map(state).collect(), rests: Rest::all(domains) }
    }

    /// Sets the starting point: the readings taken before the first window.
    pub fn start(&mut self, read_at: MonotonicNs, readings: &[Reading]) {
        for (index, state) in self.states.iter_mut().enumerate() {
            if let Some(value) = state.value_of(readings.get(index)) {
                state.base = Some((read_at, value));
            }
        }
    }

    /// Notes that the machine was suspended for this long since the last readings. Call it before
    /// [`Self::advance`].
    pub fn suspended(&mut self, suspended_ns: u64) {
        for state in &mut self.states {
            state.suspended_ns = state.suspended_ns.saturating_add(suspended_ns);
        }
    }

    /// Energy of the window that ended with `readings`, one entry per domain.
    /// A reading that is absent or of another meter's kind counts as failed.
    ///
    /// `read_at` is when the readings were really taken, `window_ns` the
    /// window's length and `usage` what was done in it.
    pub fn advance(
        &mut self,
        read_at: MonotonicNs,
        readings: &[Reading],
        window_ns: u64,
        usage: &Usage<'_>,
    ) -> Vec<Delta> {
        let step = |(index, state): (usize, &mut State)| match state.meter {
            Meter::Model { idle_uw, full_uw } => state.model(idle_uw, full_uw, window_ns, usage.sockets),
            Meter::BusyPower => state.busy_power(readings.get(index), usage.sockets),
            Meter::PerByte { idle_uw } => state.per_byte(idle_uw, window_ns, &usage.moved),
            Meter::Use(curve) => state.of_use(&curve, window_ns, usage.sockets),
            Meter::Counter { .. } | Meter::WatchedCounter { .. } | Meter::Power => {
                state.read(read_at, readings.get(index))
            }
        };
        let mut deltas: Vec<Delta> = self.states.iter_mut().enumerate().map(step).collect();
        for rest in &mut self.rests {
            rest.take(&mut deltas);
        }
        deltas
    }
}

impl State {
    /// The figure of a good reading of this kind of meter.
    fn value_of(&self, reading: Option<&Reading>) -> Option<u64> {
        match (self.meter, reading) {
            (Meter::Counter { .. } | Meter::WatchedCounter { .. }, Some(Reading::CounterUj(value)))
            | (Meter::Power, Some(Reading::PowerUw(value))) => Some(*value),
            _ => None,
        }
    }

    fn read(&mut self, read_at: MonotonicNs, reading: Option<&Reading>) -> Delta {
        let Some(value) = self.value_of(reading) else { return self.miss(failure_of(reading)) };
        let Some((base_at, base)) = self.base else {
            self.suspended_ns = 0;
            self.base = Some((read_at, value));
            return Delta { merged: self.merge(), fault: Some(FaultCause::NoStart), ..Delta::default() };
        };
        let elapsed_ns = read_at.since(base_at);
        if self.always_moves && value == base {
            // The base stays, so that what comes next is bounded by all this time;
            // and who missed a window goes on waiting for it.
            let is_stuck = self.missed > 0 || elapsed_ns >= STUCK_AFTER_NS;
            return if is_stuck { self.miss(FaultCause::Stuck) } else { Delta::default() };
        }
        self.base = Some((read_at, value));
        let suspended_ns = std::mem::take(&mut self.suspended_ns);
        let (measured, fault) = match self.meter {
            Meter::Counter { max_watts, .. } | Meter::WatchedCounter { max_watts, .. } if suspended_ns > 0 => {
                let measured = suspended_difference(base, value, max_watts, elapsed_ns.saturating_add(suspended_ns));
                (measured, Some(FaultCause::Suspended))
            }
            Meter::Counter { range_uj, unit_uj, max_watts }
            | Meter::WatchedCounter { range_uj, unit_uj, max_watts, update: _ } => {
                counter_difference(base, value, range_uj, unit_uj, max_watts, elapsed_ns)
            }
            _ if self.missed > 0 && elapsed_ns > LONGEST_GAP_NS => (MicroJoules(0), Some(FaultCause::NoStart)),
            Meter::Power | Meter::Model { .. } | Meter::BusyPower | Meter::PerByte { .. } | Meter::Use(_) => {
                (self.integrate(base, value, elapsed_ns), None)
            }
        };
        Delta { measured, merged: self.merge(), fault, ..Delta::default() }
    }

    /// Records a window whose energy comes with a later one.
    fn miss(&mut self, fault: FaultCause) -> Delta {
        self.missed = self.missed.saturating_add(1);
        Delta { fault: Some(fault), ..Delta::default() }
    }

    /// How many windows this one holds, if more than itself; resets the count of missed ones.
    fn merge(&mut self) -> u32 {
        match std::mem::take(&mut self.missed) {
            0 => 0,
            missed => missed.saturating_add(1),
        }
    }

    /// Trapezoid: the mean of two powers (µW) over the time between them.
    fn integrate(&mut self, before_uw: u64, after_uw: u64, elapsed_ns: u64) -> MicroJoules {
        let doubled = (u128::from(before_uw) + u128::from(after_uw)).saturating_mul(u128::from(elapsed_ns));
        whole_microjoules(doubled, 2 * UW_NS_PER_UJ, &mut self.carry)
    }

    /// `power of a busy CPU × busy`. CPU time from while the power was not known is multiplied by
    /// the next power that is known.
    fn busy_power(&mut self, reading: Option<&Reading>, load: &[SocketLoad]) -> Delta {
        let (_, busy_ns) = self.load_of(load);
        let busy_ns = self.missed_busy_ns.saturating_add(busy_ns);
        let Some(Reading::BusyPowerUw(busy_uw)) = reading else {
            self.missed_busy_ns = busy_ns;
            return self.miss(failure_of(reading));
        };
        self.missed_busy_ns = 0;
        let energy = u128::from(*busy_uw).saturating_mul(u128::from(busy_ns));
        let measured = whole_microjoules(energy, UW_NS_PER_UJ, &mut self.carry);
        Delta { measured, merged: self.merge(), ..Delta::default() }
    }

    /// CPUs of this domain's socket, or of all, and their busy time.
    fn load_of(&self, load: &[SocketLoad]) -> (u64, u64) {
        let mine = load.iter().filter(|entry| self.socket.is_none_or(|socket| socket == entry.socket));
        mine.fold((0, 0), |(cpus, busy_ns), entry| {
            (u64::saturating_add(cpus, entry.cpus.into()), u64::saturating_add(busy_ns, entry.busy_ns))
        })
    }

    /// `idle × CPUs × window + (full − idle) × busy`: linear between idle and
    /// full load, as Cloud Carbon Footprint's methodology has it.
    fn model(&mut self, idle_uw: u64, full_uw: u64, window_ns: u64, load: &[SocketLoad]) -> Delta {
        let (cpus, busy_ns) = self.load_of(load);
        let idle = u128::from(idle_uw).saturating_mul(u128::from(cpus)).saturating_mul(u128::from(window_ns));
        let dynamic = u128::from(full_uw.saturating_sub(idle_uw)).saturating_mul(u128::from(busy_ns));
        let floor = whole_microjoules(idle, UW_NS_PER_UJ, &mut self.static_carry);
        let above = whole_microjoules(dynamic, UW_NS_PER_UJ, &mut self.carry);
        Delta { measured: floor.saturating_add(above), static_floor: Some(floor), ..Delta::default() }
    }

    /// `P(0) × window + (P(use) − P(0)) × window`, where use is the busy part of all CPUs' time.
    fn of_use(&mut self, curve: &UseCurve, window_ns: u64, load: &[SocketLoad]) -> Delta {
        let (cpus, busy_ns) = self.load_of(load);
        let at_rest = curve.power_nw(0, 1).max(0);
        let more = (curve.power_nw(busy_ns, cpus.saturating_mul(window_ns)) - at_rest).max(0);
        let energy = |power_nw: i128| power_nw.unsigned_abs().saturating_mul(u128::from(window_ns));
        let floor = whole_microjoules(energy(at_rest), NW_NS_PER_UJ, &mut self.static_carry);
        let above = whole_microjoules(energy(more), NW_NS_PER_UJ, &mut self.carry);
        Delta { measured: floor.saturating_add(above), static_floor: Some(floor), ..Delta::default() }
    }

    /// `idle × window + Σ bytes × cost of a byte`.
    fn per_byte(&mut self, idle_uw: u64, window_ns: u64, moved: &BytesByKind) -> Delta {
        let idle = u128::from(idle_uw).saturating_mul(u128::from(window_ns));
        let dynamic = self.costs.map_or(0, |costs| costs.of(moved));
        let floor = whole_microjoules(idle, UW_NS_PER_UJ, &mut self.static_carry);
        let above = whole_microjoules(dynamic, PJ_PER_UJ, &mut self.carry);
        Delta { measured: floor.saturating_add(above), static_floor: Some(floor), ..Delta::default() }
    }
}

/// ΔE between two readings of a counter, and why it is uncertain, if it is.
///
/// The modulus is `range + unit`: the counter is a 32-bit register × unit, and
/// `max_energy_range_uj` is the largest value it shows, not the number of
/// values (Linux, Documentation/power/powercap).
fn counter_difference(
    before: u64,
    after: u64,
    range_uj: u64,
    unit_uj: u64,
    max_watts: u32,
    elapsed_ns: u64,
) -> (MicroJoules, Option<FaultCause>) {
    let modulus = (range_uj > 0).then(|| range_uj.saturating_add(unit_uj));
    let difference = match (after.checked_sub(before), modulus) {
        (Some(forward), _) => Some(forward),
        (None, Some(modulus)) => modulus.checked_sub(before).and_then(|rest| rest.checked_add(after)),
        // No range is known, so going backwards has no meaning.
        (None, None) => None,
    };
    match difference.filter(|difference| is_plausible(*difference, max_watts, elapsed_ns)) {
        Some(difference) => {
            let most = most_uj(max_watts, elapsed_ns);
            let may_have_wrapped_again = modulus.is_some_and(|modulus| most >= u128::from(modulus));
            (MicroJoules(difference), may_have_wrapped_again.then_some(FaultCause::MayHaveWrapped))
        }
        None => (MicroJoules(0), Some(FaultCause::Jumped)),
    }
}

/// ΔE between a reading before a suspend and one after it, which may have reset the counter.
fn suspended_difference(before: u64, after: u64, max_watts: u32, elapsed_ns: u64) -> MicroJoules {
    let difference = after.checked_sub(before).filter(|forward| is_plausible(*forward, max_watts, elapsed_ns));
    MicroJoules(difference.unwrap_or(0))
}

/// Whether a domain can have drawn this much in the time.
fn is_plausible(difference_uj: u64, max_watts: u32, elapsed_ns: u64) -> bool {
    u128::from(difference_uj) <= most_uj(max_watts, elapsed_ns.saturating_add(UPDATE_SLACK_NS)) * SAFETY_FACTOR
}

fn most_uj(max_watts: u32, ns: u64) -> u128 {
    u128::from(max_watts) * u128::from(ns) / 1000
}

/// Why there is no figure. Only a file that somebody made can lack a reading or hold one of another
/// meter's kind.
const fn failure_of(reading: Option<&Reading>) -> FaultCause {
    match reading {
        Some(Reading::Failed(fault)) if fault.cause.is_failed_read() => fault.cause,
        _ => FaultCause::Malformed,
    }
}

/// `(amount + carry) / per_uj`; the remainder goes to `carry`.
fn whole_microjoules(amount: u128, per_uj: u128, carry: &mut u128) -> MicroJoules {
    let total = amount.saturating_add(*carry);
    *carry = total % per_uj;
    MicroJoules(u64::try_from(total / per_uj).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod suspend_tests;
#[cfg(test)]
mod tests;
