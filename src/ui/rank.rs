//! Rank: the order, the critic's beside the person's, and what both are worth.

use ratatui::style::Style;

use crate::app::State;
use crate::app::data::IssueEntry;
use crate::app::facts::Badge;
use crate::app::geometry::{self, Area};
use crate::app::scores::ScoreBook;
use crate::critic::Scale;
use crate::rank::{Reason, Row};

use super::canvas::Canvas;
use super::theme::Role;
use super::{board, doc, score};

/// Draws Rank.
pub fn draw(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    let r = &state.ranking;
    let Some(entry) = state.data.issues.get(r.issue).filter(|_| r.open) else {
        let style = canvas.theme.role(Role::Notice);
        canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), "nothing is open; choose an issue on the Board", style);
        return;
    };
    let panes = geometry::rank(area, r.ranking.rows.len());
    draw_table(canvas, panes.table, state, entry);
    draw_patch(canvas, panes.patch, state, entry);
    draw_worth(canvas, panes.worth, state, panes.worth.y == panes.table.y);
}

/// The patch of the selected attempt: what one decides about.
fn draw_patch(canvas: &mut Canvas, area: Area, state: &State, entry: &IssueEntry) {
    let r = &state.ranking;
    let (Some(diff), Some(row)) = (state.diffs.get(&r.patch), r.ranking.rows.get(r.selected)) else {
        return;
    };
    let (head, body) = area.split_top(1);
    let line = "─".repeat(usize::from(head.w));
    canvas.put(head, 0, 0, &line, canvas.theme.role(Role::Line));
    let title = format!(" patch of {} ", entry.attempts[row.candidate.attempt].name);
    canvas.put_cut(head, (2, 0), head.w.saturating_sub(4), &title, canvas.theme.role(Role::Title));
    let position = doc::position(&diff.doc, r.scroll, body);
    if !position.is_empty() {
        let right = Area { w: head.w.saturating_sub(2), ..head };
        canvas.put_right(right, 0, &format!(" {position} "), canvas.theme.role(Role::Dim));
    }
    doc::draw(canvas, body, &diff.doc, r.scroll);
}

/// Start and width of each column; 0 = not shown.
struct Columns {
    name: (u16, u16),
    outcome: u16,
    patch: u16,
    note: (u16, u16),
}

/// Columns before the name: chosen mark, rank, rank of the critic, score.
const FRONT: u16 = 3 + 4 + 8 + score::WIDTH + 1;

impl Columns {
    fn of(width: u16, longest: usize) -> Self {
        let outcome = if width >= 50 { 8 } else { 0 };
        let patch = if width >= 70 { 13 } else { 0 };
        let rest = width.saturating_sub(FRONT + outcome + patch);
        let name = (longest as u16 + 2).clamp(8, 28).min(rest);
        let note = rest - name;
        Self {
            name: (FRONT, name),
            outcome: FRONT + name,
            patch: if patch > 0 { FRONT + name + outcome } else { 0 },
            note: (FRONT + name + outcome + patch, note),
        }
    }
}

fn draw_table(canvas: &mut Canvas, area: Area, state: &State, entry: &IssueEntry) {
    let r = &state.ranking;
    let longest = entry.attempts.iter().map(|a| crate::text::display_width(&a.name)).max().unwrap_or(0);
    let columns = Columns::of(area.w, longest);
    let (head, rows) = area.split_top(u16::from(area.h >= 3));
    let dim = canvas.theme.role(Role::Dim);
    canvas.put(head, 3, 0, "#", dim);
    canvas.put(head, 6, 0, "critic", dim);
    canvas.put(head, 15, 0, "score", dim);
    canvas.put(head, columns.name.0, 0, "attempt", dim);
    if columns.outcome > columns.name.0 + columns.name.1 - 1 && area.w >= 50 {
        canvas.put(head, columns.outcome, 0, "outcome", dim);
    }
    if columns.patch > 0 {
        canvas.put(head, columns.patch, 0, "patch", dim);
    }
    canvas.put_cut(head, (columns.note.0, 0), columns.note.1, "remarks", dim);
    let scale = score::scale(state);
    let first = board::first_row(r.selected, r.ranking.rows.len(), rows.h);
    for (y, row) in r.ranking.rows.iter().skip(first).take(usize::from(rows.h)).enumerate() {
        let chosen = r.ranking.chosen == Some(row.candidate.attempt);
        let line = Line { area: rows, y: y as u16, columns: &columns, scale: &scale, scores: &state.scores, chosen };
        line.draw(canvas, entry, row, first + y == r.selected);
    }
}

struct Line<'a> {
    area: Area,
    y: u16,
    columns: &'a Columns,
    scale: &'a Scale,
    scores: &'a ScoreBook,
    chosen: bool,
}

impl Line<'_> {
    fn draw(&self, canvas: &mut Canvas, entry: &IssueEntry, row: &Row, selected: bool) {
        let theme = canvas.theme;
        let ground = if selected { theme.role(Role::Selected) } else { Style::new() };
        if selected {
            canvas.style(Area { y: self.area.y + self.y, h: 1, ..self.area }, ground);
            canvas.put(self.area, 0, self.y, "▸", ground);
        }
        let ground = Style { fg: None, ..ground };
        let role = |role: Role| theme.role(role).patch(ground);
        let excluded = row.reason.is_some_and(Reason::excludes);
        let text = role(if excluded { Role::Dim } else { Role::Text });
        if self.chosen {
            canvas.put(self.area, 1, self.y, "★", role(Role::Chosen));
        }
        canvas.put(self.area, 2, self.y, &format!("{:>2}", row.rank), text);
        self.critic_rank(canvas, row, &role);
        score::cell(canvas, self.area, (15, self.y), self.scale, row.candidate.score, ground);
        let attempt = row.candidate.attempt;
        let (x, width) = self.columns.name;
        canvas.put_cut(self.area, (x, self.y), width.saturating_sub(1), &entry.attempts[attempt].name, text);
        if self.columns.outcome > x && self.area.w >= 50 {
            let (word, kind) = board::outcome(row.candidate.outcome);
            canvas.put(self.area, self.columns.outcome, self.y, word, role(kind));
        }
        if self.columns.patch > 0 {
            let size = entry.attempts[attempt].facts.patch.as_ref();
            let size = size.map_or_else(|| "none".to_owned(), |p| format!("+{} −{}", p.added, p.removed));
            canvas.put_cut(self.area, (self.columns.patch, self.y), 12, &size, text);
        }
        self.note(canvas, entry, row, &role);
    }

    /// The critic's own rank, and an arrow where a person has moved the attempt away from it.
    fn critic_rank(&self, canvas: &mut Canvas, row: &Row, role: &dyn Fn(Role) -> Style) {
        let (sign, style) = match row.critic_rank.cmp(&row.rank) {
            std::cmp::Ordering::Equal => (" ", role(Role::Dim)),
            std::cmp::Ordering::Greater => ("↑", role(Role::Notice)),
            std::cmp::Ordering::Less => ("↓", role(Role::Notice)),
        };
        canvas.put(self.area, 7, self.y, &format!("{:>2}{sign}", row.critic_rank), style);
    }

    fn note(&self, canvas: &mut Canvas, entry: &IssueEntry, row: &Row, role: &dyn Fn(Role) -> Style) {
        let (x, width) = self.columns.note;
        let mut words = Vec::new();
        if let Some(reason) = row.reason {
            let why = row.note.as_deref().map(|n| format!(": {}", crate::text::one_line(n))).unwrap_or_default();
            let missing = entry.attempts[row.candidate.attempt].facts.badges.contains(&Badge::NoPatch);
            let text = if reason == Reason::EmptyPatch && missing { "no patch" } else { reason.text() };
            words.push(format!("{text}{why}"));
        }
        if !row.twins.is_empty() {
            let names: Vec<&str> = row.twins.iter().map(|&t| entry.attempts[t].name.as_str()).collect();
            words.push(format!("= {}", names.join(", ")));
        }
        let said = [Badge::Twin, Badge::EmptyPatch, Badge::NoPatch, Badge::BadPatch];
        let badges =
            entry.attempts[row.candidate.attempt].badges(self.scores).into_iter().filter(|b| !said.contains(b));
        words.extend(badges.map(|b| b.label().to_owned()));
        let kind = if row.reason.is_some_and(Reason::excludes) { Role::Bad } else { Role::Badge };
        canvas.put_cut(self.area, (x, self.y), width, &words.join(" · "), role(kind));
    }
}

fn draw_worth(canvas: &mut Canvas, area: Area, state: &State, beside: bool) {
    if area.is_empty() {
        return;
    }
    if beside {
        canvas.vertical(area.x.saturating_sub(1), area.y, area.h);
    } else {
        let line = "─".repeat(usize::from(area.w));
        canvas.put(area, 0, 0, &line, canvas.theme.role(Role::Line));
    }
    let lines = worth_lines(state);
    for (y, (text, role)) in lines.iter().take(usize::from(area.h)).enumerate() {
        let y = y as u16;
        // Below the table the first line stands in the rule, so that no row is lost.
        canvas.put_cut(area, (1, y), area.w.saturating_sub(2), text, canvas.theme.role(*role));
    }
}

/// What the orders are worth, in lines.
fn worth_lines(state: &State) -> Vec<(String, Role)> {
    let worth = &state.ranking.worth;
    let manual = &worth.manual;
    let mut lines = Vec::new();
    let all = state.data.issues.len();
    lines.push((format!(" share resolved, over {} of {all} issues ", manual.issues), Role::Title));
    let mut left_out = Vec::new();
    if manual.unlabelled > 0 {
        left_out.push(format!("{} unlabelled", manual.unlabelled));
    }
    if manual.unranked > 0 {
        left_out.push(format!("{} undecided", manual.unranked));
    }
    if manual.issues == 0 || worth.decided == 0 {
        lines.push((left_out.join(", "), Role::Notice));
        let hint =
            if worth.decided == 0 { "nothing is scored or chosen yet" } else { "add SWE-bench reports to see more" };
        lines.push((hint.to_owned(), Role::Notice));
        return lines;
    }
    let share = |s: Option<f64>| s.map_or_else(|| "    -".to_owned(), |s| format!("{:>4.0}%", s * 100.0));
    let short = [
        ("critic's first choice", worth.critic.best_at_1),
        ("your first choice", manual.best_at_1),
        ("a choice at random", manual.random_at_1),
        ("oracle (any resolves)", manual.oracle),
    ];
    for (name, value) in short {
        let width = (value.unwrap_or(0.0) * 12.0).round().clamp(0.0, 12.0) as usize;
        lines.push((format!("{name:<22}{} {}", share(value), "▇".repeat(width)), Role::Text));
    }
    let curve: Vec<String> =
        worth.curve.iter().enumerate().map(|(k, s)| format!("{}:{:.0}%", k + 1, s * 100.0)).collect();
    if !curve.is_empty() {
        lines.push((format!("best@k of your order  {}", curve.join("  ")), Role::Dim));
    }
    if !left_out.is_empty() {
        lines.push((format!("left out: {}", left_out.join(", ")), Role::Dim));
    }
    lines
}
