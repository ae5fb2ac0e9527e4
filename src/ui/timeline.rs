//! The Timeline: curve, list of actions, detail.

use ratatui::style::Style;

use crate::app::detail::Tab;
use crate::app::geometry::{self, Area};
use crate::app::outline::{Ending, OutlineRow};
use crate::app::scores::{Scoring, Status};
use crate::app::timeline::{Focus, doc as detail_doc, scoring, shape};
use crate::app::{CriticState, State};
use crate::critic::Scale;
use crate::critic::display::format_reward;
use crate::text;

use super::board::first_row;
use super::canvas::Canvas;
use super::score;
use super::theme::Role;
use super::{chart, doc};

/// Draws the Timeline.
pub fn draw(canvas: &mut Canvas, area: Area, state: &State) {
    let t = &state.timeline;
    if area.is_empty() {
        return;
    }
    if !t.open {
        let style = canvas.theme.role(Role::Notice);
        canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), "nothing is open; choose an issue on the Board", style);
        return;
    }
    let panes = geometry::timeline(area, shape(state));
    chart::draw(canvas, panes.chart, state);
    draw_list(canvas, panes.list, state);
    if !panes.list.is_empty() && !panes.tabs.is_empty() {
        let x = panes.list.x + panes.list.w;
        canvas.vertical(x, panes.list.y, panes.list.h);
    }
    draw_tabs(canvas, panes.tabs, panes.detail, state);
    draw_reward(canvas, panes.reward, state);
    doc::draw(canvas, panes.detail, detail_doc(state), t.scroll);
}

fn draw_tabs(canvas: &mut Canvas, area: Area, detail: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    let t = &state.timeline;
    let focused = t.focus == Focus::Detail;
    let (title, dim) = (canvas.theme.role(Role::Title), canvas.theme.role(Role::Dim));
    canvas.style(area, canvas.theme.role(Role::SelectedDim));
    let position = doc::position(detail_doc(state), t.scroll, detail);
    let right = text::display_width(&position) as u16;
    let mut x = canvas.put(area, 0, 0, if focused { "▸" } else { " " }, title);
    let room = usize::from(area.w.saturating_sub(right + 2));
    let (tabs, long) = tabs_that_fit(t.tab, room);
    for tab in tabs {
        let name = if long { tab.title() } else { tab.short_title() };
        let style = if tab == t.tab { title } else { dim };
        let text = if tab == t.tab { format!("[{name}]") } else { format!(" {name} ") };
        x = canvas.put(area, x, 0, &text, style);
    }
    let number = format!(" {}/{}", t.action + 1, t.outline.rows.len());
    if usize::from(x) + number.len() + usize::from(right) + 1 < usize::from(area.w) && !t.outline.rows.is_empty() {
        canvas.put(area, x, 0, &number, dim);
    }
    canvas.put_right(area, 0, &position, dim);
}

/// The reward of the selected action in words, with when it was read: what people do not know about the number.
fn draw_reward(canvas: &mut Canvas, area: Area, state: &State) {
    let t = &state.timeline;
    if area.is_empty() || t.outline.rows.is_empty() {
        return;
    }
    let scoring = scoring(state);
    let reward = scoring.and_then(|s| s.reward(t.action));
    let scale = score::scale(state);
    score::cell(canvas, area, (0, 0), &scale, reward, Style::new());
    let mut words = String::new();
    let mut role = Role::Dim;
    if reward.is_none() {
        words.push_str(&scoring_words(state).unwrap_or_else(|| "no reward for this action".to_owned()));
    } else if let Some(scoring) = scoring {
        if let Some(change) = scoring.change(t.action) {
            words.push_str(&signed(change));
        }
        if scoring.drop_at(t.action).is_some() {
            role = Role::Drop;
            words.push_str(" ▼ drop");
        }
        if scoring.actions.get(t.action).is_some_and(|a| a.after_cut) {
            words.push_str(" · after a cut");
        }
    }
    let x = score::WIDTH + 1;
    canvas.put_cut(area, (x, 0), area.w.saturating_sub(x), &words, canvas.theme.role(role));
    let x = x + text::display_width(&words) as u16 + 1;
    if reward.is_some() {
        let when = "· read before the observation came";
        canvas.put_cut(area, (x, 0), area.w.saturating_sub(x), when, canvas.theme.role(Role::Dim));
    }
}

/// All tabs with their long titles if there is room, else with the short ones, else the current one alone.
fn tabs_that_fit(current: Tab, room: usize) -> (Vec<Tab>, bool) {
    let long: usize = Tab::ALL.iter().map(|t| text::display_width(t.title()) + 2).sum();
    let short: usize = Tab::ALL.iter().map(|t| text::display_width(t.short_title()) + 2).sum();
    if long <= room {
        (Tab::ALL.into(), true)
    } else if short <= room {
        (Tab::ALL.into(), false)
    } else {
        (vec![current], true)
    }
}

fn draw_list(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    let t = &state.timeline;
    if t.outline.rows.is_empty() {
        let style = canvas.theme.role(Role::Notice);
        canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), "no actions: nothing to score", style);
        return;
    }
    let list = List {
        scoring: scoring(state),
        scale: score::scale(state),
        digits: t.outline.rows.len().to_string().len().max(2),
        focused: t.focus == Focus::List,
    };
    let first = first_row(t.action, t.outline.rows.len(), area.h);
    for (y, row) in t.outline.rows.iter().skip(first).take(usize::from(area.h)).enumerate() {
        list.draw_row(canvas, area, y as u16, (first + y, row), first + y == t.action);
    }
}

struct List<'a> {
    scoring: Option<&'a Scoring>,
    scale: Scale,
    digits: usize,
    focused: bool,
}

impl List<'_> {
    fn draw_row(&self, canvas: &mut Canvas, area: Area, y: u16, (action, row): (usize, &OutlineRow), selected: bool) {
        let theme = canvas.theme;
        let ground = match (selected, self.focused) {
            (false, _) => Style::new(),
            (true, true) => theme.role(Role::Selected),
            (true, false) => theme.role(Role::SelectedDim),
        };
        if selected {
            canvas.style(Area { y: area.y + y, h: 1, ..area }, ground);
        }
        let ground = Style { fg: None, ..ground };
        let role = |role: Role| theme.role(role).patch(ground);
        let mark = if selected { "▸" } else { " " };
        let number = format!("{mark}{:>width$} ", action + 1, width = self.digits);
        let x = canvas.put(area, 0, y, &number, role(if selected { Role::Text } else { Role::Dim }));
        let reward = self.scoring.and_then(|s| s.reward(action));
        score::cell(canvas, area, (x, y), &self.scale, reward, ground);
        let x = x + score::WIDTH + 1;
        let change = self.scoring.and_then(|s| s.change(action));
        let drop = self.scoring.and_then(|s| s.drop_at(action)).is_some();
        let change_text = format!("{:>5}", change.map_or_else(|| "-".to_owned(), signed));
        let x = canvas.put(area, x, y, &change_text, role(if drop { Role::Drop } else { Role::Dim }));
        let x = canvas.put(area, x, y, if drop { "▼" } else { " " }, role(Role::Drop));
        let x = canvas.put_all(area, x, y, &marks(row, &role));
        let tool = row.tool.as_deref().map(|t| format!("{t} ")).unwrap_or_default();
        let x = canvas.put(area, x, y, &tool, role(Role::Key));
        canvas.put_cut(area, (x, y), area.w.saturating_sub(x), &row.summary, role(Role::Text));
    }
}

/// One sign for how the action ended, one for a loop.
fn marks(row: &OutlineRow, role: &dyn Fn(Role) -> Style) -> [(&'static str, Style); 3] {
    let ending = match row.ending {
        Ending::Fine => (" ", role(Role::Text)),
        Ending::Error | Ending::Exit(_) => ("✗", role(Role::Error)),
        Ending::Silent => ("∎", role(Role::Dim)),
    };
    [ending, (if row.looping { "↻" } else { " " }, role(Role::Notice)), (" ", role(Role::Text))]
}

/// A change with its sign, two places, without a leading zero to save a column: `+.12`, `−.30`, `.00`.
fn signed(change: f64) -> String {
    let text = format_reward(Some(change.abs()), 2);
    let text = text.strip_prefix('0').unwrap_or(&text);
    match text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        true if change < 0.0 => format!("−{text}"),
        true => format!("+{text}"),
        false => text.to_owned(),
    }
}

/// How far the scoring of the open trajectory is, in words, when it is not done.
pub fn scoring_words(state: &State) -> Option<String> {
    let waiting = match state.critic {
        CriticState::None => return Some("not scored: no critic".to_owned()),
        CriticState::Failed(_) => return Some("not scored: the critic could not be opened".to_owned()),
        CriticState::Opening => return Some("the critic is being opened".to_owned()),
        CriticState::Ready(_) => "waits for the critic",
    };
    let scoring = scoring(state)?;
    match &scoring.status {
        Status::Done => None,
        Status::Waiting => Some(waiting.to_owned()),
        Status::Running => Some(format!("scoring, {} of {}", scoring.scored(), scoring.actions.len())),
        Status::Failed(why) => Some(format!("not scored: {why}")),
        Status::Nothing => Some("nothing to score".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_short_and_signed() {
        assert_eq!(
            [0.12, -0.3, 0.001, -0.001, 1.5, -12.0].map(signed),
            ["+.12", "−.30", ".00", ".00", "+1.50", "−12.00"]
        );
    }
}
