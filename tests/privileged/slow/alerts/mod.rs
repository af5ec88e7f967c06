//! Tests the file of alerts as it is used: a Prometheus evaluates it while it scrapes real agents, and every fault is made.
//! Just the alerts of that fault fire, and they resolve when it is mended.
//!
//! The file's times are minutes and hours. The test divides them all by one number ([`scale`]).

mod recording;
mod scale;
mod shipping;
mod site;

use std::thread::{self, ScopedJoinHandle};

use anyhow::{Result, anyhow, ensure};
use joular_tests::{notes, prometheus};

use self::{
    scale::{
        Number::{Kept, Time},
        Rule,
    },
    site::Site,
};

/// Every alert of the file.
const RULES: [Rule; 13] = [
    Rule { alert: "JoularRecorderGone", numbers: &[("0", Kept)], agent: "stopped" },
    Rule { alert: "JoularRestarts", numbers: &[("3", Kept)], agent: "restarted" },
    Rule { alert: "JoularNoWindows", numbers: &[("0", Kept)], agent: "stopped" },
    Rule { alert: "JoularNoEnergy", numbers: &[("0", Kept)], agent: "full" },
    Rule { alert: "JoularNotWritten", numbers: &[("0", Kept)], agent: "full" },
    Rule { alert: "JoularLosses", numbers: &[("0", Kept)], agent: "stopped" },
    // The test does not shorten the time that a window needs.
    Rule { alert: "JoularLate", numbers: &[("1", Kept)], agent: "stopped" },
    // CPUs.
    Rule { alert: "JoularCost", numbers: &[("0.1", Kept)], agent: "full" },
    Rule { alert: "JoularPushFails", numbers: &[("0", Kept)], agent: "damaged" },
    Rule { alert: "JoularShippingFails", numbers: &[("2700", Time)], agent: "lost" },
    Rule { alert: "JoularShippingBehind", numbers: &[("3600", Time), ("0", Kept)], agent: "away" },
    Rule { alert: "JoularRunsUnreadable", numbers: &[("0", Kept)], agent: "damaged" },
    Rule { alert: "JoularRunsMissed", numbers: &[("0", Kept)], agent: "short" },
];

/// What may fire too: the agent tries again after a pause, and ships at the lowest priority, however busy the machine is.
const TOO: [(&str, &str); 2] = [("lost", "JoularShippingBehind"), ("away", "JoularShippingFails")];

/// What happens to an agent of its own, and is mended.
type Story = fn(&Site) -> Result<()>;

/// At the same time, because most of each is waiting.
const STORIES: [(&str, Story); 7] = [
    ("stopped", recording::stopped),
    ("restarted", recording::restarted),
    ("full", recording::full),
    ("away", shipping::away),
    ("lost", shipping::lost),
    ("damaged", shipping::damaged),
    ("short", shipping::short),
];

#[test]
fn each_alert_fires_when_its_fault_is_made_and_resolves_when_it_is_mended() -> Result<()> {
    if !prometheus::is_installed() {
        notes::skipped("there is no Prometheus (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let has_story = |rule: &Rule| STORIES.iter().any(|(agent, _)| *agent == rule.agent);
    ensure!(RULES.iter().all(has_story), "an alert without a story");
    let site = &Site::new()?;
    let failed: Vec<String> = thread::scope(|scope| {
        let threads = STORIES.map(|(name, story)| (name, scope.spawn(move || story(site))));
        let outcome = |thread: ScopedJoinHandle<'_, Result<()>>| thread.join().map_err(|_| anyhow!("it panicked"))?;
        let errors = threads.into_iter().filter_map(|(name, thread)| Some((name, outcome(thread).err()?)));
        errors.map(|(name, error)| format!("{name}: {error:#}")).collect()
    });
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}
