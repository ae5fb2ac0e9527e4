//! A critic that does as it is told: deterministic scores, failures and waits for tests of everything above the
//! engine. It never stands in for a model in the program itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{
    ActionScore, Cancel, Critic, CriticInfo, CriticInput, CriticText, Profile, ScoreError, Scores, aggregate, render,
};
use crate::trajectory::{ActionIx, Trajectory};

/// How often a held critic looks whether it was cancelled.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A gate that holds a critic before a reward until it is opened.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets everything through from now on.
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open or the work is cancelled.
    fn pass(&self, cancel: &Cancel) -> Result<(), ScoreError> {
        let mut open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            if cancel.is_cancelled() {
                return Err(ScoreError::Cancelled);
            }
            open = self.0.1.wait_timeout(open, LOOK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// A scripted critic.
#[derive(Debug, Clone)]
pub struct FakeCritic {
    info: CriticInfo,
    profile: Profile,
    rewards: Vec<Option<f64>>,
    failures: BTreeMap<ActionIx, String>,
    gates: BTreeMap<ActionIx, Gate>,
}

impl FakeCritic {
    /// Gives action `i` the reward `rewards[i]`; `None`, and actions beyond the script, stay unscored. Reads by
    /// `profile`, so that [`Critic::inspect`] and the aggregate are the real ones.
    pub fn new(profile: &Profile, rewards: impl IntoIterator<Item = Option<f64>>) -> Self {
        let info = CriticInfo {
            id: "fake".to_owned(),
            device: "none".to_owned(),
            dtype: "none".to_owned(),
            fingerprint: "0000000000000000".to_owned(),
            note: format!("scripted for a test; {}", profile.note()),
            ..CriticInfo::of_profile(profile)
        };
        let (failures, gates) = Default::default();
        Self { info, profile: profile.clone(), rewards: rewards.into_iter().collect(), failures, gates }
    }

    /// Fails with `message` instead of scoring action `at` (after handing out the rewards before it).
    pub fn failing_at(mut self, at: ActionIx, message: impl Into<String>) -> Self {
        self.failures.insert(at, message.into());
        self
    }

    /// Waits at `gate` before scoring action `at`; a cancel ends the wait.
    pub fn waiting_at(mut self, at: ActionIx, gate: &Gate) -> Self {
        self.gates.insert(at, gate.clone());
        self
    }
}

impl Critic for FakeCritic {
    fn info(&self) -> &CriticInfo {
        &self.info
    }

    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        let input = self.inspect(trajectory)?;
        let mut actions = Vec::new();
        for (action, token, _) in input.positions {
            if let Some(gate) = self.gates.get(&action) {
                gate.pass(cancel)?;
            }
            if cancel.is_cancelled() {
                return Err(ScoreError::Cancelled);
            }
            if let Some(message) = self.failures.get(&action) {
                return Err(ScoreError::Engine(message.clone()));
            }
            let reward = self.rewards.get(action).copied().flatten();
            let token_index = reward.is_some().then_some(token);
            let score = ActionScore { action, reward, token_index, after_cut: false };
            partial(score);
            actions.push(score);
        }
        let score = aggregate(&self.profile, &actions);
        Ok(Scores { score, actions, tokens: input.tokens, cut: None, warnings: input.warnings, kept: false })
    }

    /// One "token" a byte: there is no tokenizer here.
    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
        let rendered = render(&self.profile, trajectory);
        let mut positions = Vec::new();
        let mut text = String::new();
        for segment in &rendered.segments {
            if let Some(value) = segment.value {
                let end = text.len() + value.end;
                positions.push((value.action, end.saturating_sub(1), end));
            }
            text.push_str(&segment.text);
        }
        if positions.is_empty() {
            return Err(ScoreError::NoActions);
        }
        Ok(CriticInput { tokens: text.len(), text, positions, cut: None, warnings: rendered.warnings })
    }

    fn text(&self, trajectory: &Trajectory) -> Option<CriticText> {
        Some(render(&self.profile, trajectory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{Role, Step};

    fn run(n_actions: usize) -> Trajectory {
        let mut steps = vec![Step::new(Role::User, "task")];
        for i in 0..n_actions {
            steps.push(Step::new(Role::Assistant, format!("step {i}")));
            steps.push(Step::new(Role::User, "seen"));
        }
        Trajectory { steps, ..Trajectory::default() }
    }

    fn critic(rewards: &[Option<f64>]) -> FakeCritic {
        FakeCritic::new(Profile::by_id("openhands-32b").unwrap(), rewards.iter().copied())
    }

    #[test]
    fn follows_its_script_and_leaves_the_rest_unscored() {
        let mut seen = Vec::new();
        let mut critic = critic(&[Some(0.5), None, Some(0.25)]);
        let scores = critic.score(&run(4), &Cancel::default(), &mut |s| seen.push(s)).unwrap();
        assert_eq!(scores.actions.iter().map(|a| a.reward).collect::<Vec<_>>(), [Some(0.5), None, Some(0.25), None]);
        assert_eq!(seen, scores.actions);
        assert_eq!(scores.score, None, "the last action is unscored, so is the run");
        let input = critic.inspect(&run(4)).unwrap();
        assert_eq!(input.positions.len(), 4);
        assert!(input.positions.iter().all(|&(_, _, end)| input.text[..end].ends_with("<|im_end|>")));
    }

    #[test]
    fn fails_where_told_after_the_rewards_before() {
        let mut seen = 0;
        let mut critic = critic(&[Some(0.5), Some(0.5)]).failing_at(1, "out of memory");
        let outcome = critic.score(&run(2), &Cancel::default(), &mut |_| seen += 1);
        assert_eq!(outcome, Err(ScoreError::Engine("out of memory".into())));
        assert_eq!(seen, 1);
    }

    #[test]
    fn waits_at_a_gate_until_it_opens_or_the_work_is_cancelled() {
        let gate = Gate::default();
        let cancel = Cancel::default();
        let worker = {
            let (gate, cancel) = (gate.clone(), cancel.clone());
            let mut critic = critic(&[Some(0.5), Some(0.75)]).waiting_at(1, &gate);
            std::thread::spawn(move || critic.score(&run(2), &cancel, &mut |_| ()))
        };
        gate.open();
        assert_eq!(worker.join().unwrap().unwrap().score, Some(0.75));

        let mut held = critic(&[Some(0.5)]).waiting_at(0, &Gate::default());
        cancel.cancel();
        assert_eq!(held.score(&run(1), &cancel, &mut |_| ()), Err(ScoreError::Cancelled));
    }

    #[test]
    fn a_run_without_actions_is_no_score() {
        assert_eq!(critic(&[]).score(&run(0), &Cancel::default(), &mut |_| ()), Err(ScoreError::NoActions));
    }
}
