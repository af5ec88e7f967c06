//! Makes the rows of a view out of sums: of processes, threads, methods or branches, of all or within one of them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use indexmap::IndexMap;
use joular_data::{
    model::{target_text::TargetText, units::MicroJoules},
    text::{escape, signature::told_apart},
};

use super::{
    columns::{Sort, Units},
    figures::{Method, ProcessId, ThreadId},
    sums::{Amount, Fact, Over, Sums},
    tree::Tree,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Processes,
    Threads,
    Methods,
    Branches,
}

impl View {
    pub const ALL: [Self; 4] = [Self::Processes, Self::Threads, Self::Methods, Self::Branches];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
            Self::Methods => "methods",
            Self::Branches => "branches",
        }
    }

    /// The one behind it, or before it.
    #[must_use]
    pub fn step(self, is_next: bool) -> Self {
        let step = if is_next { 1 } else { Self::ALL.len() - 1 };
        Self::ALL.get((self as usize + step) % Self::ALL.len()).copied().unwrap_or(self)
    }
}

/// What a row is about, however it is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Process(ProcessId),
    Thread(ThreadId),
    Method(u64),
    Node(u64),
}

impl Key {
    fn has(self, fact: &Fact) -> bool {
        match self {
            Self::Process(id) => fact.thread.process.id == id,
            Self::Thread(id) => fact.thread.id == id,
            Self::Method(id) => fact.path.distinct.iter().any(|method| method.id == id),
            // Nothing is shown within one.
            Self::Node(_) => true,
        }
    }
}

/// Where a row stands in a tree.
#[derive(Clone, Debug)]
pub struct Place {
    /// Index of the node.
    pub node: usize,
    pub depth: usize,
    /// The methods that the row stands for; it has the name of the last one.
    pub chain: Vec<Arc<Method>>,
    /// `None`: there is nothing below.
    pub is_open: Option<bool>,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub key: Key,
    /// Of the process or the thread.
    pub id: Option<u32>,
    /// Escaped.
    pub name: String,
    /// In the time that is shown: self of a method, the total of anything else.
    pub first: Amount,
    /// The total of a method, self of a branch.
    pub second: Amount,
    /// As `first`, since the start.
    pub since: MicroJoules,
    pub place: Option<Place>,
}

impl Row {
    pub fn named(name: String) -> Self {
        let (first, second) = (Amount::default(), Amount::default());
        Self { key: Key::Node(0), id: None, name, first, second, since: MicroJoules(0), place: None }
    }
}

/// What is to be shown.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub view: View,
    /// All of these hold.
    pub within: &'a [Key],
    /// In lower case; empty: everything.
    pub filter: &'a str,
    pub sort: Sort,
    /// Nodes of trees that were opened or closed.
    pub turned: &'a HashSet<u64>,
}

/// Rows, sorted, and the units of their figures without a label.
pub fn rows(sums: &Sums, over: &Over, query: Query<'_>) -> (Vec<Row>, Units) {
    let facts = sums.facts().zip(&over.amounts).map(|(fact, amount)| (fact, *amount));
    let facts = facts.filter(|(fact, _)| query.within.iter().all(|key| key.has(fact)));
    let mut whole = Amount::default();
    let facts: Vec<(&Fact, Amount)> = facts.inspect(|(_, amount)| whole.add(*amount)).collect();
    let mut rows = match query.view {
        View::Processes => by_thread(&facts, process),
        View::Threads => {
            let is_of_one = query.within.iter().any(|key| matches!(key, Key::Process(_) | Key::Thread(_)));
            by_thread(&facts, if is_of_one { thread } else { thread_of_process })
        }
        View::Methods => by_method(&facts),
        View::Branches => return (branches(&facts, query), Units { ns: over.ns, whole: whole.energy, label: None }),
    };
    rows.retain(|row| matches(&row.name, query.filter) || row.id.is_some_and(|id| id.to_string() == query.filter));
    query.sort.sort(&mut rows);
    (rows, Units { ns: over.ns, whole: whole.energy, label: None })
}

fn matches(name: &str, filter: &str) -> bool {
    filter.is_empty() || name.to_lowercase().contains(filter)
}

fn process(fact: &Fact) -> (Key, Row) {
    let process = &fact.thread.process;
    let key = Key::Process(process.id);
    (key, Row { key, id: Some(process.id.0.0), ..Row::named(process.title.to_string()) })
}

fn thread(fact: &Fact) -> (Key, Row) {
    let key = Key::Thread(fact.thread.id);
    (key, Row { key, id: Some(fact.thread.id.1.0), ..Row::named(fact.thread.name.to_string()) })
}

fn thread_of_process(fact: &Fact) -> (Key, Row) {
    let (key, row) = thread(fact);
    (key, Row { name: format!("{} of {}", row.name, fact.thread.process.title), ..row })
}

/// Sums of what facts' threads are of. The latest name holds.
fn by_thread(facts: &[(&Fact, Amount)], of: impl Fn(&Fact) -> (Key, Row)) -> Vec<Row> {
    let mut rows: IndexMap<Key, Row> = IndexMap::new();
    let mut last: Option<(ThreadId, usize)> = None;
    for (fact, amount) in facts {
        // Facts of a thread mostly stand together: its name is made once.
        let at = match last {
            Some((thread, at)) if thread == fact.thread.id => at,
            _ => {
                let (key, row) = of(fact);
                let entry = rows.entry(key);
                let at = entry.index();
                entry.and_modify(|known| known.name.clone_from(&row.name)).or_insert(row);
                at
            }
        };
        last = Some((fact.thread.id, at));
        if let Some((_, row)) = rows.get_index_mut(at) {
            row.first.add(*amount);
            row.second.add(*amount);
            row.since = row.since.saturating_add(fact.amount.energy);
        }
    }
    rows.into_values().collect()
}

fn by_method(facts: &[(&Fact, Amount)]) -> Vec<Row> {
    let mut found: IndexMap<u64, (&Method, Row)> = IndexMap::new();
    for (fact, amount) in facts {
        for method in &fact.path.distinct {
            let (_, row) = found.entry(method.id).or_insert_with(|| (&**method, Row::named(String::new())));
            row.second.add(*amount);
        }
        if let Some((_, row)) = fact.path.methods.last().and_then(|leaf| found.get_mut(&leaf.id)) {
            row.first.add(*amount);
            row.since = row.since.saturating_add(fact.amount.energy);
        }
    }
    let methods: Vec<_> = found.values().map(|(method, _)| method.key.method()).collect();
    let names = told_apart(&methods);
    let row = |((id, (_, row)), name): ((u64, (&Method, Row)), TargetText)| Row {
        key: Key::Method(id),
        name: name.to_string(),
        ..row
    };
    found.into_iter().zip(names).map(row).collect()
}

/// Those of which a method matches.
fn branches(facts: &[(&Fact, Amount)], query: Query<'_>) -> Vec<Row> {
    let mut known: HashMap<u64, bool> = HashMap::new();
    let mut is_wanted = |method: &Arc<Method>| {
        *known.entry(method.id).or_insert_with(|| matches(&escape(method.key.name()), query.filter))
    };
    let mut tree = Tree::default();
    for (fact, amount) in facts {
        if query.filter.is_empty() || fact.path.distinct.iter().any(&mut is_wanted) {
            tree.add(&fact.path.methods, *amount, fact.amount.energy);
        }
    }
    tree.rows(query.sort, query.turned)
}

#[cfg(test)]
mod tests {
    use joular_data::{
        fixture::{self, SMALL},
        stacks::StackTable,
        totals::Totals,
    };

    use super::{
        super::{figures::Condenser, sums::Horizon},
        *,
    };

    /// Three windows, and what the other views sum them to.
    fn summed() -> (Sums, Totals) {
        let (mut sums, mut totals) = (Sums::default(), Totals::default().without_inference());
        let (mut condenser, mut stacks) = (Condenser::default(), StackTable::default());
        condenser.process(&fixture::process(0));
        for index in 0..3 {
            let report = fixture::window(SMALL, &mut stacks, index);
            sums.window(condenser.window(&report, &stacks));
            totals.window(&report, &stacks);
        }
        (sums, totals)
    }

    fn of(sums: &Sums, view: View, within: &[Key], filter: &str) -> Vec<Row> {
        let turned = HashSet::new();
        rows(sums, &sums.over(Horizon::Run), Query { view, within, filter, sort: Sort::default(), turned: &turned }).0
    }

    fn whole(rows: &[Row]) -> u64 {
        rows.iter().filter(|row| row.place.as_ref().is_none_or(|place| place.depth == 0)).map(|row| row.since.0).sum()
    }

    #[test]
    fn all_views_sum_to_the_same_microjoule() {
        let (sums, _) = summed();
        let energy: u64 = sums.facts().map(|fact| fact.amount.energy.0).sum();
        for view in View::ALL {
            let rows = of(&sums, view, &[], "");
            assert_eq!(whole(&rows), energy, "{view:?}");
            assert!(rows.iter().all(|row| row.since == row.first.energy), "{view:?}: all of the time is shown");
        }
    }

    #[test]
    fn methods_are_those_of_the_summary() {
        let (sums, totals) = summed();
        let expected: Vec<(String, u64)> =
            totals.methods.named(100).into_iter().map(|(name, _, tally)| (name.to_string(), tally.energy.0)).collect();
        let found = of(&sums, View::Methods, &[], "").into_iter().filter(|row| row.since.0 > 0);
        assert_eq!(found.map(|row| (row.name, row.since.0)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_within_a_process_a_thread_or_a_method_is_shown_alone() {
        let (sums, _) = summed();
        let processes = of(&sums, View::Processes, &[], "");
        assert_eq!(processes.len(), 2);
        let mut energy = 0;
        for process in &processes {
            for view in View::ALL {
                assert_eq!(whole(&of(&sums, view, &[process.key], "")), process.since.0, "{view:?}");
            }
            for thread in of(&sums, View::Threads, &[process.key], "") {
                assert_eq!(whole(&of(&sums, View::Branches, &[process.key, thread.key], "")), thread.since.0);
                energy += thread.since.0;
            }
        }
        assert_eq!(energy, whole(&processes));
        let method = &of(&sums, View::Methods, &[], "")[0];
        assert_eq!(whole(&of(&sums, View::Branches, &[method.key], "")), method.second.energy.0);
    }

    #[test]
    fn a_filter_keeps_rows_by_name_or_id_and_branches_by_any_method() {
        let (sums, _) = summed();
        let names =
            |view, filter: &str| of(&sums, view, &[], filter).into_iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(View::Processes, "example.app0"), ["com.example.App0"]);
        assert_eq!(names(View::Processes, "1001"), ["java"]);
        assert!(names(View::Threads, "gc thread").iter().all(|name| name.starts_with("GC Thread#")));
        assert!(names(View::Threads, "of java").iter().all(|name| name.ends_with(" of java")));
        let method = names(View::Methods, "handlerequest1");
        assert_eq!(method.len(), 1, "{method:?}");
        let total = of(&sums, View::Methods, &[], "handlerequest1")[0].second.energy.0;
        assert_eq!(whole(&of(&sums, View::Branches, &[], "handlerequest1")), total);
        assert_eq!(names(View::Branches, "no such name"), [""; 0]);
    }
}
