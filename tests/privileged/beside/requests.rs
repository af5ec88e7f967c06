//! Tests joules per request with Tomcat and two pages whose CPU time is known: `dear` spins three times as long as `cheap`.

use std::{fs, thread};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    java, notes,
    profiler::{END, Output, Run},
    servers::{Program, Site},
    statistics::RARE_SIGMAS,
};
use serde_json::Value;

/// CPU time of `cheap`, ms.
const CHEAP_MS: f64 = 4.0;
const RATIO: f64 = 3.0;
/// Requests of each page.
const REQUESTS: u32 = 200;
/// The part of a request's CPU time that its page uses beside its spinning, at most.
const BESIDE: f64 = 0.1;
/// Standard deviations on either side of a 95 % interval.
const DEVIATIONS: f64 = 1.96;

/// A figure and its standard deviation, J.
#[derive(Clone, Copy, Debug)]
struct Figure {
    joules: f64,
    deviation: f64,
}

impl Figure {
    fn of(route: &Value, which: &str) -> Result<Self> {
        let number = |name: &str| route["needs"][which][name].as_f64().with_context(|| format!("no {name}: {route}"));
        let deviation = (number("high")? - number("low")?) / 2.0 / DEVIATIONS;
        Ok(Self { joules: number("joules")?, deviation })
    }

    fn relative(self) -> f64 {
        self.deviation / self.joules
    }
}

/// What is said of both pages after so many requests of each.
fn measured(site: &Site, requests: u32) -> Result<(Value, f64)> {
    for page in ["cheap.jsp", "dear.jsp"] {
        site.ask(page, 50)?;
    }
    let output = Output::new()?;
    let run = Run::modelled().pid(site.pid).with("--frequency", "999").argument("--json").output(output.dir());
    let mut profiler = run.start()?;
    profiler.wait_window()?;
    thread::scope(|scope| {
        let asked = ["cheap.jsp", "dear.jsp"].map(|page| scope.spawn(move || site.ask(page, requests)));
        asked.into_iter().try_for_each(|asked| match asked.join() {
            Ok(said) => said.map(drop),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    profiler.stop()?;
    let counts = output.beside("requests.csv");
    let rows = format!("route,count,handler\n/cheap,{requests},*cheap_jsp.*\n/dear,{requests},*dear_jsp.*\n");
    fs::write(&counts, rows)?;
    let report = Run::new().argument("report").argument(output.dir()).argument("--json").with("--requests", counts);
    let said = report.finish(END)?;
    ensure!(said.code() == Some(0), "{said:?}");
    let of_second = output.data.number("SELECT sum(energy_uj)::DOUBLE / sum(cpu_ns) * 1e3 FROM branches")?;
    Ok((serde_json::from_str(&said.stdout)?, of_second))
}

fn expect(said: &Value, joules_of_second: f64) -> Result<()> {
    let [cheap, dear] = [&said["routes"][0], &said["routes"][1]];
    let [direct, three] = [Figure::of(cheap, "direct")?, Figure::of(dear, "direct")?];
    let ratio = three.joules / direct.joules;
    let by_chance = RARE_SIGMAS * direct.relative().hypot(three.relative());
    notes::figure(&format!(
        "a request of three times the CPU time needs {ratio:.3} times the energy, ±{by_chance:.3} relative"
    ));
    let millis = direct.joules / joules_of_second * 1e3;
    notes::figure(&format!("a request of {CHEAP_MS} ms has the energy of {millis:.3} ms"));
    // Beside its spinning, each page uses about the same time.
    ensure!(ratio <= RATIO * (1.0 + by_chance) && ratio >= RATIO * (1.0 - BESIDE - by_chance), "ratio {ratio}: {said}");
    let most = CHEAP_MS * (1.0 + BESIDE) * (1.0 + RARE_SIGMAS * direct.relative());
    ensure!(millis <= most && millis >= CHEAP_MS * (1.0 - RARE_SIGMAS * direct.relative()), "{millis} ms: {said}");
    let loaded = [Figure::of(cheap, "loaded")?, Figure::of(dear, "loaded")?];
    ensure!(loaded[0].joules > direct.joules && loaded[1].joules > three.joules, "{said}");
    Ok(())
}

#[test]
fn a_request_that_spins_three_times_as_long_needs_three_times_the_joules() -> Result<()> {
    if !Program::Tomcat.is_installed() {
        notes::skipped("Tomcat is not installed (`cargo xtask setup` does it on Debian)");
        return Ok(());
    }
    let site = Site::start(&java::tool("java"), &[])?;
    repeat_once(|measures| {
        let (said, joules_of_second) = measured(&site, measures * REQUESTS)?;
        expect(&said, joules_of_second)
    })
}
