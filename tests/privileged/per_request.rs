//! Measures joules per request of a shop whose two routes have known work, and compares figures that a report has of them.

use std::{ffi::OsString, fmt, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    notes,
    profiler::{END, Output, Profiler, Run},
    servers::shop::{CONNECTIONS, Load, RATIO, Shop},
    statistics::RARE_SIGMAS,
};
use serde_json::Value;

/// The part of a request's CPU time that its handler uses beside its known work, at most.
pub const BESIDE: f64 = 0.1;
/// Standard deviations on either side of a 95 % interval.
const DEVIATIONS: f64 = 1.96;
/// How often each route is asked for before a recording: its code is compiled then.
const WARM: u32 = 50;
const WARM_SECONDS: u32 = 2;
/// The smallest part of the energy that a row must have to matter.
const MATTERS_PERCENT: f64 = 1.0;
const NO_HANDLER: &str = "[no handler]";
/// What `joular-bpf requests` says when it has asked for the first time.
const COUNTING: &str = "requests are counted by";

/// A figure and its standard deviation, J.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub joules: f64,
    deviation: f64,
}

impl Figure {
    pub fn of(route: &Value, which: &str) -> Result<Self> {
        let number = |name: &str| route["needs"][which][name].as_f64().with_context(|| format!("no {name}: {route}"));
        let deviation = (number("high")? - number("low")?) / 2.0 / DEVIATIONS;
        Ok(Self { joules: number("joules")?, deviation })
    }

    pub fn relative(self) -> f64 {
        self.deviation / self.joules
    }
}

/// How many times the energy of one request another one needs, by the printed intervals.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    ratio: f64,
    /// Standard deviation, as a part of the ratio.
    relative: f64,
}

impl Ratio {
    /// Of the direct figures of two routes.
    pub fn of(cheap: &Value, dear: &Value) -> Result<Self> {
        let [cheap, dear] = [Figure::of(cheap, "direct")?, Figure::of(dear, "direct")?];
        Ok(Self { ratio: dear.joules / cheap.joules, relative: cheap.relative().hypot(dear.relative()) })
    }

    /// Fails by chance in less than one of a hundred thousand runs. What a handler does beside its work is about the same for
    /// both, and makes the ratio smaller; counts may be off by a part of them.
    pub fn expect(self, truth: f64, counts_off: f64) -> Result<()> {
        let by_chance = RARE_SIGMAS * self.relative + counts_off;
        let is_in = self.ratio <= truth * (1.0 + by_chance) && self.ratio >= truth * (1.0 - BESIDE - by_chance);
        ensure!(is_in, "{self} times the energy for {truth} times the work");
        Ok(())
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = DEVIATIONS * self.relative;
        write!(f, "{:.3} ({:.3} to {:.3})", self.ratio, self.ratio * (1.0 - half), self.ratio * (1.0 + half))
    }
}

/// Records a shop while both routes are asked for, and checks that their handlers are found, that an order needs the energy of
/// three carts, and that nothing else is taken for a handler.
pub fn expect_shop(shop: &Shop, on: &str, load: Load, seconds: u32, times: u32) -> Result<()> {
    shop.ask(load, WARM_SECONDS, WARM)?;
    let output = Output::new()?;
    let counts = output.beside("requests.csv");
    // The shop counts itself where it can: each request once. It does so from before the recording until after it, because
    // energy of windows that are only partly in the counted time is not taken.
    let counter = (load == Load::Ab).then(|| count(shop, &counts)).transpose()?;
    let run = Run::modelled().pid(shop.pid).with("--frequency", "999").argument("--json").output(output.dir());
    let mut profiler = run.start()?;
    profiler.wait_window()?;
    let times = shop.ask(load, seconds, times)?;
    profiler.stop()?;
    match counter {
        Some(counter) => counter.stop().map(drop)?,
        None => write_counts(shop, times, &counts)?,
    }
    let report = |options: [OsString; 2]| -> Result<Value> {
        let run = Run::new().argument("report").argument(output.dir()).argument("--json");
        let said = options.into_iter().fold(run, Run::argument).finish(END)?;
        ensure!(said.code() == Some(0), "{said:?}");
        Ok(serde_json::from_str(&said.stdout)?)
    };
    let said = report(["--requests".into(), counts.into()])?;
    let handlers = report(["--by".into(), "handler".into()])?;
    let without = expect_handlers(shop, &handlers)?;
    let route = |path: &str| {
        let mut routes = said["routes"].as_array().into_iter().flatten();
        routes.find(|route| route["route"].as_str().is_some_and(|name| name.ends_with(path))).context("a route")
    };
    let [cart, order] = [route("/cart")?, route("/order")?];
    let ratio = Ratio::of(cart, order).with_context(|| said.to_string())?;
    notes::figure(&format!("handlers | {} | {on} | {load:?} | {times} | {ratio} | {without:.1} %", shop.framework));
    for counted in [cart, order] {
        let requests = counted["requests"].as_u64().context("requests")?;
        ensure!(requests == u64::from(times), "{times} requests, and {requests} were counted: {said}");
    }
    let counts_off = if load == Load::Wrk { f64::from(CONNECTIONS) / f64::from(times) } else { 0.0 };
    ratio.expect(RATIO, counts_off).with_context(|| said.to_string())
}

/// Begins to write the shop's own counts to a file.
fn count(shop: &Shop, counts: &Path) -> Result<Profiler> {
    let [cart, order] = shop.framework.handlers();
    let run = Run::new().argument("requests").with("--url", shop.address("/metrics")).with("--output", counts);
    let run = run.with("--handler", format!("GET /cart={cart}")).with("--handler", format!("GET /order={order}"));
    let mut counter = run.spawn()?;
    counter.wait_told(COUNTING, END)?;
    Ok(counter)
}

fn write_counts(shop: &Shop, times: u32, counts: &Path) -> Result<()> {
    let [cart, order] = shop.framework.handlers();
    let rows = format!("route,count,handler\n/cart,{times},{cart}\n/order,{times},{order}\n");
    fs::write(counts, rows).with_context(|| format!("writing {}", counts.display()))
}

/// Returns the percentage of `[no handler]`.
fn expect_handlers(shop: &Shop, said: &Value) -> Result<f64> {
    let rows = said["tables"][0]["rows"].as_array().with_context(|| said.to_string())?;
    let expected: Vec<&str> = shop.framework.handlers().into_iter().chain(shop.framework.job()).collect();
    let (mut found, mut without) = (0, 0.0);
    for row in rows {
        let name = row["name"].as_str().context("a row's name")?;
        let percent = row["self_percent"].as_f64().context("a row's part")?;
        if name == NO_HANDLER {
            without = percent;
        } else if percent >= MATTERS_PERCENT {
            ensure!(expected.contains(&name), "{name} is not one of {expected:?}: {percent} % of the energy");
            found += 1;
        }
    }
    ensure!(found == expected.len(), "{found} handlers, not {expected:?}: {rows:?}");
    Ok(without)
}
