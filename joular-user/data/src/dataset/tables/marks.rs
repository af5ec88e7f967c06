//! Defines what programs said of themselves: begins and ends of phases, and events.

use super::{Column, ColumnOf, InWindow, Table, WindowKey, int, joined, kind, window_columns};
use crate::events::{
    Mark,
    phases::{Phase, Step},
};

pub(crate) const SAID_AT: Column<kind::Time> =
    Column::new("said_at", "wall clock", "when it was said; a mark that came late may be of an earlier window");
pub(crate) const KIND: Column<kind::Name> = Column::new("kind", "program", "begin or end of a phase, or event");
pub(crate) const NAME: Column<kind::Name> =
    Column::new("name", "program", "name of the phase or the event").null("an end to which no phase was open");
pub(crate) const PHASE: Column<kind::Name> = Column::new(
    "phase",
    "program",
    "the phase with those that it is within: load/parse; from its begin's to its end's window_start + window_ns",
)
.null("not of a phase");
pub(crate) const PHASE_NUMBER: Column<kind::Int> =
    Column::new("phase_number", "run", "number of the phase in the run, the same in its begin and end: 0, 1, 2, …")
        .null("not of a phase");
pub(crate) const ATTRIBUTES: Column<kind::Text> =
    Column::new("attributes", "program", "what was said beside, as key=value key=value").null("nothing");
pub(crate) const PID: Column<kind::Int> = Column::new("pid", "kernel", "who said so, in the host's namespace")
    .null("not known: it did not come by the socket");
pub(crate) const SAID_BY: Column<kind::Name> = Column::new("said_by", "run", "how it came: output, socket or pipe");
pub(crate) const CUT_DELAY_NS: Column<kind::Int> = Column::quantity(
    "cut_delay_ns",
    "monotonic clock",
    "end of the window, where the phase has its edge, minus said_at",
)
.unit("ns")
.null("an event, which ends no window");

pub struct Marks;

pub struct MarkRecord<'a> {
    pub key: WindowKey<'a>,
    pub mark: &'a Mark,
    pub step: &'a Step,
    /// Time of the mark since the window's start; negative before it.
    pub since_start_ns: i64,
}

impl MarkRecord<'_> {
    fn phase(&self) -> Option<&Phase> {
        self.step.phase()
    }
}

impl InWindow for Marks {
    fn key<'r>(row: &'r MarkRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl Table for Marks {
    const NAME: &'static str = "marks";
    const ROW: &'static str = "something that a program said while it was recorded, by joular-bpf run; windows end at \
                               begins and ends of phases";
    const BY_POLICY: bool = false;
    type Row<'a> = MarkRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        joined([window_columns(), mark_columns()])
    }
}

fn mark_columns() -> Vec<ColumnOf<Marks>> {
    vec![
        SAID_AT.of::<Marks>(|r| Some(r.key.start.0.saturating_add(r.since_start_ns.div_euclid(1000)))),
        KIND.of::<Marks>(|r| Some(r.mark.kind.name().into())),
        NAME.of::<Marks>(|r| {
            let name = r.phase().map(|phase| &phase.name).or(r.mark.name.as_ref());
            name.map(|name| name.raw().into())
        }),
        PHASE.of::<Marks>(|r| r.phase().map(|phase| phase.path.raw().into())),
        PHASE_NUMBER.of::<Marks>(|r| int(r.phase()?.number)),
        ATTRIBUTES.of::<Marks>(|r| r.mark.attributes.as_ref().map(|text| text.raw().into())),
        PID.of::<Marks>(|r| r.mark.pid.map(|pid| pid.0.into())),
        SAID_BY.of::<Marks>(|r| Some(r.mark.from.name().into())),
        CUT_DELAY_NS.of::<Marks>(|r| {
            let length_ns = i64::try_from(r.key.length_ns).unwrap_or(i64::MAX);
            r.mark.kind.is_edge().then(|| length_ns.saturating_sub(r.since_start_ns))
        }),
    ]
}
