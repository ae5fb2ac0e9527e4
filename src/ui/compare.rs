//! Compare: which candidate touches which file, and the candidates side by side.

use ratatui::style::Style;

use crate::app::State;
use crate::app::compare::{Column, best_of};
use crate::app::data::IssueEntry;
use crate::app::facts::{Badge, FileFacts};
use crate::app::geometry::{self, Area};
use crate::text;
use crate::trajectory::Outcome;

use super::canvas::Canvas;
use super::theme::Role;
use super::{board, doc, score};

/// Columns of one candidate in the matrix of files.
const MATRIX_CELL: u16 = 10;

/// Draws Compare.
pub fn draw(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    let c = &state.compare;
    let Some(entry) = state.data.issues.get(c.issue).filter(|_| c.open) else {
        let style = canvas.theme.role(Role::Notice);
        canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), "nothing is open; choose an issue on the Board", style);
        return;
    };
    let panes = geometry::compare(area, c.columns.len(), c.matrix.then_some(c.files.len()));
    let first = c.first_shown(panes.columns.len());
    draw_matrix(canvas, panes.matrix, state, entry);
    for (i, &(head, diff)) in panes.columns.iter().enumerate() {
        let number = first + i;
        let Some(column) = c.columns.get(number) else { continue };
        draw_head(canvas, head, state, entry, (number, column));
        if let Some(text) = state.diffs.get(&column.diff) {
            doc::draw(canvas, diff, &text.doc, column.scroll);
        }
        if i > 0 {
            canvas.vertical(head.x.saturating_sub(1), head.y, head.h + diff.h);
        }
    }
    more_columns(canvas, &panes, first, c.columns.len());
}

/// Signs at the edges where candidates stand outside of the screen.
fn more_columns(canvas: &mut Canvas, panes: &geometry::ComparePanes, first: usize, all: usize) {
    let style = canvas.theme.role(Role::Title);
    if let Some((head, _)) = panes.columns.first().filter(|_| first > 0) {
        canvas.put(*head, 0, 0, "◂", style);
    }
    if let Some((head, _)) = panes.columns.last().filter(|_| first + panes.columns.len() < all) {
        canvas.put_right(*head, 0, "▸", style);
    }
}

fn draw_head(canvas: &mut Canvas, area: Area, state: &State, entry: &IssueEntry, (number, column): (usize, &Column)) {
    let selected = number == state.compare.selected;
    let ground = canvas.theme.role(if selected { Role::Selected } else { Role::SelectedDim });
    canvas.style(area, ground);
    let on = Style { fg: None, ..ground };
    let names: Vec<&str> = column.attempts.iter().map(|&a| entry.attempts[a].name.as_str()).collect();
    let times = if names.len() > 1 { format!("×{}: ", names.len()) } else { String::new() };
    let title = format!("{} {times}{}", number + 1, names.join(", "));
    canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), &title, canvas.theme.role(Role::Text).patch(on));

    let scale = score::scale(state);
    let best = best_of(column, entry, &state.scores);
    score::cell(canvas, area, (0, 1), &scale, best, on);
    let (word, role) = outcomes(entry, column);
    let x = canvas.put(area, score::WIDTH + 1, 1, &word, canvas.theme.role(role).patch(on));
    let facts = column.attempts.first().and_then(|&a| entry.attempts[a].facts.patch.as_ref());
    if let Some(patch) = facts.filter(|p| !p.files.is_empty()) {
        let files = patch.files.len();
        let plural = if files == 1 { "" } else { "s" };
        let size = format!("+{} −{} in {files} file{plural}", patch.added, patch.removed);
        let style = canvas.theme.role(Role::Dim).patch(on);
        canvas.put_cut(area, (x + 2, 1), area.w.saturating_sub(x + 2), &size, style);
    }
    let of = |&a: &usize| entry.attempts[a].badges(&state.scores);
    // That equal patches are one column says already that they are twins.
    let mut badges: Vec<Badge> = column.attempts.iter().flat_map(of).filter(|b| *b != Badge::Twin).collect();
    badges.sort_unstable();
    badges.dedup();
    let words: Vec<&str> = badges.iter().map(|b| b.label()).collect();
    let style = canvas.theme.role(Role::Badge).patch(on);
    canvas.put_cut(area, (1, 2), area.w.saturating_sub(2), &words.join(" "), style);
}

/// The label of the patch: equal patches should agree, and where they do not that is said.
fn outcomes(entry: &IssueEntry, column: &Column) -> (String, Role) {
    let labels: Vec<Outcome> = column.attempts.iter().map(|&a| entry.issue.attempts[a].label.outcome).collect();
    let count = |o: Outcome| labels.iter().filter(|l| **l == o).count();
    match (count(Outcome::Resolved), count(Outcome::Unresolved)) {
        (0, 0) => ("?".to_owned(), Role::Dim),
        (_, 0) => ("✓ resolved".to_owned(), Role::Good),
        (0, _) => ("✗ unresolved".to_owned(), Role::Bad),
        (yes, no) => (format!("✓{yes} ✗{no}: labels differ"), Role::Notice),
    }
}

fn draw_matrix(canvas: &mut Canvas, area: Area, state: &State, entry: &IssueEntry) {
    let c = &state.compare;
    if area.h < 2 {
        return;
    }
    let dim = canvas.theme.role(Role::Dim);
    let wanted = c.columns.len() as u16 * MATRIX_CELL;
    let cells = wanted.min(area.w / 2) / MATRIX_CELL * MATRIX_CELL;
    let shown = usize::from(cells / MATRIX_CELL);
    let first = c.first_shown(shown);
    let longest = c.files.iter().map(|f| text::display_width(f)).max().unwrap_or(0) as u16;
    let names = (longest + 2).min(area.w - cells);
    canvas.put_cut(area, (1, 0), names.saturating_sub(1), "file", dim);
    let column = |i: usize| names + i as u16 * MATRIX_CELL;
    for i in 0..shown {
        let selected = first + i == c.selected;
        let role = if selected { Role::Title } else { Role::Dim };
        canvas.put(area, column(i) + 1, 0, &format!("{:^8}", first + i + 1), canvas.theme.role(role));
    }
    let rows = area.h - 2;
    let from = board::first_row(c.file.unwrap_or(0), c.files.len(), rows);
    for (y, (number, path)) in c.files.iter().enumerate().skip(from).take(usize::from(rows)).enumerate() {
        let y = y as u16 + 1;
        let current = c.file == Some(number);
        let style = canvas.theme.role(if current { Role::Title } else { Role::Text });
        let path = text::truncate_start(path, usize::from(names.saturating_sub(2)));
        canvas.put(area, 1, y, &path, style);
        for (i, candidate) in c.columns.iter().skip(first).take(shown).enumerate() {
            let file = candidate.attempts.first().and_then(|&a| touched(entry, a, &c.files[number]));
            matrix_cell(canvas, area, (column(i), y), file);
        }
    }
    let left = c.files.len().saturating_sub(from + usize::from(rows));
    let line = "─".repeat(usize::from(area.w));
    canvas.put(area, 0, area.h - 1, &line, canvas.theme.role(Role::Line));
    if left > 0 {
        canvas.put(area, 2, area.h - 1, &format!(" {left} more files ([ and ] go through them) "), dim);
    }
}

fn touched<'a>(entry: &'a IssueEntry, attempt: usize, path: &str) -> Option<&'a FileFacts> {
    entry.attempts.get(attempt)?.facts.patch.as_ref()?.files.iter().find(|f| f.path == path)
}

fn matrix_cell(canvas: &mut Canvas, area: Area, (x, y): (u16, u16), file: Option<&FileFacts>) {
    let Some(file) = file else {
        canvas.put(
            area,
            x,
            y,
            &format!("{:^MATRIX$}", "·", MATRIX = usize::from(MATRIX_CELL)),
            canvas.theme.role(Role::Dim),
        );
        return;
    };
    let added = format!("{:>5}", format!("+{}", file.added));
    let x = canvas.put(area, x, y, &added, canvas.theme.role(Role::Good));
    canvas.put(area, x, y, &format!(" −{}", file.removed), canvas.theme.role(Role::Bad));
}
