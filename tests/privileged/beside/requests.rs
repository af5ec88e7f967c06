//! Tests joules per request with Tomcat and two pages whose CPU time is known: `dear` spins three times as long as `cheap`. And
//! with the JDK's own server, which counts its requests itself.

use std::{fs, thread};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    java, notes,
    profiler::{END, Output, Run},
    servers::{
        Program, Site,
        shop::{Framework, Load, Shop},
    },
    statistics::RARE_SIGMAS,
};
use serde_json::Value;

use crate::per_request::{BESIDE, Figure, Ratio, expect_shop};

/// CPU time of `cheap`, ms.
const CHEAP_MS: f64 = 4.0;
const RATIO: f64 = 3.0;
/// Requests of each page.
const REQUESTS: u32 = 200;
/// Requests of each route of the JDK's server.
const ORDERS: u32 = 150;

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
    let ratio = Ratio::of(cheap, dear)?;
    notes::figure(&format!("a request of three times the CPU time needs {ratio} times the energy"));
    ratio.expect(RATIO, 0.0).with_context(|| said.to_string())?;
    let [direct, three] = [Figure::of(cheap, "direct")?, Figure::of(dear, "direct")?];
    let millis = direct.joules / joules_of_second * 1e3;
    notes::figure(&format!("a request of {CHEAP_MS} ms has the energy of {millis:.3} ms"));
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

/// Its handlers are a class and a lambda behind a filter, and its counters are asked for.
#[test]
fn handlers_of_the_server_of_the_jdk_have_their_joules_per_request() -> Result<()> {
    if !Program::Tomcat.is_installed() {
        notes::skipped("ab is not installed (`cargo xtask setup` does it on Debian)");
        return Ok(());
    }
    let shop = Shop::open(Framework::JdkServer, &java::tool("java"), &[])?;
    repeat_once(|measures| expect_shop(&shop, "the system's JDK", Load::Ab, 0, measures * ORDERS))
}
