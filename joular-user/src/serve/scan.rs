//! Reads a part of a data set once: summed, and over time by process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    path::Path,
};

use joular_data::{
    dataset::DataSetError,
    fleet::choice::View,
    model::{
        target_text::TargetText,
        units::{MicroJoules, UnixMicros},
    },
    report::{
        html::clock::Clock,
        profile::{Catalog, DataSet, EnergyRow, Process, ProcessIndex, Profile, ReadFrom},
        ranking::By,
    },
};

use crate::query::Part;

/// A part of a data set.
#[derive(Debug)]
pub struct Scan {
    pub profile: Profile,
    pub clock: Clock,
    /// Energy by process and bucket of the clock, µJ.
    in_time: HashMap<(ProcessIndex, usize), u64>,
}

/// Processes that are told apart by a label.
#[derive(Clone, Debug)]
pub struct Group {
    /// `None`: it is not known of them.
    pub name: Option<TargetText>,
    pub energy: MicroJoules,
    /// By bucket of the clock, µJ; sums to the energy.
    pub series: Vec<u64>,
    /// At least one.
    pub processes: Vec<ProcessIndex>,
}

/// What processes can be told apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    Service,
    Version,
    Host,
    Process,
    Pod,
    Namespace,
    /// Of pods and hosts, by its key.
    Of(String),
}

impl Label {
    pub const ALL: [Self; 6] = [Self::Service, Self::Version, Self::Host, Self::Process, Self::Pod, Self::Namespace];
    /// What stands before the key of [`Self::Of`].
    pub const PREFIX: &'static str = "label:";

    pub fn name(&self) -> String {
        match self {
            Self::Service => "service".to_owned(),
            Self::Version => "version".to_owned(),
            Self::Host => "host".to_owned(),
            Self::Process => "process".to_owned(),
            Self::Pod => "pod".to_owned(),
            Self::Namespace => "namespace".to_owned(),
            Self::Of(key) => format!("{}{key}", Self::PREFIX),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let key = name.strip_prefix(Self::PREFIX).filter(|key| !key.is_empty());
        let known = Self::ALL.into_iter().find(|label| label.name() == name);
        known.or_else(|| key.map(|key| Self::Of(key.to_owned())))
    }

    /// A view whose rows are told apart by what tells its values apart; `None`: everything has its values, as versions have.
    pub fn view(&self) -> Option<View> {
        match self {
            Self::Version => None,
            Self::Service => Some(View::Table(By::Service)),
            Self::Host => Some(View::Table(By::Host)),
            Self::Process => Some(View::Table(By::Process)),
            Self::Pod => Some(View::Table(By::Pod)),
            Self::Namespace => Some(View::Table(By::Namespace)),
            Self::Of(_) => Some(View::Labels),
        }
    }

    pub fn of(&self, catalog: &Catalog, process: &Process) -> Option<TargetText> {
        match self {
            Self::Service => process.service.clone(),
            Self::Version => process.version.clone(),
            Self::Host => catalog.runs.get(process.run).map(|run| run.info.host.clone()),
            Self::Process => Some(process.title().clone()),
            Self::Pod => process.pod_name.clone().or_else(|| process.pod.clone()),
            Self::Namespace => process.namespace.clone(),
            Self::Of(key) => catalog.label_of(process, key).map(TargetText::from),
        }
    }
}

impl Scan {
    /// # Errors
    /// If there is no run, a file cannot be read or is damaged, or the reading was ended.
    pub fn read(place: &Path, part: &Part) -> Result<Self, DataSetError> {
        part.filter.unreadable.reading(|| Self::of(place, part))
    }

    fn of(place: &Path, part: &Part) -> Result<Self, DataSetError> {
        let filter = &part.filter;
        let mut data = DataSet::open(place, filter)?;
        let overview = data.overview(filter)?;
        let clock = Clock::of(&data.catalog.runs, &overview);
        let mut in_time: HashMap<(ProcessIndex, usize), u64> = HashMap::new();
        let mut add = |catalog: &Catalog, row: &EnergyRow| {
            let place = (catalog.thread(row.thread).process, clock.bucket(row.window_start, row.window_ns));
            let sum = in_time.entry(place).or_default();
            *sum = sum.saturating_add(row.energy.0);
        };
        let summed = if filter.allows_all_paths() {
            data.sums(filter, &mut add)?
        } else {
            // What paths have in a window is known when their samples are shared out.
            let (summed, allowed) = (data.sums(filter, &mut |_, _| {})?, filter.allowed_paths(&data.catalog));
            data.scan_in_time(filter, &summed, &mut |catalog, row| {
                if allowed.get(row.path.index()).copied().unwrap_or(false) {
                    add(catalog, row);
                }
            })?;
            summed
        };
        let profile = Profile::of(data, summed, overview, filter, part.app.as_ref(), &mut ())?;
        Ok(Self { profile, clock, in_time })
    }

    /// Whether it is of sums, which have no hosts, and processes and threads of their own.
    pub fn is_of_sums(&self) -> bool {
        self.profile.overview.read_from.as_ref().is_some_and(ReadFrom::is_of_sums)
    }

    /// Where the last window ends.
    pub fn until(&self) -> Option<UnixMicros> {
        self.profile.overview.span.map(|(_, end)| end)
    }

    /// Processes with any energy, by what `name` says of them; those with most come first.
    pub fn groups<K: Ord>(&self, name: impl Fn(&Catalog, &Process) -> (K, Option<TargetText>)) -> Vec<Group> {
        let catalog = &self.profile.catalog;
        let mut groups: BTreeMap<K, Group> = BTreeMap::new();
        for (&(process, bucket), energy) in &self.in_time {
            let (key, name) = name(catalog, catalog.process(process));
            let empty =
                || Group { name, energy: MicroJoules(0), series: vec![0; self.clock.buckets], processes: Vec::new() };
            let group = groups.entry(key).or_insert_with(empty);
            group.energy = group.energy.saturating_add(MicroJoules(*energy));
            if let Some(sum) = group.series.get_mut(bucket) {
                *sum = sum.saturating_add(*energy);
            }
            group.processes.push(process);
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        for group in &mut groups {
            group.processes.sort_unstable();
            group.processes.dedup();
        }
        groups.sort_by_key(|group| Reverse(group.energy));
        groups
    }

    pub fn by(&self, label: &Label) -> Vec<Group> {
        self.groups(|catalog, process| {
            let name = label.of(catalog, process);
            (name.clone(), name)
        })
    }

    /// All processes together, if any has energy.
    pub fn whole(&self) -> Option<Group> {
        self.groups(|_, _| ((), None)).pop()
    }

    /// Length of a bucket: the last one may end early.
    pub fn length_us(&self, bucket: usize) -> u64 {
        let Clock { start_us, width_us, .. } = self.clock;
        let begin = u64::try_from(bucket).unwrap_or(0).saturating_mul(width_us);
        let span = self.until().map_or(0, |end| end.0.saturating_sub(start_us));
        u64::try_from(span).unwrap_or(0).saturating_sub(begin).min(width_us)
    }

    /// Mean power in each bucket, watts.
    #[allow(clippy::cast_precision_loss, reason = "for display")]
    pub fn watts(&self, series: &[u64]) -> Vec<f64> {
        let of_bucket = |(bucket, energy): (usize, &u64)| match self.length_us(bucket) {
            0 => 0.0,
            length_us => *energy as f64 / length_us as f64,
        };
        series.iter().enumerate().map(of_bucket).collect()
    }
}
