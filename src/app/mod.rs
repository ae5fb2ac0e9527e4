//! State and the pure `update(state, message) -> effects`. No I/O, no clock, no terminal.
//!
//! The driver (`term`) turns what happens into a [`Msg`], calls `update`, runs the [`Effect`]s and lets `ui` draw the
//! state. Results of the workers carry the generation of their request; what belongs to an older one is ignored.

mod action;
pub mod board;
pub mod compare;
pub mod data;
pub mod detail;
pub mod diff;
pub mod doc;
mod effect;
pub mod facts;
pub mod geometry;
pub mod highlight;
mod key;
mod keymap;
mod msg;
pub mod outline;
pub mod overlay;
pub mod prompt;
pub mod ranking;
pub mod scores;
mod state;
pub mod timeline;
mod update;

pub use action::{ACTIONS, Action, ActionInfo, Context};
pub use effect::{Effect, ExportEntry, Priority};
pub use key::{Key, KeyInput};
pub use keymap::{HelpRow, Keymap};
pub use msg::{Msg, RawRecord};
pub use state::{CriticState, Diffs, Message, Overlay, OverlayKind, Place, State, ThemeName};
pub use update::update;

/// The four screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum View {
    /// All issues.
    #[default]
    Board,
    /// One trajectory.
    Timeline,
    /// The candidates of one issue side by side.
    Compare,
    /// The order of the attempts at one issue.
    Rank,
}

impl View {
    /// All of them, in the order of their number keys.
    pub const ALL: [Self; 4] = [Self::Board, Self::Timeline, Self::Compare, Self::Rank];

    /// The name in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Board => "Board",
            Self::Timeline => "Timeline",
            Self::Compare => "Compare",
            Self::Rank => "Rank",
        }
    }
}
