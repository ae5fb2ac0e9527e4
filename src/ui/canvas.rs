//! Writing into the buffer, always inside of an area. Everything that is drawn goes through here.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::geometry::Area;
use crate::text;

use super::theme::{Role, Theme};

/// A buffer and the theme it is drawn with.
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    /// The theme.
    pub theme: Theme,
}

/// A piece of text and its style.
pub type Piece<'a> = (&'a str, Style);

impl<'a> Canvas<'a> {
    /// A canvas on a buffer.
    pub fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme }
    }

    fn inside(&self, area: Area) -> Rect {
        Rect::new(area.x, area.y, area.w, area.h).intersection(self.buffer.area)
    }

    /// Lays a style over an area.
    pub fn style(&mut self, area: Area, style: Style) {
        let inside = self.inside(area);
        self.buffer.set_style(inside, style);
    }

    /// Empties an area in a style.
    pub fn clear(&mut self, area: Area, style: Style) {
        let inside = self.inside(area);
        for y in inside.y..inside.bottom() {
            for x in inside.x..inside.right() {
                self.buffer[(x, y)].reset();
            }
        }
        self.buffer.set_style(inside, style);
    }

    /// Writes `text` at column `x` of row `y` of an area, cut at the area's right edge (not marked); gives the column
    /// behind it. Text must be safe already.
    pub fn put(&mut self, area: Area, x: u16, y: u16, text: &str, style: Style) -> u16 {
        if y >= area.h || x >= area.w {
            return x;
        }
        let inside = self.inside(area);
        let (at_x, at_y) = (area.x.saturating_add(x), area.y.saturating_add(y));
        if at_y >= inside.bottom() || at_x >= inside.right() {
            return x;
        }
        let room = inside.right() - at_x;
        let (end, _) = self.buffer.set_stringn(at_x, at_y, text, usize::from(room), style);
        end - area.x
    }

    /// Writes several pieces one after the other.
    pub fn put_all(&mut self, area: Area, x: u16, y: u16, pieces: &[Piece<'_>]) -> u16 {
        pieces.iter().fold(x, |x, (text, style)| self.put(area, x, y, text, *style))
    }

    /// Writes `text` within `width` columns, ending in `…` if it had to be cut.
    pub fn put_cut(&mut self, area: Area, (x, y): (u16, u16), width: u16, text: &str, style: Style) {
        let width = width.min(area.w.saturating_sub(x));
        let cut = text::truncate(text, usize::from(width));
        self.put(area, x, y, &cut, style);
    }

    /// Writes `text` so that it ends at the right edge of an area's row.
    pub fn put_right(&mut self, area: Area, y: u16, text: &str, style: Style) {
        let width = text::display_width(text) as u16;
        let x = area.w.saturating_sub(width);
        self.put_cut(area, (x, y), area.w - x, text, style);
    }

    /// Puts one sign on one cell.
    pub fn sign(&mut self, area: Area, x: u16, y: u16, sign: char, style: Style) {
        let mut bytes = [0; 4];
        self.put(area, x, y, sign.encode_utf8(&mut bytes), style);
    }

    /// A line downwards between two panes.
    pub fn vertical(&mut self, x: u16, y: u16, rows: u16) {
        let style = self.theme.role(Role::Line);
        let area = Area::new(x, y, 1, rows);
        for row in 0..rows {
            self.put(area, 0, row, "│", style);
        }
    }

    /// A box around an area, with a title.
    pub fn frame(&mut self, area: Area, title: &str) {
        if area.w < 2 || area.h < 2 {
            return;
        }
        let style = self.theme.role(Role::Line);
        let bar = "─".repeat(usize::from(area.w - 2));
        self.put(area, 0, 0, &format!("╭{bar}╮"), style);
        self.put(area, 0, area.h - 1, &format!("╰{bar}╯"), style);
        for y in 1..area.h - 1 {
            self.put(area, 0, y, "│", style);
            self.put(area, area.w - 1, y, "│", style);
        }
        let title = format!(" {title} ");
        self.put_cut(area, (2, 0), area.w.saturating_sub(4), &title, self.theme.role(Role::Title));
    }
}

/// Eight heights of a bar, for a share between 0 and 1.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The bar for a share; outside of 0 to 1 the nearest end.
pub fn bar(share: f64) -> char {
    let at = (share * 8.0).floor().clamp(0.0, 7.0);
    BARS[at as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::ThemeName;

    #[test]
    fn nothing_is_written_outside_of_the_area_or_the_buffer() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 2));
        let mut canvas = Canvas::new(&mut buffer, Theme::new(ThemeName::Dark, true));
        let area = Area::new(1, 0, 3, 1);
        assert_eq!(canvas.put(area, 0, 0, "abcdef", Style::new()), 3);
        canvas.put(area, 0, 1, "below", Style::new());
        canvas.put(Area::new(4, 1, 50, 50), 0, 0, "日本", Style::new());
        canvas.put(Area::new(90, 90, 5, 5), 0, 0, "far", Style::new());
        canvas.style(Area::new(3, 1, 90, 90), Style::new());
        let rows: Vec<String> = (0..2).map(|y| (0..6).map(|x| buffer[(x, y)].symbol().to_owned()).collect()).collect();
        assert_eq!(rows[0], " abc  ");
        assert!(rows[1].starts_with("    日"), "{rows:?}");
    }

    #[test]
    fn bars_clamp() {
        assert_eq!([-1.0, 0.0, 0.5, 0.99, 7.0].map(bar), ['▁', '▁', '▅', '█', '█']);
    }
}
