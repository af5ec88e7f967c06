use std::{fs, path::PathBuf};

use joular_data::model::domain::{Domain, Label, Meter, Reading};

use super::*;

/// A machine whose parts are there or not.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(has_powercap: bool, has_cpuinfo: bool) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        if has_powercap {
            let zone = machine.path("powercap/intel-rapl:0");
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("name"), "package-0\n").unwrap();
            fs::write(zone.join("energy_uj"), "1\n").unwrap();
        }
        if has_cpuinfo {
            fs::write(machine.path("cpuinfo"), "").unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn select(&self, choice: &str, report: Option<&str>) -> Result<Selected, EnergyError> {
        select(&self.options(choice, report))
    }

    fn options(&self, choice: &str, report: Option<&str>) -> EnergyOptions {
        let file = report.map(|text| {
            fs::write(self.path("report"), text).unwrap();
            self.path("report")
        });
        EnergyOptions {
            choice: choice.parse().unwrap(),
            sys_root: self.path("sys"),
            proc_root: self.0.path().to_owned(),
            powercap_root: self.path("powercap"),
            file,
            ..EnergyOptions::default()
        }
    }
}

#[test]
fn auto_prefers_measured_to_reported_to_modelled() {
    for (has_powercap, report, expected) in [
        (true, Some("5\n"), "powercap"),
        (false, Some("a,1,5\n"), "powerjoular"),
        (false, Some("5\n"), "watts"),
        (false, Some("nothing\n"), "model"),
        (false, None, "model"),
    ] {
        let selected = Machine::new(has_powercap, true).select("auto", report).unwrap();
        assert_eq!(selected.source.name(), expected, "{}", selected.reason);
        assert!(selected.reason.starts_with(expected), "{}", selected.reason);
    }
}

#[test]
fn the_reason_says_why_the_others_were_not_usable() {
    let reason = Machine::new(false, true).select("auto", Some("nothing\n")).unwrap().reason;
    for part in ["model: estimated", "this machine has no perf, powercap", "watts not usable: reading"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn a_file_that_was_given_is_not_passed_over_in_silence() {
    for (has_powercap, report, is_used) in
        [(true, Some("5\n"), false), (false, Some("nothing\n"), false), (false, Some("5\n"), true)]
    {
        let machine = Machine::new(has_powercap, true);
        let reason = machine.select("auto", report).unwrap().reason;
        let words = format!("{} is not used", machine.path("report").display());
        assert_eq!(reason.contains(&words), !is_used, "{reason}");
    }
    // One that is not there is named as what it is.
    let machine = Machine::new(false, true);
    let mut options = machine.options("auto", None);
    options.file = Some(machine.path("typo"));
    let reason = select(&options).unwrap().reason;
    assert!(reason.contains("watts not usable: reading ") && reason.contains("typo is not used"), "{reason}");
    assert!(!Machine::new(true, true).select("auto", None).unwrap().reason.contains("not used"));
}

#[test]
fn an_explicit_choice_is_never_replaced() {
    let machine = Machine::new(false, true);
    let refused = |choice, report| match machine.select(choice, report) {
        Err(EnergyError::Chosen { name, why }) if name == choice => why.kind,
        _ => panic!("{choice} was not refused"),
    };
    assert_eq!(refused("powercap", Some("5\n")), UnusableKind::Absent);
    assert_eq!(refused("watts", None), UnusableKind::NotAsked);
    assert_eq!(refused("powerjoular", Some("5\n")), UnusableKind::Broken);
    assert_eq!(machine.select("watts", Some("5\n")).unwrap().source.name(), "watts");
    assert_eq!(Machine::new(true, true).select("model", None).unwrap().source.name(), "model");
    assert!(matches!(Machine::new(true, false).select("model", None), Err(EnergyError::Chosen { .. })));
}

#[test]
fn with_nothing_usable_every_reason_is_given() {
    let Err(error) = Machine::new(false, false).select("auto", None) else { panic!("selected something") };
    let message = error.to_string();
    assert!(message.contains("powercap not usable") && message.contains("model not usable"), "{message}");
}

/// A source with these domains of socket 0, all of which read 7 µJ.
struct Fixed(&'static str, Vec<Domain>);

impl EnergySource for Fixed {
    fn name(&self) -> &str {
        self.0
    }

    fn domains(&self) -> &[Domain] {
        &self.1
    }

    fn read(&mut self) -> Vec<Reading> {
        vec![Reading::CounterUj(7); self.1.len()]
    }
}

fn opened(source: &'static str, domains: &[(&str, Role)]) -> Result<Opened, Unusable> {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1 };
    let domain = |(name, role): &(&str, Role)| Domain {
        role: *role,
        ..Domain::new(name, Some(0), source, Label::Measured, meter)
    };
    Ok(Opened::new(Fixed(source, domains.iter().map(domain).collect()), "a fake", "1 µJ"))
}

const fn kind(name: &'static str, adds: Adds, open: fn(&EnergyOptions) -> Result<Opened, Unusable>) -> SourceKind {
    SourceKind { name, measures: "", permission: "", adds, open }
}

const KINDS: &[SourceKind] = &[
    // Measures nothing that threads draw: never the choice.
    kind("fans", Adds::ToAuto, |_| opened("fans", &[("gpu", Role::Unshared)])),
    kind("perf", Adds::Never, |_| opened("perf", &[("package", Role::Shared), ("dram", Role::Shared)])),
    kind("powercap", Adds::Never, |_| {
        opened("powercap", &[("package", Role::Shared), ("core", Role::Part { of: 0 }), ("dram", Role::Shared)])
    }),
    kind("cards", Adds::ToAuto, |_| opened("cards", &[("gpu0", Role::Unshared), ("package", Role::Shared)])),
    kind("absent", Adds::ToAuto, |_| Err(Unusable::new(UnusableKind::Absent, "no card"))),
    kind("broken", Adds::ToAuto, |_| Err(Unusable::new(UnusableKind::Broken, "a card on fire"))),
];

#[test]
fn auto_adds_devices_and_checks_one_way_of_reading_against_another() {
    let options = Machine::new(false, false).options("auto", None);
    let mut selected = select_from(KINDS, &options).unwrap();
    let uses = [("perf", Use::Chosen), ("fans", Use::Added), ("cards", Use::Added), ("powercap", Use::CrossCheck)];
    assert_eq!(selected.uses, uses);
    let domains: Vec<(&str, &str, Role)> =
        selected.source.domains().iter().map(|domain| (&*domain.source, &*domain.name, domain.role)).collect();
    let expected = [
        ("perf", "package", Role::Shared),
        ("perf", "dram", Role::Shared),
        ("fans", "gpu", Role::Unshared),
        ("cards", "gpu0", Role::Unshared),
        ("powercap", "package", Role::Check { of: 0 }),
    ];
    assert_eq!(domains, expected);
    assert_eq!(selected.source.name(), "perf,fans,cards,powercap");
    assert_eq!(selected.source.read(), vec![Reading::CounterUj(7); 5]);
    let reason = "perf: a fake (first choice); with fans: a fake; with cards: a fake; \
                  broken not added: a card on fire; checked against powercap";
    assert_eq!(selected.reason, reason);
}

/// Whatever is chosen, and as a part where a meter counts the whole machine.
#[test]
fn network_and_disk_are_added_if_they_are_asked_for() {
    let asked = |_: &EnergyOptions| opened("disk", &[("disk", Role::Shared)]);
    let kinds = |whole: fn(&EnergyOptions) -> Result<Opened, Unusable>| {
        let not_asked = |_: &EnergyOptions| Err(Unusable::new(UnusableKind::NotAsked, "give --nic"));
        [kind("disk", Adds::IfAsked, asked), kind("whole", Adds::Never, whole), kind("nic", Adds::IfAsked, not_asked)]
    };
    let machine = Machine::new(false, false);
    // Names of choices are those of real sources.
    let named = EnergyOptions { choice: EnergyChoice::These(vec!["whole"]), ..machine.options("auto", None) };
    for options in [machine.options("auto", None), named] {
        for (whole, role) in [
            ((|_| opened("whole", &[("package", Role::Shared)])) as fn(&_) -> _, Role::Shared),
            (|_| opened("whole", &[("machine", Role::Shared)]), Role::Part { of: 0 }),
        ] {
            let selected = select_from(&kinds(whole), &options).unwrap();
            assert_eq!(selected.uses, [("whole", Use::Chosen), ("disk", Use::Added)]);
            assert_eq!(selected.source.domains()[1].role, role);
        }
    }
    let broken = |_: &EnergyOptions| Err(Unusable::new(UnusableKind::Absent, "there is none"));
    let kinds =
        [kind("whole", Adds::Never, |_| opened("whole", &[("cpu", Role::Shared)])), kind("nic", Adds::IfAsked, broken)];
    let Err(error) = select_from(&kinds, &machine.options("auto", None)) else {
        panic!("what was asked for is not there")
    };
    assert_eq!(error.to_string(), "energy source nic cannot be used: there is none");
}

#[test]
fn sources_that_share_energy_in_part_are_not_used_together() {
    let kinds = [
        kind("perf", Adds::Never, |_| opened("perf", &[("package", Role::Shared)])),
        kind("model", Adds::Never, |_| opened("model", &[("cpu", Role::Shared)])),
    ];
    let options = Machine::new(false, false).options("perf,model", None);
    let Err(error) = select_from(&kinds, &options) else { panic!("energy counted twice") };
    let message = error.to_string();
    assert!(message.starts_with("energy sources perf and model cannot be used together: cpu of model"), "{message}");
}

#[test]
fn several_sources_are_all_or_nothing() {
    let machine = Machine::new(true, true);
    assert!(matches!(machine.select("powercap,watts", None), Err(EnergyError::Chosen { name: "watts", .. })));
    assert_eq!(machine.select("powercap", None).unwrap().uses, [("powercap", Use::Chosen)]);
}
