//! The overlays: keys and meanings, files and remarks.

use crate::app::doc::Tone;
use crate::app::geometry;
use crate::app::overlay::{OverlayRow, files, help};
use crate::app::{Overlay, OverlayKind, State};
use crate::text;

use super::canvas::Canvas;
use super::theme::Role;

/// Draws an overlay over whatever is there.
pub fn draw(canvas: &mut Canvas, size: (u16, u16), state: &State, overlay: Overlay) {
    let (outer, inner) = geometry::overlay(size);
    canvas.clear(outer, canvas.theme.ground());
    let (title, rows) = match overlay.kind {
        OverlayKind::Help => ("keys (esc closes)", help(state)),
        OverlayKind::Files => ("files (esc closes)", files(state)),
    };
    canvas.frame(outer, title);
    let left = left_width(&rows, inner.w, overlay.kind);
    let mut shown = rows.iter().skip(overlay.first).take(usize::from(inner.h));
    for y in 0..inner.h {
        let Some(row) = shown.next() else { break };
        let tone = canvas.theme.tone(row.tone);
        if row.right.is_empty() {
            canvas.put_cut(inner, (0, y), inner.w, &row.left, tone);
            continue;
        }
        let cut = match overlay.kind {
            OverlayKind::Help => text::truncate(&row.left, usize::from(left.saturating_sub(1))),
            // The end of a path says more than its beginning.
            OverlayKind::Files => text::truncate_start(&row.left, usize::from(left.saturating_sub(1))),
        };
        let style = if row.tone == Tone::Plain { canvas.theme.role(Role::Key) } else { tone };
        canvas.put(inner, 0, y, &cut, style);
        canvas.put_cut(inner, (left, y), inner.w.saturating_sub(left), &row.right, tone);
    }
    let below = rows.len().saturating_sub(overlay.first + usize::from(inner.h));
    if below > 0 && outer.h >= 2 {
        let more = format!(" {below} more ↓ ");
        let area = geometry::Area { w: outer.w.saturating_sub(2), ..outer };
        canvas.put_right(area, outer.h - 1, &more, canvas.theme.role(Role::Dim));
    }
}

fn left_width(rows: &[OverlayRow], width: u16, kind: OverlayKind) -> u16 {
    let longest = rows.iter().filter(|r| !r.right.is_empty()).map(|r| text::display_width(&r.left)).max().unwrap_or(0);
    let most = match kind {
        OverlayKind::Help => width * 2 / 5,
        OverlayKind::Files => width / 2,
    };
    (longest as u16 + 2).min(most)
}
