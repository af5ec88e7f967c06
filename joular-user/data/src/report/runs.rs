//! Lists the runs of a data set: when they were, what they cost and how they ended. Only the rows of table `runs` are
//! read.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use serde::Serialize;

use super::profile::{Filter, Run, Unreadable};
use crate::{
    dataset::{
        error::Result,
        read::{
            files::{self, RunFiles},
            run_row::{self, RunRow},
        },
        store::{self, ClaimKind, Store},
    },
    events::RunEnd,
    model::{domain::Label, target_text::TargetText, units::MicroJoules},
    output::OutputError,
    text::{
        figures, harmless_json, seconds,
        table::{Column, Table},
        time,
    },
};

/// The runs of a data set, in the order in which they began.
#[derive(Debug)]
pub struct RunList(Vec<Listed>);

/// A run. What is only known at its end is `None` before, and if it did not end properly.
#[derive(Debug, Serialize)]
struct Listed {
    run_id: String,
    host: TargetText,
    /// Of an experiment: the folder of the variant's data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_set: Option<TargetText>,
    /// UTC.
    started: String,
    seconds: Option<f64>,
    windows: Option<u64>,
    /// Energy of the targets.
    attributed_uj: Option<u64>,
    #[serde(skip)]
    label: Option<Label>,
    /// Why it ended, or that it goes on.
    ended: String,
    /// The command line of the recording.
    command_line: Vec<String>,
}

/// # Errors
/// If there is no data set, or the row of a run cannot be read and `unreadable` makes that an error.
pub fn read(root: &Path, unreadable: &Unreadable) -> Result<RunList> {
    let store = store::open(root)?;
    let recorder = recorder(&store);
    if files::rows(&store)?.is_empty() {
        // Says why there is none.
        drop(files::find(&store)?);
    }
    let rows = rows(&store, unreadable, |_| true)?;
    Ok(RunList(rows.into_iter().map(|(row, data_set)| Listed::of(row, data_set, recorder)).collect()))
}

/// The rows of runs in the order in which they began, each with the folder of its data set in an experiment.
fn rows(
    store: &Arc<dyn Store>,
    unreadable: &Unreadable,
    is_wanted: impl Fn(&RunFiles) -> bool,
) -> Result<Vec<(RunRow, Option<TargetText>)>> {
    let read = |run: &RunFiles| match run_row::read(&run.row) {
        Ok(row) => Ok(Some((row, run.row.data_set().map(|folder| folder.to_string_lossy().as_ref().into())))),
        // It was removed meanwhile.
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    };
    let mut rows: Vec<(RunRow, Option<TargetText>)> =
        unreadable.rows(store, is_wanted, read)?.into_iter().flatten().collect();
    rows.sort_by_key(|(row, _)| row.info.started);
    Ok(rows)
}

/// Ids of the runs that are selected, in the order in which they began, if each is a command from its beginning to its
/// end and none of their time is left out.
///
/// # Errors
/// As [`read`], but it is no error if there is no run.
pub fn whole_commands(root: &Path, filter: &Filter) -> Result<Option<Vec<String>>> {
    let found = rows(&store::open(root)?, &filter.unreadable, |run| filter.may_name(run))?;
    let run = |row: RunRow| (Run { info: row.info, end: row.end.map(|(end, _)| end), ..Run::default() }, ());
    let mut runs: Vec<(Run, ())> = found.into_iter().map(|(row, _)| run(row)).collect();
    filter.keep_runs(&mut runs);
    let is_whole = |run: &Run| run.end.as_ref().is_some_and(|end| end.reason == RunEnd::OF_COMMAND);
    let are_whole = filter.since.is_none() && filter.until.is_none() && runs.iter().all(|(run, ())| is_whole(run));
    Ok((are_whole && !runs.is_empty()).then(|| runs.into_iter().map(|(run, ())| run.info.run_id).collect()))
}

/// What somebody should know who reads a data set to which a recording still writes.
pub fn goes_on(root: &Path) -> Option<String> {
    let pid = recorder(&store::open(root).ok()?)?;
    let by = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    Some(format!(
        "{}: a recording goes on{by}: it writes its windows once a minute, or as --flush says",
        root.display()
    ))
}

/// Who writes to a data set now, if anybody does, as far as that is known.
fn recorder(store: &Arc<dyn Store>) -> Option<Option<u32>> {
    match store.claim(ClaimKind::Read) {
        Err(OutputError::InUse { pid, .. }) => Some(pid),
        Ok(_) | Err(_) => None,
    }
}

impl Listed {
    /// `recorder` is who writes to the data set now, if anybody does, as far as that is known.
    fn of(RunRow { info, end, .. }: RunRow, data_set: Option<TargetText>, recorder: Option<Option<u32>>) -> Self {
        let is_recorded = recorder.is_some_and(|pid| pid.is_none_or(|pid| pid == info.profiler_pid.0));
        let ended = match &end {
            Some((end, _)) => end.reason.clone(),
            None if is_recorded => format!("goes on (process {})", info.profiler_pid),
            None => "did not end properly".to_owned(),
        };
        let length_ns =
            |ended: i64| u64::try_from(ended.saturating_sub(info.started.0)).unwrap_or(0).saturating_mul(1000);
        Self {
            seconds: end.as_ref().map(|(end, _)| seconds(length_ns(end.ended.0))),
            windows: end.as_ref().map(|(_, totals)| totals.windows),
            attributed_uj: end.as_ref().map(|(_, totals)| totals.attributed_uj),
            label: info.domains.iter().map(|domain| domain.label).max(),
            started: time(info.started),
            run_id: info.run_id,
            host: info.host,
            data_set,
            ended,
            command_line: info.command_line,
        }
    }
}

impl RunList {
    /// Writes a table, as wide as the terminal if there is one, or a JSON array.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, json: bool, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        if json {
            return writeln!(out, "{}", harmless_json(&serde_json::to_string_pretty(&self.0)?));
        }
        self.table().lines(width).iter().try_for_each(|line| writeln!(out, "{}", line.text))
    }

    fn table(&self) -> Table {
        let unknown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let joules =
            |run: &Listed| run.attributed_uj.map(|energy| figures::figure(MicroJoules(energy).joules(), run.label));
        let expendable = |expendable, column: Column| Column { expendable, ..column };
        let mut columns = vec![
            Column::words("started (UTC)", &self.0, |run| run.started.clone()),
            Column::figures("s", &self.0, |run| unknown(run.seconds.map(|seconds| format!("{seconds:.1}")))),
            expendable(
                3,
                Column::figures("windows", &self.0, |run| unknown(run.windows.map(|windows| windows.to_string()))),
            ),
            Column::figures("targets' J", &self.0, |run| unknown(joules(run))),
            expendable(1, Column::words("ended by", &self.0, |run| TargetText::from(run.ended.as_str()).to_string())),
            expendable(2, Column::words("host", &self.0, |run| run.host.to_string())),
        ];
        if self.0.iter().any(|run| run.data_set.is_some()) {
            let name = |run: &Listed| run.data_set.as_ref().map(ToString::to_string);
            columns.insert(0, Column::words("data set", &self.0, |run| unknown(name(run))));
        }
        Table {
            columns,
            heading: "run".to_owned(),
            names: self.0.iter().map(|run| run.run_id.as_str().into()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::profile::{Moment, Names},
        *,
    };
    use crate::{
        dataset::{OutputDirectory, ParquetOutput, fixture},
        events::Event,
        model::policy::Policy,
        output::Output as _,
    };

    fn listed(root: &Path) -> Vec<(String, Option<u64>, String)> {
        let runs = read(root, &Unreadable::default()).unwrap().0.into_iter();
        runs.map(|run| (run.run_id, run.windows, run.ended)).collect()
    }

    #[test]
    fn runs_are_listed_in_their_order_with_how_they_ended() {
        let root = tempfile::tempdir().unwrap();
        fixture::write_as(root.path(), Policy::default(), "b");
        let directory = OutputDirectory::create(root.path(), None).unwrap();
        let mut output = ParquetOutput::new(directory, fixture::FLUSH_NS);
        let mut info = fixture::run_info(Policy::default());
        info.run_id = "a".to_owned();
        info.started.0 += 1;
        info.profiler_pid = crate::model::units::Pid(std::process::id());
        output.run_started(&info).unwrap();
        let goes_on = format!("goes on (process {})", info.profiler_pid);
        assert!(super::goes_on(root.path()).is_some_and(|text| text.contains(&goes_on)));
        let (_, windows, ended) = listed(root.path())[0].clone();
        assert_eq!(listed(root.path()), [("b".into(), windows, ended.clone()), ("a".into(), None, goes_on)]);
        assert!(windows.is_some_and(|windows| windows > 0));
        drop(output);
        assert_eq!(super::goes_on(root.path()), None);
        let killed = ("a".to_owned(), None, "did not end properly".to_owned());
        assert_eq!(listed(root.path()), [("b".into(), windows, ended), killed]);
    }

    #[test]
    fn commands_are_whole_unless_one_ended_otherwise_or_time_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let add = |run_id: &str, started: i64, reason: &str| {
            let directory = OutputDirectory::create(root.path(), None).unwrap();
            let output = ParquetOutput::new(directory, fixture::FLUSH_NS);
            fixture::play_changed(output, Policy::default(), |event| match event {
                Event::RunStarted(run) => {
                    run.run_id = run_id.to_owned();
                    run.started.0 += started;
                }
                Event::RunEnded(end) => end.reason = reason.to_owned(),
                _ => {}
            });
        };
        let whole = |filter: &Filter| whole_commands(root.path(), filter).unwrap();
        assert_eq!(whole(&Filter::default()), None, "there is no run");
        add("late", 1, RunEnd::OF_COMMAND);
        add("early", 0, RunEnd::OF_COMMAND);
        let both = Some(vec!["early".to_owned(), "late".to_owned()]);
        assert_eq!(whole(&Filter::default()), both);
        let since = Some(Moment::Into(std::time::Duration::from_secs(1)));
        assert_eq!(whole(&Filter { since, ..Filter::default() }), None);
        add("asked", 2, "SIGINT");
        assert_eq!(whole(&Filter::default()), None);
        let runs = Names::parse(&["*l*".to_owned()]).unwrap();
        assert_eq!(whole(&Filter { runs, ..Filter::default() }), both);
    }

    #[test]
    fn a_list_is_a_table_or_json() {
        let root = tempfile::tempdir().unwrap();
        fixture::write_as(root.path(), Policy::default(), "b");
        let written = |json| {
            let mut out = Vec::new();
            read(root.path(), &Unreadable::default()).unwrap().write(json, None, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (table, json) = (written(false), written(true));
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(table.starts_with("started (UTC)") && table.trim_end().ends_with('b'), "{table}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["run_id"], json[0]["attributed_uj"].is_u64()), (&"b".into(), true), "{json}");
    }
}
