//! The reward curve: braille dots, an axis that fits the data, marks for drops, errors and the selected action.

use crate::app::State;
use crate::app::geometry::Area;
use crate::app::outline::Ending;
use crate::app::scores::Scoring;
use crate::app::timeline::scoring;
use crate::critic::display::format_reward;
use crate::text;

use super::canvas::{Canvas, bar};
use super::score;
use super::theme::Role;
use super::timeline::scoring_words;

/// Columns of the axis at the left: a number, a blank, the line.
const AXIS: u16 = 7;
/// The least height of the axis, so that noise of the third decimal does not look like a mountain range.
const LEAST_SPAN: f64 = 0.1;

/// Places of actions in the columns of a plot.
#[derive(Debug, Clone, Copy)]
struct Across {
    actions: usize,
    columns: u16,
}

impl Across {
    /// Dot (two a column) of an action: the first at the left edge, the last at the right one.
    fn dot(self, action: usize) -> usize {
        let last = usize::from(self.columns) * 2 - 1;
        match self.actions {
            0 | 1 => last / 2,
            n => (action * last + (n - 1) / 2) / (n - 1),
        }
    }

    fn column(self, action: usize) -> u16 {
        (self.dot(action) / 2) as u16
    }
}

/// The values at the bottom and the top of the axis.
fn axis(scoring: Option<&Scoring>, nominal: [f64; 2]) -> (f64, f64) {
    let Some((low, high)) = scoring.and_then(Scoring::range) else {
        return (nominal[0], nominal[1]);
    };
    let missing = (LEAST_SPAN - (high - low)).max(0.0) / 2.0;
    let margin = ((high - low) * 0.05).max(missing);
    (low - margin, high + margin)
}

/// Draws the curve of the open trajectory.
pub fn draw(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() || area.w < 12 {
        return;
    }
    let scoring = scoring(state);
    if area.h < 5 {
        draw_small(canvas, area, state, scoring);
        return;
    }
    let (title, rest) = area.split_top(1);
    draw_title(canvas, title, state);
    let (plot, ticks) = rest.split_bottom(1);
    let (labels, plot) = plot.split_left(AXIS);
    let (marks, plot) = plot.split_top(1);
    let labels = Area { y: labels.y + 1, h: labels.h - 1, ..labels };
    let nominal = score::scale(state).range;
    let range = axis(scoring, nominal);
    draw_axis(canvas, labels, range);
    let across = Across { actions: state.timeline.outline.rows.len(), columns: plot.w };
    if across.actions == 0 {
        return;
    }
    draw_cursor(canvas, Area { y: marks.y, h: plot.h + 1, ..plot }, across.column(state.timeline.action));
    if let Some(scoring) = scoring {
        draw_curve(canvas, plot, scoring, across, range);
    }
    draw_marks(canvas, marks, state, scoring, across);
    draw_ticks(canvas, Area { x: plot.x, w: plot.w, ..ticks }, across, state.timeline.action);
}

fn draw_title(canvas: &mut Canvas, area: Area, state: &State) {
    let (title, dim) = (canvas.theme.role(Role::Title), canvas.theme.role(Role::Dim));
    let x = canvas.put(area, 1, 0, "reward", title);
    let mut words = Vec::new();
    words.extend(scoring_words(state));
    if let Some(info) = state.critic_info() {
        words.push(text::one_line(&info.scale.meaning));
        words.extend(info.scale.gamma.map(|g| format!("γ {g}")));
        words.push(format!("▼ falls by {} or more", info.drop_threshold));
    }
    let line = format!(": {}", words.join(" · "));
    canvas.put_cut(area, (x, 0), area.w.saturating_sub(x + 1), &line, dim);
}

fn draw_axis(canvas: &mut Canvas, area: Area, (low, high): (f64, f64)) {
    let style = canvas.theme.role(Role::Dim);
    let rows = area.h;
    for y in 0..rows {
        canvas.put(area, AXIS - 1, y, "┤", canvas.theme.role(Role::Line));
    }
    if rows == 0 {
        return;
    }
    let mut label = |y: u16, value: f64| {
        canvas.put(area, 0, y, &format!("{:>5}", format_reward(Some(value), 2)), style);
    };
    label(0, high);
    if rows >= 3 {
        label(rows - 1, low);
    }
    if rows >= 7 {
        label(rows / 2, high - (high - low) * (f64::from(rows / 2) + 0.5) / f64::from(rows));
    }
}

fn draw_cursor(canvas: &mut Canvas, area: Area, column: u16) {
    let style = canvas.theme.role(Role::SelectedDim);
    canvas.style(Area { x: area.x + column, w: 1, ..area }, ratatui::style::Style { fg: None, ..style });
}

/// Dots of a plot, two across and four down a cell.
struct Dots {
    columns: usize,
    rows: usize,
    cells: Vec<u8>,
}

impl Dots {
    fn new(columns: u16, rows: u16) -> Self {
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        Self { columns, rows, cells: vec![0; columns * rows] }
    }

    fn set(&mut self, x: usize, y: usize) {
        /// Bit of each dot of a cell in Unicode's braille block, by row and column.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let (column, row) = (x / 2, y / 4);
        if column < self.columns && row < self.rows {
            self.cells[row * self.columns + column] |= BITS[y % 4][x % 2];
        }
    }

    /// A line between two dots, without gaps.
    fn line(&mut self, (x0, y0): (usize, usize), (x1, y1): (usize, usize)) {
        let steps = x1.abs_diff(x0).max(y1.abs_diff(y0)).max(1);
        let between = |a: usize, b: usize, i: usize| {
            let (a, b) = (a as f64, b as f64);
            (a + (b - a) * i as f64 / steps as f64).round() as usize
        };
        for i in 0..=steps {
            self.set(between(x0, x1, i), between(y0, y1, i));
        }
    }
}

fn draw_curve(canvas: &mut Canvas, area: Area, scoring: &Scoring, across: Across, (low, high): (f64, f64)) {
    if area.is_empty() {
        return;
    }
    let heights = usize::from(area.h) * 4 - 1;
    let dot = |(action, reward): (usize, f64)| {
        let share = ((reward - low) / (high - low)).clamp(0.0, 1.0);
        (across.dot(action), heights - (share * heights as f64).round() as usize)
    };
    let (mut line, mut falls) = (Dots::new(area.w, area.h), Dots::new(area.w, area.h));
    let mut before: Option<(usize, f64)> = None;
    for score in &scoring.actions {
        // A gap stays a gap: nothing is drawn across actions without a reward.
        let Some(reward) = score.reward else {
            before = None;
            continue;
        };
        let here = (score.action, reward);
        let from = before.unwrap_or(here);
        let dots = if scoring.drop_at(score.action).is_some() { &mut falls } else { &mut line };
        dots.line(dot(from), dot(here));
        before = Some(here);
    }
    let (curve, drop) = (canvas.theme.role(Role::Curve), canvas.theme.role(Role::Drop));
    for (i, (&dots, &fall)) in line.cells.iter().zip(&falls.cells).enumerate() {
        let (x, y) = ((i % line.columns) as u16, (i / line.columns) as u16);
        if let Some(sign) = char::from_u32(0x2800 + u32::from(dots | fall)).filter(|_| dots | fall != 0) {
            canvas.sign(area, x, y, sign, if fall == 0 { curve } else { drop });
        }
    }
}

/// One row above the curve: where it falls, where the environment reported an error.
fn draw_marks(canvas: &mut Canvas, area: Area, state: &State, scoring: Option<&Scoring>, across: Across) {
    let (error, drop) = (canvas.theme.role(Role::Notice), canvas.theme.role(Role::Drop));
    for (action, row) in state.timeline.outline.rows.iter().enumerate() {
        if matches!(row.ending, Ending::Error | Ending::Exit(_)) {
            canvas.sign(area, across.column(action), 0, '✗', error);
        }
    }
    for fall in scoring.map(|s| s.drops.as_slice()).unwrap_or_default() {
        canvas.sign(area, across.column(fall.action), 0, '▼', drop);
    }
}

/// Numbers of the first, the last and the selected action.
fn draw_ticks(canvas: &mut Canvas, area: Area, across: Across, selected: usize) {
    let (dim, title) = (canvas.theme.role(Role::Dim), canvas.theme.role(Role::Title));
    canvas.put(area, 0, 0, "1", dim);
    canvas.put_right(area, 0, &across.actions.to_string(), dim);
    let text = format!("▲{}", selected + 1);
    let width = text::display_width(&text) as u16;
    let x = across.column(selected).min(area.w.saturating_sub(width));
    canvas.put(area, x, 0, &text, title);
}

/// Where there is no room for a plot: one row of bars, one of marks. Of the actions that share a column the lowest
/// reward is shown, so that a drop is never averaged away.
fn draw_small(canvas: &mut Canvas, area: Area, state: &State, scoring: Option<&Scoring>) {
    let across = Across { actions: state.timeline.outline.rows.len(), columns: area.w };
    if across.actions == 0 {
        return;
    }
    let (bars, marks) = area.split_top(1);
    draw_cursor(canvas, area, across.column(state.timeline.action));
    let dim = canvas.theme.role(Role::Dim);
    let Some(scoring) = scoring.filter(|s| s.scored() > 0) else {
        draw_title(canvas, bars, state);
        draw_marks(canvas, marks, state, None, across);
        return;
    };
    let scale = score::scale(state);
    let (low, high) = axis(Some(scoring), scale.range);
    let mut lowest: Vec<Option<f64>> = vec![None; usize::from(area.w)];
    for score in &scoring.actions {
        let column = usize::from(across.column(score.action));
        match (score.reward, lowest[column]) {
            (Some(r), Some(seen)) if seen <= r => {}
            (Some(r), _) => lowest[column] = Some(r),
            (None, Some(_)) => {}
            (None, None) => canvas.sign(bars, column as u16, 0, '·', dim),
        }
    }
    for (column, reward) in lowest.into_iter().enumerate() {
        if let Some(reward) = reward {
            let sign = bar((reward - low) / (high - low));
            canvas.sign(bars, column as u16, 0, sign, score::style(canvas.theme, &scale, Some(reward)));
        }
    }
    draw_marks(canvas, marks, state, Some(scoring), across);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_action_stands_left_and_the_last_one_right() {
        let across = Across { actions: 10, columns: 20 };
        assert_eq!((across.column(0), across.column(9)), (0, 19));
        let crowded = Across { actions: 1000, columns: 20 };
        assert_eq!((crowded.column(0), crowded.column(999)), (0, 19));
        assert!((0..999).all(|a| crowded.dot(a) <= crowded.dot(a + 1)));
        assert_eq!(Across { actions: 1, columns: 21 }.column(0), 10);
    }

    #[test]
    fn the_axis_fits_the_data_and_not_a_formula() {
        let mut scoring = Scoring::default();
        assert_eq!(axis(Some(&scoring), [-1.0, 1.0]), (-1.0, 1.0));
        let score =
            |action, r| crate::critic::ActionScore { action, reward: Some(r), token_index: None, after_cut: false };
        scoring.actions = vec![score(0, -3.0), score(1, 5.0)];
        let (low, high) = axis(Some(&scoring), [0.0, 1.0]);
        assert!(low < -3.0 && low > -4.0 && high > 5.0 && high < 6.0);
        scoring.actions = vec![score(0, 0.5), score(1, 0.5)];
        let (low, high) = axis(Some(&scoring), [0.0, 1.0]);
        assert!((high - low - LEAST_SPAN).abs() < 1e-12 && low < 0.5 && high > 0.5);
    }

    #[test]
    fn a_line_has_no_gaps() {
        let mut dots = Dots::new(4, 2);
        dots.line((0, 0), (7, 7));
        let lit: u32 = dots.cells.iter().map(|c| c.count_ones()).sum();
        assert_eq!(lit, 8);
        dots.set(99, 99);
    }
}
