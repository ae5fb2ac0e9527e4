//! The Board: one row an issue, its attempts below it where they are unfolded.

use ratatui::style::Style;

use crate::app::State;
use crate::app::board::{BoardRow, SortKey, best_score, largest_drop, scored};
use crate::app::data::{AttemptEntry, IssueEntry};
use crate::app::facts::Badge;
use crate::app::geometry::Area;
use crate::app::scores::{Scoring, Status};
use crate::critic::Scale;
use crate::text;
use crate::trajectory::Outcome;

use super::canvas::Canvas;
use super::score;
use super::theme::Role;

/// Where each column starts, and how wide it is; 0 = not shown.
struct Columns {
    name: (u16, u16),
    runs: (u16, u16),
    resolved: (u16, u16),
    best: (u16, u16),
    drop: (u16, u16),
    cost: (u16, u16),
    badges: (u16, u16),
}

impl Columns {
    /// The less important a column, the earlier it gives way.
    fn of(width: u16, longest_name: u16) -> Self {
        let wide = |needed: u16, columns: u16| if width >= needed { columns } else { 0 };
        let runs = wide(56, 6);
        let resolved = wide(36, 9);
        let drop = wide(66, 7);
        let cost = wide(76, 9);
        let fixed = 2 + runs + resolved + score::WIDTH + 1 + drop + cost;
        let badges_wanted = wide(60, if width >= 110 { 28 } else { 13 });
        let name = width.saturating_sub(fixed + badges_wanted).min(longest_name.max(12) + 1);
        let badges = if badges_wanted == 0 { 0 } else { width.saturating_sub(fixed + name) };
        let mut x = 2;
        let mut next = |columns: u16| {
            let at = (x, columns);
            x += columns;
            at
        };
        Self {
            name: next(name),
            runs: next(runs),
            resolved: next(resolved),
            best: next(score::WIDTH + 1),
            drop: next(drop),
            cost: next(cost),
            badges: next(badges),
        }
    }
}

/// Draws the Board.
pub fn draw(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    if state.board.rows.is_empty() {
        nothing(canvas, area, state);
        return;
    }
    let columns = Columns::of(area.w, longest_name(state) as u16);
    let (head, rows) = area.split_top(u16::from(area.h >= 3));
    draw_head(canvas, head, &columns, state);
    let scale = score::scale(state);
    let first = first_row(state.board.selected, state.board.rows.len(), rows.h);
    for (y, row) in state.board.rows.iter().skip(first).take(usize::from(rows.h)).enumerate() {
        let line = Line { canvas, area: rows, y: y as u16, columns: &columns, state, scale: &scale };
        line.draw(*row, first + y == state.board.selected);
    }
}

/// Columns that the longest name would take: of an issue with its fold mark, or of an attempt that is shown.
fn longest_name(state: &State) -> usize {
    let issues = state.data.issues.iter().map(|e| text::display_width(&e.name) + 2);
    let shown = state.data.issues.iter().filter(|e| state.board.unfolded.contains(&e.issue.id));
    let attempts = shown.flat_map(|e| &e.attempts).map(|a| text::display_width(&a.name) + 3);
    issues.chain(attempts).max().unwrap_or(0)
}

/// The first row shown, so that the selected one stands in the middle where there is enough on both sides.
pub fn first_row(selected: usize, rows: usize, height: u16) -> usize {
    let height = usize::from(height);
    selected.saturating_sub(height / 2).min(rows.saturating_sub(height))
}

fn nothing(canvas: &mut Canvas, area: Area, state: &State) {
    let line = if !state.board.filter.is_empty() && !state.data.issues.is_empty() {
        format!("no issue contains “{}” (esc shows all)", text::one_line(&state.board.filter))
    } else if state.data.loading {
        format!("reading … {} files so far", state.data.dataset.files.len())
    } else {
        "no trajectory and no prediction was found; F lists the files and why".to_owned()
    };
    let style = canvas.theme.role(Role::Notice);
    canvas.put_cut(area, (1, area.h / 3), area.w.saturating_sub(2), &line, style);
}

fn draw_head(canvas: &mut Canvas, area: Area, columns: &Columns, state: &State) {
    let board = &state.board;
    let titles = [
        (columns.name, SortKey::Name, false),
        (columns.runs, SortKey::Attempts, false),
        (columns.resolved, SortKey::Resolved, false),
        ((columns.best.0, 6), SortKey::Best, true),
        (columns.drop, SortKey::Drop, false),
        (columns.cost, SortKey::Cost, true),
    ];
    for ((x, width), key, right) in titles.into_iter().filter(|((_, w), ..)| *w > 0) {
        let sorted = board.sort == key;
        // Names ascend and numbers descend unless turned round.
        let ascending = (key == SortKey::Name) != board.reverse;
        let arrow = match (sorted, ascending) {
            (false, _) => "",
            (true, true) => "▲",
            (true, false) => "▼",
        };
        let role = if sorted { Role::Title } else { Role::Dim };
        let title = format!("{}{arrow}", key.title());
        let pad = usize::from(width.saturating_sub(1)).saturating_sub(text::display_width(&title));
        let width = width.max(6);
        let title = if right { format!("{}{title}", " ".repeat(pad)) } else { title };
        canvas.put_cut(area, (x, 0), width, &title, canvas.theme.role(role));
    }
    if columns.badges.1 > 0 {
        canvas.put_cut(area, (columns.badges.0, 0), columns.badges.1, "badges", canvas.theme.role(Role::Dim));
    }
}

/// One row being drawn.
struct Line<'a, 'b> {
    canvas: &'a mut Canvas<'b>,
    area: Area,
    y: u16,
    columns: &'a Columns,
    state: &'a State,
    scale: &'a Scale,
}

impl Line<'_, '_> {
    fn draw(mut self, row: BoardRow, selected: bool) {
        let ground = if selected { self.canvas.theme.role(Role::Selected) } else { Style::new() };
        if selected {
            self.canvas.style(Area { y: self.area.y + self.y, h: 1, ..self.area }, ground);
            self.canvas.put(self.area, 0, self.y, "▸", ground);
        }
        let ground = Style { fg: None, ..ground };
        match row {
            BoardRow::Issue(issue) => self.issue(&self.state.data.issues[issue], ground),
            BoardRow::Attempt(issue, attempt) => self.attempt(&self.state.data.issues[issue], attempt, ground),
        }
    }

    fn text(&mut self, (x, width): (u16, u16), text: &str, style: Style) {
        if width > 1 {
            self.canvas.put_cut(self.area, (x, self.y), width - 1, text, style);
        }
    }

    fn number(&mut self, (x, width): (u16, u16), text: &str, style: Style) {
        let pad = usize::from(width.saturating_sub(1)).saturating_sub(text::display_width(text));
        self.text((x, width), &format!("{}{text}", " ".repeat(pad)), style);
    }

    fn role(&self, role: Role, ground: Style) -> Style {
        self.canvas.theme.role(role).patch(ground)
    }

    fn issue(&mut self, entry: &IssueEntry, ground: Style) {
        let plain = self.role(Role::Text, ground);
        let c = self.columns;
        let folded = if self.state.board.unfolded.contains(&entry.issue.id) { "▾ " } else { "" };
        self.text(c.name, &format!("{folded}{}", entry.name), plain);
        let all = entry.attempts.len();
        let runs = format!("{}/{all}", scored(entry, &self.state.scores));
        self.text(c.runs, &runs, plain);
        let (word, role) = resolved(entry);
        self.text(c.resolved, &word, self.role(role, ground));
        let best = best_score(entry, &self.state.scores).map(|(_, s)| s);
        score::cell(self.canvas, self.area, (c.best.0, self.y), self.scale, best, ground);
        let drop = largest_drop(entry, &self.state.scores).map(|d| d.size());
        self.drop(drop, ground);
        let (sum, unknown) = entry.cost();
        self.cost(sum, unknown, ground);
        let badges: Vec<String> = entry
            .badges(&self.state.scores)
            .into_iter()
            .map(|(b, n)| if n == all && all == 1 { b.label().to_owned() } else { format!("{n}×{}", b.label()) })
            .collect();
        self.text(c.badges, &badges.join(" "), self.role(Role::Badge, ground));
    }

    fn attempt(&mut self, entry: &IssueEntry, attempt: usize, ground: Style) {
        let known = &entry.attempts[attempt];
        let c = self.columns;
        let scoring = known.key().and_then(|k| self.state.scores.get(k));
        let (x, width) = c.name;
        self.text((x + 1, width.saturating_sub(1)), &format!("└ {}", known.name), self.role(Role::Dim, ground));
        self.text(c.runs, &progress(known, scoring), self.role(Role::Dim, ground));
        let (word, role) = outcome(entry.issue.attempts[attempt].label.outcome);
        self.text(c.resolved, word, self.role(role, ground));
        let score = scoring.and_then(|s| s.score);
        score::cell(self.canvas, self.area, (c.best.0, self.y), self.scale, score, ground);
        self.drop(scoring.and_then(Scoring::largest_drop).map(|d| d.size()), ground);
        self.cost(known.facts.cost, usize::from(known.facts.cost.is_none()), ground);
        let badges: Vec<&str> = known.badges(&self.state.scores).into_iter().map(Badge::label).collect();
        self.text(c.badges, &badges.join(" "), self.role(Role::Badge, ground));
    }

    fn drop(&mut self, size: Option<f64>, ground: Style) {
        match size {
            Some(size) => {
                let text = format!("▼ {}", crate::critic::display::format_reward(Some(size), 2));
                self.text(self.columns.drop, &text, self.role(Role::Drop, ground));
            }
            None => self.text(self.columns.drop, "-", self.role(Role::Dim, ground)),
        }
    }

    fn cost(&mut self, sum: Option<f64>, unknown: usize, ground: Style) {
        let (text, role) = match (sum, unknown) {
            (Some(sum), 0) => (format!("${sum:.2}"), Role::Text),
            // Some attempts do not say what they cost: the sum is a lower bound.
            (Some(sum), _) => (format!("≥${sum:.2}"), Role::Text),
            (None, _) => ("unknown".to_owned(), Role::Dim),
        };
        self.number(self.columns.cost, &text, self.role(role, ground));
    }
}

/// How far the scoring of one attempt is: actions scored of all.
fn progress(known: &AttemptEntry, scoring: Option<&Scoring>) -> String {
    let Some(all) = known.facts.actions else { return "…".to_owned() };
    match scoring.map(|s| (&s.status, s.scored())) {
        None if all == 0 => "patch".to_owned(),
        None => format!("-/{all}"),
        Some((Status::Failed(_), _)) => "failed".to_owned(),
        Some((Status::Nothing, _)) => "none".to_owned(),
        Some((Status::Waiting | Status::Running | Status::Done, scored)) => format!("{scored}/{all}"),
    }
}

/// `2/3` of the attempts with a label are resolved; a question mark where labels are missing.
fn resolved(entry: &IssueEntry) -> (String, Role) {
    let (resolved, known) = entry.resolved;
    let missing = if known < entry.attempts.len() { " ?" } else { "" };
    match (resolved, known) {
        (_, 0) => ("?".to_owned(), Role::Dim),
        (0, n) => (format!("✗ 0/{n}{missing}"), Role::Bad),
        (k, n) => (format!("✓ {k}/{n}{missing}"), Role::Good),
    }
}

/// Sign, word and role of an outcome.
pub fn outcome(outcome: Outcome) -> (&'static str, Role) {
    match outcome {
        Outcome::Resolved => ("✓ yes", Role::Good),
        Outcome::Unresolved => ("✗ no", Role::Bad),
        Outcome::Unknown => ("?", Role::Dim),
    }
}
