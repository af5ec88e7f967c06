//! Models energy from the processor's thermal design power: e-Surgeon's model, as PowerAPI computes
//! it. It is an estimate, and labelled as one in every output.
//!
//! The processor's power at a frequency and its voltage is 0.7 × TDP, scaled by f × V² (equations 3
//! to 8 of Noureddine, Rouvoy, Seinturier, "Monitoring energy hotspots in software", Automated
//! Software Engineering 22, 2015). A reading is the mean of that over the frequencies since the
//! last reading, for one busy CPU. Its energy is the reading × the busy time of the socket's CPUs.
//!
//! Equation 6 has a process's share as t_process / t_CPU, "the time the processor is active for all
//! processes". If that were busy time, one thread that runs alone on a large machine would draw the
//! power of all of it. PowerAPI divides by the sum of all columns of /proc/stat's `cpu` line, idle
//! included (its `sensor-cpu-proc` and `formula-cpu-general`, 2012): by what all CPUs could have
//! run. This model does the same: a CPU draws its part of the processor's power while it is busy,
//! and nothing while it is idle.
//!
//! docs/energy-model.md has the formula, the assumptions and their limits.

mod cpufreq;
mod options;
mod processor;

use joular_data::model::domain::{Domain, Meter, Reading};

pub use self::options::{States, TdpError, TdpOptions, parse_tdp};
use self::{
    cpufreq::Knowledge,
    processor::{Processor, processors},
};
use super::{Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind};

/// Name of this source in `--energy` and in data sets.
const NAME: &str = "tdp";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: an estimate from CPU time, frequencies and the processor's TDP",
    permission: "none",
    adds: Adds::Never,
    open,
};

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let given = options.tdp.clone().unwrap_or_default();
    let processors = processors(&options.sys_root, &options.powercap_root, &given);
    if processors.is_empty() {
        let text = format!(
            "looking for CPUs in {}/devices/system/cpu: none has a topology: use --energy model",
            options.sys_root.display()
        );
        return Err(Unusable::new(UnusableKind::Absent, text));
    }
    let processors = processors.into_iter().collect::<Option<Vec<Processor>>>().ok_or_else(|| {
        let text = format!(
            "looking for the TDP in {}: no package zone has a long-term limit: give it with --tdp WATTS",
            options.powercap_root.display()
        );
        Unusable::new(UnusableKind::NotAsked, text)
    })?;
    let basis = basis(&given, &processors);
    let domain = |processor: &Processor| Domain::modelled("cpu", Some(processor.socket), NAME, Meter::BusyPower);
    let domains = processors.iter().map(domain).collect();
    Ok(Opened::new(Tdp { domains, processors, states: given.states }, basis, "computed per window"))
}

/// What the estimate takes from where, for people.
fn basis(given: &TdpOptions, processors: &[Processor]) -> String {
    let tdp = match given.tdp_uw {
        Some(tdp_uw) => format!("a TDP of {} mW as given by --tdp", tdp_uw / 1000),
        None => "the TDP that powercap has as long-term limit".to_owned(),
    };
    let frequency = match processors.iter().map(|processor| processor.knowledge).max() {
        Some(Knowledge::TimeInState) => "the time in each frequency",
        Some(Knowledge::Now) => "the frequency at each reading",
        Some(Knowledge::None) | None => "the TDP's frequency throughout, as there is no cpufreq",
    };
    let voltage = if given.states.is_empty() { "one voltage" } else { "voltages between those of --tdp-states" };
    format!("estimated from {tdp}, {frequency} and {voltage}")
}

/// The model of this machine: a domain for each socket.
#[derive(Debug)]
struct Tdp {
    domains: Vec<Domain>,
    processors: Vec<Processor>,
    states: States,
}

impl EnergySource for Tdp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        let read = |processor: &mut Processor| match processor.busy_cpu_uw(&self.states) {
            Ok(busy_uw) => Reading::BusyPowerUw(busy_uw),
            Err(fault) => Reading::Failed(fault),
        };
        self.processors.iter_mut().map(read).collect()
    }
}

#[cfg(test)]
mod tests;
