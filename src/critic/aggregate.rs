//! From the rewards of the actions to the score of the trajectory.

use super::{ActionScore, Aggregate, Profile};

/// The trajectory's score by the profile's rule.
///
/// `None` when nothing is scored, and for [`Aggregate::Last`] when the last action is not: the last reward *before*
/// the end is a statement about another state, not about the candidate.
pub fn aggregate(profile: &Profile, scores: &[ActionScore]) -> Option<f64> {
    let known = || scores.iter().filter_map(|s| s.reward);
    match profile.aggregate {
        Aggregate::Last => scores.last()?.reward,
        Aggregate::Mean => {
            let n = known().count();
            (n > 0).then(|| known().sum::<f64>() / n as f64)
        }
        Aggregate::Min => known().min_by(f64::total_cmp),
        Aggregate::Max => known().max_by(f64::total_cmp),
    }
}
