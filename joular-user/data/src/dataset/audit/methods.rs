//! Checks table `methods` against branches and stacks: it derives the methods of the windows that a
//! row covers, and sums them again.

use std::{collections::HashMap, ops::Range};

use super::{RunAudit, deviations::Deviations};
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
    model::target_text::TargetText,
    stacks::StackTable,
};

/// What tells a row of a window from any other.
type MethodKey = (u32, i64, TargetText, TargetText, String, TargetText);

/// A row as it was written: key, self and total figures.
type WrittenMethod = (MethodKey, [u64; FIGURES.len()]);

/// The same with all digits.
type DerivedMethod = (MethodKey, [u128; FIGURES.len()]);

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

/// Those that are written to two digits.
const ERRORS: Range<usize> = 6..10;
/// Of these, those that older data sets lack.
const SQUARES: Range<usize> = 8..10;

/// The methods of a part of a run, as they were written and as its windows give them.
#[derive(Default)]
pub(crate) struct Methods {
    written: HashMap<i64, Vec<WrittenMethod>>,
    spans: MethodSpans,
    derived: MethodSums,
    /// If rows are of a joular-bpf that wrote no squares.
    deviations: Option<Deviations>,
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
        if !columns.has(&methods::SELF_SQUARES_UJ2) {
            self.deviations.get_or_insert_default();
        }
        let without = if self.deviations.is_some() { SQUARES.start } else { SQUARES.end };
        let figures =
            FIGURES.into_iter().take(without).map(|column| columns.ints(column)).collect::<Result<Vec<_>>>()?;
        let later = FIGURES.into_iter().skip(SQUARES.end).map(|column| columns.ints_if_any(column));
        let later = later.collect::<Result<Vec<_>>>()?;
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
            for (value, figure) in values.iter_mut().zip(&figures) {
                *value = figure.natural(row)?;
            }
            // Older data sets have none of them.
            for (value, figure) in values.iter_mut().skip(SQUARES.end).zip(&later) {
                *value = figure.maybe_natural(row)?.unwrap_or(0);
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
        if let Some(deviations) = &mut self.deviations {
            deviations.add(report);
        }
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
        let deviations = self.deviations.as_mut().map(std::mem::take);
        let of_sum = |method: &SummedMethod<'_>| of_sum(method, deviations.as_ref());
        let mut derived: Vec<DerivedMethod> = sums.methods().iter().map(of_sum).collect();
        derived.sort();
        written.sort();
        audit.methods += derived.len() as u64;
        audit.expect(self.first, "the number of methods from it on", written.len(), derived.len());
        for ((key, derived), (written_key, written)) in derived.iter().zip(&written) {
            audit.expect(self.first, "a method", &written_key.2, &key.2);
            for (at, column) in FIGURES.iter().enumerate() {
                let (derived, written) = (derived[at], u128::from(written[at]));
                // Schema version 3 has all digits.
                if ERRORS.contains(&at) && written == two_digits(derived).into() {
                    continue;
                }
                audit.expect(self.first, &format!("{} of {}", column.name(), key.2), &written, &derived);
            }
        }
    }
}

/// `deviations`: as they were before there were squares, and no squares.
fn of_sum(method: &SummedMethod<'_>, deviations: Option<&Deviations>) -> DerivedMethod {
    let SummedMethod { process, frame, own, total, .. } = method;
    let text = |text: &Option<TargetText>| text.clone().unwrap_or_default();
    let key = (
        process.pid.0,
        i64::try_from(process.start_boottime_ns / 1000).unwrap_or(i64::MAX),
        frame.method(),
        text(&frame.signature),
        frame.kind.name().to_owned(),
        text(&frame.module),
    );
    let sigmas = deviations.map_or(method.sigmas, |deviations| deviations.of(method));
    let squares = if deviations.is_some() { [0, 0] } else { [own.squares, total.squares] };
    let counted = [own.energy.0, total.energy.0, own.cpu_ns, total.cpu_ns, own.samples, total.samples];
    let mut figures = [0; FIGURES.len()];
    let later = [own.by_bytes, total.by_bytes, own.gc_charged, total.gc_charged].map(|energy| u128::from(energy.0));
    let values = counted.into_iter().chain(sigmas.map(|sigma| sigma.0)).map(u128::from).chain(squares).chain(later);
    figures.iter_mut().zip(values).for_each(|(figure, value)| *figure = value);
    (key, figures)
}
