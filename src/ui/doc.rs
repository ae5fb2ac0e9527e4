//! A document on the screen: the visible rows, their gutters and their colours.

use std::ops::Range;

use ratatui::style::Style;

use crate::app::doc::{Doc, DocLine, Paint, Scroll};
use crate::app::geometry::Area;

use super::canvas::Canvas;
use super::theme::{Role, Theme};

/// Draws a document from `from` on.
pub fn draw(canvas: &mut Canvas, area: Area, doc: &Doc, from: Scroll) {
    if area.is_empty() {
        return;
    }
    let gutter = doc.gutter.min(usize::from(area.w)) as u16;
    let (margin, body) = area.split_left(gutter);
    for (y, row) in doc.rows(from, usize::from(area.w), usize::from(area.h)).into_iter().enumerate() {
        let Some(line) = doc.lines.get(row.line) else { continue };
        let y = y as u16;
        let base = canvas.theme.tone(line.tone);
        if base.bg.is_some() {
            canvas.style(Area { y: area.y + y, h: 1, ..area }, base);
        }
        if row.bytes.start == 0 && !line.gutter.is_empty() {
            canvas.put(margin, 0, y, &line.gutter, gutter_style(canvas.theme, base));
        }
        let mut x = 0;
        for (text, style) in pieces(canvas.theme, line, row.bytes) {
            x = canvas.put(body, x, y, text, base.patch(style));
        }
    }
}

fn gutter_style(theme: Theme, base: Style) -> Style {
    let dim = theme.role(Role::Dim);
    if base.bg.is_some() { Style { bg: base.bg, ..base } } else { dim }
}

/// The pieces of one row, each of one style; together they are the row.
fn pieces(theme: Theme, line: &DocLine, row: Range<usize>) -> Vec<(&str, Style)> {
    let mut pieces = Vec::new();
    let mut at = row.start;
    let first = line.spans.partition_point(|(range, _)| range.end <= at);
    for (range, paint) in line.spans.iter().skip(first) {
        if range.start >= row.end {
            break;
        }
        let (from, to) = (range.start.max(at), range.end.min(row.end));
        pieces.push((at..from, Style::new()));
        pieces.push((from..to, style(theme, *paint)));
        at = to;
    }
    pieces.push((at..row.end, Style::new()));
    let text = |(bytes, style): (Range<usize>, Style)| line.text.get(bytes).map(|text| (text, style));
    pieces.into_iter().filter_map(text).filter(|(text, _)| !text.is_empty()).collect()
}

fn style(theme: Theme, paint: Paint) -> Style {
    match paint {
        Paint::Ansi(style) => theme.ansi(style),
        Paint::Syntax(class) => theme.syntax(class),
        Paint::Tone(tone) => theme.tone(tone),
    }
}

/// How much of a document lies above, as a share in per cent, for the row of tabs: `"top"`, `"34%"`, `"end"`, `"all"`.
pub fn position(doc: &Doc, from: Scroll, area: Area) -> String {
    let (width, height) = (usize::from(area.w), usize::from(area.h));
    let more = doc.has_more(from, width, height);
    match (from == Scroll::default(), more) {
        (true, false) => String::new(),
        (true, true) => "more ↓".to_owned(),
        (false, false) => "end".to_owned(),
        (false, true) => format!("{}% ↓", from.line * 100 / doc.lines.len().max(1)),
    }
}
