//! Makes the selection of a request one that data sets are read by.
//!
//! Matchers are asked about each process as it is ([`Chosen`]), so negation, regular expressions and labels that are not
//! there mean what they say. Parts of JVMs are few, so those that a selector allows are listed.

use std::sync::Arc;

use joular_data::{
    attribution::window_report::Category,
    fleet::choice::{self, View, Wish},
    model::units::UnixMicros,
    report::profile::{Catalog, Chosen, Filter, Moment, Names, Process, Sources, Unreadable},
    text::escape,
};

use super::{
    labels::{JVM_PART, Owner, PROFILE_TYPE, beyond_sums, value},
    selector::{Matcher, Selector, SelectorError},
    types::ProfileType,
};
use crate::{
    query::{Refusal, exactly},
    serve::question::Bounds,
};

/// What a request is about. Of several selectors one is enough.
#[derive(Clone, Debug)]
pub struct Selection {
    selectors: Arc<[Selector]>,
    since: Option<Moment>,
    until: Option<Moment>,
}

impl Selection {
    /// Windows that start at `start` or later, and before `end`: Unix milliseconds, of which 0 sets no limit. Nothing was
    /// recorded before 1970.
    ///
    /// # Errors
    /// If a selector is not one, or the time ends before it begins.
    pub fn new<T: AsRef<str>>(selectors: &[T], start: i64, end: i64) -> Result<Self, Refusal> {
        let parsed: Result<Vec<Selector>, SelectorError> =
            selectors.iter().map(|text| Selector::parse(text.as_ref())).collect();
        let mut parsed = parsed.map_err(|error| Refusal::bad(escape(&error.to_string())))?;
        if parsed.is_empty() {
            parsed.push(Selector::default());
        }
        if start > 0 && end != 0 && end < start {
            return Err(Refusal::bad(format!("the time ends at {end}, before it begins at {start}")));
        }
        let moment = |ms: i64| Moment::At(UnixMicros(ms.saturating_mul(1000)));
        let (since, until) = ((start > 0).then(|| moment(start)), (end != 0).then(|| moment(end)));
        Ok(Self { selectors: parsed.into(), since, until })
    }

    pub const fn has_time(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// The first moment that counts, if that is limited.
    pub const fn since(&self) -> Option<UnixMicros> {
        match self.since {
            Some(Moment::At(since)) => Some(since),
            _ => None,
        }
    }

    /// What allows all that the selectors do, and nothing else if there is one selector, as far as the question's terms allow;
    /// `None`: they allow nothing of this type. It is a part of the question then, too: whoever may see nothing learns nothing.
    pub fn filter(&self, kind: Option<ProfileType>, bounds: &Bounds<'_>) -> Option<Filter> {
        self.filter_of(&Names::default(), kind, Sources::default(), bounds)
    }

    /// The same, read from where these views can be had.
    pub fn filter_showing(
        &self,
        views: impl IntoIterator<Item = View>,
        kind: Option<ProfileType>,
        bounds: &Bounds<'_>,
    ) -> Option<Filter> {
        self.filter_of(&Names::default(), kind, choice::sources(Wish::Auto, views), bounds)
    }

    /// The same of these runs.
    pub fn filter_of(
        &self,
        runs: &Names,
        kind: Option<ProfileType>,
        sources: Sources,
        bounds: &Bounds<'_>,
    ) -> Option<Filter> {
        let selectors = Arc::clone(&self.selectors);
        let id = kind.map(ProfileType::id);
        let is_possible = |selector: &Selector| {
            id.as_deref().is_none_or(|id| selector.of(PROFILE_TYPE).all(|matcher| matcher.allows(id)))
                && Category::ALL.into_iter().any(|part| allows_part(selector, part))
        };
        let is_any_possible = selectors.iter().any(is_possible);
        let allowed = |part: &Category| selectors.iter().any(|selector| allows_part(selector, *part));
        let mut categories: Vec<Category> = Category::ALL.into_iter().filter(allowed).collect();
        if categories.len() == Category::ALL.len() {
            // Threads are not told apart.
            categories.clear();
        }
        let asks_more = selectors
            .iter()
            .any(|selector| !beyond_sums(selector.matchers().iter().map(|matcher| matcher.label.as_str())).is_empty());
        let condition = move |catalog: &Catalog, process: &Process| {
            selectors.iter().any(|selector| allows_process(selector, catalog, process))
        };
        let chosen = if asks_more { Chosen::by(condition) } else { Chosen::by_sums(condition) };
        let filter = bounds.limited(Filter {
            since: self.since,
            until: self.until,
            chosen,
            categories,
            hosts: self.hosts(),
            runs: runs.clone(),
            unreadable: Unreadable::left_out(),
            sources,
            ..Filter::default()
        });
        is_any_possible.then_some(filter)
    }

    /// The only host, if a selector says which: then files of others are not looked at.
    fn hosts(&self) -> Names {
        let [selector] = &*self.selectors else { return Names::default() };
        let host = selector.of("host").find_map(Matcher::only).filter(|host| !host.is_empty());
        // What is no pattern is no condition here.
        host.map(|host| Names::parse(&[exactly(host)]).unwrap_or_default()).unwrap_or_default()
    }

    /// Whether a selector allows profiles of this type of an owner.
    pub fn allows(&self, owner: Owner<'_>, kind: ProfileType) -> bool {
        let id = kind.id();
        self.selectors.iter().any(|selector| {
            selector.of(PROFILE_TYPE).all(|matcher| matcher.allows(&id))
                && allows_part(selector, owner.part)
                && allows_process(selector, owner.catalog, owner.process)
        })
    }
}

fn allows_part(selector: &Selector, part: Category) -> bool {
    selector.of(JVM_PART).all(|matcher| matcher.allows(part.name()))
}

fn allows_process(selector: &Selector, catalog: &Catalog, process: &Process) -> bool {
    let of_process = |matcher: &&Matcher| ![JVM_PART, PROFILE_TYPE].contains(&matcher.label.as_str());
    selector.matchers().iter().filter(of_process).all(|matcher| {
        let value = value(catalog, process, &matcher.label);
        matcher.allows(value.as_ref().map_or("", |value| value.raw()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Sight, serve::terms::Terms};

    #[test]
    fn selectors_of_what_sums_know_do_not_need_the_runs() {
        let terms = Terms { now: UnixMicros(1), span: None, most_nodes: 1, sight: Sight::default() };
        for (selector, needs_runs) in [
            ("{}", false),
            (r#"{service_name="a", service_version!~"1.*"}"#, false),
            (r#"{namespace=~"a|b", jvm_part!="gc"}"#, false),
            (r#"{host="a"}"#, true),
            (r#"{service_name="a", pod!="b"}"#, true),
            (r#"{app="a"}"#, true),
        ] {
            let selection = Selection::new(&[selector], 0, 0).unwrap();
            let filter = selection.filter(None, &Bounds::new(&terms)).unwrap();
            assert_eq!(filter.chosen.needs_runs(), needs_runs, "{selector}");
        }
        assert_eq!(beyond_sums(["service_name", "pod", PROFILE_TYPE]), [View::Labels]);
    }
}
