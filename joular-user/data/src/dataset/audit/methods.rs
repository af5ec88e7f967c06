//! Checks table `methods` against branches and stacks: it derives the methods of the windows that a
//! row covers, and sums them again.

use std::collections::HashMap;

use super::RunAudit;
use crate::{
    attribution::window_report::WindowReport,
    dataset::{
        column::{Column, Named as _, kind},
        error::Result,
        method_sums::{MethodSums, SummedMethod, two_digits},
        read::{
            columns::{Columns, TableFile},
            method_spans::MethodSpans,
        },
        store::StoredFile,
        tables::{methods, shared},
    },
    model::units::MicroJoules,
    stacks::StackTable,
};

/// What tells a row of a window from any other.
type MethodKey = (u32, i64, String, String, String, String);

/// A row as it was written: key, self and total figures.
type WrittenMethod = (MethodKey, [u64; 8]);

const FIGURES: [Column<kind::Int>; 8] = [
    methods::SELF_UJ,
    methods::TOTAL_UJ,
    methods::SELF_CPU_NS,
    methods::TOTAL_CPU_NS,
    methods::SELF_SAMPLES,
    methods::TOTAL_SAMPLES,
    methods::SELF_SIGMA_UJ,
    methods::TOTAL_SIGMA_UJ,
];

/// The methods of a part of a run, as they were written and as its windows give them.
#[derive(Default)]
pub(crate) struct Methods {
    written: HashMap<i64, Vec<WrittenMethod>>,
    spans: MethodSpans,
    derived: MethodSums,
    /// Number of the span's first window.
    first: u64,
}

impl Methods {
    pub(crate) fn read(file: Option<&StoredFile>) -> Result<Self> {
        let mut methods = Self::default();
        if let Some(file) = file {
            TableFile::open(file)?.batches(|columns| methods.take(columns))?;
        }
        Ok(methods)
    }

    fn take(&mut self, columns: &Columns<'_>) -> Result<()> {
        let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
        let (lengths, process_starts) = (columns.ints(shared::WINDOW_NS)?, columns.times(shared::PROCESS_START)?);
        let [methods, signatures, kinds, modules] =
            [methods::METHOD, methods::SIGNATURE, methods::KIND, methods::MODULE].map(|column| columns.texts(column));
        let (methods, signatures, kinds, modules) = (methods?, signatures?, kinds?, modules?);
        let figures = FIGURES.into_iter().map(|column| columns.ints(column)).collect::<Result<Vec<_>>>()?;
        for row in 0..columns.rows() {
            let key = (
                pids.natural(row)?,
                process_starts.get(row)?,
                methods.get(row)?.to_owned(),
                signatures.maybe(row).unwrap_or_default().to_owned(),
                kinds.get(row)?.to_owned(),
                modules.maybe(row).unwrap_or_default().to_owned(),
            );
            let mut values = [0; 8];
            for (value, figure) in values.iter_mut().zip(&figures) {
                *value = figure.natural(row)?;
            }
            let start = starts.get(row)?;
            self.spans.note(start, lengths.natural(row)?);
            self.written.entry(start).or_default().push((key, values));
        }
        Ok(())
    }

    /// Takes the next window, and compares the span before it if that is whole.
    pub(crate) fn window(&mut self, audit: &mut RunAudit, report: &WindowReport, table: &StackTable) {
        if self.spans.begins(report.wall_start.0, report.length_ns) {
            self.compare(audit);
            self.first = report.index;
        }
        self.derived.add(report, table);
    }

    /// Compares the last span, and returns how many rows belong to none.
    pub(crate) fn end(mut self, audit: &mut RunAudit) -> usize {
        self.compare(audit);
        self.written.values().map(Vec::len).sum()
    }

    /// Compares the rows as sorted lists, because rows that differ only in their source file have
    /// equal keys.
    fn compare(&mut self, audit: &mut RunAudit) {
        let sums = std::mem::take(&mut self.derived);
        let Some(span) = sums.span else { return };
        let mut written = self.written.remove(&span.start.0).unwrap_or_default();
        let mut derived: Vec<WrittenMethod> = sums.methods().iter().map(of_sum).collect();
        derived.sort();
        written.sort();
        audit.methods += derived.len() as u64;
        audit.expect(self.first, "the number of methods from it on", written.len(), derived.len());
        for ((key, derived), (written_key, written)) in derived.iter().zip(&written) {
            audit.expect(self.first, "a method", &written_key.2, &key.2);
            for ((column, derived), written) in FIGURES.iter().zip(derived).zip(written) {
                // Schema version 3 has all digits.
                let is_deviation =
                    [methods::SELF_SIGMA_UJ.name(), methods::TOTAL_SIGMA_UJ.name()].contains(&column.name());
                if is_deviation && *written == two_digits(MicroJoules(*derived)).0 {
                    continue;
                }
                audit.expect(self.first, &format!("{} of {}", column.name(), key.2), written, derived);
            }
        }
    }
}

fn of_sum(method: &SummedMethod<'_>) -> WrittenMethod {
    let SummedMethod { process, frame, own, total } = method;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = (
        process.pid.0,
        i64::try_from(process.start_boottime_ns / 1000).unwrap_or(i64::MAX),
        frame.method(),
        text(&frame.signature),
        frame.kind.name().to_owned(),
        text(&frame.module),
    );
    let figures = [
        own.energy.0,
        total.energy.0,
        own.cpu_ns,
        total.cpu_ns,
        own.samples,
        total.samples,
        own.sigma.0,
        total.sigma.0,
    ];
    (key, figures)
}
