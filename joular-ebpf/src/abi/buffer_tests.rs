//! Tests what objects tell by programs in buffers as HotSpot has them.

extern crate std;

use std::{format, iter, vec, vec::Vec};

use super::{
    buffer::{BufferState, SeenIn, SeenObject, sampled_bytes},
    ends::{CERTAIN, EndCounts},
};

/// Numbers that look as if they were random: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

#[test]
fn samples_stand_for_what_was_allocated_whatever_the_gap() {
    for (stands_for, gap) in [(1 << 20, 1), (1 << 18, 1 << 20), (1 << 22, 1 << 20), (3000, u32::MAX)] {
        let (mut random, seen) = (Random(1), if gap == u32::MAX { 40_000_000_u64 } else { 100_000 });
        let stood: u64 = (0..seen).filter_map(|_| sampled_bytes(stands_for, gap, (random.next() >> 32) as u32)).sum();
        let expected = seen * stands_for;
        // Five standard deviations of a binomial sum.
        let deviation = 5.0 * (expected as f64 * f64::from(gap)).sqrt();
        assert!((stood as f64 - expected as f64).abs() <= deviation, "{stood} of {expected}");
    }
}

/// An object of class 1 of the thread that has allocated so much with it.
fn object(bytes: u64, allocated_bytes: u64) -> SeenObject {
    SeenObject { bytes, klass: 1, allocated_bytes }
}

/// A thread whose buffer has room for 10 000 bytes after its first object, which was the first that it allocated.
fn in_buffer() -> BufferState {
    BufferState::first(&object(24, 24), SeenIn::NewBuffer(10_024))
}

fn stands_for(state: &mut BufferState, bytes: u64, allocated_bytes: u64, seen_in: SeenIn) -> u64 {
    state.see(&object(bytes, allocated_bytes), seen_in, 0).stands_for_bytes
}

#[test]
fn only_the_first_object_that_does_not_fit_stands_for_a_buffer() {
    let mut state = in_buffer();
    assert_eq!(stands_for(&mut state, 4000, 24 + 7000 + 4000, SeenIn::Outside), 10_000);
    assert_eq!(stands_for(&mut state, 4000, 24 + 7000 + 8000, SeenIn::Outside), 0, "another large one");
    let all = 24 + 7000 + 8000 + 20_000;
    assert_eq!(stands_for(&mut state, 20_000, all, SeenIn::Outside), 20_000, "larger than the buffer");
    let all = 24 + 9_900 + 8000 + 20_000 + 24;
    assert_eq!(stands_for(&mut state, 24, all, SeenIn::NewBuffer(5024)), 0, "it ends the buffer");
    assert_eq!(stands_for(&mut state, 40, all + 4900 + 40, SeenIn::NewBuffer(10_040)), 5000, "of the next one");
}

#[test]
fn what_is_kept_free_for_prefetching_is_no_room() {
    for (filled, expected) in [(9_100, 10_000), (8_900, 0)] {
        let mut state = in_buffer();
        assert_eq!(stands_for(&mut state, 24, 24 + filled + 24, SeenIn::NewBuffer(10_024)), expected);
    }
}

#[test]
fn an_object_after_a_collection_tells_nothing_unless_it_did_not_fit() {
    let mut state = in_buffer();
    assert_eq!(stands_for(&mut state, 24, 24 + 3000 + 24, SeenIn::NewBuffer(10_024)), 0, "it would have fitted");
    let all = 3048 + 9_900 + 24;
    assert_eq!(stands_for(&mut state, 24, all, SeenIn::NewBuffer(10_024)), 10_000, "it did not fit");
    let all = all + 7000 + 4000;
    assert_eq!(stands_for(&mut state, 4000, all, SeenIn::NoBuffer), 10_000, "nor did this");
    assert_eq!(stands_for(&mut state, 6000, all + 6000, SeenIn::NoBuffer), 6000, "without a buffer");
    assert_eq!(stands_for(&mut state, 24, all + 6024, SeenIn::NewBuffer(10_024)), 0, "the first buffer again");
}

#[test]
fn a_thread_of_another_threads_number_tells_nothing() {
    let mut state = in_buffer();
    state.see(&object(100, 50_000), SeenIn::NewBuffer(10_024), 0);
    assert_eq!(stands_for(&mut state, 16, 16, SeenIn::NewBuffer(10_024)), 0);
}

/// What a program allocates: objects of these sizes, each of another class.
struct Program<'a> {
    sizes: &'a [u64],
    /// Which of them comes next.
    next: &'a mut dyn FnMut() -> usize,
}

/// What samples say of a program, and how much of the buffers' ends was foreseen beyond chance.
struct Found {
    off: f64,
    deviation: f64,
    in_step: f64,
}

/// What HotSpot keeps free at the end of a buffer on a usual machine.
const KEPT_FREE: u64 = 576;

/// Runs a program with buffers as HotSpot has them: an object that does not fit goes outside if more than a 64th of
/// the buffer is left, and that bound grows; else a new buffer begins with it. Every twentieth buffer a collection
/// of another thread ends it anywhere.
fn run(program: &mut Program<'_>, buffer: u64, is_collected: bool, most_ends: u32) -> Found {
    let mut random = Random(7);
    let (mut allocated, mut found) = (vec![0_u64; program.sizes.len()], vec![0_u64; program.sizes.len()]);
    let (mut state, mut ends) = (None::<BufferState>, EndCounts::default());
    let (mut left, mut waste, mut all, mut collection) = (0, 0, 0, 7 * buffer);
    while ends.seen < most_ends {
        let class = (program.next)();
        let bytes = program.sizes[class];
        if is_collected && all > collection {
            (left, waste) = (0, 0);
            collection += 10 * buffer + random.next() % (20 * buffer);
        }
        (allocated[class], all) = (allocated[class] + bytes, all + bytes);
        if bytes <= left {
            left -= bytes;
            continue;
        }
        let seen_in = if left > waste {
            waste += 32;
            SeenIn::Outside
        } else {
            (left, waste) = (buffer - KEPT_FREE, buffer / 64);
            SeenIn::NewBuffer(buffer + bytes)
        };
        let seen = SeenObject { bytes, klass: 0x1000 * (class as u64 + 1), allocated_bytes: all };
        let Some(state) = &mut state else {
            state = Some(BufferState::first(&seen, seen_in));
            continue;
        };
        let told = state.see(&seen, seen_in, (random.next() >> 32) as u32);
        found[class] += told.stands_for_bytes;
        ends.add(&told.ends);
    }
    let share = |of: &[u64], class: usize| of[class] as f64 / of.iter().sum::<u64>() as f64;
    let classes = 0..program.sizes.len();
    let off = classes.map(|class| (share(&allocated, class) - share(&found, class)).abs()).fold(0.0, f64::max);
    let seen = f64::from(ends.seen);
    let (foreseen, chance) = (f64::from(ends.foreseen) / seen, ends.by_chance as f64 / CERTAIN as f64 / seen);
    Found { off, deviation: 0.5 / seen.sqrt(), in_step: (foreseen - chance) / (1.0 - chance).max(1e-9) }
}

#[test]
fn shares_are_right_where_objects_come_in_random_order_and_ends_are_not_foreseen() {
    for sizes in [&[24, 56, 120][..], &[1 << 10, 3 << 10], &[64, 10 << 10], &[16, 40, 1016, 8208], &[48, 4 << 20]] {
        for is_collected in [false, true] {
            let mut random = Random(3);
            // Each class has about as many bytes.
            let counts: Vec<u64> = sizes.iter().map(|size| sizes.iter().max().unwrap() / size).collect();
            let all: u64 = counts.iter().sum();
            let mut next = || {
                let mut number = random.next() % all;
                let of = |count: &u64| {
                    if number < *count {
                        true
                    } else {
                        number -= count;
                        false
                    }
                };
                counts.iter().position(of).unwrap()
            };
            let found = run(&mut Program { sizes, next: &mut next }, 64 << 10, is_collected, 3000);
            let what = format!("{sizes:?}, collected: {is_collected}");
            assert!(found.off < 5.0 * found.deviation, "{what}: off by {}", found.off);
            assert!(found.in_step < 0.05, "{what}: {} in step", found.in_step);
        }
    }
}

#[test]
fn a_cycle_that_keeps_step_with_its_buffers_is_noticed() {
    let mut noticed = 0;
    for (sizes, counts) in [
        (&[8208, 64][..], &[1, 100][..]),
        (&[24, 1016, 2016], &[60, 30, 10]),
        (&[16, 24, 32], &[3, 2, 1]),
        (&[65_552, 256, 4112], &[1, 200, 10]),
        (&[16, 40_016], &[1000, 1]),
    ] {
        let cycle: Vec<usize> =
            counts.iter().enumerate().flat_map(|(class, count)| iter::repeat_n(class, *count)).collect();
        for buffer in [320 << 10, 1 << 20] {
            let mut at = 0;
            let mut next = || {
                at += 1;
                cycle[at % cycle.len()]
            };
            let found = run(&mut Program { sizes, next: &mut next }, buffer, true, 400);
            let what = format!("{sizes:?} in buffers of {buffer} bytes");
            // One of them has its ends everywhere.
            let is_fair = found.off < 2.0 * found.deviation;
            assert!(found.in_step > 0.2 || is_fair, "{what}: {} in step, off by {}", found.in_step, found.off);
            noticed += u32::from(found.in_step > 0.2);
        }
    }
    assert!(noticed >= 9, "{noticed} of 10");
}

/// Of one size nothing can be told apart: all ends fall at the same place, and must.
#[test]
fn a_program_that_allocates_one_thing_only_is_not_in_step() {
    for bytes in [16, 24, 40, 1016] {
        let found = run(&mut Program { sizes: &[bytes], next: &mut || 0 }, 64 << 10, true, 400);
        assert!(found.in_step <= 0.0, "{bytes}: {}", found.in_step);
    }
}
