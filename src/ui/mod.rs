//! Draws `&State`. Knows ratatui, changes nothing.
//!
//! [`draw`] fills a frame; only rows that are visible are laid out. [`svg`] turns a filled buffer into a picture.

mod board;
mod canvas;
mod chart;
mod chrome;
mod compare;
mod doc;
mod overlay;
mod palette;
mod rank;
mod score;
pub mod svg;
mod theme;
mod timeline;

pub use theme::{Role, Theme};

use ratatui::Frame;
use ratatui::buffer::Buffer;

use crate::app::{State, View, geometry};

use canvas::Canvas;

/// Draws the state on the whole frame, and shows the cursor where text is typed.
pub fn draw(frame: &mut Frame, state: &State) {
    let cursor = render(frame.buffer_mut(), state);
    if let Some(at) = cursor {
        frame.set_cursor_position(at);
    }
}

/// Draws the state on an empty buffer; gives the place of the cursor where text is typed. The state's own size is not
/// used: between a resize and its message the buffer is right.
pub fn render(buffer: &mut Buffer, state: &State) -> Option<(u16, u16)> {
    let size = (buffer.area.width, buffer.area.height);
    let theme = Theme::of(state);
    let mut canvas = Canvas::new(buffer, theme);
    canvas.style(geometry::Area::new(0, 0, size.0, size.1), theme.ground());
    let screen = geometry::screen(size);
    chrome::header(&mut canvas, screen.header, state);
    match state.view {
        View::Board => board::draw(&mut canvas, screen.body, state),
        View::Timeline => timeline::draw(&mut canvas, screen.body, state),
        View::Compare => compare::draw(&mut canvas, screen.body, state),
        View::Rank => rank::draw(&mut canvas, screen.body, state),
    }
    chrome::hints(&mut canvas, screen.hints, state);
    if let Some(overlay) = state.overlay {
        overlay::draw(&mut canvas, size, state, overlay);
    }
    chrome::status(&mut canvas, screen.status, state)
}
