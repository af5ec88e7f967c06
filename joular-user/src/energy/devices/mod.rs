//! Models energy of network cards and disks from the bytes that were moved. It is an estimate, and labelled as one in
//! every output.
//!
//! A domain draws its idle power always, and each byte that anybody moves costs something beside: e-Surgeon's model of a
//! network card, which multiplies the time of sending by the power in that state (equation 9 of Noureddine, Rouvoy,
//! Seinturier, "Monitoring energy hotspots in software", Automated Software Engineering 22, 2015), and the same for disks.
//! Only what a card draws beside its idle power is for bytes, and that is little. So the energy of a window follows from its bytes, which are in table `io`, and who moved them
//! has it. What a byte costs is fixed when a recording begins.
//!
//! docs/energy-model.md has the figures, where they are from, how to find one's own, and the limits.

mod block;
mod figures;
mod net;

use joular_data::model::{
    byte_costs::ByteCosts,
    domain::{Domain, Reading},
};

pub use self::{
    block::KIND as DISK_KIND,
    figures::{DiskFigures, FiguresError, NicFigures},
    net::KIND as NIC_KIND,
};
use super::{EnergySource, Opened};

/// Devices of a kind, together.
#[derive(Debug)]
struct Devices {
    domains: [Domain; 1],
}

impl Devices {
    fn open(name: &'static str, idle_uw: u64, costs: ByteCosts, basis: impl Into<String>) -> Opened {
        let domains = [Domain::per_byte(name, name, idle_uw, costs)];
        Opened::new(Self { domains }, basis, "computed per window")
    }
}

impl EnergySource for Devices {
    fn name(&self) -> &str {
        &self.domains[0].name
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        vec![Reading::Modelled]
    }
}

/// For people: pJ as nJ, µW as mW.
fn thousandths(of: u64) -> String {
    format!("{}.{:02}", of / 1000, of % 1000 / 10)
}
