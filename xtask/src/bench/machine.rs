//! Describes the machine that figures are from: what matters for them, and no names.

use std::fs;

use anyhow::{Context as _, Result};
use joular_tests::java;

pub fn describe() -> Result<Vec<(&'static str, String)>> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.trim().to_owned())
    };
    let is_virtual = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let cpus = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    // A vendor's suffix can name the machine's owner; the version is what counts.
    let kernel = kernel.trim().split('-').next().unwrap_or_default().to_owned();
    let kind = if is_virtual { "virtual machine" } else { "physical machine" };
    Ok(vec![
        ("CPU", format!("{}, {cpus} CPUs, {kind}", field("model name").unwrap_or_else(|| "unknown".to_owned()))),
        ("Kernel", format!("Linux {kernel}, {}", std::env::consts::ARCH)),
        ("Java", java::version()?.replace("javac", "JDK")),
    ])
}
