//! Selects the part of a data set that is looked at.
//!
//! Conditions of one kind are alternatives; conditions of different kinds must all hold. Time, run and process select whole
//! windows and rows. A thread is selected by its name or category, a call path by any method on it.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use thiserror::Error;

use super::{
    access::Access,
    catalog::{Catalog, Paths, Process, Run, Thread, ThreadIndex},
    charge_by::ChargeBy,
    chosen::Chosen,
    handlers::{Handlers, Rules},
    moment::{DAY_US, Moment},
    names::{Labels, Names},
    sources::Sources,
    stop::Stop,
};
use crate::{
    attribution::window_report::Category,
    dataset::{
        layout::{date, path_part, recording_of},
        read::{
            files::RunFiles,
            marks::PhaseWindows,
            span::{Span, Stretches},
            unreadable::{Skipped, SkippedRuns, Unreadable},
        },
        store::{Hour, Part},
    },
    model::{
        frame::Frame,
        target_text::TargetText,
        units::{Pid, UnixMicros},
    },
};

const HOUR_US: i64 = 3_600_000_000;

/// A condition that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    #[error("'{text}' is not a pattern: {cause}")]
    Pattern { text: String, cause: String },
    #[error("'{text}' is not a label: write KEY=VALUE, where VALUE may be a pattern")]
    Label { text: String },
    #[error(
        "'{text}' is not a time: write 2026-03-01T12:00:00Z or with an offset, such as 2026-03-01T13:00:00+01:00; 12:00:00 \
         in UTC; or a time into the run, such as 30s or 5m"
    )]
    Time { text: String },
    #[error("'{text}' is not a category: write java, gc, jit, vm, native or kernel")]
    Category { text: String },
    #[error("'{text}' is nothing to charge collectors' energy by: write allocated or survived")]
    ChargeBy { text: String },
}

/// Conditions on rows. The default allows everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub since: Option<Moment>,
    pub until: Option<Moment>,
    pub pids: Vec<Pid>,
    pub processes: Names,
    pub services: Names,
    /// Of services.
    pub versions: Names,
    pub containers: Names,
    /// By uid or by name.
    pub pods: Names,
    pub namespaces: Names,
    pub labels: Labels,
    /// Beside all conditions on processes above.
    pub chosen: Chosen,
    pub threads: Names,
    pub categories: Vec<Category>,
    pub methods: Names,
    /// Of call paths, as [`Self::handler_rules`] find them: without these no path has one.
    pub handlers: Names,
    /// How handlers are found, if anything is told apart by them.
    pub handler_rules: Option<Arc<Rules>>,
    pub hosts: Names,
    pub runs: Names,
    /// Of the program's own, by name, or with those that they are within.
    pub phases: Names,
    /// Whether generated classes have their own names, not those of their [families](crate::model::generated).
    pub exact_names: bool,
    /// Whether windows in which no sample hit a thread stay `[no sample]`, as they were recorded.
    pub no_infer: bool,
    /// Whether the energy of garbage collectors stands at the paths that are charged for it, and by what.
    pub charge_gc: Option<ChargeBy>,
    /// What may be seen at all.
    pub access: Access,
    /// What becomes of runs that cannot be read.
    pub unreadable: Unreadable,
    /// By which reading ends early.
    pub stop: Stop,
    /// Where in a place its rows are read, if there is a choice.
    pub sources: Sources,
}

/// Stands for the recording that began last.
pub const LAST: &str = "last";

impl Filter {
    /// Keeps the runs that are asked for. [`LAST`] means all runs of the recording that began last, of the hosts that are
    /// asked for.
    pub fn keep_runs<T>(&self, runs: &mut Vec<(Run, T)>) {
        let is_wanted = |host: &str| self.hosts.allow(host) && self.access.allows_host(host);
        runs.retain(|(run, _)| is_wanted(run.info.host.raw()));
        let last = runs.iter().max_by_key(|(run, _)| run.info.started).filter(|_| self.runs.names(LAST));
        let last = last.map(|(run, _)| recording_of(&run.info.run_id).to_owned());
        runs.retain(|(run, _)| {
            let id = &run.info.run_id;
            self.runs.allow(id) || last.as_deref() == Some(recording_of(id))
        });
    }

    /// Whether a run can have what is wanted, by the names of its files: nothing of others is read. By a day more
    /// than the time that is asked for, because windows next to it say what its own samples do not.
    pub(crate) fn may_allow(&self, run: &RunFiles) -> bool {
        let (first, last) = run.dates();
        let day = |moment: UnixMicros, days: i64| date(UnixMicros(moment.0.saturating_add(days * DAY_US)));
        let is_early = matches!(self.since, Some(Moment::At(since)) if last < day(since, -1).as_str());
        let is_late = matches!(self.until, Some(Moment::At(until)) if first > day(until, 1).as_str());
        self.may_name(run) && !is_early && !is_late
    }

    /// The same as far as stores can list it.
    pub(crate) fn part(&self) -> Part {
        let (begin, end) = (self.since.and_then(Moment::at), self.until.and_then(Moment::at));
        let day = |moment: UnixMicros, days: i64| date(UnixMicros(moment.0.saturating_add(days * DAY_US)));
        let folder = |host: &String| format!("host={}", path_part(host));
        let folders = |names: &Names| names.literal().map(|names| names.iter().map(folder).collect());
        let (hosts, services) = (folders(&self.hosts), folders(&self.services));
        // Nothing is inferred of rollups any more. Their windows begin in the hour of their start or in the next one. The
        // end is the first moment that is too late.
        let hour = |moment: UnixMicros, earlier: i64| Hour::of(UnixMicros(moment.0.saturating_sub(earlier)));
        let hours = (begin.map(|begin| hour(begin, HOUR_US)), end.map(|end| hour(end, 1)));
        let (since, until) = (begin.map(|begin| day(begin, -1)), end.map(|end| day(end, 1)));
        Part { since, until, hosts, services, hours, begin, ..Part::default() }
    }

    /// The same without regard to time.
    pub(crate) fn may_name(&self, run: &RunFiles) -> bool {
        let is_any_run = self.runs.names(LAST);
        run.place.host().is_none_or(|host| self.hosts.allow(host) && self.access.allows_host(host))
            && run.place.run_id().is_none_or(|id| is_any_run || self.runs.allow(id))
    }

    /// Runs that were left out. Who may not see everything learns their number: their files' names say hosts.
    pub fn skipped(&self) -> SkippedRuns {
        let mut skipped = self.unreadable.skipped();
        if !self.access.is_everything() {
            let nameless = Skipped { path: "[not shown]".to_owned(), why: "it cannot be read".to_owned() };
            skipped.skipped.iter_mut().for_each(|run| *run = nameless.clone());
        }
        skipped
    }

    /// The span in which a window of a run must start to count.
    pub fn span(&self, run: &Run) -> Span {
        Span {
            since: self.since.map(|since| since.in_run(run)),
            until: self.until.map(|until| until.in_run(run)),
            within: if self.phases.allow_all() {
                run.piece.only.clone()
            } else {
                // What is read in pieces has no phases.
                Some(Stretches::of(self.phases_of(run)))
            },
        }
    }

    /// The phases of a run that are asked for.
    pub(crate) fn phases_of<'a>(&self, run: &'a Run) -> impl Iterator<Item = &'a PhaseWindows> {
        run.phases.iter().filter(|phase| [&phase.name, &phase.path].iter().any(|name| self.phases.allow(name.raw())))
    }

    pub fn allows_process(&self, catalog: &Catalog, process: &Process) -> bool {
        let names = [Some(&process.comm), process.main_class.as_ref(), process.container.as_ref()];
        (self.pids.is_empty() || self.pids.contains(&process.pid))
            && (self.processes.allow_all() || names.into_iter().flatten().any(|name| self.processes.allow(name.raw())))
            && self.services.allow_known(process.service.as_ref())
            && self.versions.allow_known(process.version.as_ref())
            && self.containers.allow_container(process.container.as_ref())
            && [&process.pod, &process.pod_name].into_iter().any(|pod| self.pods.allow_known(pod.as_ref()))
            && self.namespaces.allow_known(process.namespace.as_ref())
            && self.labels.allow(|key| catalog.label_of(process, key))
            && self.access.allows(catalog, process)
            && self.chosen.allow(catalog, process)
    }

    pub fn allows_thread(&self, thread: &Thread) -> bool {
        (self.categories.is_empty() || self.categories.contains(&thread.category))
            && self.threads.allow(thread.name.raw())
    }

    /// Whether paths are not told apart by what is on them: then the time and energy of threads are complete.
    pub const fn allows_all_paths(&self) -> bool {
        self.methods.allow_all() && self.handlers.allow_all()
    }

    /// Whether conditions on methods allow this one.
    pub fn names_method(&self, frame: &Frame) -> bool {
        self.methods.allow(frame.method().raw())
    }

    /// By path: whether conditions on methods and handlers allow it.
    pub fn allowed_paths(&self, catalog: &Catalog) -> Vec<bool> {
        let paths = &catalog.paths;
        let allows = |path| {
            let mut frames = paths.frames_of(path);
            let is_handled = self.handlers.allow_all()
                || catalog.handlers.get(path).is_some_and(|handler| self.handlers.allow(handler.method.raw()));
            is_handled && (self.methods.allow_all() || frames.any(|frame| self.names_method(frame)))
        };
        paths.indices().map(allows).collect()
    }

    /// The handlers of whole paths.
    pub fn find_handlers(&self, paths: &Paths) -> Handlers {
        Handlers::of(&self.handler_rules.clone().unwrap_or_else(Rules::built_in), paths)
    }
}

/// Answers of a filter. It is asked once per thread, and again when the thread has another name.
#[derive(Debug, Default)]
pub(super) struct Allowed(HashMap<ThreadIndex, Answer, RandomState>);

#[derive(Debug)]
struct Answer {
    name: TargetText,
    category: Category,
    is_allowed: bool,
}

impl Allowed {
    pub(super) fn thread(&mut self, catalog: &Catalog, filter: &Filter, index: ThreadIndex) -> bool {
        let thread = catalog.thread(index);
        if let Some(answer) = self.0.get(&index)
            && (&answer.name, answer.category) == (&thread.name, thread.category)
        {
            return answer.is_allowed;
        }
        let is_allowed =
            filter.allows_thread(thread) && filter.allows_process(catalog, catalog.process(thread.process));
        let (name, category) = (thread.name.clone(), thread.category);
        self.0.insert(index, Answer { name, category, is_allowed });
        is_allowed
    }
}

/// # Errors
/// If one has no such name.
pub fn categories(names: &[String]) -> Result<Vec<Category>, FilterError> {
    let category = |text: &String| {
        let found = Category::ALL.into_iter().find(|category| category.name() == text);
        found.ok_or_else(|| FilterError::Category { text: text.clone() })
    };
    names.iter().map(category).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use super::*;
    use crate::{
        dataset::{
            DataSetError, OutputDirectory, ParquetOutput, fixture,
            store::{LocalDirectory, Store},
        },
        events::{Event, HostIdentity, RunInfo},
        model::policy::Policy,
        report::profile::DataSet,
    };

    /// A data set with a run of this host, whose windows begin so many days after those of other tests.
    fn record(root: &Path, host: &str, days: i64) {
        let output = ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), fixture::FLUSH_NS);
        fixture::play_changed(output, Policy::default(), |event| match event {
            Event::RunStarted(run) => {
                (run.host, run.run_id) = (host.into(), format!("run-of-{host}"));
                run.started.0 += days * DAY_US;
            }
            Event::Window(window) => window.wall_start.0 += days * DAY_US,
            _ => {}
        });
    }

    #[test]
    fn nothing_is_read_of_hosts_and_days_that_are_not_asked_for() {
        let root = tempfile::tempdir().unwrap();
        for (host, days) in [("web-1", 0), ("web-2", 0), ("web_3", 0), ("web-4", 30)] {
            record(root.path(), host, days);
        }
        // What is opened of the second and the last one is an error.
        for (file, _) in fixture::files(root.path()) {
            if file.contains("web-2") || file.contains("web-4") {
                fs::write(root.path().join(file), "no Parquet").unwrap();
            }
        }
        let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(root.path(), None));
        assert!(!store.list("runs", 10).unwrap().is_empty());
        let runs = |hosts: &[&str], since, until| {
            let hosts = Names::parse(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).unwrap();
            let filter = Filter { hosts, since, until, ..Filter::default() };
            DataSet::of_store(&store, &filter).map(|data| data.catalog.runs.len())
        };
        let at = |days: i64| Some(Moment::At(UnixMicros(fixture::STARTED + days * DAY_US)));
        assert!(matches!(runs(&["web-?"], None, at(5)), Err(DataSetError::Parquet { .. })), "the second one is read");
        assert_eq!(runs(&["web-1"], None, None).unwrap(), 1);
        assert_eq!(runs(&["web[-_][13]"], None, at(5)).unwrap(), 2, "a name that may have been changed is looked up");
        assert_eq!(runs(&["web-[14]"], None, at(5)).unwrap(), 1);
        assert!(runs(&["web-[14]"], None, at(29)).is_err(), "a day beside counts");
        assert_eq!(runs(&["web-[14]"], at(-5), at(5)).unwrap(), 1);
        assert_eq!(runs(&["web-1"], at(5), None).unwrap(), 0);
    }

    #[test]
    fn the_last_recording_is_all_its_runs_on_the_hosts_that_are_asked_for() {
        let run = |host: &str, id: &str, started| {
            let info =
                RunInfo { host: host.into(), run_id: id.into(), started: UnixMicros(started), ..RunInfo::default() };
            (Run { info, ..Run::default() }, ())
        };
        let all = [("a", "a-1", 1), ("a", "a-1.0001", 9), ("b", "b-1", 3), ("b", "b-2", 5), ("b", "b-2.0001", 7)];
        let names = |texts: &[&str]| Names::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        for (hosts, wanted, expected) in [
            (&[][..], &["last"][..], &["a-1", "a-1.0001"][..]),
            (&["b"], &["last"], &["b-2", "b-2.0001"]),
            (&["b"], &["last", "b-1"], &["b-1", "b-2", "b-2.0001"]),
            (&["c"], &["last"], &[]),
            (&["b"], &[], &["b-1", "b-2", "b-2.0001"]),
        ] {
            let filter = Filter { hosts: names(hosts).unwrap(), runs: names(wanted).unwrap(), ..Filter::default() };
            let mut runs: Vec<_> = all.into_iter().map(|(host, id, started)| run(host, id, started)).collect();
            filter.keep_runs(&mut runs);
            let kept: Vec<&str> = runs.iter().map(|(run, ())| run.info.run_id.as_str()).collect();
            assert_eq!(kept, expected, "{hosts:?} {wanted:?}");
        }
    }

    #[test]
    fn processes_are_chosen_by_what_they_are_part_of() {
        let id = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
        let process = Process {
            service: Some("shop".into()),
            version: Some("1.2".into()),
            container: Some(id.into()),
            pod: Some("1a2b-3c".into()),
            labels: vec!["app=shop".into(), "tier=front".into()],
            ..Process::default()
        };
        let identity = HostIdentity { labels: vec!["cluster=eu1".into()], ..HostIdentity::default() };
        let info = RunInfo { identity, ..RunInfo::default() };
        let catalog = Catalog { runs: vec![Run { info, ..Run::default() }], ..Catalog::default() };
        let names = |text: &str| Names::parse(&[text.to_owned()]).unwrap();
        let labels = |text: &str| Labels::parse(&[text.to_owned()]).unwrap();
        for (filter, expected) in [
            (Filter { labels: labels("tier=fr*"), ..Filter::default() }, true),
            (Filter { labels: labels("tier=back"), ..Filter::default() }, false),
            (Filter { labels: labels("cluster=us*"), ..Filter::default() }, false),
            (Filter { services: names("sh*"), ..Filter::default() }, true),
            (Filter { services: names("orders"), ..Filter::default() }, false),
            (Filter { versions: names("1.*"), ..Filter::default() }, true),
            (Filter { versions: names("2.*"), ..Filter::default() }, false),
            (Filter { containers: names(&id[..12]), ..Filter::default() }, true),
            (Filter { containers: names(&id[..11]), ..Filter::default() }, false),
            (Filter { containers: names("4f2b*"), ..Filter::default() }, true),
            (Filter { pods: names("1a2b-3c"), ..Filter::default() }, true),
            (Filter { pods: names("1a2b-3c"), services: names("orders"), ..Filter::default() }, false),
            (Filter { chosen: Chosen::by(|_, process| process.service.is_some()), ..Filter::default() }, true),
            (Filter { chosen: Chosen::by(|_, _| false), services: names("shop"), ..Filter::default() }, false),
        ] {
            assert_eq!(filter.allows_process(&catalog, &process), expected, "{filter:?}");
            assert!(!filter.allows_process(&catalog, &Process::default()), "of which nothing is known: {filter:?}");
        }
        let of_host = Filter { labels: labels("cluster=eu*"), ..Filter::default() };
        assert!(of_host.allows_process(&catalog, &Process::default()), "every process of a host has its labels");
    }
}
