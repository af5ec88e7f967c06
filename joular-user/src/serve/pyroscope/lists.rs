//! Lists what there is: types of profiles, labels, their values, and sets of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use joular_data::{
    dataset::DataSetError,
    fleet::choice::{self, View, Wish},
    model::units::UnixMicros,
    report::{
        measure::Measure,
        profile::{Catalog, DataSet, Filter, Names, ThreadIndex, filter::LAST},
    },
};

use super::{
    Reading,
    labels::{Owner, PROFILE_TYPE, beyond_sums},
    messages::{
        GetProfileStatsRequest, GetProfileStatsResponse, LabelNamesRequest, LabelPair, LabelValuesRequest, Labels,
        NamesResponse, ProfileTypesRequest, ProfileTypesResponse, SeriesRequest, SeriesResponse,
    },
    selection::Selection,
    types::ProfileType,
};
use crate::{query::Refusal, serve::question::Bounds};

/// More sets of labels than anybody can look at.
const MOST_SETS: usize = 100_000;

/// Who spent anything.
struct Seen {
    catalog: Catalog,
    /// One thread for each process and part of it.
    owners: Vec<ThreadIndex>,
    /// Measures of bytes.
    recorded: BTreeSet<Measure>,
}

impl Seen {
    fn read(place: &Path, filter: Option<&Filter>) -> Result<Self, DataSetError> {
        let Some(filter) = filter else {
            return Ok(Self { catalog: Catalog::default(), owners: Vec::new(), recorded: BTreeSet::new() });
        };
        filter.unreadable.reading(|| {
            let mut data = DataSet::open(place, filter)?;
            let mut threads = BTreeSet::new();
            data.scan(filter, &mut |_, row| {
                threads.insert(row.thread);
            })?;
            let recorded = data.measures_of_bytes(filter)?;
            let catalog = data.catalog;
            let key = |thread: &ThreadIndex| (catalog.thread(*thread).process, catalog.thread(*thread).category.name());
            let owners: BTreeMap<_, ThreadIndex> = threads.iter().map(|thread| (key(thread), *thread)).collect();
            let owners = owners.into_values().collect();
            Ok(Self { catalog, owners, recorded })
        })
    }

    /// Every owner with each type of profiles that a selector allows of it.
    fn profiles<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = (Owner<'a>, ProfileType)> {
        self.owners.iter().flat_map(move |thread| {
            let owner = Owner::of(&self.catalog, *thread);
            let is_here = move |kind: &ProfileType| kind.is_in(&self.recorded) && selection.allows(owner, *kind);
            ProfileType::all().filter(is_here).map(move |kind| (owner, kind))
        })
    }
}

/// Without a time, those of the recording that began last: Grafana asks so whether there is a server at all.
pub fn profile_types(
    request: &ProfileTypesRequest,
    bounds: &Bounds<'_>,
) -> Result<Reading<ProfileTypesResponse>, Refusal> {
    let selection = Selection::new::<&str>(&[], request.start, request.end)?;
    let runs = if selection.has_time() { Names::default() } else { last_run() };
    let filter = selection.filter_of(&runs, None, choice::sources(Wish::Auto, []), bounds);
    Ok(Box::new(move |place| {
        let Some(filter) = filter else { return Ok(ProfileTypesResponse::default()) };
        let read = || -> Result<_, DataSetError> { DataSet::open(place, &filter)?.measures_of_bytes(&filter) };
        let recorded = filter.unreadable.reading(read)?;
        let found = ProfileType::all().filter(|kind| kind.is_in(&recorded));
        Ok(ProfileTypesResponse { profile_types: found.map(ProfileType::described).collect() })
    }))
}

/// It is a name, so it is a pattern.
fn last_run() -> Names {
    Names::parse(&[LAST.to_owned()]).unwrap_or_default()
}

pub fn label_names(request: &LabelNamesRequest, bounds: &Bounds<'_>) -> Result<Reading<NamesResponse>, Refusal> {
    let selection = Selection::new(&request.matchers, request.start, request.end)?;
    let filter = selection.filter(None, bounds);
    Ok(Box::new(move |place| {
        let seen = Seen::read(place, filter.as_ref())?;
        let mut names: BTreeSet<String> = seen.profiles(&selection).flat_map(|(owner, _)| owner.names()).collect();
        if !names.is_empty() {
            names.insert(PROFILE_TYPE.to_owned());
        }
        Ok(NamesResponse { names: names.into_iter().collect() })
    }))
}

pub fn label_values(request: &LabelValuesRequest, bounds: &Bounds<'_>) -> Result<Reading<NamesResponse>, Refusal> {
    let selection = Selection::new(&request.matchers, request.start, request.end)?;
    let name = request.name.clone();
    let filter = selection.filter_showing(beyond_sums([name.as_str()]), None, bounds);
    if name.is_empty() {
        return Err(Refusal::bad("name: it is empty: name a label".to_owned()));
    }
    Ok(Box::new(move |place| {
        let seen = Seen::read(place, filter.as_ref())?;
        let value = |(owner, kind): (Owner<'_>, ProfileType)| value(owner, kind, &name);
        let names: BTreeSet<String> = seen.profiles(&selection).filter_map(value).collect();
        Ok(NamesResponse { names: names.into_iter().collect() })
    }))
}

/// Of a label, or of the type of profiles.
fn value(owner: Owner<'_>, kind: ProfileType, name: &str) -> Option<String> {
    if name == PROFILE_TYPE { Some(kind.id()) } else { owner.value(name) }
}

pub fn series(request: &SeriesRequest, bounds: &Bounds<'_>) -> Result<Reading<SeriesResponse>, Refusal> {
    let selection = Selection::new(&request.matchers, request.start, request.end)?;
    let wanted = request.label_names.clone();
    // Without names all are wanted.
    let views = if wanted.is_empty() { vec![View::Labels] } else { beyond_sums(wanted.iter().map(String::as_str)) };
    let filter = selection.filter_showing(views, None, bounds);
    Ok(Box::new(move |place| {
        let seen = Seen::read(place, filter.as_ref())?;
        let mut sets: BTreeSet<Vec<LabelPair>> = BTreeSet::new();
        // Power is no profile with stacks, and who asks here means to look at some.
        for (owner, kind) in seen.profiles(&selection).filter(|(_, kind)| *kind != ProfileType::Power) {
            let all = || owner.names().into_iter().chain([PROFILE_TYPE.to_owned()]).collect();
            let names: Vec<String> = if wanted.is_empty() { all() } else { wanted.clone() };
            let pair = |name: String| value(owner, kind, &name).map(|value| LabelPair { name, value });
            let mut pairs: Vec<LabelPair> = names.into_iter().filter_map(pair).collect();
            pairs.sort_unstable();
            pairs.dedup();
            if !pairs.is_empty() {
                sets.insert(pairs);
            }
            if sets.len() > MOST_SETS {
                let message = format!("there are more than {MOST_SETS} series: ask for fewer labels, or less time");
                return Err(Refusal::bad(message));
            }
        }
        Ok(SeriesResponse { labels_set: sets.into_iter().map(|labels| Labels { labels }).collect() })
    }))
}

/// Whether there is anything, and from when until when.
pub fn stats(_: &GetProfileStatsRequest, bounds: &Bounds<'_>) -> Result<Reading<GetProfileStatsResponse>, Refusal> {
    let filter = Selection::new::<&str>(&[], 0, 0)?.filter(None, bounds);
    Ok(Box::new(move |place| {
        let Some(filter) = filter else { return Ok(GetProfileStatsResponse::default()) };
        let read = || DataSet::open(place, &filter).map(|data| data.windows(&filter));
        let windows = match filter.unreadable.reading(read) {
            Err(DataSetError::NoRun { .. }) => Vec::new(),
            windows => windows?,
        };
        let oldest = windows.iter().map(|window| window.start).min();
        let newest = windows.iter().map(|window| window.end()).max();
        let ms = |moment: Option<UnixMicros>| moment.map_or(0, |moment| moment.0 / 1000);
        Ok(GetProfileStatsResponse {
            data_ingested: oldest.is_some(),
            oldest_profile_time: ms(oldest),
            newest_profile_time: ms(newest),
        })
    }))
}
