//! Tests questions about one service of a large fleet: how many requests they cost, how much memory, and that nothing is
//! missing or counted twice. `cargo xtask bench --only fleet` asks the same of 2 000 hosts, and measures the time.

use std::time::Duration;

use joular_tests::{
    fleet::{ALL_DAYS, Answer, DAYS, Fleet, HOUR, RUNS_OF_AN_HOUR},
    notes, paths,
};

const HOSTS: u32 = 200;
/// This only bounds a hang.
const LIMIT: Duration = Duration::from_secs(120);
const MOST_MEMORY_KIB: u64 = 300 << 10;

#[test]
fn a_question_about_a_service_costs_few_requests_and_little_memory() {
    let mut fleet = Fleet::of(HOSTS).unwrap();
    let of_run_uj = fleet.of_run_uj;
    assert!(of_run_uj > 0);
    let mut ask = |tier: &str, times: [&str; 2]| {
        let answer = fleet.ask(&paths::joular_bpf(), tier, times, LIMIT).unwrap();
        notes::figure(&format!("{HOSTS} hosts, {tier:?}, {times:?}: {answer:?}"));
        assert!(answer.peak_kib > 0 && answer.peak_kib <= MOST_MEMORY_KIB, "{tier}: {answer:?}");
        answer
    };
    let raw = ask("", HOUR);
    let runs = RUNS_OF_AN_HOUR * u64::from(HOSTS);
    assert_eq!(raw.energy_uj, runs * of_run_uj, "{raw:?}");
    assert_eq!(raw.count(Some("GET")), runs, "{raw:?}");
    assert!(raw.count(Some("LIST")) <= 20 && raw.count(Some("AT_ONCE")) >= 32, "{raw:?}");

    let is_cheap = |answer: &Answer| answer.count(None) <= 200;
    let hour = ask("minutes", HOUR);
    assert!(hour.energy_uj == of_run_uj && is_cheap(&hour), "{hour:?}");
    let days = ask("hourly", ALL_DAYS);
    assert!(days.energy_uj == u64::from(DAYS) * of_run_uj && is_cheap(&days), "{days:?}");
}
