//! From a trajectory to the text a critic reads: one pure function, no tokenizer.
//!
//! Whatever the kind, every action of [`Trajectory::action_steps`] gets exactly one [`super::Value`], in order; the
//! engine relies on it. Values are placed by construction, never searched for in the text, so that a special token
//! quoted inside an observation cannot be mistaken for the end of a turn.

mod calls;
mod chatml;
mod compact;
mod fill;
mod openhands;
mod python;
mod tools;

pub(super) use chatml::END as CHATML_END;
pub use chatml::{ChatMlOptions, ToolWording};
pub use compact::{CompactOptions, vocabulary as compact_vocabulary};

use super::{CriticText, Profile, RenderKind};
use crate::trajectory::Trajectory;

/// Raised whenever a renderer's output changes for the same profile: part of a critic's fingerprint.
pub const VERSION: u32 = 2;

/// What the critic of `profile` reads of `trajectory`, before any cut.
pub fn render(profile: &Profile, trajectory: &Trajectory) -> CriticText {
    match (profile.render.kind, &profile.render.chatml, &profile.render.compact) {
        (RenderKind::ChatmlOpenhands, Some(options), _) => chatml::render(options, &profile.positions, trajectory),
        (RenderKind::Compact, _, Some(options)) => compact::render(options, &profile.positions, trajectory),
        // `Profile::parse` refuses a profile without its renderer's options.
        (kind, ..) => CriticText {
            segments: Vec::new(),
            warnings: vec![format!("the profile {} has no options for {}", profile.id, kind.name())],
        },
    }
}
