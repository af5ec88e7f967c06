//! Tests joules per handler and per request with frameworks that nobody here wrote, under load, on every JDK: an order has three
//! times the work of a cart, and must have three times the energy.
//!
//! Each figure is off by chance in less than one of a hundred thousand runs, and there are 28 of them: fewer than one run in 3000
//! repeats a test by chance. A test fails by chance if it does so twice, which happens in about one of 10⁸ runs.

use anyhow::{Context as _, Result};
use joular_tests::{
    chance::repeat_once,
    containers,
    jdk::Jdk,
    notes,
    servers::shop::{self, Framework, Load, Shop},
};

use crate::per_request::expect_shop;

/// How long `wrk` asks, and how often the other programs do.
const SECONDS: u32 = 8;
const TIMES: u32 = 200;

fn are_unpacked() -> bool {
    let is_there = shop::are_unpacked();
    if !is_there {
        notes::skipped(
            "no frameworks are unpacked in target/frameworks (`cargo xtask setup --slow` does it on Debian 12)",
        );
    }
    is_there
}

fn measure(shop: &Shop, on: &str, load: Load) -> Result<()> {
    let what = || format!("{} on {on}, asked by {load:?}", shop.framework);
    repeat_once(|measures| expect_shop(shop, on, load, measures * SECONDS, measures * TIMES)).with_context(what)
}

/// On each pinned JDK, with another load on each.
fn measure_on_all(framework: Framework) -> Result<()> {
    if !are_unpacked() {
        return Ok(());
    }
    for (index, jdk) in Jdk::pinned()?.filter(|jdk| framework.runs_on(jdk.release)).enumerate() {
        let load = match (framework, index % 2) {
            (Framework::Grpc, _) => Load::Client,
            (_, 0) => Load::Wrk,
            _ => Load::Ab,
        };
        let shop = Shop::open(framework, &jdk.java, &[])?;
        measure(&shop, &jdk.to_string(), load)?;
    }
    Ok(())
}

#[test]
fn servlets_on_jetty_have_their_joules_per_request() -> Result<()> {
    measure_on_all(Framework::Servlets)
}

#[test]
fn controllers_and_jobs_of_spring_have_their_joules_per_request() -> Result<()> {
    measure_on_all(Framework::SpringMvc)
}

#[test]
fn resources_of_resteasy_have_their_joules_per_request() -> Result<()> {
    measure_on_all(Framework::Resteasy)
}

#[test]
fn resources_of_jersey_have_their_joules_per_request() -> Result<()> {
    measure_on_all(Framework::Jersey)
}

#[test]
fn handlers_of_the_server_of_each_jdk_have_their_joules_per_request() -> Result<()> {
    measure_on_all(Framework::JdkServer)
}

#[test]
fn services_of_grpc_have_their_joules_per_request() -> Result<()> {
    measure_on_all(Framework::Grpc)
}

#[test]
fn handlers_on_virtual_threads_have_their_joules_per_request() -> Result<()> {
    if !are_unpacked() {
        return Ok(());
    }
    for jdk in Jdk::pinned()?.filter(|jdk| jdk.release >= 21) {
        for framework in [Framework::Servlets, Framework::JdkServer] {
            let shop = Shop::open(framework, &jdk.java, &["-Dthreads=virtual"])?;
            measure(&shop, &format!("virtual threads of {jdk}"), Load::Ab)?;
        }
    }
    Ok(())
}

#[test]
fn handlers_in_a_container_have_their_joules_per_request() -> Result<()> {
    if !containers::are_installed() {
        notes::skipped("there is no podman to run containers with (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    if !are_unpacked() {
        return Ok(());
    }
    let jdk = Jdk::pinned()?.last().context("no pinned JDK")?;
    let shop = Shop::open_in_container(Framework::SpringMvc, jdk)?;
    measure(&shop, &format!("{jdk} in a container"), Load::Wrk)
}
