//! A critic that computes nothing twice: what was scored before is taken from a [`Store`].

use std::sync::Arc;

use super::store::{Key, Store};
use super::{ActionScore, Cancel, Critic, CriticInfo, CriticInput, CriticText, ScoreError, Scores};
use crate::trajectory::Trajectory;

/// A critic with a store before it. Only whole results are kept: nothing cancelled, nothing failed.
pub struct Cached {
    inner: Box<dyn Critic>,
    store: Arc<Store>,
}

impl Cached {
    /// Puts `store` before `inner`.
    pub fn new(inner: Box<dyn Critic>, store: Arc<Store>) -> Self {
        Self { inner, store }
    }

    /// The key of a trajectory's scores: rendering is all it takes. `None` = the critic does not say what it reads.
    fn key(&self, trajectory: &Trajectory, actions: usize) -> Option<Key> {
        let text = self.inner.text(trajectory)?;
        let CriticInfo { fingerprint, device, dtype, max_tokens, .. } = self.inner.info();
        // cuda:0 and cuda:1 compute the same.
        let device = device.split(':').next().unwrap_or_default();
        let numerics = self.inner.numerics();
        let version = env!("CARGO_PKG_VERSION");
        let who = format!("{version} {fingerprint} {device} {dtype} {numerics} at most {max_tokens} tokens");
        Some(Key::new(&who, actions, &text))
    }
}

impl Critic for Cached {
    fn info(&self) -> &CriticInfo {
        self.inner.info()
    }

    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        let actions = trajectory.n_actions();
        let key = if actions == 0 { None } else { self.key(trajectory, actions) };
        let Some(key) = key else { return self.inner.score(trajectory, cancel, partial) };
        if let Some(scores) = self.store.get(&key) {
            for action in scores.actions.iter().filter(|a| a.token_index.is_some()) {
                if cancel.is_cancelled() {
                    return Err(ScoreError::Cancelled);
                }
                partial(*action);
            }
            return Ok(scores);
        }
        let scores = self.inner.score(trajectory, cancel, partial)?;
        // Not under the key from before: a critic that was only known by then may have turned out to be another.
        if let Some(key) = self.key(trajectory, actions) {
            self.store.put(&key, &scores);
        }
        Ok(scores)
    }

    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
        self.inner.inspect(trajectory)
    }

    fn text(&self, trajectory: &Trajectory) -> Option<CriticText> {
        self.inner.text(trajectory)
    }

    fn numerics(&self) -> String {
        self.inner.numerics()
    }

    fn computed(&self) -> u64 {
        self.inner.computed()
    }

    fn together(&self) -> usize {
        self.inner.together()
    }

    fn look_ahead(&mut self, next: &[&Trajectory], cancel: &Cancel) {
        let kept = |trajectory: &Trajectory| {
            let key = self.key(trajectory, trajectory.n_actions());
            key.is_some_and(|key| self.store.get(&key).is_some())
        };
        let unknown: Vec<&Trajectory> = next.iter().filter(|t| !kept(t)).copied().collect();
        self.inner.look_ahead(&unknown, cancel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::fake::FakeCritic;
    use super::super::{Profile, store};
    use super::*;
    use crate::trajectory::{Role, Step};

    fn run(n_actions: usize) -> Trajectory {
        let mut steps = vec![Step::new(Role::User, "task")];
        steps.extend((0..n_actions).map(|i| Step::new(Role::Assistant, format!("step {i}"))));
        Trajectory { steps, ..Trajectory::default() }
    }

    /// Counts how often the real work is done; its identity can be set.
    struct Counting {
        inner: FakeCritic,
        info: CriticInfo,
        runs: Arc<Mutex<usize>>,
        numerics: &'static str,
    }

    impl Critic for Counting {
        fn info(&self) -> &CriticInfo {
            &self.info
        }

        fn score(
            &mut self,
            trajectory: &Trajectory,
            cancel: &Cancel,
            partial: &mut dyn FnMut(ActionScore),
        ) -> Result<Scores, ScoreError> {
            *self.runs.lock().unwrap() += 1;
            self.inner.score(trajectory, cancel, partial)
        }

        fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
            self.inner.inspect(trajectory)
        }

        fn text(&self, trajectory: &Trajectory) -> Option<CriticText> {
            self.inner.text(trajectory)
        }

        fn numerics(&self) -> String {
            self.numerics.to_owned()
        }
    }

    struct Bench {
        folder: tempfile::TempDir,
        runs: Arc<Mutex<usize>>,
    }

    impl Bench {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), runs: Arc::default() }
        }

        fn counting(&self, inner: FakeCritic) -> Counting {
            Counting { info: inner.info().clone(), inner, runs: Arc::clone(&self.runs), numerics: "plain" }
        }

        fn cached(&self, critic: Counting) -> Cached {
            Cached::new(Box::new(critic), Arc::new(Store::new(self.folder.path().to_owned())))
        }

        fn runs(&self) -> usize {
            *self.runs.lock().unwrap()
        }
    }

    fn fake(rewards: &[Option<f64>]) -> FakeCritic {
        FakeCritic::new(Profile::by_id("openhands-32b").unwrap(), rewards.iter().copied())
    }

    fn score(critic: &mut dyn Critic, trajectory: &Trajectory) -> (Result<Scores, ScoreError>, Vec<ActionScore>) {
        let mut seen = Vec::new();
        let scores = critic.score(trajectory, &Cancel::default(), &mut |s| seen.push(s));
        (scores, seen)
    }

    #[test]
    fn the_second_time_nothing_is_computed_and_the_rewards_are_the_same_bits() {
        let bench = Bench::new();
        let rewards = [Some(0.1 + 0.2), None, Some(-0.0), Some(f64::MIN_POSITIVE / 4.0)];
        let (first, seen) = score(&mut bench.cached(bench.counting(fake(&rewards))), &run(4));
        let mut again = bench.cached(bench.counting(fake(&[])));
        let (second, seen_again) = score(&mut again, &run(4));
        assert_eq!(bench.runs(), 1);
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!((first.kept, second.kept), (false, true));
        let bits = |s: &Scores| s.actions.iter().map(|a| a.reward.map(f64::to_bits)).collect::<Vec<_>>();
        assert_eq!(bits(&first), bits(&second));
        assert_eq!(first, Scores { kept: false, ..second });
        let scored: Vec<ActionScore> = seen.into_iter().filter(|s| s.token_index.is_some()).collect();
        assert_eq!(seen_again, scored);
        assert_eq!(score(&mut again, &run(3)).0.unwrap().actions.len(), 3, "another trajectory is another key");
        assert_eq!(bench.runs(), 2);
    }

    #[test]
    fn another_critic_type_limit_or_kernel_is_another_key() {
        let bench = Bench::new();
        let change: [fn(&mut Counting); 6] = [
            |_| {},
            |c| c.info.fingerprint = "1111111111111111".into(),
            |c| c.info.dtype = "bf16".into(),
            |c| c.info.max_tokens = 4096,
            |c| c.info.device = "cuda:0".into(),
            |c| c.numerics = "kv f16",
        ];
        for (i, change) in change.iter().enumerate() {
            let mut counting = bench.counting(fake(&[Some(0.5)]));
            change(&mut counting);
            assert!(!score(&mut bench.cached(counting), &run(1)).0.unwrap().kept);
            assert_eq!(bench.runs(), i + 1);
        }
        let mut other_card = bench.counting(fake(&[]));
        other_card.info.device = "cuda:1".into();
        assert!(score(&mut bench.cached(other_card), &run(1)).0.unwrap().kept, "all cards compute the same");
        assert_eq!(store::usage(bench.folder.path()).entries, 6);
    }

    #[test]
    fn what_failed_or_was_cancelled_is_not_kept() {
        let bench = Bench::new();
        let failing = fake(&[Some(0.5); 3]).failing_at(1, "out of memory");
        let (result, seen) = score(&mut bench.cached(bench.counting(failing)), &run(3));
        assert_eq!((result.is_err(), seen.len()), (true, 1));
        let cancel = Cancel::default();
        let stopped = bench.cached(bench.counting(fake(&[Some(0.5); 3]))).score(&run(3), &cancel, &mut |s| {
            if s.action == 1 {
                cancel.cancel();
            }
        });
        assert_eq!(stopped, Err(ScoreError::Cancelled));
        assert_eq!(store::usage(bench.folder.path()), store::Usage::default());
        let (whole, _) = score(&mut bench.cached(bench.counting(fake(&[Some(0.5); 3]))), &run(3));
        assert_eq!((whole.unwrap().kept, bench.runs()), (false, 3));
    }

    #[test]
    fn without_actions_the_store_is_not_asked() {
        let bench = Bench::new();
        let mut cached = bench.cached(bench.counting(fake(&[])));
        assert_eq!(score(&mut cached, &run(0)).0, Err(ScoreError::NoActions));
        assert_eq!(cached.store.report(), store::Report::default());
    }
}
