//! Makes the file of a service in a unit of a tier.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use twox_hash::XxHash64;

use super::{sums::Summed, unit::Unit};
use crate::{
    dataset::{
        bundle::{self, BundlePlace, Groups},
        error::{DataSetError, Result},
        layout::{FilePlace, date, path_part},
        read::{files, stacks::ReadStacks},
        store::{Scratch, Store},
        write::RollupWriter,
    },
    events::{HostIdentity, RunEnd, RunInfo},
    model::{policy::Policy, target_text::TargetText, units::Pid},
    redact::{CommandLines, Redaction},
};

/// In place of a service: what hosts needed beside all of them.
const HOSTS: &str = "[hosts]";

/// Characters of a service's name that a run's id has.
const NAME_CHARS: usize = 40;

/// A file, and where it belongs in the tier.
pub(super) struct File {
    pub(super) folder: PathBuf,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// `scratch` is a folder in which a file may be made.
pub(super) fn encode(service: &Summed, unit: Unit, stacks: &ReadStacks, scratch: &Path) -> Result<File> {
    let info = info(service, unit);
    let store = Arc::new(Scratch::within(scratch)?);
    let mut writer = RollupWriter::start(store.as_ref(), info.clone(), service.interval_ns)?;
    if let Some(first) = service.windows.first() {
        writer.describe(&first.report, &service.processes, &service.paths, &stacks.table)?;
    }
    for window in &service.windows {
        writer.window(window, &stacks.table)?;
    }
    writer.publish(&FilePlace::new(&info, &date(info.started), 0))?;
    writer.end(Some(&RunEnd { ended: unit.end(), reason: "summed".to_owned() }))?;
    let store: Arc<dyn Store> = store;
    let run = files::find(&store)?.into_iter().next();
    let run = run.ok_or_else(|| DataSetError::NoRun { path: store.path().to_owned() })?;
    let bytes = bundle::encode(&run, &Redaction::default().showing(CommandLines::Full))?;
    let place = BundlePlace::of(&info);
    Ok(File { folder: place.folder(&Groups::default()), name: place.name, bytes })
}

/// How the id of a service's run begins; `None`: that of hosts. `erased` is what it was called until it was erased.
pub(super) fn run_of(service: Option<&str>, erased: Option<&str>) -> String {
    let host = service.unwrap_or(HOSTS);
    let name: String = path_part(host).chars().take(NAME_CHARS).collect();
    // Names that differ only in what a path has no place for have the same folder. A service may be called as hosts are.
    let hash = XxHash64::oneshot(service.is_none().into(), erased.unwrap_or(host).as_bytes());
    format!("{name}-{hash:016x}")
}

/// A service is the host, so that a question about one reads its files alone.
fn info(service: &Summed, unit: Unit) -> RunInfo {
    let host = service.key.service.clone().unwrap_or_else(|| TargetText::from(HOSTS));
    let label = service.key.label.map_or("none", |label| label.name());
    let run = run_of(service.key.service.as_ref().map(TargetText::raw), service.erased.as_ref().map(TargetText::raw));
    RunInfo {
        run_id: format!("{run}-{label}-{}", unit.start.0 / 1_000_000),
        host,
        started: unit.start,
        boottime_offset_ns: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: String::new(),
        cpu_model: String::new(),
        arch: String::new(),
        online_cpus: 0,
        sockets: 0,
        memory_bytes: 0,
        command_line: Vec::new(),
        sampling_event: String::new(),
        frequency_hz: 0,
        interval_ns: unit.tier.window_us().cast_unsigned().saturating_mul(1000),
        energy_source: "sums".to_owned(),
        energy_reason: "sums of what hosts shipped".to_owned(),
        domains: service.domain.iter().cloned().collect(),
        policy: Policy::default(),
        profiler_pid: Pid(0),
        identity: HostIdentity::default(),
    }
}
