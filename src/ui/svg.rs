//! A filled buffer as an SVG picture: what a terminal would show, for a README or a bug report.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr as _;

use super::palette;

/// Size of a cell and of the letters in it, in the picture's units.
const CELL_WIDTH: f64 = 8.4;
const CELL_HEIGHT: f64 = 18.0;
const FONT_SIZE: f64 = 14.0;
/// From the top of a cell down to the line the letters stand on.
const BASELINE: f64 = 13.5;
/// What the terminal's own colours are taken to be.
const FOREGROUND: (u8, u8, u8) = (208, 208, 208);
const BACKGROUND: (u8, u8, u8) = (28, 28, 28);

/// The picture of a buffer. Letters that are next to one another and look the same share one element; each element
/// says how long it is, so that columns stand under one another in every font.
pub fn render(buffer: &Buffer) -> String {
    let (columns, rows) = (buffer.area.width, buffer.area.height);
    let (width, height) = (f64::from(columns) * CELL_WIDTH, f64::from(rows) * CELL_HEIGHT);
    let mut svg = String::new();
    line(
        &mut svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.1}\" height=\"{height:.1}\" \
         viewBox=\"0 0 {width:.1} {height:.1}\">"
        ),
    );
    line(&mut svg, format_args!("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>", hex(BACKGROUND)));
    line(
        &mut svg,
        format_args!(
            "<g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT_SIZE}\" \
         xml:space=\"preserve\">"
        ),
    );
    for y in 0..rows {
        for run in runs(buffer, y) {
            draw_ground(&mut svg, &run, y);
        }
    }
    for y in 0..rows {
        for run in runs(buffer, y) {
            draw_text(&mut svg, &run, y);
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn line(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _: Result<(), std::fmt::Error> = svg.write_fmt(text);
    svg.push('\n');
}

/// Cells next to one another that look the same.
struct Run {
    x: u16,
    columns: u16,
    text: String,
    fg: (u8, u8, u8),
    bg: (u8, u8, u8),
    modifier: Modifier,
}

fn colours(cell: &Cell) -> ((u8, u8, u8), (u8, u8, u8)) {
    let of = |color: Color, own| palette::rgb(color).unwrap_or(own);
    let (fg, bg) = (of(cell.fg, FOREGROUND), of(cell.bg, BACKGROUND));
    if cell.modifier.contains(Modifier::REVERSED) { (bg, fg) } else { (fg, bg) }
}

fn runs(buffer: &Buffer, y: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut x = 0;
    while x < buffer.area.width {
        let cell = &buffer[(buffer.area.x + x, buffer.area.y + y)];
        let symbol = cell.symbol();
        let columns = (symbol.width() as u16).max(1);
        let (fg, bg) = colours(cell);
        let modifier = cell.modifier - Modifier::REVERSED;
        // A wide or an unusual sign gets an element of its own: fonts disagree about its width.
        let alone = !symbol.is_ascii();
        match runs.last_mut() {
            Some(run) if !alone && run.text.is_ascii() && (run.fg, run.bg, run.modifier) == (fg, bg, modifier) => {
                run.text.push_str(symbol);
                run.columns += columns;
            }
            _ => runs.push(Run { x, columns, text: symbol.to_owned(), fg, bg, modifier }),
        }
        x += columns;
    }
    runs
}

fn draw_ground(svg: &mut String, run: &Run, y: u16) {
    if run.bg == BACKGROUND {
        return;
    }
    let (x, top) = (f64::from(run.x) * CELL_WIDTH, f64::from(y) * CELL_HEIGHT);
    let width = f64::from(run.columns) * CELL_WIDTH;
    let fill = hex(run.bg);
    line(
        svg,
        format_args!(
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT:.1}\" fill=\"{fill}\" \
         shape-rendering=\"crispEdges\"/>"
        ),
    );
}

fn draw_text(svg: &mut String, run: &Run, y: u16) {
    let kept = run.text.trim_end();
    if kept.trim().is_empty() {
        return;
    }
    let (x, base) = (f64::from(run.x) * CELL_WIDTH, f64::from(y) * CELL_HEIGHT + BASELINE);
    let columns = if kept.is_ascii() { kept.len() } else { usize::from(run.columns) };
    let length = columns as f64 * CELL_WIDTH;
    let mut looks = String::new();
    if run.modifier.contains(Modifier::BOLD) {
        looks.push_str(" font-weight=\"bold\"");
    }
    if run.modifier.contains(Modifier::ITALIC) {
        looks.push_str(" font-style=\"italic\"");
    }
    if run.modifier.contains(Modifier::UNDERLINED) {
        looks.push_str(" text-decoration=\"underline\"");
    }
    if run.modifier.contains(Modifier::DIM) {
        looks.push_str(" opacity=\"0.7\"");
    }
    let (fill, text) = (hex(run.fg), escape(kept));
    line(
        svg,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{base:.1}\" fill=\"{fill}\" textLength=\"{length:.1}\" \
         lengthAdjust=\"spacingAndGlyphs\"{looks}>{text}</text>"
        ),
    );
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn letters_are_escaped_and_cells_that_look_the_same_are_one_element() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_string(0, 0, "a<b&c", Style::new().fg(Color::Indexed(196)));
        let svg = render(&buffer);
        assert_eq!(svg.matches("<text").count(), 1, "{svg}");
        assert!(svg.contains(">a&lt;b&amp;c</text>"), "{svg}");
        assert!(svg.contains("fill=\"#ff0000\""), "{svg}");
    }

    #[test]
    fn wide_letters_take_two_columns_and_reverse_swaps_the_colours() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        let style = Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(231)).add_modifier(Modifier::REVERSED);
        buffer.set_string(0, 0, "日x", style);
        let svg = render(&buffer);
        assert!(svg.contains("textLength=\"16.8\""), "{svg}");
        assert!(svg.contains("x=\"16.8\""), "{svg}");
        assert!(svg.contains("fill=\"#000000\" shape-rendering"), "{svg}");
    }

    #[test]
    fn an_empty_buffer_is_still_a_picture() {
        let svg = render(&Buffer::empty(Rect::new(0, 0, 0, 0)));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
