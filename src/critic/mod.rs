//! What a score means: which text a critic reads, where its value is read, on which scale. No model code here.
//!
//! ```text
//! Trajectory --render--> CriticText (segments) --engine: tokens, windows--> Scores (one reward an action)
//! ```

mod aggregate;
mod cached;
pub mod display;
pub mod fake;
mod lazy;
mod listing;
mod profile;
mod render;
pub mod store;

pub use aggregate::aggregate;
pub use cached::Cached;
pub use lazy::{Open, Sketch, open_known};
pub use listing::Listing;
pub use profile::{
    Activation, Aggregate, Answer, CutPolicy, Head, Positions, Profile, ProfileError, Render, RenderKind, Scale,
    Wording,
};
pub use render::{ChatMlOptions, CompactOptions, ToolWording, VERSION as RENDER_VERSION, compact_vocabulary, render};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::trajectory::{ActionIx, Trajectory};

/// A piece of the critic's input: a turn, or the part of one that is kept or cut together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segment {
    /// The text, special tokens written out (`<|im_start|>`): the engine tokenises the concatenation of segments.
    pub text: String,
    /// Action whose value is read in this segment.
    pub value: Option<Value>,
    /// Never cut by the budget (system prompt, task).
    pub pinned: bool,
    /// Segments of one exchange (an action and its observations) share a number and are cut together.
    pub turn: usize,
}

/// Where in a segment a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// The action it belongs to.
    pub action: ActionIx,
    /// Byte offset in the segment's text one past the token whose value is read (for the OpenHands critic: the end
    /// of the `<|im_end|>` that closes the assistant turn).
    pub end: usize,
}

/// A trajectory as a critic reads it, before any cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CriticText {
    /// The pieces, in order; their concatenation is the whole text.
    pub segments: Vec<Segment>,
    /// What the rendering could not give the critic that it was trained with (no tools in the file, …): one line each.
    pub warnings: Vec<String>,
}

impl CriticText {
    /// The whole text.
    pub fn text(&self) -> String {
        self.segments.iter().map(|s| s.text.as_str()).collect()
    }

    /// Number of values that will be read.
    pub fn n_values(&self) -> usize {
        self.segments.iter().filter(|s| s.value.is_some()).count()
    }
}

/// What was left out of the input so that it fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut {
    /// Actions up to and excluding this one have their exact value (nothing before them was cut).
    pub exact_until: ActionIx,
    /// Actions that got no value at all.
    pub unscored: Vec<ActionIx>,
    /// One sentence: which policy, how many tokens, what was dropped.
    pub note: String,
}

/// One reward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActionScore {
    /// The action.
    pub action: ActionIx,
    /// The critic's number on its own scale; `None` = unscored (shown `-`, never 0). Never NaN.
    pub reward: Option<f64>,
    /// Index of the token the value was read at, in the window it was read in.
    pub token_index: Option<usize>,
    /// Was something before this action cut from the critic's input?
    pub after_cut: bool,
}

/// The result for one trajectory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scores {
    /// One entry an action, in order, always as many as the trajectory has actions.
    pub actions: Vec<ActionScore>,
    /// The trajectory's score by the profile's aggregate (last action's reward for the OpenHands critic).
    pub score: Option<f64>,
    /// Tokens of the whole rendered text.
    pub tokens: usize,
    /// What was cut, if anything.
    pub cut: Option<Cut>,
    /// What the critic was not given (from the rendering) and what went wrong while scoring: one line each.
    pub warnings: Vec<String>,
    /// Taken from what was kept on disk (see [`store`]), not computed now.
    pub kept: bool,
}

/// A fall of the reward between neighbouring scored actions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drop {
    /// The action that has the lower reward.
    pub action: ActionIx,
    /// Reward before.
    pub from: f64,
    /// Reward at the action.
    pub to: f64,
}

impl Drop {
    /// How far it fell (positive).
    pub fn size(&self) -> f64 {
        self.from - self.to
    }
}

/// Who made a score: everything needed to say what a number is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticInfo {
    /// Name on screen and in JSON (`"critic-mini"`, the model folder's name).
    pub id: String,
    /// Id of the profile.
    pub profile: String,
    /// `"cpu"`, `"cuda:0"`, `"metal:0"`.
    pub device: String,
    /// `"f32"`, `"bf16"`, …
    pub dtype: String,
    /// First 16 hex digits of blake3 over weights, config, tokenizer and profile.
    pub fingerprint: String,
    /// Most tokens of one window.
    pub max_tokens: usize,
    /// One line on whose words and scale these are (`"own wording of the tool text; raw regression output"`).
    pub note: String,
    /// Range, discount and meaning of the number, from the profile.
    pub scale: Scale,
    /// Whose words the fixed parts of the rendered text are.
    pub wording: Wording,
    /// Smallest fall of the reward that counts as a drop, from the profile.
    pub drop_threshold: f64,
    /// Folder of the model; `None` for the embedded one.
    pub path: Option<PathBuf>,
}

impl CriticInfo {
    /// All that the profile says; model, device and fingerprint are the caller's to fill in.
    pub fn of_profile(profile: &Profile) -> Self {
        Self {
            profile: profile.id.clone(),
            max_tokens: profile.max_tokens,
            note: profile.note(),
            scale: profile.scale.clone(),
            wording: profile.render.wording,
            drop_threshold: profile.drop_threshold,
            ..Self::default()
        }
    }
}

/// Set from any thread; looked at between chunks of work.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Was it asked to stop?
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why there is no score.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// The work was cancelled: not an error to show.
    #[error("cancelled")]
    Cancelled,
    /// The trajectory has no actions.
    #[error("nothing to score: the trajectory has no actions")]
    NoActions,
    /// The model or its tokenizer failed; one line for a person.
    #[error("{0}")]
    Engine(String),
}

/// The text and the token positions of one trajectory: what `inspect` and the Timeline show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CriticInput {
    /// The bytes the critic gets (of the first window).
    pub text: String,
    /// Number of tokens.
    pub tokens: usize,
    /// `(action, token index, byte offset one past that token in text)` in order.
    pub positions: Vec<(ActionIx, usize, usize)>,
    /// What was cut.
    pub cut: Option<Cut>,
    /// See [`CriticText::warnings`].
    pub warnings: Vec<String>,
}

/// A reward model. Synchronous; owned by one thread.
pub trait Critic: Send {
    /// Who scores.
    fn info(&self) -> &CriticInfo;

    /// Scores every action of `trajectory`. Each reward is handed to `partial` as soon as it is known, so that a
    /// timeline fills from the left; the result holds them all.
    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError>;

    /// What it reads, without running it.
    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError>;

    /// The text its scores follow from, before tokens and cuts: same text, same critic, same scores. `None` = it
    /// cannot say; such scores are not kept on disk.
    fn text(&self, _trajectory: &Trajectory) -> Option<CriticText> {
        None
    }

    /// What decides the last digits of a value besides weights, types and text: versions, kernels, type of the cache.
    fn numerics(&self) -> String {
        String::new()
    }

    /// Tokens that went through the model so far.
    fn computed(&self) -> u64 {
        0
    }

    /// How many trajectories it computes faster together than one after the other; 1 = it does not.
    fn together(&self) -> usize {
        1
    }

    /// Computes together what is scored next, so that scoring each is a look-up. What fails here is computed, and
    /// reported, when it is scored.
    fn look_ahead(&mut self, _next: &[&Trajectory], _cancel: &Cancel) {}
}

/// Every fall of at least `at_least` between neighbouring scored actions, largest first (earlier first among equals).
pub fn drops(scores: &[ActionScore], at_least: f64) -> Vec<Drop> {
    let mut found = Vec::new();
    let mut before: Option<f64> = None;
    for score in scores {
        let Some(to) = score.reward else { continue };
        if let Some(from) = before
            && from - to >= at_least
            && from > to
        {
            found.push(Drop { action: score.action, from, to });
        }
        before = Some(to);
    }
    found.sort_by(|a, b| b.size().total_cmp(&a.size()).then(a.action.cmp(&b.action)));
    found
}
