//! Reads the row of a run: on what and how it was made, and how it ended.

use super::columns::{Columns, TableFile};
use crate::{
    dataset::{
        column::kind,
        error::{DataSetError, Result},
        store::StoredFile,
        tables::runs,
    },
    events::{HostIdentity, RunEnd, RunInfo},
    model::{
        policy::{Policy, WeightUnit},
        target_text::TargetText,
        units::{Pid, UnixMicros},
    },
};

/// A run as table `runs` has it.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) info: RunInfo,
    /// How it ended, and the totals that it states.
    pub(crate) end: Option<(RunEnd, RunTotals)>,
    /// Of a rollup: nominal length of the windows that its windows are sums of.
    pub(crate) rolled_up_from_ns: Option<u64>,
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
            let rolled_up_from_ns = columns.ints(runs::ROLLED_UP_FROM_NS)?.maybe_natural(0)?;
            row = Some(RunRow { info: info(columns)?, end: end(columns)?, rolled_up_from_ns });
        }
        Ok(())
    })?;
    row.ok_or_else(|| DataSetError::Damaged { path: file.path(), problem: "it has no row".to_owned() })
}

fn info(columns: &Columns<'_>) -> Result<RunInfo> {
    let text = |column| Ok::<_, DataSetError>(columns.texts::<kind::Text>(column)?.get(0)?.to_owned());
    let number = |column| columns.ints(column)?.natural::<u64>(0);
    let small = |column| columns.ints(column)?.natural::<u32>(0);
    let domains = text(runs::DOMAINS)?;
    let command_lines = columns.text_lists(runs::COMMAND_LINE)?;
    Ok(RunInfo {
        run_id: text(runs::RUN_ID)?,
        host: text(runs::HOSTNAME)?.into(),
        started: UnixMicros(columns.times(runs::STARTED)?.get(0)?),
        boottime_offset_ns: number(runs::BOOTTIME_OFFSET_NS)?,
        version: text(runs::VERSION)?,
        kernel: text(runs::KERNEL)?,
        cpu_model: text(runs::CPU_MODEL)?,
        arch: text(runs::ARCH)?,
        online_cpus: small(runs::ONLINE_CPUS)?,
        sockets: small(runs::SOCKETS)?,
        memory_bytes: number(runs::MEMORY_BYTES)?,
        command_line: command_lines.of(0).into_iter().map(ToOwned::to_owned).collect(),
        sampling_event: text(runs::SAMPLING_EVENT)?,
        frequency_hz: small(runs::FREQUENCY_HZ)?,
        interval_ns: number(runs::INTERVAL_NS)?,
        energy_source: text(runs::ENERGY_SOURCE)?,
        energy_reason: text(runs::ENERGY_REASON)?,
        domains: serde_json::from_str(&domains)
            .map_err(|error| columns.damaged(format!("column domains is not a list of domains: {error}")))?,
        policy: policy(columns)?,
        profiler_pid: Pid(small(runs::PROFILER_PID)?),
        identity: HostIdentity {
            machine_id: columns.texts(runs::MACHINE_ID)?.maybe(0).map(TargetText::from),
            instance_id: columns.texts(runs::INSTANCE_ID)?.maybe(0).map(TargetText::from),
            labels: columns.text_lists(runs::LABELS)?.of(0).into_iter().map(TargetText::from).collect(),
        },
    })
}

fn policy(columns: &Columns<'_>) -> Result<Policy> {
    let units = [WeightUnit::Time, WeightUnit::Cycles];
    let calibration = columns.texts(runs::CALIBRATION)?;
    let calibration = calibration.maybe(0).map(serde_json::from_str).transpose();
    Ok(Policy {
        idle: columns.texts(runs::IDLE_POLICY)?.name_of(0, |name| name.parse().ok())?,
        idle_milliwatts: columns.ints(runs::IDLE_MILLIWATTS)?.natural(0)?,
        smt_permille: columns.ints(runs::SMT_PERMILLE)?.natural(0)?,
        weight_unit: columns
            .texts(runs::WEIGHT_UNIT)?
            .name_of(0, |name| units.into_iter().find(|unit| unit.name() == name))?,
        calibration: calibration
            .map_err(|error| columns.damaged(format!("column calibration is not a calibration: {error}")))?,
        watts_by: columns.texts(runs::WATTS_BY)?.maybe(0).map(str::to_owned),
    })
}

fn end(columns: &Columns<'_>) -> Result<Option<(RunEnd, RunTotals)>> {
    let Some(ended) = columns.times(runs::ENDED_AT)?.maybe(0) else { return Ok(None) };
    let total = |column| columns.ints(column)?.natural(0);
    let totals = RunTotals {
        windows: total(runs::WINDOWS)?,
        measured_uj: total(runs::MEASURED_UJ)?,
        attributed_uj: total(runs::ATTRIBUTED_UJ)?,
        static_uj: total(runs::STATIC_UJ)?,
        profiler_uj: total(runs::PROFILER_UJ)?,
        unattributed_uj: total(runs::UNATTRIBUTED_UJ)?,
        samples: total(runs::SAMPLES)?,
        lost: total(runs::LOST)?,
    };
    let reason = columns.texts(runs::END_REASON)?.get(0)?.to_owned();
    Ok(Some((RunEnd { ended: UnixMicros(ended), reason }, totals)))
}
