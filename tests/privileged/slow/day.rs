//! A day in the life of the service on a Debian with its own kernel, in a virtual machine: what an administrator does and
//! sees, from the installation to the end. `tests/fixtures/day.sh` is the day.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{notes, paths};

use super::debian_package::{machine, needed, said};

/// An emulated machine takes some minutes; on a loaded one many.
const LIMIT: Duration = Duration::from_secs(2700);
const OK: &str = "HTTP/1.1 200 OK";

#[test]
fn a_service_goes_through_a_day_of_its_administrator() -> Result<()> {
    let Some((packages, kernel)) = needed()? else { return Ok(()) };
    let script = fs::read_to_string(paths::fixtures().join("day.sh"))?;
    let console = kernel.start(machine(&packages, &script)?, &[])?.finish(LIMIT)?.stdout.replace('\r', "");
    notes::figure(&format!("the day:\n{}", console.split_once("== install").map_or("", |(_, day)| day)));
    for (what, expected) in [
        ("installed", "disabled inactive"),
        ("checked", "0"),
        ("started", &format!("enabled active {OK}")),
        ("broken", &format!("active {OK}")),
        ("renamed", "active"),
        ("rotated", &format!("HTTP/1.1 401 Unauthorized {OK}")),
        ("full", &format!("active {OK}")),
        ("free", "active"),
        ("away", "active"),
        ("back", "active"),
        ("upgraded", "active"),
        ("drained", "success"),
        ("shipped", "0 runs differ"),
        ("audited", "0"),
        ("purged", "inactive"),
        ("left", ""),
    ] {
        ensure!(
            said(&console, what)? == expected,
            "{what} is '{}', not '{expected}': {console}",
            said(&console, what)?
        );
    }
    for name in ["renamed", "eu1", "Busy.spin"] {
        ensure!(console.contains(name), "{name} is in no report: {console}");
    }
    Ok(())
}
