//! Sums what windows bring: over the run, and of the last minute. Memory is bounded: paths beyond [`MAX_FACTS`] are folded,
//! smallest first, into an entry of their thread, of their process, or of all; so sums stay exact.

use std::{collections::VecDeque, sync::Arc};

use indexmap::IndexMap;
use joular_data::{attribution::window_report::Unattributed, model::units::MicroJoules, totals::RunSums};

use super::figures::{Figures, Path, Spent, Thread, ThreadId, folded};

/// Pairs of thread and path that are kept apart.
pub const MAX_FACTS: usize = 8192;
/// Rows of the last minute's windows that are kept. Where a minute has more, it is shorter.
pub const MAX_RECENT_ROWS: usize = 131_072;
/// Windows whose power is drawn.
pub const MAX_HISTORY: usize = 600;
/// Names of domains that are drawn apart.
const MAX_DOMAINS: usize = 16;
const SECOND: u64 = 1_000_000_000;

/// Energy and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
}

impl Amount {
    pub fn add(&mut self, other: Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }
}

/// Over which time watts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Horizon {
    Window,
    #[default]
    TenSeconds,
    Minute,
    Run,
}

impl Horizon {
    const ALL: [Self; 4] = [Self::Window, Self::TenSeconds, Self::Minute, Self::Run];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Window => "1 window",
            Self::TenSeconds => "10 s",
            Self::Minute => "60 s",
            Self::Run => "all",
        }
    }

    /// The next one, or the one before.
    #[must_use]
    pub fn step(self, longer: bool) -> Self {
        let at = Self::ALL.iter().position(|each| *each == self).unwrap_or(0);
        let to = if longer { at + 1 } else { at.saturating_sub(1) };
        Self::ALL.get(to).copied().unwrap_or(self)
    }

    const fn longest_ns(self) -> u64 {
        match self {
            Self::Window => 0,
            Self::TenSeconds => 10 * SECOND,
            Self::Minute => 60 * SECOND,
            Self::Run => u64::MAX,
        }
    }
}

/// Where the energy of all domains went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    pub all: MicroJoules,
    pub targets: MicroJoules,
    pub idle: MicroJoules,
    pub others: Unattributed,
}

impl Shares {
    pub const fn of(sums: &RunSums) -> Self {
        Self { all: sums.measured, targets: sums.attributed, idle: sums.static_share, others: sums.unattributed }
    }

    fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.targets = self.targets.saturating_add(other.targets);
        self.idle = self.idle.saturating_add(other.idle);
        self.others = self.others.plus(other.others);
    }
}

/// A thread on a path.
type Key = (ThreadId, i64);

/// What a thread spent on a path since the start.
#[derive(Clone, Debug)]
pub struct Fact {
    pub thread: Arc<Thread>,
    pub path: Arc<Path>,
    pub amount: Amount,
}

/// One of the last windows: what it added to which fact.
#[derive(Clone, Debug)]
struct Recent {
    length_ns: u64,
    shares: Shares,
    rows: Vec<(usize, Amount)>,
}

/// Power of a window.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub length_ns: u64,
    pub all: MicroJoules,
    pub targets: MicroJoules,
    /// In the order of [`Sums::domains`].
    pub domains: Vec<MicroJoules>,
}

#[derive(Clone, Debug, Default)]
pub struct Sums {
    facts: IndexMap<Key, Fact>,
    recent: VecDeque<Recent>,
    recent_rows: usize,
    history: VecDeque<Moment>,
    /// Windows before those of the history.
    forgotten: u64,
    domains: Vec<String>,
    /// Of the run, as the recorder has them.
    pub run: RunSums,
    /// Time of the windows that were summed.
    elapsed_ns: u64,
    /// Windows that the terminal was too slow for.
    pub left_out: u64,
}

/// What was spent over a time.
pub struct Over {
    pub ns: u64,
    pub shares: Shares,
    /// Of each fact, in their order.
    pub amounts: Vec<Amount>,
}

impl Sums {
    pub fn window(&mut self, figures: Figures) {
        let rows = figures.spent.into_iter().map(|spent| self.add(spent)).collect::<Vec<_>>();
        self.run = figures.sums;
        self.elapsed_ns = self.elapsed_ns.saturating_add(figures.length_ns);
        let moment = self.moment(&figures.now, &figures.domains);
        self.history.push_back(moment);
        if self.history.len() > MAX_HISTORY {
            self.history.pop_front();
            self.forgotten += 1;
        }
        self.recent_rows += rows.len();
        self.recent.push_back(Recent { length_ns: figures.length_ns, shares: Shares::of(&figures.now), rows });
        self.forget_recent();
        self.fold();
    }

    /// What each thread spent on each path since the start.
    pub fn facts(&self) -> impl ExactSizeIterator<Item = &Fact> {
        self.facts.values()
    }

    pub fn over(&self, horizon: Horizon) -> Over {
        let mut over = Over { ns: 0, shares: Shares::default(), amounts: vec![Amount::default(); self.facts.len()] };
        if horizon == Horizon::Run {
            over.amounts = self.facts.values().map(|fact| fact.amount).collect();
            (over.ns, over.shares) = (self.elapsed_ns, Shares::of(&self.run));
            return over;
        }
        for recent in self.recent.iter().rev() {
            if over.ns > 0 && over.ns.saturating_add(recent.length_ns) > horizon.longest_ns() {
                break;
            }
            over.ns = over.ns.saturating_add(recent.length_ns);
            over.shares.add(recent.shares);
            for (fact, amount) in &recent.rows {
                if let Some(sum) = over.amounts.get_mut(*fact) {
                    sum.add(*amount);
                }
            }
        }
        over
    }

    /// The last windows, the oldest first, and how many came before.
    pub const fn history(&self) -> (&VecDeque<Moment>, u64) {
        (&self.history, self.forgotten)
    }

    pub fn domains(&self) -> &[String] {
        &self.domains
    }

    fn add(&mut self, spent: Spent) -> (usize, Amount) {
        let amount = Amount { energy: spent.energy, cpu_ns: spent.cpu_ns };
        let entry = self.facts.entry((spent.thread.id, spent.path.id));
        let at = entry.index();
        let Spent { thread, path, .. } = spent;
        let fact = entry.and_modify(|fact| fact.thread = Arc::clone(&thread)).or_insert_with(|| Fact {
            thread: Arc::clone(&thread),
            path,
            amount: Amount::default(),
        });
        fact.amount.add(amount);
        (at, amount)
    }

    fn moment(&mut self, now: &RunSums, domains: &[(String, MicroJoules)]) -> Moment {
        for (name, _) in domains {
            if self.domains.len() < MAX_DOMAINS && !self.domains.contains(name) {
                self.domains.push(name.clone());
            }
        }
        let of =
            |name: &String| domains.iter().find(|(each, _)| each == name).map_or(MicroJoules(0), |(_, energy)| *energy);
        Moment {
            length_ns: now.elapsed_ns,
            all: now.measured,
            targets: now.attributed,
            domains: self.domains.iter().map(of).collect(),
        }
    }

    /// Drops windows older than a minute, and the oldest where there are too many rows.
    fn forget_recent(&mut self) {
        let mut ns = self.recent.iter().map(|recent| recent.length_ns).fold(0, u64::saturating_add);
        while self.recent.len() > 1 && (ns > Horizon::Minute.longest_ns() || self.recent_rows > MAX_RECENT_ROWS) {
            let Some(oldest) = self.recent.pop_front() else { return };
            ns = ns.saturating_sub(oldest.length_ns);
            self.recent_rows = self.recent_rows.saturating_sub(oldest.rows.len());
        }
    }

    /// Folds the smaller half if there are too many.
    fn fold(&mut self) {
        if self.facts.len() <= MAX_FACTS {
            return;
        }
        for level in [Level::Thread, Level::Process, Level::All] {
            self.fold_into(level);
            if self.facts.len() <= MAX_FACTS / 4 * 3 {
                return;
            }
        }
    }

    fn fold_into(&mut self, level: Level) {
        let mut order: Vec<usize> = (0..self.facts.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.facts.get_index(*at).map(|(_, fact)| fact.amount)));
        let mut is_small = vec![false; order.len()];
        for at in order.into_iter().skip(MAX_FACTS / 2) {
            if let Some(is_small) = is_small.get_mut(at) {
                *is_small = true;
            }
        }
        let old = std::mem::take(&mut self.facts);
        let mut places = Vec::with_capacity(old.len());
        for ((_, fact), is_small) in old.into_iter().zip(is_small) {
            let (thread, path) = if is_small { level.of(&fact.thread) } else { (fact.thread, fact.path) };
            let entry = self.facts.entry((thread.id, path.id));
            places.push(entry.index());
            entry.or_insert(Fact { thread, path, amount: Amount::default() }).amount.add(fact.amount);
        }
        for row in self.recent.iter_mut().flat_map(|recent| &mut recent.rows) {
            row.0 = places.get(row.0).copied().unwrap_or(usize::MAX);
        }
    }
}

/// Of what an entry stands for what was folded.
#[derive(Clone, Copy)]
enum Level {
    Thread,
    Process,
    All,
}

impl Level {
    fn of(self, thread: &Arc<Thread>) -> (Arc<Thread>, Arc<Path>) {
        let thread = match self {
            Self::Thread => Arc::clone(thread),
            Self::Process => folded::thread(&thread.process),
            Self::All => folded::thread(&folded::process()),
        };
        (thread, folded::path())
    }
}

#[cfg(test)]
mod tests {
    use joular_data::{
        attribution::window_report::Category,
        model::units::{Pid, Tid},
    };

    use super::{super::figures::Process, *};

    fn thread(pid: u32, tid: u32) -> Arc<Thread> {
        let process = Arc::new(Process { id: (Pid(pid), 1), title: "app".into() });
        let id = (process.id, Tid(tid), 1);
        Arc::new(Thread { process, id, name: "main".into(), category: Category::Java })
    }

    fn spent(thread: &Arc<Thread>, path: i64, energy: u64) -> Spent {
        let path = Arc::new(Path { id: path, ..(*folded::path()).clone() });
        Spent { thread: Arc::clone(thread), path, energy: MicroJoules(energy), cpu_ns: energy }
    }

    fn window(index: u64, spent: Vec<Spent>) -> Figures {
        let now = RunSums { elapsed_ns: SECOND, windows: 1, ..RunSums::default() };
        let domains = vec![("cpu".to_owned(), MicroJoules(index))];
        Figures { length_ns: SECOND, sums: now.clone(), now, domains, spent }
    }

    #[test]
    fn watts_are_of_the_last_windows_and_joules_of_all() {
        let (mut sums, main) = (Sums::default(), thread(1, 1));
        (0..100).for_each(|index| sums.window(window(index, vec![spent(&main, 7, 1 << 10), spent(&main, 7, 1)])));
        for (horizon, seconds) in
            [(Horizon::Window, 1), (Horizon::TenSeconds, 10), (Horizon::Minute, 60), (Horizon::Run, 100)]
        {
            let over = sums.over(horizon);
            assert_eq!((over.ns, over.amounts[0].energy.0), (seconds * SECOND, seconds * 1025), "{}", horizon.name());
        }
        assert_eq!(sums.facts().len(), 1);
        assert_eq!(sums.history().0.back().map(|moment| moment.domains.clone()), Some(vec![MicroJoules(99)]));
    }

    #[test]
    fn horizons_stop_at_the_ends() {
        assert_eq!(Horizon::Window.step(false), Horizon::Window);
        assert_eq!(Horizon::Run.step(true), Horizon::Run);
        assert_eq!(Horizon::default().step(true).step(false), Horizon::TenSeconds);
    }

    #[test]
    fn whatever_targets_do_a_bounded_number_of_facts_is_kept_and_sums_stay() {
        // Many paths of a thread, many threads of a process, many processes.
        for (pids, tids, paths) in [(1, 1, 20_000), (1, 20_000, 1), (20_000, 1, 1)] {
            let mut sums = Sums::default();
            let mut energy = 0;
            for part in 0..4 {
                let of = |pid: u32| (0..tids).map(move |tid| thread(pid, tid + part * tids));
                let rows = (0..pids).flat_map(|pid| of(pid + part * pids));
                let rows: Vec<Spent> = rows
                    .flat_map(|thread| (1..=paths).map(move |path| spent(&thread, path, path.unsigned_abs())))
                    .collect();
                energy += rows.iter().map(|row| row.energy.0).sum::<u64>();
                sums.window(window(part.into(), rows));
                assert!(sums.facts().len() <= MAX_FACTS, "{pids} {tids} {paths}: {}", sums.facts().len());
            }
            assert_eq!(sums.facts().map(|fact| fact.amount.energy.0).sum::<u64>(), energy);
            assert_eq!(sums.over(Horizon::Minute).amounts.iter().map(|amount| amount.energy.0).sum::<u64>(), energy);
        }
    }

    #[test]
    fn the_last_minute_is_shorter_where_it_has_too_much() {
        let (mut sums, main) = (Sums::default(), thread(1, 1));
        for index in 0..4 {
            sums.window(window(index, (0..50_000).map(|_| spent(&main, 7, 1)).collect()));
        }
        assert_eq!(sums.over(Horizon::Minute).ns, 2 * SECOND);
        (0..MAX_HISTORY as u64).for_each(|index| sums.window(window(index, Vec::new())));
        assert_eq!((sums.history().0.len(), sums.history().1), (MAX_HISTORY, 4));
    }
}
