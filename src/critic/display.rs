//! A reward as a person or a script reads it. Unscored is `-` on screen and `null` in JSON, never 0.

use super::{Profile, Scale};
use crate::trajectory::ActionIx;

/// What stands for an unscored action or trajectory.
pub const UNSCORED: &str = "-";

/// Number of colours of the reward scale.
pub const COLOUR_BINS: u8 = 10;

/// A reward with `decimals` places, `-` if there is none. Never `-0.00`: a sign without a digit to carry it misleads.
pub fn format_reward(reward: Option<f64>, decimals: usize) -> String {
    let Some(reward) = reward.filter(|r| r.is_finite()) else {
        return UNSCORED.to_owned();
    };
    let text = format!("{reward:.decimals$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    match text.strip_prefix('-') {
        Some(positive) if is_zero => positive.to_owned(),
        _ => text,
    }
}

/// A change of the reward with its sign (`+0.03`, `-0.12`, `0.00`), `-` if either side is unscored.
pub fn format_change(from: Option<f64>, to: Option<f64>, decimals: usize) -> String {
    let change = from.zip(to).map(|(from, to)| to - from);
    let text = format_reward(change, decimals);
    let is_zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    if change.is_some_and(|c| c > 0.0) && !is_zero { format!("+{text}") } else { text }
}

/// Which of the ten colours a reward gets: bin 0 is the low end of the scale's range, 9 the high end; what lies
/// outside gets the nearest end. `None` for an unscored one, which has no colour, and for a scale without a range.
pub fn colour_bin(scale: &Scale, reward: Option<f64>) -> Option<u8> {
    let [low, high] = scale.range;
    if low >= high {
        return None;
    }
    let share = (reward.filter(|r| r.is_finite())? - low) / (high - low);
    let bins = f64::from(COLOUR_BINS);
    Some((share * bins).floor().clamp(0.0, bins - 1.0) as u8)
}

/// The reward of action `action` of a *finished* run of `n_actions`, freed of the discount: `r / γ^(T−t)`. It makes
/// early and late actions comparable; it is a display aid and no output of the critic. `None` without a γ, for an
/// action that does not exist, and where the discount is too small to divide by.
pub fn undiscounted(profile: &Profile, reward: f64, action: ActionIx, n_actions: usize) -> Option<f64> {
    let gamma = profile.scale.gamma?;
    let left = n_actions.checked_sub(action + 1)?;
    let value = reward / gamma.powi(i32::try_from(left).ok()?);
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale { range: [0.0, 1.0], note: String::new(), gamma: None, meaning: String::new() }
    }

    #[test]
    fn unscored_is_a_dash_and_zero_is_zero() {
        assert_eq!(format_reward(None, 2), "-");
        assert_eq!(format_reward(Some(f64::NAN), 2), "-");
        assert_eq!(format_reward(Some(0.0), 2), "0.00");
        assert_eq!(format_reward(Some(-0.001), 2), "0.00");
        assert_eq!(format_reward(Some(-0.051), 2), "-0.05");
        assert_eq!(format_reward(Some(1.0349), 3), "1.035");
    }

    #[test]
    fn a_change_has_a_sign_only_if_a_digit_carries_it() {
        assert_eq!(format_change(Some(0.5), Some(0.53), 2), "+0.03");
        assert_eq!(format_change(Some(0.5), Some(0.38), 2), "-0.12");
        assert_eq!(format_change(Some(0.5), Some(0.5001), 2), "0.00");
        assert_eq!(format_change(None, Some(0.5), 2), "-");
        assert_eq!(format_change(Some(0.5), None, 2), "-");
    }

    #[test]
    fn colours_cover_the_range_and_clamp_outside() {
        let bins: Vec<_> = [-3.0, 0.0, 0.0999, 0.1, 0.5, 0.95, 1.0, 7.0].map(|r| colour_bin(&scale(), Some(r))).into();
        assert_eq!(bins, [0, 0, 0, 1, 5, 9, 9, 9].map(Some));
        assert_eq!(colour_bin(&scale(), None), None);
        assert_eq!(colour_bin(&Scale::default(), Some(0.5)), None);
        let wide = Scale { range: [-1.0, 1.0], ..scale() };
        assert_eq!(colour_bin(&wide, Some(0.0)), Some(5));
    }

    #[test]
    fn the_discount_is_taken_out_by_distance_from_the_end() {
        let profile = Profile::by_id("openhands-32b").unwrap();
        assert_eq!(undiscounted(profile, 0.7, 9, 10), Some(0.7));
        let sixty_before_the_end = undiscounted(profile, 0.99_f64.powi(60), 0, 61).unwrap();
        assert!((sixty_before_the_end - 1.0).abs() < 1e-12);
        assert_eq!(undiscounted(profile, 0.7, 10, 10), None);
        let mut without = profile.clone();
        without.scale.gamma = None;
        assert_eq!(undiscounted(&without, 0.7, 9, 10), None);
    }
}
