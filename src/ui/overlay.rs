//! The overlays: keys and meanings, files and remarks.

use crate::app::doc::Tone;
use crate::app::geometry;
use crate::app::overlay::lines;
use crate::app::{Overlay, OverlayKind, State};

use super::canvas::Canvas;
use super::theme::Role;

/// Draws an overlay over whatever is there.
pub fn draw(canvas: &mut Canvas, size: (u16, u16), state: &State, overlay: Overlay) {
    let (outer, inner) = geometry::overlay(size);
    canvas.clear(outer, canvas.theme.ground());
    let title = match overlay.kind {
        OverlayKind::Help => "keys (esc closes)",
        OverlayKind::Files => "files (esc closes)",
    };
    canvas.frame(outer, title);
    let laid_out = lines(state, overlay.kind, usize::from(inner.w));
    let left = laid_out.left as u16;
    for (y, row) in laid_out.rows.iter().skip(overlay.first).take(usize::from(inner.h)).enumerate() {
        let y = y as u16;
        let tone = canvas.theme.tone(row.tone);
        if row.right.is_empty() {
            canvas.put_cut(inner, (0, y), inner.w, &row.left, tone);
            continue;
        }
        let style = if row.tone == Tone::Plain { canvas.theme.role(Role::Key) } else { tone };
        canvas.put(inner, 0, y, &row.left, style);
        canvas.put(inner, left, y, row.right.trim_end(), tone);
    }
    let below = laid_out.rows.len().saturating_sub(overlay.first + usize::from(inner.h));
    if below > 0 && outer.h >= 2 {
        let more = format!(" {below} more ↓ ");
        let area = geometry::Area { w: outer.w.saturating_sub(2), ..outer };
        canvas.put_right(area, outer.h - 1, &more, canvas.theme.role(Role::Dim));
    }
}
