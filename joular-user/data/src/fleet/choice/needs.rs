//! Says what tiers lack: which views and which conditions need what hosts shipped.
//!
//! Both tiers have the same tables, so a question that one can answer the other can, too, but for windows that are too long.
//! The lists are matches and patterns without a rest: who adds a view or a condition has to say here whether tiers have it.

use super::super::tier::Tier;
use crate::report::{
    profile::{Filter, Moment},
    ranking::By,
    tree::Levels,
};

/// What a question shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A table with a row for each of these.
    Table(By),
    /// A call tree, with this above its frames.
    Tree(Levels),
    /// Energy over time, in steps that are as long as windows are.
    OverTime,
    /// The same in steps of this length from this moment on, microseconds.
    Steps { from_us: Option<i64>, step_us: i64 },
    /// Figures of single windows, such as their mean.
    Windows,
    /// Names of all that can be selected, such as labels of pods.
    Labels,
    /// Calls of methods, counted from one window to the next.
    Calls,
    /// Emissions and cost, which change with the hour.
    Footprint,
}

/// What a tier lacks of a view, in words that follow "tiers do not have"; `None`: it has all of it.
pub(super) fn lacked_by(tier: Tier, view: View) -> Option<&'static str> {
    match view {
        View::Table(by) => lacked_by_table(by),
        View::Tree(Levels::Frames) | View::OverTime => None,
        View::Tree(Levels::Processes) => Some("single processes"),
        View::Tree(Levels::Threads) => Some("single threads"),
        View::Steps { from_us, step_us } => {
            let window_us = tier.window_us();
            let is_whole = |us: i64| us % window_us == 0;
            (!is_whole(step_us) || !from_us.is_some_and(is_whole))
                .then_some("windows that fit the steps that are asked for")
        }
        View::Windows => Some("the windows of single hosts"),
        View::Labels => Some("all that can be selected"),
        View::Calls => Some("windows that are short enough for counting calls"),
        View::Footprint => Some("windows that are short enough for emissions and prices"),
    }
}

const fn lacked_by_table(by: By) -> Option<&'static str> {
    match by {
        By::Method
        | By::Class
        | By::Package
        | By::Branch
        | By::Handler
        | By::Category
        | By::Kind
        | By::Service
        | By::Namespace
        | By::Line
        | By::ClassAllocated => None,
        By::Thread | By::ThreadPool => Some("single threads"),
        By::Process | By::Command => Some("single processes"),
        By::Container => Some("containers"),
        By::Pod => Some("pods"),
        By::Host => Some("hosts"),
        By::Label(_) => Some("labels of pods and hosts"),
    }
}

/// What tiers lack of conditions, in the same words.
pub(super) fn lacked_by_tiers(filter: &Filter) -> Option<&'static str> {
    let Filter {
        since,
        until,
        pids,
        processes,
        services: _,
        versions: _,
        containers,
        pods,
        namespaces: _,
        labels,
        chosen,
        threads,
        categories: _,
        methods: _,
        handlers: _,
        handler_rules: _,
        hosts,
        runs,
        phases,
        exact_names: _,
        no_infer: _,
        charge_gc,
        access,
        unreadable: _,
        stop: _,
        sources: _,
    } = filter;
    let is_of_runs = |moment: &Option<Moment>| !matches!(moment, None | Some(Moment::At(_)));
    let conditions = [
        (is_of_runs(since) || is_of_runs(until), "times within runs"),
        (!pids.is_empty() || !processes.allow_all(), "single processes"),
        (!containers.allow_all(), "containers"),
        (!pods.allow_all(), "pods"),
        (!labels.allow_all(), "labels of pods and hosts"),
        (chosen.needs_runs(), "what processes are chosen by"),
        (!threads.allow_all(), "single threads"),
        (!hosts.allow_all() || access.is_about_hosts(), "hosts"),
        (!runs.allow_all(), "the runs that hosts recorded"),
        (!phases.allow_all(), "phases"),
        (charge_gc.is_some(), "collections"),
    ];
    conditions.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::units::{Pid, UnixMicros},
        report::profile::{Access, Allowance, ChargeBy, Chosen, Labels, Names},
    };

    fn names() -> Names {
        Names::parse(&["x".to_owned()]).unwrap()
    }

    #[test]
    fn tables_of_what_tiers_sum_by_are_in_them_and_others_are_not() {
        let has = |by: &By| lacked_by(Tier::Hourly, View::Table(*by)).is_none();
        let in_tiers: Vec<&str> =
            By::ALL.iter().chain([&By::ClassAllocated]).filter(|by| has(by)).map(|by| by.name()).collect();
        let expected = [
            "method",
            "class",
            "package",
            "branch",
            "handler",
            "category",
            "kind",
            "service",
            "namespace",
            "line",
            "class-allocated",
        ];
        assert_eq!(in_tiers, expected);
        for name in ["label:cluster", "host", "pod", "container", "process", "command", "thread", "thread-pool"] {
            let by = By::named(name).unwrap();
            assert!(Tier::ALL.iter().all(|tier| lacked_by(*tier, View::Table(by)).is_some()), "{name}");
        }
    }

    #[test]
    fn steps_are_of_whole_windows_or_a_finer_tier_has_them() {
        let lacks =
            |from_us, step_us| Tier::ALL.map(|tier| lacked_by(tier, View::Steps { from_us, step_us }).is_some());
        let minutes = |minutes: i64| minutes * 60_000_000;
        for (from, step, expected) in [
            (Some(0), 60, [false, false]),
            (Some(60), 120, [false, false]),
            (Some(5), 60, [false, true]),
            (Some(0), 15, [false, true]),
            (Some(1), 60, [true, true]),
            (Some(0), 1, [true, true]),
            (None, 60, [true, true]),
        ] {
            assert_eq!(lacks(from.map(minutes), minutes(step)), expected, "{from:?} {step}");
        }
    }

    #[test]
    fn other_views_need_the_runs_but_for_trees_of_frames_and_curves() {
        for (view, is_lacked) in [
            (View::Tree(Levels::Frames), false),
            (View::Tree(Levels::Processes), true),
            (View::Tree(Levels::Threads), true),
            (View::OverTime, false),
            (View::Windows, true),
            (View::Labels, true),
            (View::Calls, true),
            (View::Footprint, true),
        ] {
            assert_eq!(lacked_by(Tier::Minutes, view).is_some(), is_lacked, "{view:?}");
        }
    }

    #[test]
    fn conditions_on_what_is_summed_up_need_the_runs() {
        let plain = Filter::default;
        let of_hosts = Access::of([Allowance { hosts: names(), ..Allowance::default() }]);
        for (filter, what) in [
            (Filter { pids: vec![Pid(1)], ..plain() }, "single processes"),
            (Filter { processes: names(), ..plain() }, "single processes"),
            (Filter { containers: names(), ..plain() }, "containers"),
            (Filter { pods: names(), ..plain() }, "pods"),
            (Filter { labels: Labels::parse(&["a=b".to_owned()]).unwrap(), ..plain() }, "labels of pods and hosts"),
            (Filter { chosen: Chosen::by(|_, _| true), ..plain() }, "what processes are chosen by"),
            (Filter { threads: names(), ..plain() }, "single threads"),
            (Filter { hosts: names(), ..plain() }, "hosts"),
            (Filter { access: of_hosts, ..plain() }, "hosts"),
            (Filter { runs: names(), ..plain() }, "the runs that hosts recorded"),
            (Filter { phases: names(), ..plain() }, "phases"),
            (Filter { charge_gc: Some(ChargeBy::Allocated), ..plain() }, "collections"),
            (Filter { since: Some(Moment::Clock(1)), ..plain() }, "times within runs"),
        ] {
            assert_eq!(lacked_by_tiers(&filter), Some(what), "{filter:?}");
        }
    }

    #[test]
    fn conditions_on_what_tiers_sum_by_are_answered_by_them() {
        let plain = Filter::default;
        let at = Some(Moment::At(UnixMicros(1)));
        let of_services = Access::of([Allowance { services: names(), namespaces: names(), ..Allowance::default() }]);
        for filter in [
            plain(),
            Filter { since: at, until: at, ..plain() },
            Filter { services: names(), versions: names(), namespaces: names(), ..plain() },
            Filter { methods: names(), handlers: names(), no_infer: true, exact_names: true, ..plain() },
            Filter { chosen: Chosen::by_sums(|_, _| true), access: of_services, ..plain() },
        ] {
            assert_eq!(lacked_by_tiers(&filter), None, "{filter:?}");
        }
    }
}
