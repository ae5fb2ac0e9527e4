//! What is around every view: the header, the line of hints, the status line with messages and prompts.

use crate::app::geometry::Area;
use crate::app::prompt::{Prompt, Purpose, Question};
use crate::app::{Action, CriticState, State, View, timeline};
use crate::critic::{CriticInfo, Wording};
use crate::text;

use super::canvas::Canvas;
use super::theme::Role;

/// Names of the screens, and what the current one shows.
pub fn header(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    let bar = canvas.theme.role(Role::Bar);
    canvas.clear(area, canvas.theme.ground().patch(bar));
    let current = bar.patch(canvas.theme.role(Role::Title));
    let mut x = 1;
    if area.w >= 70 {
        for (i, view) in View::ALL.into_iter().enumerate() {
            let style = if view == state.view { current } else { bar };
            let mark = if view == state.view { "▸" } else { " " };
            x = canvas.put(area, x, 0, &format!("{mark}{} {}  ", i + 1, view.name()), style);
        }
    } else {
        x = canvas.put(area, x, 0, &format!("{}  ", state.view.name()), current);
    }
    let place = place(state, area.w >= 70);
    let room = area.w.saturating_sub(x + 1);
    let text = text::truncate_start(&place, usize::from(room));
    canvas.put_right(Area { w: area.w.saturating_sub(1), ..area }, 0, &text, bar);
}

/// What the current screen shows, in words.
fn place(state: &State, wide: bool) -> String {
    let issue = |i: usize| state.data.issues.get(i).map(|e| e.name.clone()).unwrap_or_default();
    match state.view {
        View::Board => {
            let shown = state.board.issues().len();
            let all = state.data.issues.len();
            let filter = if state.board.filter.is_empty() { String::new() } else { format!(" of {all}") };
            let files = state.data.dataset.files.len();
            let rest = match (state.data.loading, state.data.not_understood()) {
                (true, _) => format!(" · reading, {files} files so far"),
                (false, n) if wide && n > 0 => {
                    let plural = if n == 1 { "" } else { "s" };
                    format!(" · {n} file{plural} not understood")
                }
                (false, _) => String::new(),
            };
            format!("{shown}{filter} issues{rest}")
        }
        View::Timeline => {
            let t = &state.timeline;
            let Some(entry) = timeline::entry(state) else { return String::new() };
            let attempts = state.data.issues.get(t.issue).map_or(0, |e| e.attempts.len());
            format!("{} › {} ({}/{attempts})", issue(t.issue), entry.name, t.attempt + 1)
        }
        View::Compare => {
            let c = &state.compare;
            match c.columns.len() {
                1 => format!("{} › 1 patch", issue(c.issue)),
                n => format!("{} › {n} different patches", issue(c.issue)),
            }
        }
        View::Rank => format!("{} › {} attempts", issue(state.ranking.issue), state.ranking.ranking.rows.len()),
    }
}

/// The keys that are useful on this screen.
pub fn hints(canvas: &mut Canvas, area: Area, state: &State) {
    if area.is_empty() {
        return;
    }
    let (key_style, word_style) = (canvas.theme.role(Role::Key), canvas.theme.role(Role::Dim));
    let mut x = 1;
    for (key, word) in state.keymap.hints(state.view) {
        let width = text::display_width(&key) + 1 + text::display_width(word) + 2;
        if usize::from(x) + width > usize::from(area.w) {
            break;
        }
        x = canvas.put(area, x, 0, &key, key_style);
        x = canvas.put(area, x + 1, 0, word, word_style) + 2;
    }
}

/// A prompt, or a message, or who scores and how far; gives the place of the cursor of a prompt.
pub fn status(canvas: &mut Canvas, area: Area, state: &State) -> Option<(u16, u16)> {
    if area.is_empty() {
        return None;
    }
    if let Some(prompt) = &state.prompt {
        return draw_prompt(canvas, area, state, prompt);
    }
    let bar = canvas.theme.role(Role::Bar);
    canvas.clear(area, canvas.theme.ground().patch(bar));
    if let Some(message) = &state.message {
        let role = if message.error { Role::Error } else { Role::Text };
        let sign = if message.error { "! " } else { "" };
        let style = bar.patch(canvas.theme.role(role));
        let line = format!("{sign}{}", message.text);
        canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), &line, style);
        return None;
    }
    let mut progress = progress(state, area.w >= 60);
    // Small screens have no line of hints; the way to the keys is said here.
    if area.y + 1 < 16
        && let Some(key) = state.keymap.keys(Action::Help).first()
    {
        progress.push_str(&format!(" {key} keys"));
    }
    let right = text::display_width(&progress) as u16;
    let room = area.w.saturating_sub(right + 3);
    let (line, role) = critic_line(state, usize::from(room));
    canvas.put_cut(area, (1, 0), room, &line, bar.patch(canvas.theme.role(role)));
    let style = bar;
    canvas.put_right(Area { w: area.w.saturating_sub(1), ..area }, 0, &progress, style);
    None
}

fn progress(state: &State, in_words: bool) -> String {
    let (finished, all) = state.scores.progress();
    let failed = state.scores.failed();
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    match (all, in_words) {
        (0, _) => String::new(),
        (_, true) => format!("scored {finished}/{all}{failed}"),
        (_, false) => format!("{finished}/{all}{failed}"),
    }
}

fn critic_line(state: &State, room: usize) -> (String, Role) {
    match &state.critic {
        CriticState::None => ("no critic: nothing is scored".to_owned(), Role::Notice),
        CriticState::Opening => ("opening the critic …".to_owned(), Role::Text),
        CriticState::Failed(why) => (format!("no critic: {why}"), Role::Error),
        CriticState::Ready(info) => (describe(info, room), Role::Text),
    }
}

/// As much of who scores as there is room for; that the critic is a small one, or reads words of this program's own,
/// is said before the rest.
fn describe(info: &CriticInfo, room: usize) -> String {
    let mut marks = String::new();
    if info.path.is_none() {
        marks.push_str(" [small embedded critic: a hint, not a verdict]");
    }
    if info.wording == Wording::Own {
        marks.push_str(" [own wording of the tool text]");
    }
    let short_marks = match (info.path.is_none(), info.wording == Wording::Own) {
        (true, true) => " [small, own wording]",
        (true, false) => " [small critic]",
        (false, true) => " [own wording]",
        (false, false) => "",
    };
    let id = text::one_line(&info.id);
    let machine = format!(" · profile {} · {} {}", info.profile, info.device, info.dtype);
    let ways = [
        format!("{id}{marks}{machine}"),
        format!("{id}{short_marks}{machine}"),
        format!("{id}{short_marks}"),
        // What the number is worth is never what gets cut off.
        format!("{short_marks} {id}").trim_start().to_owned(),
    ];
    let fits = ways.iter().find(|w| text::display_width(w) <= room);
    fits.or(ways.last()).cloned().unwrap_or_default()
}

fn draw_prompt(canvas: &mut Canvas, area: Area, state: &State, prompt: &Prompt) -> Option<(u16, u16)> {
    let style = canvas.theme.role(Role::Prompt);
    canvas.clear(area, canvas.theme.ground().patch(style));
    match prompt {
        Prompt::Confirm(question) => {
            let line = match question {
                Question::Overwrite(path) => format!("{} exists. Replace it? y/N", text::one_line(path)),
                Question::QuitUnsaved => "moves and vetoes were not exported. Leave and lose them? y/N".to_owned(),
            };
            canvas.put_cut(area, (1, 0), area.w.saturating_sub(2), &line, style);
            None
        }
        Prompt::Text { purpose, line } => {
            let label = match purpose {
                Purpose::Filter => "/".to_owned(),
                Purpose::ExportPath if area.w < 60 => "to: ".to_owned(),
                Purpose::ExportPath => {
                    let plan = crate::app::ranking::export_plan(state);
                    format!("export {} predictions to: ", plan.entries.len())
                }
                Purpose::VetoReason if area.w < 60 => "why? ".to_owned(),
                Purpose::VetoReason => "veto, because (may be empty): ".to_owned(),
            };
            let x = canvas.put(area, 1, 0, &label, style);
            let room = usize::from(area.w.saturating_sub(x + 1));
            // What is typed last must be seen: the beginning gives way.
            let before = text::truncate_start(line.before_cursor(), room);
            let cursor = canvas.put(area, x, 0, &before, style);
            let after = line.text().get(line.before_cursor().len()..).unwrap_or_default();
            canvas.put(area, cursor, 0, after, style);
            let at = (area.x + cursor).min(area.x + area.w - 1);
            Some((at, area.y))
        }
    }
}
