//! Rotary position embedding: tables of cosines and sines in f32, for any position.
//!
//! The tables are f32 whatever the weights are: in bf16 positions above 256 collapse, and with them the scores.

/// Cosines and sines of the first positions; grows on demand.
#[derive(Debug)]
pub(super) struct Rope {
    /// Angle per position of each pair of a head.
    frequencies: Vec<f32>,
    /// What every cosine and sine is multiplied by.
    factor: f32,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Rope {
    /// For the angles and the factor that `ModelConfig::rotations` gives.
    pub(super) fn new((frequencies, factor): (Vec<f32>, f32)) -> Self {
        Self { frequencies, factor, cos: Vec::new(), sin: Vec::new() }
    }

    /// Makes sure that positions below `count` are in the tables.
    pub(super) fn reserve(&mut self, count: usize) {
        let half = self.frequencies.len();
        let have = self.cos.len() / half.max(1);
        for position in have..count {
            for frequency in &self.frequencies {
                let angle = f64::from(position as f32 * frequency);
                self.cos.push(angle.cos() as f32 * self.factor);
                self.sin.push(angle.sin() as f32 * self.factor);
            }
        }
    }

    /// Cosines and sines of a position that was reserved.
    pub(super) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let half = self.frequencies.len();
        let range = position * half..(position + 1) * half;
        (&self.cos[range.clone()], &self.sin[range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::config::RopeScaling;

    #[test]
    fn tables_hold_the_angles_of_every_position() {
        let mut rope = Rope::new(RopeScaling::Default.rotations(8, 10_000.0));
        rope.reserve(3);
        rope.reserve(40_000);
        for position in [0, 2, 3, 39_999] {
            let (cos, sin) = rope.at(position);
            for i in 0..4 {
                let angle = position as f64 / 10_000f64.powf(i as f64 / 4.0);
                // The product is rounded to f32 as PyTorch does: half a unit in the last place of the angle.
                let tolerance = angle * 1e-7 + 1e-6;
                assert!((f64::from(cos[i]) - angle.cos()).abs() < tolerance, "{position} {i}");
                assert!((f64::from(sin[i]) - angle.sin()).abs() < tolerance, "{position} {i}");
            }
        }
    }
}
