//! The critic itself: renders a trajectory, finds the tokens to read, runs the windows, hands out rewards.

use super::NUMERICS;
use super::model::{Model, PassError};
use super::plan::{Plan, Unit, Window, plan};
use super::selfcheck::instruction_sets;
use super::tokens::{Encoded, TextTokenizer};
use crate::critic::{
    ActionScore, Cancel, Critic, CriticInfo, CriticInput, CriticText, Cut, CutPolicy, Profile, ScoreError, Scores,
    aggregate, render,
};
use crate::trajectory::{ActionIx, Trajectory};

/// A checkpoint with its tokenizer and the profile that says how to read it.
#[derive(Debug)]
pub(super) struct Scorer {
    pub(super) model: Model,
    pub(super) tokenizer: TextTokenizer,
    pub(super) profile: Profile,
    pub(super) info: CriticInfo,
    /// Id of the token at which values are read.
    pub(super) value_token: u32,
}

/// Where the value of one action is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Read {
    action: ActionIx,
    /// Token of the whole text.
    token: usize,
    /// Byte of the whole text one past that token.
    end: usize,
    /// Index of its unit.
    unit: usize,
}

/// A trajectory made ready for the model.
#[derive(Debug)]
struct Prepared {
    text: String,
    encoded: Encoded,
    reads: Vec<Read>,
    plan: Plan,
    warnings: Vec<String>,
}

impl Critic for Scorer {
    fn info(&self) -> &CriticInfo {
        &self.info
    }

    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        let actions = trajectory.n_actions();
        if actions == 0 {
            return Err(ScoreError::NoActions);
        }
        let mut prepared = self.prepare(trajectory)?;
        let mut scores = unscored(actions);
        let mut odd = 0;
        for window in prepared.plan.windows.clone() {
            let ids = prepared.ids_of(&window);
            let (actions, reads) = prepared.reads_of(&window);
            let (profile, model) = (&self.profile, &mut self.model);
            let mut found = |i: usize, outputs: &[f32]| {
                let outputs: Vec<f64> = outputs.iter().map(|v| f64::from(*v)).collect();
                let reward = profile.activation.apply(&outputs, profile.head.index);
                odd += usize::from(reward.is_none());
                let score =
                    ActionScore { action: actions[i], reward, token_index: Some(reads[i]), after_cut: window.cut };
                if let Some(slot) = scores.get_mut(score.action) {
                    *slot = score;
                    partial(score);
                }
            };
            match model.run(&ids, &reads, &|| cancel.is_cancelled(), &mut found) {
                Ok(()) => {}
                Err(PassError::Stopped) => return Err(ScoreError::Cancelled),
                Err(PassError::Failed(what)) => return Err(ScoreError::Engine(what)),
            }
        }
        if odd > 0 {
            let many = if odd == 1 { "value was" } else { "values were" };
            prepared.warnings.push(format!("{odd} {many} not a finite number: unscored (are the weights sound?)"));
        }
        Ok(self.finish(prepared, scores))
    }

    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
        let actions = trajectory.n_actions();
        if actions == 0 {
            return Err(ScoreError::NoActions);
        }
        let prepared = self.prepare(trajectory)?;
        let cut = self.cut(&prepared, actions);
        let positions =
            prepared.reads.iter().filter(|r| r.unit < prepared.plan.exact_until).map(|r| (r.action, r.token, r.end));
        let positions: Vec<_> = positions.collect();
        // The first window is the beginning of the text; what follows its last value is not read when there is a cut.
        let (text, tokens) = match (&cut, positions.last()) {
            (None, _) => (prepared.text, prepared.encoded.ids.len()),
            (Some(_), Some((_, token, end))) => (prepared.text[..*end].to_string(), token + 1),
            (Some(_), None) => (String::new(), 0),
        };
        Ok(CriticInput { text, tokens, positions, cut, warnings: prepared.warnings })
    }

    fn text(&self, trajectory: &Trajectory) -> Option<CriticText> {
        Some(render(&self.profile, trajectory))
    }

    fn computed(&self) -> u64 {
        self.model.computed()
    }

    fn numerics(&self) -> String {
        // Sums are in another order with other vectors, and with other kernels of attention.
        match self.model.attention() {
            Some(kernel) => format!("engine {NUMERICS} with {kernel}"),
            None => format!("engine {NUMERICS} on {}", instruction_sets().join("+")),
        }
    }

    fn together(&self) -> usize {
        self.model.together()
    }

    fn look_ahead(&mut self, next: &[&Trajectory], cancel: &Cancel) {
        let prepared = next.iter().filter(|t| t.n_actions() > 0).filter_map(|t| self.prepare(t).ok());
        let texts = prepared.flat_map(|prepared| {
            let window = |window: &Window| (prepared.ids_of(window), prepared.reads_of(window).1);
            prepared.plan.windows.iter().map(window).collect::<Vec<_>>()
        });
        let texts = texts.filter(|(_, reads)| !reads.is_empty()).collect();
        self.model.run_ahead(texts, &|| cancel.is_cancelled());
    }
}

impl Scorer {
    fn prepare(&self, trajectory: &Trajectory) -> Result<Prepared, ScoreError> {
        let rendered = render(&self.profile, trajectory);
        let text = rendered.text();
        let encoded = self.tokenizer.encode(&text).map_err(ScoreError::Engine)?;
        let units = units(&rendered);
        let mut warnings = rendered.warnings.clone();
        let reads = self.reads(&rendered, &encoded, &units, &mut warnings);
        let units = tokens_of(&units, &encoded, &reads);
        let plan = plan(&units, self.info.max_tokens, self.profile.cut);
        if plan.windows.iter().any(|w| w.cut) && crosses(&rendered, &encoded) {
            warnings.push("a token crosses the border of two turns: a cut there falls beside the border".into());
        }
        Ok(Prepared { text, encoded, reads, plan, warnings })
    }

    /// Finds the token of every value and checks that it is the one the profile names.
    fn reads(
        &self,
        rendered: &CriticText,
        encoded: &Encoded,
        units: &[ByteUnit],
        warnings: &mut Vec<String>,
    ) -> Vec<Read> {
        let mut reads = Vec::new();
        let (mut at, mut inexact, mut other) = (0, Vec::new(), Vec::new());
        for segment in &rendered.segments {
            if let Some(value) = segment.value {
                let end = at + value.end.min(segment.text.len());
                if let Some((token, exact)) = encoded.token_ending_at(end) {
                    let unit = units.partition_point(|u| u.end < end).min(units.len() - 1);
                    if !exact {
                        inexact.push(value.action);
                    } else if encoded.ids[token] != self.value_token {
                        other.push(value.action);
                    }
                    reads.push(Read { action: value.action, token, end, unit });
                }
            }
            at += segment.text.len();
        }
        let token = &self.profile.positions.token;
        if !inexact.is_empty() {
            let first = numbers(&inexact);
            warnings.push(format!("no token ends where the value is read for {first}: read one token too early"));
        }
        if !other.is_empty() {
            warnings.push(format!("the token read is not {token} for {}", numbers(&other)));
        }
        reads
    }

    fn finish(&self, prepared: Prepared, actions: Vec<ActionScore>) -> Scores {
        let cut = self.cut(&prepared, actions.len());
        let mut warnings = prepared.warnings;
        let missing = actions.len().saturating_sub(prepared.reads.len());
        if missing > 0 {
            warnings
                .push(format!("{missing} of {} actions have no place in the critic's text: unscored", actions.len()));
        }
        let score = aggregate(&self.profile, &actions);
        Scores { score, actions, tokens: prepared.encoded.ids.len(), cut, warnings, kept: false }
    }

    /// What was left out, in words; `None` if all values are those of the whole text.
    fn cut(&self, prepared: &Prepared, actions: usize) -> Option<Cut> {
        let plan = &prepared.plan;
        let exact = |r: &&Read| r.unit < plan.exact_until;
        if prepared.reads.iter().all(|r| exact(&r)) {
            return None;
        }
        let exact_until = prepared.reads.iter().find(|r| !exact(r)).map_or(actions, |r| r.action);
        let unscored: Vec<ActionIx> =
            prepared.reads.iter().filter(|r| plan.unscored.contains(&r.unit)).map(|r| r.action).collect();
        let (tokens, max) = (prepared.encoded.ids.len(), self.info.max_tokens);
        let mut note = format!("{tokens} tokens, at most {max} are read at once: ");
        note.push_str(&match exact_until {
            0 => "no action has its whole past".to_string(),
            1 => "action 1 has its whole past".to_string(),
            n => format!("actions 1 to {n} have their whole past"),
        });
        let later = plan.windows.iter().filter(|w| w.cut).count();
        if later > 0 {
            note.push_str(&format!(
                "; for later ones {}, at least half a window of the newest is kept ({later} more window{})",
                CutPolicy::OldestTurns.describe(),
                if later == 1 { "" } else { "s" }
            ));
        }
        if !unscored.is_empty() {
            note.push_str(&format!("; {} unscored: ", numbers(&unscored)));
            note.push_str(match self.profile.cut {
                CutPolicy::Prefix => "only the beginning is read",
                CutPolicy::OldestTurns => "with system prompt and task too long for one window",
            });
        }
        Some(Cut { exact_until, unscored, note })
    }
}

impl Prepared {
    /// The actions whose values a window gives, and the tokens of the window at which they are read.
    fn ids_of(&self, window: &Window) -> Vec<u32> {
        window.spans.iter().flat_map(|span| &self.encoded.ids[span.clone()]).copied().collect()
    }

    fn reads_of(&self, window: &Window) -> (Vec<ActionIx>, Vec<usize>) {
        let here =
            self.reads.iter().filter(|r| window.units.contains(&r.unit) && !self.plan.unscored.contains(&r.unit));
        here.filter_map(|r| Some((r.action, window.position(r.token)?))).unzip()
    }
}

/// Segments that are cut together, as bytes of the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByteUnit {
    start: usize,
    end: usize,
    turn: usize,
    pinned: bool,
}

/// Neighbouring segments of one turn, pinned apart from the rest.
fn units(rendered: &CriticText) -> Vec<ByteUnit> {
    let mut units: Vec<ByteUnit> = Vec::new();
    let mut at = 0;
    for segment in &rendered.segments {
        let end = at + segment.text.len();
        match units.last_mut() {
            Some(last) if last.turn == segment.turn && last.pinned == segment.pinned => last.end = end,
            _ => units.push(ByteUnit { start: at, end, turn: segment.turn, pinned: segment.pinned }),
        }
        at = end;
    }
    units
}

/// The same units as tokens. A token belongs to the unit in which it begins.
fn tokens_of(units: &[ByteUnit], encoded: &Encoded, reads: &[Read]) -> Vec<Unit> {
    let value_end = |unit| reads.iter().filter(|r| r.unit == unit).map(|r| r.token + 1).max();
    let to_unit = |(i, unit): (usize, &ByteUnit)| Unit {
        tokens: encoded.tokens_before(unit.start)..encoded.tokens_before(unit.end),
        value_end: value_end(i),
        pinned: unit.pinned,
    };
    units.iter().enumerate().map(to_unit).collect()
}

/// Does any token reach over the end of a segment?
fn crosses(rendered: &CriticText, encoded: &Encoded) -> bool {
    let mut at = 0;
    rendered.segments.iter().any(|segment| {
        at += segment.text.len();
        let next = encoded.tokens_before(at);
        next > 0 && encoded.spans[next - 1].1 > at
    })
}

/// All actions without a reward.
fn unscored(actions: usize) -> Vec<ActionScore> {
    (0..actions).map(|action| ActionScore { action, reward: None, token_index: None, after_cut: false }).collect()
}

/// "action 3", "actions 3, 4 and 7", "actions 3, 4, 5 and 12 more": counted from 1, as on screen.
fn numbers(actions: &[ActionIx]) -> String {
    let names: Vec<String> = actions.iter().take(3).map(|a| (a + 1).to_string()).collect();
    match (actions.len(), names.as_slice()) {
        (1, [one]) => format!("action {one}"),
        (n, names) if n > 3 => format!("actions {} and {} more", names.join(", "), n - 3),
        (_, [head @ .., last]) => format!("actions {} and {last}", head.join(", ")),
        _ => "no action".into(),
    }
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
