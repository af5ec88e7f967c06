use joular_data::report::profile::{Catalog, Process};
use proptest::prelude::*;

use super::*;

const NOW: UnixMicros = UnixMicros(1_772_409_600_000_000);

fn query(text: &str) -> Result<Query, Refusal> {
    Query::parse(text, SELECTION, true)
}

fn message(text: &str) -> String {
    let part = query(text).and_then(|query| query.part("", NOW, &Stop::default()).map(drop));
    part.unwrap_err().message
}

#[test]
fn times_are_moments_seconds_or_relative_to_now() {
    let at = |us| Some(Moment::At(UnixMicros(us)));
    for (text, expected) in [
        ("2026-03-02T00:00:00Z", at(NOW.0)),
        ("2026-03-02T01:00:00%2B01:00", at(NOW.0)),
        ("1772409600", at(NOW.0)),
        ("now", at(NOW.0)),
        ("now-1h30m", at(NOW.0 - 5_400_000_000)),
        ("12:00", Some(Moment::Clock(43_200_000_000))),
    ] {
        let part = query(&format!("from={text}")).unwrap().part("", NOW, &Stop::default()).unwrap();
        assert_eq!(part.filter.since, expected, "{text}");
    }
    for text in ["yesterday", "now+1h", "now-", "now-1", "5s", "-5", "99999999999999999999", "%FF"] {
        assert!(message(&format!("until={text}")).starts_with("until: '"), "{text}");
    }
}

#[test]
fn what_cannot_be_understood_is_named_with_what_fits() {
    for (text, expected) in [
        ("foo=1", "'foo' is not a parameter here: there are from, until, service"),
        ("left.top=1", "'left.top' is not a parameter here"),
        ("from=1&from=2", "'from' is given twice"),
        ("service=[", "service: '[' is not a pattern"),
        ("version={", "version: '{' is not a pattern"),
        ("category=gcc", "category: 'gcc' is not a category: write java, gc"),
        ("label=x", "label: 'x' is not a label: write KEY=VALUE"),
        ("pid=x", "pid: 'x' is not the id of a process"),
        ("%1b=1", r"'\x1b' is not a parameter"),
    ] {
        assert!(message(text).starts_with(expected), "{text}: {}", message(text));
    }
    let auto = Query::parse("app=auto", &[APP], false).unwrap().part("", NOW, &Stop::default()).map(drop);
    assert!(auto.unwrap_err().message.starts_with("app: 'auto' is not a package here: name packages"));
}

#[test]
fn a_side_has_its_own_values_and_those_of_both() {
    let query = query("service=shop&left.version=1&right.version=2&right.service=orders&from=").unwrap();
    let allows = |side: &str, service: &str, version: &str| {
        let filter = query.part(side, NOW, &Stop::default()).unwrap().filter;
        let process = Process { service: Some(service.into()), version: Some(version.into()), ..Process::default() };
        filter.allows_process(&Catalog::default(), &process)
    };
    assert!(allows("left.", "shop", "1") && !allows("left.", "shop", "2"));
    assert!(allows("right.", "orders", "2") && !allows("right.", "shop", "2"));
    assert!(allows("", "shop", "3") && !query.pairs().any(|(name, _)| name == "from"));
}

#[test]
fn links_carry_the_selection_whatever_is_in_it() {
    let query = query("service=a%26b%20%3C%22&from=now-1h").unwrap();
    let link = query.with("version", Some("1+2")).link("/part");
    assert_eq!(link, "/part?from=now%2D1h&service=a%26b%20%3C%22&version=1%2B2");
    let again = Query::parse(link.split_once('?').unwrap().1, SELECTION, false).unwrap();
    assert_eq!(again.with("version", None), query);
}

proptest! {
    #[test]
    fn a_name_is_matched_by_its_pattern(name in ".{1,40}") {
        let query = Query::default().with("service", Some(&exactly(&name)));
        let text = query.link("").split_off(1);
        let part = Query::parse(&text, SELECTION, false).unwrap().part("", NOW, &Stop::default()).unwrap();
        let process = Process { service: Some(name.as_str().into()), ..Process::default() };
        prop_assert!(part.filter.allows_process(&Catalog::default(), &process));
    }

    #[test]
    fn no_query_is_too_odd(text in ".{0,80}") {
        if let Ok(query) = Query::parse(&text, SELECTION, true) {
            let _understood = query.part("left.", NOW, &Stop::default());
        }
    }
}
