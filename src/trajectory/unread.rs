//! Trajectories whose steps are not in memory: a folder of gigabytes is held by what identifies each of them.

use std::hash::{BuildHasher as _, Hash as _, Hasher};
use std::sync::Arc;

use super::{Step, Trajectory};

/// Not the standard one: gigabytes go through it. The seed is fixed, so that equal runs are equal in every process.
fn hasher() -> impl Hasher {
    foldhash::quality::FixedState::default().build_hasher()
}

/// What is known of a trajectory whose steps were not read yet, or were read and let go.
/// `formats::open` brings them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body {
    /// The steps are here.
    #[default]
    Whole,
    /// Only found so far: nobody has counted its steps. Identity, patch and label are those of its record's small
    /// members; totals and remarks may still be missing.
    Found,
    /// Read once, steps let go.
    Read {
        /// Number of steps.
        steps: usize,
        /// Number of actions.
        actions: usize,
        /// Hash of the steps' texts: equal for copies of one run.
        content: u64,
    },
}

/// What stays of steps that were let go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// Fingerprints of the actions, in order.
    pub prints: Arc<[u64]>,
    /// [`Step::identity`] and [`Step::said`] of every step; empty where no step has an id of its own.
    pub identities: Vec<(Option<u64>, u64)>,
    /// Which steps are demonstrations or copies.
    pub demos: Vec<u32>,
}

/// Ids at least this long are unique in the world; shorter ones are only unique in their file.
const UNIQUE: usize = 24;

impl Step {
    /// What a step of a session is known by in every file that repeats it: its writer's id; a short id only together
    /// with what the step says. `None` without an id.
    pub fn identity(&self) -> Option<u64> {
        let id = self.id.as_deref()?;
        let mut hasher = hasher();
        id.hash(&mut hasher);
        if id.len() < UNIQUE {
            self.said().hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    /// A step by what it says, as one number.
    pub fn said(&self) -> u64 {
        let mut hasher = hasher();
        (self.role, &self.text).hash(&mut hasher);
        for call in &self.calls {
            (&call.name, &call.arguments).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What an action does, as one number: its calls, or the command found in its text, or the text. Equal for
    /// repetitions.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = hasher();
        if !self.calls.is_empty() {
            for call in &self.calls {
                call.name.hash(&mut hasher);
                call.arguments.trim().hash(&mut hasher);
            }
        } else if let Some(action) = self.action.as_deref() {
            action.trim().hash(&mut hasher);
        } else {
            self.text.trim().hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Bytes of its texts.
    fn size(&self) -> usize {
        let calls: usize = self.calls.iter().map(|c| c.id.len() + c.name.len() + c.arguments.len()).sum();
        let texts = [&self.reasoning, &self.action, &self.thought, &self.timestamp];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + self.text.len() + calls + texts + self.raw.pointer.len()
    }
}

impl Trajectory {
    /// Are its steps in memory? If not, `steps` and `tools` are empty, whatever happened in the run.
    pub fn is_whole(&self) -> bool {
        self.body == Body::Whole
    }

    /// Number of actions as far as anybody knows: `None` for a trajectory that was only found.
    pub fn known_actions(&self) -> Option<usize> {
        match self.body {
            Body::Whole => Some(self.steps.iter().filter(|s| s.is_action()).count()),
            Body::Found => None,
            Body::Read { actions, .. } => Some(actions),
        }
    }

    /// Number of steps as far as anybody knows.
    pub fn known_steps(&self) -> Option<usize> {
        match self.body {
            Body::Whole => Some(self.steps.len()),
            Body::Found => None,
            Body::Read { steps, .. } => Some(steps),
        }
    }

    /// Fingerprints of the actions, in order; `None` for a trajectory that was only found.
    pub fn action_prints(&self) -> Option<Arc<[u64]>> {
        match self.body {
            Body::Whole => Some(self.steps.iter().filter(|s| s.is_action()).map(Step::fingerprint).collect()),
            Body::Found => None,
            Body::Read { .. } => Some(Arc::clone(&self.ledger.prints)),
        }
    }

    /// Hash of the steps' texts: equal for copies of one run; `None` for a trajectory that was only found.
    pub fn content_hash(&self) -> Option<u64> {
        match self.body {
            Body::Whole => Some(hash(&self.steps)),
            Body::Found => None,
            Body::Read { content, .. } => Some(content),
        }
    }

    /// [`Step::identity`] and [`Step::said`] of every step; empty where no step has an id of its own.
    pub fn identities(&self) -> Vec<(Option<u64>, u64)> {
        match self.body {
            Body::Whole if self.steps.iter().any(|s| s.id.is_some()) => {
                self.steps.iter().map(|s| (s.identity(), s.said())).collect()
            }
            Body::Whole | Body::Found => Vec::new(),
            Body::Read { .. } => self.ledger.identities.clone(),
        }
    }

    /// Which steps are demonstrations or copies.
    pub fn copies(&self) -> Vec<usize> {
        if self.is_whole() {
            self.steps.iter().enumerate().filter_map(|(at, step)| step.is_demo.then_some(at)).collect()
        } else {
            self.ledger.demos.iter().map(|at| *at as usize).collect()
        }
    }

    /// Takes back what was known of it before its steps were let go and read again: copies that were found, totals and
    /// remarks.
    pub fn recall(&mut self, known: &Self) {
        for at in known.copies() {
            if let Some(step) = self.steps.get_mut(at) {
                step.is_demo = true;
            }
        }
        self.usage = known.usage;
        self.diagnostics.clone_from(&known.diagnostics);
    }

    /// Bytes its steps take in memory.
    pub fn size(&self) -> usize {
        self.steps.iter().map(Step::size).sum()
    }

    /// Lets the steps go; what is counted of them stays.
    pub fn forget_steps(&mut self) {
        if !self.is_whole() {
            return;
        }
        let prints = self.action_prints().unwrap_or_default();
        let (steps, actions) = (self.steps.len(), prints.len());
        let demos = (0..).zip(&self.steps).filter(|(_, step)| step.is_demo).map(|(at, _)| at).collect();
        self.ledger = Arc::new(Ledger { prints, identities: self.identities(), demos });
        self.body = Body::Read { steps, actions, content: hash(&self.steps) };
        self.steps = Vec::new();
        self.tools = Vec::new();
    }
}

fn hash(steps: &[Step]) -> u64 {
    let mut hasher = hasher();
    for step in steps {
        step.said().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Role;

    #[test]
    fn what_is_counted_outlives_the_steps() {
        let steps = vec![Step::new(Role::User, "task"), Step::new(Role::Assistant, "ls"), Step::new(Role::Tool, "a")];
        let whole = Trajectory { steps, ..Trajectory::default() };
        let mut kept = whole.clone();
        kept.forget_steps();
        assert!(whole.is_whole() && !kept.is_whole());
        assert!(kept.steps.is_empty() && kept.size() == 0 && whole.size() > 7);
        assert_eq!((kept.known_steps(), kept.known_actions()), (Some(3), Some(1)));
        assert_eq!(kept.action_prints(), whole.action_prints());
        assert_eq!(kept.content_hash(), whole.content_hash());
        let again = kept.clone();
        kept.forget_steps();
        assert_eq!(kept, again, "a second time changes nothing");
        let found = Trajectory { body: Body::Found, ..Trajectory::default() };
        assert_eq!((found.known_steps(), found.known_actions(), found.content_hash()), (None, None, None));
    }

    #[test]
    fn other_texts_have_another_hash() {
        let of = |text: &str| Trajectory { steps: vec![Step::new(Role::Tool, text)], ..Trajectory::default() };
        assert_eq!(of("a").content_hash(), of("a").content_hash());
        assert_ne!(of("a").content_hash(), of("b").content_hash());
    }
}
