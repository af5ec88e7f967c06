//! Averages a meter's readings over any span: the power between two readings is taken to be on the
//! line between them.

use super::meter::MeterLog;

/// A pause this many times longer than usual, between two readings, is a hole: nothing is known there.
const HOLE: i64 = 5;

/// A meter's energy as a function of its clock.
#[derive(Clone, Debug)]
pub struct Curve {
    at_us: Vec<i64>,
    watts: Vec<f64>,
    /// Energy since the first reading, in W·µs.
    energy: Vec<f64>,
    /// Holes before each reading.
    holes: Vec<u32>,
}

#[allow(clippy::cast_precision_loss, reason = "times within a log, in µs")]
impl Curve {
    pub fn of(log: &MeterLog) -> Self {
        let hole_us = log.period_us().saturating_mul(HOLE);
        let mut curve = Self { at_us: Vec::new(), watts: Vec::new(), energy: Vec::new(), holes: Vec::new() };
        for reading in &log.readings {
            let (energy, holes) =
                match (curve.at_us.last(), curve.watts.last(), curve.energy.last(), curve.holes.last()) {
                    (Some(at_us), Some(watts), Some(energy), Some(holes)) => {
                        let span_us = reading.at_us - at_us;
                        let mean = f64::midpoint(*watts, reading.watts);
                        (energy + mean * span_us as f64, holes + u32::from(span_us > hole_us))
                    }
                    _ => (0.0, 0),
                };
            curve.at_us.push(reading.at_us);
            curve.watts.push(reading.watts);
            curve.energy.push(energy);
            curve.holes.push(holes);
        }
        curve
    }

    /// Mean power from `start_us` to `end_us`; `None` where the log does not say.
    pub fn mean_watts(&self, start_us: i64, end_us: i64) -> Option<f64> {
        let (from, before) = self.up_to(start_us)?;
        let (to, after) = self.up_to(end_us)?;
        (end_us > start_us && before == after).then(|| (to - from) / (end_us - start_us) as f64)
    }

    /// Energy up to a moment that is in no hole, and the holes before it.
    fn up_to(&self, at_us: i64) -> Option<(f64, u32)> {
        let next = self.at_us.partition_point(|reading| *reading < at_us);
        let (end_us, end, holes) = (*self.at_us.get(next)?, *self.energy.get(next)?, *self.holes.get(next)?);
        if end_us == at_us {
            return Some((end, holes));
        }
        let last = next.checked_sub(1)?;
        if *self.holes.get(last)? != holes {
            return None;
        }
        let (start_us, start) = (*self.at_us.get(last)?, *self.energy.get(last)?);
        let (before, after) = (*self.watts.get(last)?, *self.watts.get(next)?);
        let into = (at_us - start_us) as f64;
        let here = before + (after - before) * into / (end_us - start_us) as f64;
        Some((start + f64::midpoint(before, here) * into, holes))
    }

    /// First and last reading.
    pub fn span_us(&self) -> Option<(i64, i64)> {
        Some((*self.at_us.first()?, *self.at_us.last()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::validate::meter::MeterReading;

    fn curve(readings: &[(i64, f64)]) -> Curve {
        let readings = readings.iter().map(|(at_us, watts)| MeterReading { at_us: *at_us, watts: *watts }).collect();
        Curve::of(&MeterLog { readings, ..MeterLog::default() })
    }

    #[test]
    fn a_mean_is_of_the_lines_between_readings() {
        let curve = curve(&[(0, 10.0), (10, 10.0), (20, 30.0), (30, 30.0)]);
        for (start_us, end_us, expected) in [
            (0, 10, Some(10.0)),
            (10, 20, Some(20.0)),
            (15, 20, Some(25.0)),
            (5, 25, Some((50.0 + 200.0 + 150.0) / 20.0)),
            (20, 30, Some(30.0)),
            (20, 31, None),
            (-1, 10, None),
            (10, 10, None),
        ] {
            assert_eq!(curve.mean_watts(start_us, end_us), expected, "{start_us} {end_us}");
        }
    }

    #[test]
    fn nothing_is_known_across_a_hole() {
        let curve = curve(&[(0, 10.0), (10, 10.0), (20, 10.0), (80, 10.0), (90, 10.0), (100, 10.0)]);
        assert_eq!(curve.mean_watts(5, 20), Some(10.0));
        assert_eq!(curve.mean_watts(15, 85), None);
        assert_eq!(curve.mean_watts(80, 95), Some(10.0));
        assert_eq!(curve.mean_watts(30, 40), None);
    }
}
