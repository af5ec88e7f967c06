//! Makes up garbage collections for the fixture's first process.

use joular_ebpf::abi::{Place as KeyPlace, ThreadKey};

use super::fixture::SECOND;
use crate::{
    events::{Collection, Event, Fate, ThreadTime, WindowCollections},
    model::units::{MonotonicNs, Pid},
};

/// A young collection in every second window, and one of the whole heap from the middle of window 10 into window 12.
/// Of objects on one path it is seen that half survive.
pub(super) fn collections(window: &Event) -> Event {
    let Event::Window(window) = window else { panic!("{window:?}") };
    let index = window.index;
    let young = Collection {
        pid: Pid(1),
        collector: "G1 Young Generation".into(),
        cause: Some("G1 Evacuation Pause".into()),
        start: MonotonicNs(index * SECOND + 200_000_000),
        end: Some(MonotonicNs(index * SECOND + 210_000_000)),
        before_bytes: 90_000_000,
        after_bytes: 30_000_000 + index,
        ages: vec![1_000_000 - index, 20_000],
    };
    let old = Collection {
        collector: "G1 Old Generation".into(),
        cause: None,
        start: MonotonicNs(10 * SECOND + SECOND / 2),
        end: (index == 12).then_some(MonotonicNs(12 * SECOND + SECOND / 4)),
        after_bytes: if index == 12 { 10_000_000 } else { 0 },
        ages: Vec::new(),
        ..young.clone()
    };
    let of_window = [(10..=12).contains(&index).then_some(old), index.is_multiple_of(2).then_some(young)];
    let fate = |time: &ThreadTime| Fate {
        tid: time.tid,
        pid: time.pid,
        thread_key: ThreadKey::new(time.tid.0, time.start_boottime_ns, KeyPlace::new(0, 0)).0,
        stack: 3,
        judged_bytes: 3_000,
        survived_bytes: 1_500,
    };
    let judged = window.threads.iter().filter(|time| time.pid == Pid(1) && index.is_multiple_of(2));
    Event::Collections(Box::new(WindowCollections {
        collections: of_window.into_iter().flatten().collect(),
        fates: judged.map(fate).collect(),
    }))
}
