//! The whole state of the application. Plain data: `update` changes it, `ui` draws it.

use std::collections::{HashMap, VecDeque};

use crate::critic::CriticInfo;
use crate::trajectory::IssueId;

use super::View;
use super::board::Board;
use super::compare::Compare;
use super::data::{AttemptId, Data};
use super::diff::DiffDoc;
use super::highlight::HighlightRequest;
use super::keymap::Keymap;
use super::prompt::Prompt;
use super::ranking::RankState;
use super::scores::ScoreBook;
use super::timeline::Timeline;

/// Which set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ThemeName {
    /// Light text on a dark ground.
    #[default]
    Dark,
    /// Dark text on a light ground.
    Light,
}

/// What covers the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverlayKind {
    /// The keys.
    Help,
    /// The files, and why some were not understood.
    Files,
}

/// An overlay and how far it is scrolled, in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlay {
    /// Which.
    pub kind: OverlayKind,
    /// First row shown.
    pub first: usize,
}

/// A line said to the person until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The line, safe to draw.
    pub text: String,
    /// Something went wrong.
    pub error: bool,
}

/// Where the critic is.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum CriticState {
    /// Nobody asked for one.
    None,
    /// It is being opened.
    #[default]
    Opening,
    /// It answers.
    Ready(Box<CriticInfo>),
    /// It cannot be used: one line.
    Failed(String),
}

/// Most diffs kept laid out besides those on the Compare screen.
const SHELF: usize = 16;

/// Diffs laid out, by id; the oldest go first.
#[derive(Debug, Clone, Default)]
pub struct Diffs {
    by_id: HashMap<String, DiffDoc>,
    order: VecDeque<String>,
    limit: usize,
}

impl Diffs {
    /// Lays a patch out unless it is there; gives its id, and what to ask the highlight worker for if it has no
    /// syntax classes yet.
    pub fn add(&mut self, patch: Option<&str>) -> (String, Option<HighlightRequest>) {
        let id = patch.map(crate::patch::sha256).unwrap_or_default();
        if let Some(diff) = self.by_id.get(&id) {
            let request = if diff.coloured { None } else { diff.highlight_request() };
            return (id, request);
        }
        let diff = DiffDoc::of(patch);
        let request = diff.highlight_request();
        self.by_id.insert(id.clone(), diff);
        self.order.push_back(id.clone());
        while self.order.len() > self.limit.max(SHELF) {
            if let Some(old) = self.order.pop_front() {
                self.by_id.remove(&old);
            }
        }
        (id, request)
    }

    /// Makes room for so many at once.
    pub fn reserve(&mut self, diffs: usize) {
        self.limit = diffs + SHELF;
    }

    /// A diff.
    pub fn get(&self, id: &str) -> Option<&DiffDoc> {
        self.by_id.get(id)
    }

    /// A diff, to colour it.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut DiffDoc> {
        self.by_id.get_mut(id)
    }
}

/// Where one is, by names that hold over a re-join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Issue.
    pub issue: IssueId,
    /// Attempt, if one is meant.
    pub attempt: Option<AttemptId>,
}

/// The whole state.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The screen shown.
    pub view: View,
    /// Screens to go back to, the latest last.
    pub history: Vec<View>,
    /// What covers it.
    pub overlay: Option<Overlay>,
    /// What waits at the bottom.
    pub prompt: Option<Prompt>,
    /// What was last said.
    pub message: Option<Message>,
    /// Colours.
    pub theme: ThemeName,
    /// No colours at all: attributes and signs only (`NO_COLOR`).
    pub no_color: bool,
    /// The terminal knows more than 256 colours (`COLORTERM`).
    pub true_color: bool,
    /// Keys.
    pub keymap: Keymap,
    /// What was loaded.
    pub data: Data,
    /// Who scores.
    pub critic: CriticState,
    /// Number of the current critic's requests; answers to older ones are ignored.
    pub generation: u64,
    /// What it said.
    pub scores: ScoreBook,
    /// Diffs laid out.
    pub diffs: Diffs,
    /// The Board.
    pub board: Board,
    /// The Timeline.
    pub timeline: Timeline,
    /// Compare.
    pub compare: Compare,
    /// Rank.
    pub ranking: RankState,
}

impl State {
    /// The state at the start: nothing loaded yet, the critic being opened.
    pub fn new(keymap: Keymap, theme: ThemeName, no_color: bool) -> Self {
        let mut state = Self { theme, no_color, keymap, ..Self::default() };
        state.data.loading = true;
        state
    }

    /// Is anything still to come that will change the screen by itself?
    pub fn busy(&self) -> bool {
        let (finished, all) = self.scores.progress();
        let scoring = matches!(self.critic, CriticState::Ready(_)) && finished < all;
        self.data.loading || self.critic == CriticState::Opening || scoring
    }

    /// Who scores, if it answers.
    pub fn critic_info(&self) -> Option<&CriticInfo> {
        match &self.critic {
            CriticState::Ready(info) => Some(info),
            CriticState::None | CriticState::Opening | CriticState::Failed(_) => None,
        }
    }

    /// Says something until the next key.
    pub(super) fn say(&mut self, text: impl AsRef<str>) {
        self.message = Some(Message { text: crate::text::one_line(text.as_ref()), error: false });
    }

    /// Says that something went wrong.
    pub(super) fn complain(&mut self, text: impl AsRef<str>) {
        self.message = Some(Message { text: crate::text::one_line(text.as_ref()), error: true });
    }

    /// Shows another screen, to come back from.
    pub(super) fn go(&mut self, view: View) {
        if self.view == view {
            return;
        }
        self.history.retain(|v| *v != view && *v != self.view);
        if view == View::Board {
            self.history.clear();
        } else {
            self.history.push(self.view);
        }
        self.view = view;
    }
}
