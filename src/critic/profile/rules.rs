//! What is done with the head's output: the closed sets of rules a profile chooses from.

use serde::{Deserialize, Serialize};

/// What is done to the head's raw output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing: the number is the regression's output and may leave its nominal range.
    #[default]
    Identity,
    /// The logistic function of the output.
    Sigmoid,
    /// The share of the output among all outputs of the head.
    Softmax,
}

impl Activation {
    /// The value of output `index` among the head's raw `outputs`; `None` if there is no such output or the result
    /// is not a finite number.
    pub fn apply(self, outputs: &[f64], index: usize) -> Option<f64> {
        let raw = *outputs.get(index)?;
        let value = match self {
            Self::Identity => raw,
            Self::Sigmoid => 1.0 / (1.0 + (-raw).exp()),
            Self::Softmax => {
                let max = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (raw - max).exp() / outputs.iter().map(|x| (x - max).exp()).sum::<f64>()
            }
        };
        (raw.is_finite() && value.is_finite()).then_some(value)
    }

    /// One or two words for the screen.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Identity => "raw output",
            Self::Sigmoid => "sigmoid of the output",
            Self::Softmax => "softmax over the outputs",
        }
    }
}

/// How the rewards of the actions become the trajectory's score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// The last action's reward. If that one is unscored, so is the trajectory.
    #[default]
    Last,
    /// The mean of the rewards there are.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Aggregate {
    /// The trajectory's score in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Last => "the last action's reward",
            Self::Mean => "the mean of the rewards",
            Self::Min => "the smallest reward",
            Self::Max => "the largest reward",
        }
    }
}

/// What is done with a trajectory longer than `max_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutPolicy {
    /// Actions of the prefix that fits are scored exactly; for the later ones the pinned segments stay and the
    /// oldest exchanges are dropped whole until the rest fits.
    #[default]
    OldestTurns,
    /// Only the prefix that fits is read; later actions stay unscored.
    Prefix,
}

impl CutPolicy {
    /// The policy in words, for the note on a cut.
    pub fn describe(self) -> &'static str {
        match self {
            Self::OldestTurns => "the oldest exchanges are left out, system prompt and task stay",
            Self::Prefix => "only the beginning is read, later actions stay unscored",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_what_they_are_called_and_never_nan() {
        assert_eq!(Activation::Identity.apply(&[1.25, -3.0], 1), Some(-3.0));
        assert_eq!(Activation::Sigmoid.apply(&[0.0], 0), Some(0.5));
        assert_eq!(Activation::Sigmoid.apply(&[-1000.0], 0), Some(0.0));
        assert_eq!(Activation::Softmax.apply(&[1000.0, 1000.0], 1), Some(0.5));
        for activation in [Activation::Identity, Activation::Sigmoid, Activation::Softmax] {
            assert_eq!(activation.apply(&[f64::NAN], 0), None);
            assert_eq!(activation.apply(&[f64::INFINITY], 0), None);
            assert_eq!(activation.apply(&[1.0], 1), None);
        }
    }
}
