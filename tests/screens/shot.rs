//! Pressing keys, drawing, and reading a buffer back as text and as a map of styles.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use trajscope::app::{Effect, Msg, State, update};
use trajscope::ui;

use super::fixture;

/// Presses keys, named as in the key map and parted by blanks; requests for the critic's input are answered.
pub fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    let mut all = Vec::new();
    for key in keys.split_whitespace() {
        let effects = update(state, Msg::Key(key.parse().unwrap()));
        for effect in &effects {
            if let Effect::Inspect { key, generation, trajectory } = effect {
                let input = Ok(Box::new(fixture::input(trajectory)));
                update(state, Msg::Inspected { key: key.clone(), generation: *generation, input });
            }
        }
        all.extend(effects);
    }
    all
}

pub fn render(state: &State, (w, h): (u16, u16)) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, w, h));
    ui::render(&mut buffer, state);
    buffer
}

/// The rows, without the blanks at their ends.
pub fn text(buffer: &Buffer) -> String {
    let row = |y| {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..buffer.area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            skip = trajscope::text::display_width(symbol).saturating_sub(1);
        }
        row.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect::<Vec<_>>().join("\n")
}

fn color(color: Color) -> String {
    match color {
        Color::Reset => "-".to_owned(),
        Color::Indexed(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

/// A letter for every style, row by row, and what each letter stands for: the ground is a dot.
pub fn styles(buffer: &Buffer) -> String {
    let mut letters: BTreeMap<String, char> = BTreeMap::new();
    let mut names = ('a'..='z').chain('A'..='Z').chain('0'..='9');
    let mut rows = Vec::new();
    let mut order = Vec::new();
    for y in 0..buffer.area.height {
        let mut row = String::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let mut look = format!("{} on {}", color(cell.fg), color(cell.bg));
            for (modifier, name) in [
                (Modifier::BOLD, " bold"),
                (Modifier::ITALIC, " italic"),
                (Modifier::DIM, " dim"),
                (Modifier::UNDERLINED, " underlined"),
                (Modifier::REVERSED, " reversed"),
            ] {
                if cell.modifier.contains(modifier) {
                    look.push_str(name);
                }
            }
            // What an empty cell would be written in cannot be seen.
            let seen = cell.symbol() != " " || cell.modifier.contains(Modifier::REVERSED);
            let look = if seen { look } else { format!("ground {}", color(cell.bg)) };
            let letter = *letters.entry(look.clone()).or_insert_with(|| {
                let letter = if order.is_empty() { '.' } else { names.next().unwrap_or('#') };
                order.push((letter, look));
                letter
            });
            row.push(letter);
        }
        rows.push(shorten(&row));
    }
    let legend: Vec<String> = order.iter().map(|(letter, look)| format!("{letter} {look}")).collect();
    format!("{}\n\n{}", rows.join("\n"), legend.join("\n"))
}

/// `aaaab` as `a4b1`: rows of styles are mostly runs.
fn shorten(row: &str) -> String {
    let mut out = String::new();
    let mut chars = row.chars().peekable();
    while let Some(c) = chars.next() {
        let mut n = 1;
        while chars.peek() == Some(&c) {
            chars.next();
            n += 1;
        }
        out.push_str(&format!("{c}{n} "));
    }
    out.trim_end().to_owned()
}
