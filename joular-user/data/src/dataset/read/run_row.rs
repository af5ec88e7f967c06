//! The row of a run: on what and how it was made, and how it ended.

use super::columns::{Columns, TableFile};
use crate::{
    dataset::error::{DataSetError, Result},
    dataset::store::StoredFile,
    events::{RunEnd, RunInfo},
    model::{
        policy::{Policy, WeightUnit},
        units::{Pid, UnixMicros},
    },
};

/// A run as table `runs` has it.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) info: RunInfo,
    /// How it ended, and what it says that it adds up to.
    pub(crate) end: Option<(RunEnd, RunTotals)>,
}

/// Sums of a run, as it wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunTotals {
    pub(crate) windows: u64,
    pub(crate) measured_uj: u64,
    pub(crate) attributed_uj: u64,
    pub(crate) static_uj: u64,
    pub(crate) profiler_uj: u64,
    pub(crate) unattributed_uj: u64,
    pub(crate) samples: u64,
    pub(crate) lost: u64,
}

pub(crate) fn read(file: &StoredFile) -> Result<RunRow> {
    let mut row = None;
    TableFile::open(file)?.batches(|columns| {
        if columns.rows() > 0 {
            row = Some(RunRow { info: info(columns)?, end: end(columns)? });
        }
        Ok(())
    })?;
    row.ok_or_else(|| DataSetError::Damaged { path: file.path(), problem: "it has no row".to_owned() })
}

fn info(columns: &Columns<'_>) -> Result<RunInfo> {
    let text = |name: &str| Ok::<_, DataSetError>(columns.texts(name)?.get(0)?.to_owned());
    let number = |name: &str| columns.ints(name)?.natural::<u64>(0);
    let small = |name: &str| columns.ints(name)?.natural::<u32>(0);
    let domains = text("domains")?;
    Ok(RunInfo {
        run_id: text("run_id")?,
        host: text("hostname")?,
        started: UnixMicros(columns.times("started")?.get(0)?),
        boottime_offset_ns: number("boottime_offset_ns")?,
        version: text("version")?,
        kernel: text("kernel")?,
        cpu_model: text("cpu_model")?,
        arch: text("arch")?,
        online_cpus: small("online_cpus")?,
        sockets: small("sockets")?,
        memory_bytes: number("memory_bytes")?,
        command_line: command_line(columns)?,
        sampling_event: text("sampling_event")?,
        frequency_hz: small("frequency_hz")?,
        interval_ns: number("interval_ns")?,
        energy_source: text("energy_source")?,
        energy_reason: text("energy_reason")?,
        domains: serde_json::from_str(&domains)
            .map_err(|error| columns.damaged(format!("column domains is not a list of domains: {error}")))?,
        policy: policy(columns)?,
        profiler_pid: Pid(small("profiler_pid")?),
    })
}

fn command_line(columns: &Columns<'_>) -> Result<Vec<String>> {
    use arrow::array::AsArray as _;
    let values = columns.list("command_line")?.values();
    let texts = values.as_string_opt::<i32>().ok_or_else(|| columns.damaged("column command_line is no text"))?;
    Ok(texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

fn policy(columns: &Columns<'_>) -> Result<Policy> {
    let units = [WeightUnit::Time, WeightUnit::Cycles];
    let calibration = columns.texts("calibration")?;
    let calibration = calibration.maybe(0).map(serde_json::from_str).transpose();
    Ok(Policy {
        idle: columns.texts("idle_policy")?.name_of(0, |name| name.parse().ok())?,
        idle_milliwatts: columns.ints("idle_milliwatts")?.natural(0)?,
        smt_permille: columns.ints("smt_permille")?.natural(0)?,
        weight_unit: columns
            .texts("weight_unit")?
            .name_of(0, |name| units.into_iter().find(|unit| unit.name() == name))?,
        calibration: calibration
            .map_err(|error| columns.damaged(format!("column calibration is not a calibration: {error}")))?,
    })
}

fn end(columns: &Columns<'_>) -> Result<Option<(RunEnd, RunTotals)>> {
    let Some(ended) = columns.times("ended_at")?.maybe(0) else { return Ok(None) };
    let total = |name: &str| columns.ints(name)?.natural(0);
    let totals = RunTotals {
        windows: total("windows")?,
        measured_uj: total("measured_uj")?,
        attributed_uj: total("attributed_uj")?,
        static_uj: total("static_uj")?,
        profiler_uj: total("profiler_uj")?,
        unattributed_uj: total("unattributed_uj")?,
        samples: total("samples")?,
        lost: total("lost")?,
    };
    let reason = columns.texts("end_reason")?.get(0)?.to_owned();
    Ok(Some((RunEnd { ended: UnixMicros(ended), reason }, totals)))
}
