//! Finds the machine's network cards, and what a byte through them costs.

use std::{fs, path::Path};

use joular_data::model::byte_costs::ByteCosts;

use super::{Devices, NicFigures, thousandths};
use crate::energy::{Adds, EnergyOptions, Opened, SourceKind, Unusable, UnusableKind, sysfs::read_value};

const NAME: &str = "network";

/// What [`crate::energy::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: an estimate from bytes sent and received, and what is known of the card's power",
    permission: "as --io",
    adds: Adds::IfAsked,
    open,
};

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
    let costs = costs(&cards, &given)?;
    let idle_uw = cards.iter().map(|card| card.idle_uw(&given)).fold(0, u64::saturating_add);
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

/// What a byte costs, on the average over the cards: nobody knows through which of them it goes.
fn costs(cards: &[Card], given: &NicFigures) -> Result<ByteCosts, Unusable> {
    let (mut byte_pj, mut moved) = (0_u128, 0_u128);
    for card in cards.iter().filter(|card| card.is_up) {
        // One that has moved nothing yet may still do so.
        let bytes = u128::from(card.moved_bytes.max(1));
        byte_pj += bytes * u128::from(card.byte_pj(given)?);
        moved += bytes;
    }
    // Nothing moves bytes where no card has a link.
    let mean = byte_pj.checked_div(moved).and_then(|pj| u64::try_from(pj).ok()).unwrap_or(0);
    Ok(ByteCosts {
        sent_pj: given.sent_pj.unwrap_or(mean),
        received_pj: given.received_pj.unwrap_or(mean),
        ..ByteCosts::default()
    })
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    name: String,
    /// Whether its link is: a card without one draws less.
    is_up: bool,
    /// What its link moves in a second, one way; `None`: it does not say.
    bytes_per_s: Option<u64>,
    /// Since the machine started, both ways.
    moved_bytes: u64,
}

impl Card {
    fn read(directory: &Path, name: String) -> Self {
        let value = |name: &str| read_value(&directory.join(name)).ok();
        let count = |name: &str| value(name).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        // A driver that does not say is "unknown", and works.
        let state = value("operstate").unwrap_or_default();
        // In Mbit/s; -1 is not known.
        let speed = value("speed").and_then(|text| text.parse::<u64>().ok()).filter(|speed| *speed > 0);
        Self {
            name,
            is_up: state != "down" && state != "lowerlayerdown" && state != "notpresent",
            bytes_per_s: speed.and_then(|speed| speed.checked_mul(1_000_000 / 8)),
            moved_bytes: count("statistics/tx_bytes").saturating_add(count("statistics/rx_bytes")),
        }
    }

    /// Its power while it moves nothing.
    fn idle_uw(&self, given: &NicFigures) -> u64 {
        if self.is_up { given.idle_uw } else { given.down_uw.unwrap_or(0) }
    }

    /// What a byte costs where that is not given: what the card draws for it beside its idle power × the time that its link
    /// takes.
    fn byte_pj(&self, given: &NicFigures) -> Result<u64, Unusable> {
        let Some(active_uw) = given.active_uw.filter(|_| given.sent_pj.is_none() || given.received_pj.is_none()) else {
            return Ok(0);
        };
        let name = self.name.escape_debug();
        let Some(bytes_per_s) = self.bytes_per_s else {
            let text =
                format!("{name} does not say how fast its link is: give sent-nj and received-nj, and no active-watts");
            return Err(Unusable::new(UnusableKind::Broken, text));
        };
        // µW ÷ (bytes/s) = µJ a byte = 10⁶ pJ a byte.
        Ok(active_uw.saturating_sub(given.idle_uw).saturating_mul(1_000_000) / bytes_per_s)
    }

    fn words(&self) -> String {
        let name = self.name.escape_debug();
        match (self.is_up, self.bytes_per_s) {
            (false, _) => format!("{name} (no link)"),
            (true, Some(bytes_per_s)) => format!("{name} ({} Mbit/s)", bytes_per_s / (1_000_000 / 8)),
            (true, None) => name.to_string(),
        }
    }
}

/// Interfaces that are devices; bridges, tunnels, containers' ends and the loopback are none. By name.
fn cards(directory: &Path) -> Vec<Card> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_CARDS);
    let devices = entries.filter(|entry| entry.path().join("device").exists());
    let card = |entry: fs::DirEntry| Card::read(&entry.path(), entry.file_name().to_string_lossy().into_owned());
    let mut cards: Vec<Card> = devices.map(card).collect();
    cards.sort_by(|one, other| one.name.cmp(&other.name));
    cards
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::{DividedBy, Label, Meter};

    use super::*;

    /// Cards with and without a link, and interfaces that are none.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, is_device, state, speed, moved) in [
            ("eth0", true, "up", "1000", 3_000),
            ("eth1", true, "down", "-1", 7_000),
            ("eth2", true, "up", "10000", 1_000),
            ("lo", false, "unknown", "", 9_000),
            ("docker0", false, "up", "10000", 9_000),
        ] {
            let at = root.path().join("class/net").join(name);
            fs::create_dir_all(at.join("statistics")).unwrap();
            if is_device {
                fs::create_dir(at.join("device")).unwrap();
            }
            let (sent, received) = (format!("{}\n", moved - 1), "1\n".to_owned());
            for (file, value) in [
                ("operstate", format!("{state}\n")),
                ("speed", format!("{speed}\n")),
                ("statistics/tx_bytes", sent),
                ("statistics/rx_bytes", received),
            ] {
                fs::write(at.join(file), value).unwrap();
            }
        }
        root
    }

    fn opened(root: &Path, given: &str) -> Result<Opened, Unusable> {
        let nic: NicFigures = given.parse().unwrap();
        open(&EnergyOptions { nic: Some(nic), sys_root: root.into(), ..EnergyOptions::default() })
    }

    #[test]
    fn cards_are_one_domain_that_goes_by_bytes() {
        let root = machine();
        let opened = opened(root.path(), "idle-watts=3,sent-nj=0.5,received-nj=0.25").unwrap();
        let [domain] = opened.source.domains() else { panic!("{:?}", opened.source.domains()) };
        assert_eq!((domain.name.as_str(), domain.label), ("network", Label::Modelled));
        assert_eq!(domain.meter, Meter::PerByte { idle_uw: 6_000_000 }, "two of them have a link");
        let costs = ByteCosts { sent_pj: 500, received_pj: 250, ..ByteCosts::default() };
        assert_eq!(domain.divided_by, DividedBy::Bytes(costs));
        assert_eq!(
            opened.basis,
            "estimated for eth0 (1000 Mbit/s), eth1 (no link), eth2 (10000 Mbit/s): 0.50 nJ a byte sent, 0.25 received, \
             6000 mW always"
        );
    }

    #[test]
    fn a_byte_costs_power_in_use_times_the_time_of_the_link_and_idle_power_is_that_of_the_links_state() {
        let root = machine();
        let figures = |given: &str| {
            let opened = opened(root.path(), given).unwrap();
            let (Meter::PerByte { idle_uw }, DividedBy::Bytes(costs)) =
                (opened.source.domains()[0].meter, &opened.source.domains()[0].divided_by)
            else {
                panic!("{given}")
            };
            (idle_uw, costs.sent_pj, costs.received_pj)
        };
        // 1 W beside idle power: 8 nJ a byte at 1 Gbit/s, 0.8 at 10 Gbit/s, and three of four bytes go by the slower one.
        assert_eq!(figures("idle-watts=2,down-watts=0.5,active-watts=3"), (4_500_000, 6_200, 6_200));
        assert_eq!(
            figures("idle-watts=0,active-watts=1,sent-nj=1"),
            (0, 1_000, 6_200),
            "what a byte costs is used where it is given"
        );
        assert_eq!(figures("active-watts=1.5,idle-watts=1,sent-nj=1,received-nj=2"), (2_000_000, 1_000, 2_000));
    }

    #[test]
    fn a_card_that_draws_about_as_much_when_it_moves_nothing_has_nearly_all_of_it_as_idle_power() {
        // 12.95 W under traffic, of which 12 W always: a full hour of 10 Gbit/s one way costs 3.4 kJ of 46.6 kJ.
        let root = machine();
        fs::write(root.path().join("class/net/eth0/operstate"), "down\n").unwrap();
        let opened = opened(root.path(), "idle-watts=12,active-watts=12.95").unwrap();
        let domain = &opened.source.domains()[0];
        let costs = ByteCosts { sent_pj: 760, received_pj: 760, ..ByteCosts::default() };
        assert_eq!((domain.meter, domain.byte_costs()), (Meter::PerByte { idle_uw: 12_000_000 }, Some(&costs)));
    }

    #[test]
    fn power_in_use_is_refused_where_it_says_nothing() {
        let root = machine();
        fs::write(root.path().join("class/net/eth2/speed"), "-1\n").unwrap();
        let why = opened(root.path(), "idle-watts=1,active-watts=2").err().unwrap().text;
        assert!(why.starts_with("eth2 does not say how fast its link is: give sent-nj"), "{why}");
    }

    #[test]
    fn without_a_card_or_the_flag_there_is_no_energy_of_the_network() {
        let root = tempfile::tempdir().unwrap();
        let why =
            |nic| open(&EnergyOptions { nic, sys_root: root.path().into(), ..EnergyOptions::default() }).err().unwrap();
        assert_eq!(why(None).kind, UnusableKind::NotAsked);
        assert_eq!(why(Some(NicFigures::default())).kind, UnusableKind::Absent);
    }
}
