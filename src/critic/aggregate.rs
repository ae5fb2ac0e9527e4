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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critic::{Drop, drops};

    fn scores(rewards: &[Option<f64>]) -> Vec<ActionScore> {
        let score = |(action, reward): (usize, &Option<f64>)| ActionScore {
            action,
            reward: *reward,
            token_index: None,
            after_cut: false,
        };
        rewards.iter().enumerate().map(score).collect()
    }

    fn by(aggregate_by: Aggregate, rewards: &[Option<f64>]) -> Option<f64> {
        let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
        profile.aggregate = aggregate_by;
        aggregate(&profile, &scores(rewards))
    }

    #[test]
    fn unscored_actions_are_left_out_not_counted_as_zero() {
        let rewards = [Some(0.5), None, Some(-0.25), Some(0.75)];
        assert_eq!(by(Aggregate::Last, &rewards), Some(0.75));
        assert_eq!(by(Aggregate::Mean, &rewards), Some(1.0 / 3.0));
        assert_eq!(by(Aggregate::Min, &rewards), Some(-0.25));
        assert_eq!(by(Aggregate::Max, &rewards), Some(0.75));
    }

    #[test]
    fn the_last_action_decides_even_when_it_is_unscored() {
        assert_eq!(by(Aggregate::Last, &[Some(0.9), None]), None);
        assert_eq!(by(Aggregate::Max, &[Some(0.9), None]), Some(0.9));
    }

    #[test]
    fn nothing_scored_is_no_score() {
        for rule in [Aggregate::Last, Aggregate::Mean, Aggregate::Min, Aggregate::Max] {
            assert_eq!(by(rule, &[]), None);
            assert_eq!(by(rule, &[None, None]), None);
        }
    }

    #[test]
    fn drops_are_falls_between_neighbours_largest_first() {
        let found = drops(&scores(&[Some(0.9), Some(0.7), Some(0.8), Some(0.4), Some(0.2)]), 0.15);
        let at: Vec<_> = found.iter().map(|d| d.action).collect();
        assert_eq!(at, [3, 1, 4], "0.4 first, then the two falls of 0.2 in their order");
        assert_eq!(found[0], Drop { action: 3, from: 0.8, to: 0.4 });
        assert!(found[0].size() > 0.39);
    }

    #[test]
    fn a_drop_spans_unscored_actions_and_needs_a_fall() {
        let found = drops(&scores(&[None, Some(0.9), None, Some(0.1), Some(0.1), None]), 0.0);
        assert_eq!(found, [Drop { action: 3, from: 0.9, to: 0.1 }], "an equal reward is no drop even at threshold 0");
        assert_eq!(drops(&scores(&[None, None]), 0.0), []);
        assert_eq!(drops(&[], 0.1), []);
    }
}
