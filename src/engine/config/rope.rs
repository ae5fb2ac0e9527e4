//! Rotary embedding: the angle each pair of a head turns by per position, and how long contexts stretch it.
//!
//! Computed in f32 with the roundings of transformers 5.24 (`modeling_rope_utils.py`), which critics were trained and
//! measured with: at position 30,000 the last bit of a frequency is a visible angle.

use std::f64::consts::PI;

/// How positions are stretched beyond what the model was first trained on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum RopeScaling {
    /// Not at all.
    #[default]
    Default,
    /// Every position divided by this factor.
    Linear(f64),
    /// `YaRN`.
    Yarn(Yarn),
}

/// `YaRN` (arXiv 2309.00071): slow pairs are stretched, fast ones kept, with a ramp between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yarn {
    /// How far the slow pairs are stretched.
    pub factor: f64,
    /// Positions the model was first trained on.
    pub original: f64,
    /// Pairs that turn more often than this over `original` positions are kept.
    pub beta_fast: f64,
    /// Pairs that turn less often than this are stretched in full.
    pub beta_slow: f64,
    /// Are the ends of the ramp rounded outwards to whole pairs?
    pub truncate: bool,
    /// What cosines and sines are multiplied by.
    pub attention_factor: f64,
}

impl Yarn {
    /// The factor for cosines and sines that follows from the other keys if none is given.
    pub(super) fn attention_factor(factor: f64, mscale: Option<f64>, mscale_all_dim: Option<f64>) -> f64 {
        let scale = |by: f64| if factor <= 1.0 { 1.0 } else { 0.1 * by * factor.ln() + 1.0 };
        // 0 counts as absent.
        match (mscale.filter(|m| *m != 0.0), mscale_all_dim.filter(|m| *m != 0.0)) {
            (Some(one), Some(all)) => scale(one) / scale(all),
            _ => scale(1.0),
        }
    }

    /// First and last pair of the ramp.
    fn ramp(&self, dim: f64, theta: f64) -> (f64, f64) {
        let pair = |turns: f64| dim * (self.original / (turns * 2.0 * PI)).ln() / (2.0 * theta.ln());
        let (low, high) = (pair(self.beta_fast), pair(self.beta_slow));
        let (low, high) = if self.truncate { (low.floor(), high.ceil()) } else { (low, high) };
        let (low, high) = (low.max(0.0), high.min(dim - 1.0));
        // Equal ends would divide by zero.
        (low, if low.to_bits() == high.to_bits() { high + 0.001 } else { high })
    }
}

impl RopeScaling {
    /// Angle per position of every pair of a head of `head_dim` numbers with base `theta`, and the number that all
    /// cosines and sines are multiplied by.
    pub fn rotations(&self, head_dim: usize, theta: f64) -> (Vec<f32>, f32) {
        let periods = (0..head_dim / 2).map(|i| {
            let exponent = (2 * i) as f32 / head_dim as f32;
            f64::from(theta as f32).powf(f64::from(exponent)) as f32
        });
        match self {
            Self::Default => (periods.map(|period| 1.0 / period).collect(), 1.0),
            Self::Linear(factor) => (periods.map(|period| 1.0 / period / *factor as f32).collect(), 1.0),
            Self::Yarn(yarn) => {
                let (low, high) = yarn.ramp(head_dim as f64, theta);
                let width = (high - low) as f32;
                let turn = |(pair, period): (usize, f32)| {
                    let ramp = ((pair as f32 - low as f32) / width).clamp(0.0, 1.0);
                    let (kept, stretched) = (1.0 / period, 1.0 / (yarn.factor as f32 * period));
                    let keep = 1.0 - ramp;
                    stretched * (1.0 - keep) + kept * keep
                };
                (periods.enumerate().map(turn).collect(), yarn.attention_factor as f32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ROPE_INIT_FUNCTIONS` of transformers 5.24 gives; printed by torch with nine digits.
    #[test]
    fn frequencies_are_those_of_transformers() {
        let yarn = Yarn {
            factor: 4.0,
            original: 32_768.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            truncate: true,
            attention_factor: Yarn::attention_factor(4.0, None, Some(3.0)),
        };
        let all = Yarn {
            factor: 8.0,
            original: 64.0,
            beta_fast: 16.0,
            beta_slow: 2.0,
            truncate: false,
            attention_factor: Yarn::attention_factor(8.0, Some(0.707), Some(0.3)),
        };
        let same = Yarn { factor: 1.0, original: 2048.0, attention_factor: 0.9, ..yarn };
        let cases: [(RopeScaling, usize, f64, f64, &[f64]); 4] = [
            (
                RopeScaling::Linear(3.0),
                16,
                1e6,
                1.0,
                &[
                    0.333_333_343,
                    0.059_275_981,
                    0.010_540_925_9,
                    0.001_874_471_08,
                    0.000_333_333_359,
                    5.927_597_89e-5,
                    1.054_092_44e-5,
                    1.874_471_2e-6,
                ],
            ),
            (
                RopeScaling::Yarn(yarn),
                16,
                1e6,
                1.138_629_4,
                &[
                    1.0,
                    0.177_827_939,
                    0.031_622_778_6,
                    0.004_217_559_94,
                    0.000_500_000_024,
                    4.445_698_51e-5,
                    7.905_693_56e-6,
                    1.405_853_37e-6,
                ],
            ),
            (
                RopeScaling::Yarn(all),
                16,
                1e4,
                1.079_663_6,
                &[
                    1.0,
                    0.120_533_988,
                    0.012_500_000_2,
                    0.003_952_847_33,
                    0.001_249_999_97,
                    0.000_395_284_733,
                    0.000_125_000_006,
                    3.952_847_33e-5,
                ],
            ),
            (RopeScaling::Yarn(same), 8, 1e4, 0.9, &[1.0, 0.100_000_001, 0.009_999_999_78, 0.001_000_000_05]),
        ];
        for (scaling, dim, theta, factor, expected) in cases {
            let (found, by) = scaling.rotations(dim, theta);
            assert!((f64::from(by) - factor).abs() < 1e-7, "{scaling:?}: {by}");
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                // One unit in the last place: torch may multiply by a reciprocal where we divide.
                assert!((f64::from(*found) / expected - 1.0).abs() < 1.2e-7, "{scaling:?}: {found:e} for {expected:e}");
            }
        }
    }
}
