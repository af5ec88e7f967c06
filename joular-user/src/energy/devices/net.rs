//! Finds the machine's network cards, and what a byte through them costs.

use std::{fs, path::Path};

use joular_data::model::byte_costs::ByteCosts;

use super::{Devices, thousandths};
use crate::energy::{Adds, EnergyOptions, Opened, SourceKind, Unusable, UnusableKind, sysfs::read_value};

const NAME: &str = "network";

/// What [`crate::energy::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: an estimate from bytes sent and received, and published power of a network card",
    permission: "as --io",
    adds: Adds::IfAsked,
    open,
};

/// Typical power of a card under traffic, mW, and what its two ports move in a second, bytes in one direction: NVIDIA
/// ConnectX-5 for OCP 2.0, two ports of 25 Gbit/s, passive cables (its user manual, Specifications).
const TYPICAL_MW: u64 = 12_950;
const FULL_BYTES: u64 = 2 * 25_000_000_000 / 8;
/// mW / (bytes/s) = mJ a byte = 10⁹ pJ a byte.
const BYTE_PJ: u64 = TYPICAL_MW * 1_000_000_000 / FULL_BYTES;

/// More than any machine has.
const MAX_CARDS: usize = 1024;

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let given = options.nic.ok_or_else(|| Unusable::new(UnusableKind::NotAsked, "give --nic"))?;
    let directory = options.sys_root.join("class/net");
    let cards = cards(&directory);
    if cards.is_empty() {
        let text = format!(
            "looking for network cards in {}: there is none; a container with a network of its own sees none: record on \
             the host",
            directory.display()
        );
        return Err(Unusable::new(UnusableKind::Absent, text));
    }
    let up = cards.iter().filter(|card| card.is_up).count() as u64;
    let idle_uw = given.idle_uw.unwrap_or(0).saturating_mul(up);
    let costs = ByteCosts {
        sent_pj: given.sent_pj.unwrap_or(BYTE_PJ),
        received_pj: given.received_pj.unwrap_or(BYTE_PJ),
        ..ByteCosts::default()
    };
    let names: Vec<String> = cards.iter().map(Card::words).collect();
    let basis = format!(
        "estimated for {}: {} nJ a byte sent, {} received, {} mW always",
        names.join(", "),
        thousandths(costs.sent_pj),
        thousandths(costs.received_pj),
        idle_uw / 1000
    );
    Ok(Devices::open(NAME, idle_uw, costs, basis))
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    name: String,
    /// Whether its link is: a card without one draws next to nothing.
    is_up: bool,
}

impl Card {
    fn words(&self) -> String {
        let name = self.name.escape_debug();
        if self.is_up { name.to_string() } else { format!("{name} (no link)") }
    }
}

/// Interfaces that are devices; bridges, tunnels, containers' ends and the loopback are none. By name.
fn cards(directory: &Path) -> Vec<Card> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_CARDS);
    let card = |entry: fs::DirEntry| {
        let is_device = entry.path().join("device").exists();
        let state = read_value(&entry.path().join("operstate")).unwrap_or_default();
        // A driver that does not tell is "unknown", and works.
        let is_up = state != "down" && state != "lowerlayerdown" && state != "notpresent";
        is_device.then(|| Card { name: entry.file_name().to_string_lossy().into_owned(), is_up })
    };
    let mut cards: Vec<Card> = entries.filter_map(card).collect();
    cards.sort_by(|one, other| one.name.cmp(&other.name));
    cards
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::{DividedBy, Label, Meter};

    use super::*;
    use crate::energy::devices::NicFigures;

    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, is_device, state) in [
            ("eth0", true, "up"),
            ("eth1", true, "down"),
            ("ib0", true, "unknown"),
            ("lo", false, "unknown"),
            ("docker0", false, "up"),
        ] {
            let at = root.path().join("class/net").join(name);
            fs::create_dir_all(if is_device { at.join("device") } else { at.clone() }).unwrap();
            fs::write(at.join("operstate"), format!("{state}\n")).unwrap();
        }
        root
    }

    #[test]
    fn cards_are_one_domain_that_goes_by_bytes() {
        let root = machine();
        let given = NicFigures { idle_uw: Some(3_000_000), sent_pj: Some(500), ..NicFigures::default() };
        let opened =
            open(&EnergyOptions { nic: Some(given), sys_root: root.path().into(), ..EnergyOptions::default() })
                .unwrap();
        let [domain] = opened.source.domains() else { panic!("{:?}", opened.source.domains()) };
        assert_eq!((domain.name.as_str(), domain.label), ("network", Label::Modelled));
        assert_eq!(domain.meter, Meter::PerByte { idle_uw: 6_000_000 }, "two of them have a link");
        let costs = ByteCosts { sent_pj: 500, received_pj: 2_072, ..ByteCosts::default() };
        assert_eq!(domain.divided_by, DividedBy::Bytes(costs));
        assert_eq!(
            opened.basis,
            "estimated for eth0, eth1 (no link), ib0: 0.50 nJ a byte sent, 2.07 received, 6000 mW always"
        );
    }

    #[test]
    fn without_a_card_or_the_flag_there_is_no_energy_of_the_network() {
        let root = tempfile::tempdir().unwrap();
        let why =
            |nic| open(&EnergyOptions { nic, sys_root: root.path().into(), ..EnergyOptions::default() }).err().unwrap();
        assert_eq!(why(None).kind, UnusableKind::NotAsked);
        assert_eq!(why(Some(NicFigures::default())).kind, UnusableKind::Absent);
    }

    #[test]
    fn the_document_has_these_figures() {
        let document = include_str!("../../../../docs/energy-model.md");
        assert!(document.contains("12.95 W") && document.contains(&format!("{} nJ", thousandths(BYTE_PJ))));
    }
}
