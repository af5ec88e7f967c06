//! Checks table `methods` against branches and stacks: it derives the methods of the windows that a
//! row covers, and sums them again.

use std::{collections::HashMap, ops::Range};

use super::RunAudit;
use crate::{
    attribution::window_report::WindowReport,
    dataset::{
        column::{Column, kind},
        error::Result,
        method_sums::{MethodSums, SummedMethod, two_digits},
        read::{
            columns::{Columns, TableFile},
            method_spans::MethodSpans,
        },
        store::StoredFile,
        tables::{methods, shared},
    },
    model::target_text::TargetText,
    stacks::StackTable,
};

/// What tells a row of a window from any other.
type MethodKey = (u32, i64, TargetText, TargetText, String, TargetText);

/// A row: key, self and total figures.
type Method = (MethodKey, [u64; FIGURES.len()]);

const FIGURES: [Column<kind::Int>; 14] = [
    methods::SELF_UJ,
    methods::TOTAL_UJ,
    methods::SELF_CPU_NS,
    methods::TOTAL_CPU_NS,
    methods::SELF_SAMPLES,
    methods::TOTAL_SAMPLES,
    methods::SELF_SIGMA_UJ,
    methods::TOTAL_SIGMA_UJ,
    methods::SELF_SQUARES_UJ2,
    methods::TOTAL_SQUARES_UJ2,
    methods::SELF_BY_BYTES_UJ,
    methods::TOTAL_BY_BYTES_UJ,
    methods::GC_CHARGED_UJ,
    methods::TOTAL_GC_CHARGED_UJ,
];

/// Those that the table of a rollup lacks.
const CHARGED: Range<usize> = 12..14;

/// The methods of a part of a run, as they were written and as its windows give them.
#[derive(Default)]
pub(crate) struct Methods {
    written: HashMap<i64, Vec<Method>>,
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
        let figures = FIGURES
            .into_iter()
            .enumerate()
            .map(|(at, column)| if CHARGED.contains(&at) { columns.ints_if_any(column) } else { columns.ints(column) });
        let figures = figures.collect::<Result<Vec<_>>>()?;
        for row in 0..columns.rows() {
            let key = (
                pids.natural(row)?,
                process_starts.get(row)?,
                methods.get(row)?.into(),
                signatures.maybe(row).unwrap_or_default().into(),
                kinds.get(row)?.to_owned(),
                modules.maybe(row).unwrap_or_default().into(),
            );
            let mut values = [0; FIGURES.len()];
            for (at, (value, figure)) in values.iter_mut().zip(&figures).enumerate() {
                *value = if CHARGED.contains(&at) {
                    figure.maybe_natural(row)?.unwrap_or(0)
                } else {
                    figure.natural(row)?
                };
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
        let mut derived: Vec<Method> = sums.methods().iter().map(of_sum).collect();
        derived.sort();
        written.sort();
        audit.methods += derived.len() as u64;
        audit.expect(self.first, "the number of methods from it on", written.len(), derived.len());
        for ((key, derived), (written_key, written)) in derived.iter().zip(&written) {
            audit.expect(self.first, "a method", &written_key.2, &key.2);
            for (column, (written, derived)) in FIGURES.iter().zip(written.iter().zip(derived)) {
                audit.expect(self.first, &format!("{} of {}", column.name(), key.2), written, derived);
            }
        }
    }
}

/// As the table has it: errors to two digits.
fn of_sum(method: &SummedMethod<'_>) -> Method {
    let SummedMethod { process, frame, own, total, sigmas, .. } = method;
    let text = |text: &Option<TargetText>| text.clone().unwrap_or_default();
    let key = (
        process.pid.0,
        i64::try_from(process.start_boottime_ns / 1000).unwrap_or(i64::MAX),
        frame.method(),
        text(&frame.signature),
        frame.kind.name().to_owned(),
        text(&frame.module),
    );
    let [own_sigma, total_sigma] = sigmas.map(|sigma| two_digits(sigma.0.into()));
    let figures = [
        own.energy.0,
        total.energy.0,
        own.cpu_ns,
        total.cpu_ns,
        own.samples,
        total.samples,
        own_sigma,
        total_sigma,
        two_digits(own.squares),
        two_digits(total.squares),
        own.by_bytes.0,
        total.by_bytes.0,
        own.gc_charged.0,
        total.gc_charged.0,
    ];
    (key, figures)
}
