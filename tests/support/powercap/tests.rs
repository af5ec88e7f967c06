use std::fs;

use super::*;

const WATTS: Watts = Watts { idle: 7, per_cpu: 11 };

fn read(fake: &FakePowercap, zone: u32) -> std::io::Result<String> {
    fs::read_to_string(fake.root().join(format!("intel-rapl:{zone}/energy_uj")))
}

#[test]
fn counters_advance_at_least_by_idle_watts_and_never_step_back() -> Result<()> {
    let fake = FakePowercap::start(2, WATTS)?;
    thread::sleep(Duration::from_millis(300));
    assert_eq!(read(&fake, 1)?.len(), 21, "always as wide");
    let logs = fake.finish()?;
    let log = logs[0].entries();
    assert!(log.len() > 20, "{} values in 300 ms", log.len());
    assert!(log.windows(2).all(|pair| pair[0].energy_uj < pair[1].energy_uj), "strictly increasing");
    let (first, last) = (log[0], log[log.len() - 1]);
    let elapsed_us = (last.wall_us - first.wall_us) as u64;
    let energy_uj = last.energy_uj - first.energy_uj;
    // The clocks of value and entry are read microseconds apart.
    assert!(energy_uj * 100 >= WATTS.idle * elapsed_us * 99, "{energy_uj} µJ in {elapsed_us} µs");
    Ok(())
}

#[test]
fn a_counter_begins_anew_after_its_range_and_its_log_does_not() -> Result<()> {
    let range_uj = 100_000;
    let fake = FakePowercap::of(&[Plan::package(0, &[], WATTS).range_uj(range_uj).start_uj(range_uj - 10)])?;
    crate::clock::wait_for("a wrap", Duration::from_secs(5), || {
        let shown: u64 = read(&fake, 0)?.trim().parse()?;
        Ok((shown < range_uj - 10).then_some(()))
    })?;
    let logs = fake.finish()?;
    let last = logs[0].entries().last().context("no value")?;
    assert!(last.energy_uj > range_uj, "{last:?}");
    Ok(())
}

/// What a reader meets at each fault, and that all of it passes.
#[test]
fn a_zone_fails_as_it_is_told_and_comes_back() -> Result<()> {
    use std::io::ErrorKind;

    let fake = FakePowercap::of(&[Plan::package(0, &[], WATTS)])?;
    for (fault, expected) in [
        (Fault::Gone, Err(ErrorKind::NotFound)),
        (Fault::Unreadable, Err(ErrorKind::IsADirectory)),
        (Fault::Garbage, Ok(false)),
        (Fault::Still, Ok(true)),
    ] {
        let is_number = |text: String| text.trim().parse::<u64>().is_ok();
        fake.fail(0, fault)?;
        assert_eq!(read(&fake, 0).map(is_number).map_err(|e| e.kind()), expected, "{fault:?}");
        let before = read(&fake, 0).ok();
        thread::sleep(4 * STEP);
        assert_eq!(read(&fake, 0).ok(), before, "{fault:?} lasts");
        fake.mend(0)?;
        assert!(is_number(read(&fake, 0)?), "after {fault:?}");
    }
    Ok(())
}

#[test]
fn a_jump_back_is_shown_and_not_logged() -> Result<()> {
    let fake = FakePowercap::of(&[Plan::package(0, &[], WATTS).start_uj(50_000_000)])?;
    fake.jump_back(0, 40_000_000)?;
    let shown: u64 = read(&fake, 0)?.trim().parse()?;
    assert!((10_000_000..30_000_000).contains(&shown), "{shown}");
    let logs = fake.finish()?;
    assert!(logs[0].entries().iter().all(|entry| entry.energy_uj >= 50_000_000));
    Ok(())
}
