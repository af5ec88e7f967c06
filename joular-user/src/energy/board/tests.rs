use std::fs;

use joular_data::model::domain::{DividedBy, Label, Role};
use proptest::prelude::*;

use super::*;
use crate::energy::select;

/// A board whose device tree has this model, ending with a NUL as Linux shows it.
struct Machine(tempfile::TempDir);

impl Machine {
    fn named(model: &str) -> Self {
        Self::with(format!("{model}\0").as_bytes())
    }

    fn with(model: &[u8]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir(machine.0.path().join("device-tree")).unwrap();
        fs::write(machine.0.path().join("device-tree/model"), model).unwrap();
        machine
    }

    fn options(&self) -> EnergyOptions {
        let root = self.0.path();
        EnergyOptions {
            sys_root: root.join("sys"),
            proc_root: root.to_owned(),
            powercap_root: root.join("powercap"),
            ..EnergyOptions::default()
        }
    }

    /// With a user's models.
    fn with_models(&self, text: &str) -> EnergyOptions {
        let path = self.0.path().join("models.toml");
        fs::write(&path, text).unwrap();
        EnergyOptions { board_models: Some(path), ..self.options() }
    }
}

fn of_code(code: &str) -> BoardModel {
    file::published().unwrap().into_iter().find(|model| model.code == code).unwrap()
}

/// P(u) of a model's factors, in floating point.
fn polynomial_uw(factors: &[f64], used: f64) -> f64 {
    factors.iter().rev().fold(0.0, |power, factor| power * used + factor) * 1e6
}

#[test]
fn each_board_has_the_published_curve_where_it_never_falls_and_the_published_line_elsewhere() {
    let models = file::published().unwrap();
    assert_eq!(models.len(), 13);
    let mut polynomials = Vec::new();
    for model in &models {
        let factors = if model.curve().unwrap().replaced.is_none() {
            polynomials.push(model.code.as_str());
            model.polynomial.clone()
        } else {
            model.linear.to_vec()
        };
        // Looked at here in another way: the differences of 2000 steps.
        let powers: Vec<f64> =
            (0..=2000).map(|step| polynomial_uw(&model.polynomial, f64::from(step) / 2000.0)).collect();
        let falls = powers.windows(2).any(|pair| pair[1] < pair[0]);
        assert_eq!(falls, model.curve().unwrap().replaced.is_some(), "{}", model.code);
        for percent in [0, 10, 50, 100] {
            let found = model.curve().unwrap().power.power_uw(percent, 100);
            let expected = polynomial_uw(&factors, f64::from(u32::try_from(percent).unwrap()) / 100.0);
            assert!((found as f64 - expected).abs() <= 0.6, "{} at {percent} %: {found} {expected}", model.code);
        }
    }
    assert_eq!(polynomials, ["rbp4b1.1", "rbp2b1.1"]);
}

/// As in the database at 9082e24: an oversight in the file would otherwise be its own proof.
#[test]
fn figures_are_those_of_the_database() {
    for (code, idle_uw, tenth_uw, half_uw, full_uw) in [
        ("rbp4b1.1", 2_571_807, 2_714_255, 4_065_664, 5_823_809),
        ("rbp2b1.1", 1_359_687, 1_466_787, 1_823_602, 2_441_802),
        ("rbp4b1.2-64", 2_285_693, 2_739_135, 4_552_906, 6_820_119),
        ("rbp5b1.0-64", 4_403_192, 4_748_978, 6_132_120, 7_861_048),
        ("rbp3b+1.3", 2_002_230, 2_332_063, 3_651_396, 5_300_563),
        ("asustbs", 1_628_921, 2_162_387, 4_296_250, 6_963_579),
    ] {
        let curve = of_code(code).curve().unwrap();
        let found = [0, 10, 50, 100].map(|percent| curve.power.power_uw(percent, 100));
        assert_eq!(found, [idle_uw, tenth_uw, half_uw, full_uw], "{code}");
    }
}

#[test]
fn the_document_shows_these_boards_and_their_curves() {
    let document = include_str!("../../../../docs/boards.md");
    for model in file::published().unwrap() {
        let curve = model.curve().unwrap();
        let row = document.lines().find(|line| line.contains(&format!("| `{}` |", model.code))).unwrap();
        let form = if curve.replaced.is_some() { "line" } else { "polynomial" };
        let bits = model.bits.unwrap();
        assert!(row.contains(&format!("| `{}` | {bits} | {form} |", model.code)), "{row}");
        let watts = [0, 10, 50, 100].map(|percent| format!("{:.2}", curve.power.power_uw(percent, 100) as f64 / 1e6));
        assert!(row.ends_with(&format!("| {} |", watts.join(" | "))), "{row} should end with {watts:?}");
    }
}

#[test]
fn boards_are_known_by_what_they_call_themselves() {
    for (model, bits, expected) in [
        ("Raspberry Pi 5 Model B Rev 1.0", 64, Some("rbp5b1.0-64")),
        ("Raspberry Pi 5 Model B Rev 1.1", 64, Some("rbp5b1.0-64")),
        ("Raspberry Pi 400 Rev 1.0", 64, Some("rbp4001.0-64")),
        ("Raspberry Pi 4 Model B Rev 1.1", 64, Some("rbp4b1.1-64")),
        ("Raspberry Pi 4 Model B Rev 1.1", 32, Some("rbp4b1.1")),
        ("Raspberry Pi 4 Model B Rev 1.2", 64, Some("rbp4b1.2-64")),
        ("Raspberry Pi 4 Model B Rev 1.2", 32, Some("rbp4b1.2")),
        ("Raspberry Pi 4 Model B Rev 1.4", 64, Some("rbp4b1.2-64")),
        ("Raspberry Pi 4 Model B Rev 1.5", 32, Some("rbp4b1.2")),
        ("Raspberry Pi 4 Model B", 64, Some("rbp4b1.2-64")),
        ("Raspberry Pi 3 Model B Plus Rev 1.3", 64, Some("rbp3b+1.3")),
        ("Raspberry Pi 3 Model B Rev 1.2", 64, Some("rbp3b1.2")),
        ("Raspberry Pi 2 Model B Rev 1.1", 32, Some("rbp2b1.1")),
        ("Raspberry Pi 2 Model B Rev 1.2", 64, Some("rbp2b1.1")),
        ("Raspberry Pi Model B Plus Rev 1.2", 32, Some("rbp1b+1.2")),
        ("Raspberry Pi Model B Rev 2", 32, Some("rbp1b2")),
        ("Raspberry Pi Zero W Rev 1.1", 32, Some("rbpzw1.1")),
        ("Rockchip RK3288 Asus Tinker Board", 32, Some("asustbs")),
        ("Rockchip RK3288 Asus Tinker Board S", 32, Some("asustbs")),
        ("Raspberry Pi Zero 2 W Rev 1.0", 64, None),
        ("Raspberry Pi Compute Module 4 Rev 1.1", 64, None),
        ("raspberry pi 5 model b Rev 1.0", 64, None),
        ("NVIDIA Jetson Orin NX Engineering Reference Developer Kit", 64, None),
    ] {
        let name = BoardName::parse(model).unwrap();
        let models = file::published().unwrap();
        let found = recognise::find(&models, &name, bits).map(|model| model.code.as_str());
        assert_eq!(found, expected, "{model} {bits}");
        assert_eq!(name.to_string(), model);
    }
}

#[test]
fn the_whole_board_is_one_domain_that_cpu_time_divides() {
    let opened = open(&Machine::named("Raspberry Pi 4 Model B Rev 1.4").options()).unwrap();
    let mut source = opened.source;
    let [domain] = source.domains() else { panic!("{:?}", source.domains()) };
    assert_eq!((domain.name.as_str(), domain.socket, domain.role), ("platform", None, Role::Shared));
    assert_eq!((domain.label, &domain.divided_by), (Label::Modelled, &DividedBy::CpuTime));
    assert_eq!(domain.meter, Meter::Use(of_code("rbp4b1.2-64").curve().unwrap().power));
    assert_eq!(source.read(), [Reading::Modelled]);
    assert_eq!(source.name(), "board");
    assert_eq!(
        opened.basis,
        "estimated for the whole board \"Raspberry Pi 4 Model B Rev 1.4\" from CPU use, 2286 to 6820 mW by model \
         rbp4b1.2-64 (the published line, because the published polynomial falls by 131.978 mW where use grows, measured \
         on revision 1.2)"
    );
}

#[test]
fn a_polynomial_that_never_falls_is_used_and_named() {
    let opened = open(&Machine::named("Raspberry Pi 2 Model B Rev 1.2").options()).unwrap();
    let expected =
        "1360 to 2442 mW by model rbp2b1.1 (a polynomial of degree 9, measured on revision 1.1 and a 32-bit system)";
    assert!(opened.basis.ends_with(expected), "{}", opened.basis);
}

#[test]
fn auto_takes_the_board_before_the_plain_model_and_says_what_it_is() {
    let machine = Machine::named("Raspberry Pi 5 Model B Rev 1.0");
    fs::write(machine.0.path().join("cpuinfo"), "CPU implementer : 0x41\nCPU part : 0xd0b\n").unwrap();
    let selected = select(&machine.options()).unwrap();
    assert_eq!(selected.source.name(), "board");
    assert!(selected.reason.contains("falls by 4985.926 mW"), "{}", selected.reason);
    let other = Machine::named("Some Board");
    fs::write(other.0.path().join("cpuinfo"), "").unwrap();
    let selected = select(&other.options()).unwrap();
    assert_eq!(selected.source.name(), "model");
    assert!(
        selected.reason.contains("this machine has no perf") && selected.reason.contains("board"),
        "{}",
        selected.reason
    );
}

#[test]
fn what_says_nothing_of_a_board_is_no_board() {
    let huge = [b"Raspberry Pi 5 Model B".as_slice(), &[b' '; 100_000]].concat();
    for (model, words) in [
        (&b""[..], "it is empty"),
        (b"\0", "it is empty"),
        (b" Rev 1.0\0", "\"Rev 1.0\": there is none"),
        (b"\xff\xfe\x1b[2J\0", "there is none"),
        (b"Some Board\0Raspberry Pi 5 Model B\0", "\"Some Board\""),
        (&[b'x'; 100_000], "there is none"),
    ] {
        let refused = open(&Machine::with(model).options()).err().unwrap();
        assert_eq!(refused.kind, UnusableKind::Absent);
        assert!(refused.text.contains(words), "{}", refused.text);
        assert!(refused.text.len() < 2000 && !refused.text.contains('\u{1b}'), "{}", refused.text);
    }
    assert!(open(&Machine::with(&huge).options()).is_ok(), "what follows the name is white space");
    assert!(open(&Machine::with(b"Raspberry Pi 5 Model B Rev 1.0\n").options()).is_ok(), "without a NUL");
    let refused = open(&EnergyOptions { proc_root: "/nonexistent".into(), ..EnergyOptions::default() }).err().unwrap();
    assert_eq!(refused.kind, UnusableKind::Absent);
}

const OWN: &str = "[[board]]\ncode = 'own'\nnames = ['Raspberry Pi 5 Model B', 'Some Board']\nlinear = [2, 3.5]\n";

#[test]
fn a_users_models_come_before_those_that_are_built_in() {
    for (model, expected) in [
        ("Raspberry Pi 5 Model B Rev 1.0", "2000 to 5500 mW by model own (a line)"),
        ("Some Board", "2000 to 5500 mW by model own (a line)"),
        ("Raspberry Pi Zero W Rev 1.1", "by model rbpzw1.1"),
    ] {
        let basis = open(&Machine::named(model).with_models(OWN)).unwrap().basis;
        assert!(basis.contains(expected), "{basis}");
    }
}

#[test]
fn a_users_curve_that_falls_is_replaced_too() {
    let text = OWN.replace("[2, 3.5]", "[2, 3.5]\npolynomial = [2, 5, -3]");
    let basis = open(&Machine::named("Some Board").with_models(&text)).unwrap().basis;
    // 2 + 5u − 3u² has its top at 5/6, 25/12 above 2, and is 2 above 2 in the end.
    assert!(basis.contains("the published line, because the published polynomial falls by 83.333 mW"), "{basis}");
}

#[test]
fn models_that_make_no_sense_are_refused_with_their_place() {
    let machine = Machine::named("Some Board");
    for (from, to, words) in [
        ("code = 'own'", "code = ''", "code, names and revision"),
        ("code = 'own'", "code = \"a\\u001b[2J\"", "code, names"),
        ("'Some Board'", "'Some Board Rev 1.0'", "must not have a revision"),
        ("['Raspberry Pi 5 Model B', 'Some Board']", "[]", "code, names"),
        ("linear", "bits = 16\nlinear", "bits must be 32 or 64"),
        ("[2, 3.5]", "[2, -0.1]", "linear must be"),
        ("[2, 3.5]", "[0, 1]", "linear must be"),
        ("[2, 3.5]", "[nan, 1]", "linear must be"),
        ("[2, 3.5]", "[1, inf]", "linear must be"),
        ("[2, 3.5]", "[600, 600]", "linear must be"),
        ("[2, 3.5]", "[2]", "invalid length 1"),
        ("[2, 3.5]", "[2, 3.5]\npolynomial = [1, -9, 9]", "0 W or less"),
        ("[2, 3.5]", "[2, 3.5]\npolynomial = [1, 2000]", "more than 1000 W"),
        ("[2, 3.5]", "[2, 3.5]\npolynomial = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "at most 10 numbers"),
        ("linear", "watts = 5\nlinear", "unknown field `watts`"),
        ("[[board]]", "[[boards]]", "unknown field `boards`"),
        ("linear = [2, 3.5]", "linear = [2,, 3.5]", "models.toml, line 4: "),
    ] {
        let text = OWN.replace(from, to);
        assert_ne!(text, OWN, "{from}");
        let refused = open(&machine.with_models(&text)).err().unwrap();
        assert_eq!(refused.kind, UnusableKind::Broken, "{text}");
        assert!(refused.text.contains(words) && !refused.text.contains('\u{1b}'), "{words}: {}", refused.text);
    }
    let absent = EnergyOptions { board_models: Some("/nonexistent/models".into()), ..machine.options() };
    assert!(open(&absent).err().unwrap().text.ends_with("check --board-models"));
    for bytes in [&b"\xff\xff"[..], b"\0", b"[["] {
        let options = machine.with_models("");
        fs::write(options.board_models.as_ref().unwrap(), bytes).unwrap();
        assert_eq!(open(&options).err().unwrap().kind, UnusableKind::Broken);
    }
}

fn models() -> impl Strategy<Value = BoardModel> {
    let text = "[ -~]{0,8}[!-~]".prop_map(|text| text.trim().to_owned());
    let names = proptest::collection::vec(text.clone(), 1..3);
    let line = (0.1_f64..500.0, 0.0_f64..500.0).prop_map(|(idle, more)| [idle, more]);
    let fit = (any::<u32>(), 0.0_f64..1.0, -1e3_f64..1e3).prop_map(|(windows, used, watts)| file::FitNotes {
        windows: windows.into(),
        use_from: used,
        use_to: used,
        residual_watts: watts,
        idle_interval: [watts, watts],
        more_interval: [-watts, watts],
    });
    let bits = prop::option::of(prop_oneof![Just(32_u32), Just(64)]);
    let rest = (bits, any::<bool>(), prop::option::of(fit), any::<bool>());
    (text.clone(), names, prop::option::of(text), line, rest).prop_map(
        |(code, names, revision, linear, (bits, preferred, fit, has_polynomial))| BoardModel {
            code,
            names,
            revision,
            bits,
            preferred,
            linear,
            polynomial: if has_polynomial { linear.to_vec() } else { Vec::new() },
            fit,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(model in models()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("models.toml");
        fs::write(&path, model.to_toml()).unwrap();
        prop_assert_eq!(file::read(&path).unwrap(), vec![model]);
    }

    #[test]
    fn no_bytes_panic(name in proptest::collection::vec(any::<u8>(), 0..200), models in "(\\[\\[board\\]\\]\n)?[a-z =\\[\\]0-9.,'\n-]{0,80}") {
        let _ = open(&Machine::with(&name).with_models(&models));
    }
}
