//! A reward as text, bar and colour: three ways of saying the same, so that none has to be relied on alone.

use ratatui::style::Style;

use crate::app::State;
use crate::critic::Scale;
use crate::critic::display::{colour_bin, format_reward};

use super::canvas::{Canvas, bar};
use super::theme::Theme;
use crate::app::geometry::Area;

/// Columns of a score cell: the number, a blank, the bar.
pub const WIDTH: u16 = 7;

/// The scale of the critic that scores; 0 to 1 as long as there is none.
pub fn scale(state: &State) -> Scale {
    state.critic_info().map_or_else(
        || Scale { range: [0.0, 1.0], note: String::new(), gamma: None, meaning: String::new() },
        |info| info.scale.clone(),
    )
}

/// Where a reward lies on the scale, 0 to 1 (outside of it beyond).
pub fn share(scale: &Scale, reward: f64) -> f64 {
    let [low, high] = scale.range;
    (reward - low) / (high - low)
}

/// The colour of a reward.
pub fn style(theme: Theme, scale: &Scale, reward: Option<f64>) -> Style {
    theme.score(colour_bin(scale, reward))
}

/// Draws a score cell: `0.53 ▅`, or `-`. `over` is laid over the colours (a selection's ground).
pub fn cell(canvas: &mut Canvas, area: Area, (x, y): (u16, u16), scale: &Scale, reward: Option<f64>, over: Style) {
    let style = style(canvas.theme, scale, reward).patch(over);
    let text = format!("{:>5}", format_reward(reward, 2));
    canvas.put(area, x, y, &text, style);
    if let Some(reward) = reward.filter(|r| r.is_finite()) {
        canvas.sign(area, x + 6, y, bar(share(scale, reward)), style);
    }
}
