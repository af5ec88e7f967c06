//! Makes numbers that look random and are always the same, for simulations in tests.

/// SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, 2014).
#[derive(Clone, Debug)]
pub struct Noise(pub u64);

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers of a simulation"
)]
impl Noise {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `end` is not 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 32) as f64 / f64::from(u32::MAX)
    }

    /// Nearly normal: twelve uniforms.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// 1, with this standard deviation, and never near 0.
    pub fn around_one(&mut self, deviation: f64) -> f64 {
        (1.0 + deviation * self.normal()).max(0.1)
    }

    /// Events that come at random, of which so many are expected.
    pub fn poisson(&mut self, expected: f64) -> u64 {
        // The normal distribution is close enough to so many.
        if expected > 60.0 {
            return (expected + expected.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let (end, mut product, mut count) = ((-expected).exp(), self.uniform(), 0);
        while product > end {
            product *= self.uniform();
            count += 1;
        }
        count
    }
}
