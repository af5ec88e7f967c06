//! Makes up, in later windows, for idle energy that a window lacked.
//!
//! What a machine draws wavers, and so does what a counter shows of it. In a window below the idle power there is less than
//! the static share. If that were forgotten, while every window above it gives all that is above to whoever runs, programs
//! would pay for the wavering: on a machine of 20 W that wavers by 1 W from window to window, with programs that draw 0.3 W,
//! they would get 0.57 W. So what is lacking is owed, and set apart from what later windows have above their own share.

use crate::model::units::MicroJoules;

/// At most so many windows' static share is owed. Where idle power is said to be higher than it is, more would take the energy
/// of everything that runs later.
const MOST_WINDOWS: u64 = 4;

/// The static share of a window, and what is owed after it. `wish` is what the idle policy wants of this window.
pub(super) fn set_apart(wish: MicroJoules, owed: MicroJoules, measured: MicroJoules) -> (MicroJoules, MicroJoules) {
    let due = wish.saturating_add(owed).0;
    let share = due.min(measured.0);
    (MicroJoules(share), MicroJoules((due - share).min(wish.0.saturating_mul(MOST_WINDOWS))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::noise::Noise;

    #[test]
    fn what_a_window_lacks_is_taken_from_the_next_ones() {
        let mut owed = MicroJoules(0);
        let mut found = Vec::new();
        for measured in [25, 18, 21, 30, 30] {
            let (share, after) = set_apart(MicroJoules(20), owed, MicroJoules(measured));
            owed = after;
            found.push((share.0, after.0));
        }
        assert_eq!(found, [(20, 0), (18, 2), (21, 1), (21, 0), (20, 0)]);
    }

    #[test]
    fn an_idle_power_that_is_too_high_does_not_take_everything_for_long() {
        let mut owed = MicroJoules(0);
        for _ in 0..1_000 {
            owed = set_apart(MicroJoules(40), owed, MicroJoules(20)).1;
        }
        assert_eq!(owed, MicroJoules(4 * 40));
        assert_eq!(set_apart(MicroJoules(0), owed, MicroJoules(20)), (MicroJoules(20), MicroJoules(0)));
    }

    /// Mean watts that programs get on a machine that draws 20 W at rest, while they draw 0.3 W more. `deviation_w` is that
    /// of a window of a second. Forty runs of so many windows.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "simulation"
    )]
    fn attributed_w(deviation_w: f64, windows: u32, makes_up: bool) -> f64 {
        let (mut noise, mut owed, mut attributed) = (Noise(3), MicroJoules(0), 0);
        for window in 0..40 * windows {
            if window % windows == 0 || !makes_up {
                owed = MicroJoules(0);
            }
            let measured = MicroJoules((1e6 * (20.3 + deviation_w * noise.normal())) as u64);
            let (share, after) = set_apart(MicroJoules(20_000_000), owed, measured);
            owed = after;
            attributed += measured.0 - share.0;
        }
        attributed as f64 / 1e6 / f64::from(40 * windows)
    }

    #[test]
    fn programs_get_what_they_draw_however_much_the_machine_wavers() {
        for (deviation_w, without) in [(0.2, 0.305), (0.5, 0.38), (1.0, 0.57), (2.0, 0.96)] {
            let [makes_up, forgets] = [true, false].map(|makes_up| attributed_w(deviation_w, 1_800, makes_up));
            let short = attributed_w(deviation_w, 60, true);
            println!("{deviation_w} W: {makes_up:.3} W, in a minute {short:.3}; {forgets:.3} W if it is forgotten");
            assert!((0.29..=0.31).contains(&makes_up), "{deviation_w} W: {makes_up} W");
            assert!((forgets - without).abs() < 0.02, "{deviation_w} W: {forgets} W");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_set_apart_that_was_not_measured(wish: u64, owed: u64, measured: u64) {
            let (share, after) = set_apart(MicroJoules(wish), MicroJoules(owed), MicroJoules(measured));
            prop_assert!(share.0 <= measured && share.0 <= wish.saturating_add(owed));
            prop_assert!(after.0 <= wish.saturating_mul(MOST_WINDOWS));
        }
    }
}
