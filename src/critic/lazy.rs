//! A critic that is known from before and loaded only when something is to be computed: a second look at a folder
//! needs no weights.

use std::cell::{Cell, OnceCell};

use serde::{Deserialize, Serialize};

use super::store::Store;
use super::{ActionScore, Cancel, Critic, CriticInfo, CriticInput, CriticText, Profile, ScoreError, Scores, render};
use crate::trajectory::Trajectory;

/// Loads the critic; the error is one line.
pub type Open = Box<dyn FnOnce() -> Result<Box<dyn Critic>, String> + Send>;

/// What can be told of a critic without its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    /// A text that is another one whenever files, options or program are: what is known holds as long as it is the
    /// same.
    pub stamp: String,
    /// How it is read.
    pub profile: Profile,
}

/// What is kept of a critic that was loaded once. The rest is the profile's.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    id: String,
    device: String,
    dtype: String,
    fingerprint: String,
    max_tokens: usize,
    note: String,
    path: Option<std::path::PathBuf>,
    numerics: String,
}

/// Opens a critic: by what `store` knows of it, else by loading it, which is remembered. Without a sketch it is loaded.
///
/// # Errors
/// It had to be loaded and could not: one line. What is known from before is loaded later, and fails then.
pub fn open_known(store: &Store, sketch: Option<Sketch>, open: Open) -> Result<Box<dyn Critic>, String> {
    let Some(sketch) = sketch else { return open() };
    if let Some(known) = store.recall(&sketch.stamp).and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(Box::new(Lazy::new(known, sketch.profile, open)));
    }
    let critic = open()?;
    let CriticInfo { id, device, dtype, fingerprint, max_tokens, note, path, .. } = critic.info().clone();
    let known = Known { id, device, dtype, fingerprint, max_tokens, note, path, numerics: critic.numerics() };
    match serde_json::to_string(&known) {
        Ok(text) => store.remember(&sketch.stamp, &text),
        Err(error) => tracing::warn!("a critic is not remembered: {error}"),
    }
    Ok(critic)
}

struct Lazy {
    info: CriticInfo,
    numerics: String,
    profile: Profile,
    open: Cell<Option<Open>>,
    loaded: OnceCell<Result<Box<dyn Critic>, String>>,
}

impl Lazy {
    fn new(known: Known, profile: Profile, open: Open) -> Self {
        let Known { id, device, dtype, fingerprint, max_tokens, note, path, numerics } = known;
        let of_profile = CriticInfo::of_profile(&profile);
        let info = CriticInfo { id, device, dtype, fingerprint, max_tokens, note, path, ..of_profile };
        Self { info, numerics, profile, open: Cell::new(Some(open)), loaded: OnceCell::new() }
    }

    /// The critic, if it is loaded and sound.
    fn there(&self) -> Option<&dyn Critic> {
        self.loaded.get()?.as_ref().ok().map(AsRef::as_ref)
    }

    fn load(&self) -> &Result<Box<dyn Critic>, String> {
        self.loaded.get_or_init(|| self.open.take().map_or_else(|| Err("it was opened before".into()), |open| open()))
    }
}

impl Critic for Lazy {
    fn info(&self) -> &CriticInfo {
        self.there().map_or(&self.info, |critic| critic.info())
    }

    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        if cancel.is_cancelled() {
            return Err(ScoreError::Cancelled);
        }
        self.load();
        match self.loaded.get_mut() {
            Some(Ok(critic)) => critic.score(trajectory, cancel, partial),
            Some(Err(why)) => Err(ScoreError::Engine(why.clone())),
            None => Err(ScoreError::Engine("the critic was not loaded".into())),
        }
    }

    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
        match self.load() {
            Ok(critic) => critic.inspect(trajectory),
            Err(why) => Err(ScoreError::Engine(why.clone())),
        }
    }

    fn text(&self, trajectory: &Trajectory) -> Option<CriticText> {
        Some(render(&self.profile, trajectory))
    }

    fn numerics(&self) -> String {
        self.there().map_or_else(|| self.numerics.clone(), Critic::numerics)
    }

    fn computed(&self) -> u64 {
        self.there().map_or(0, Critic::computed)
    }

    fn together(&self) -> usize {
        self.there().map_or(1, Critic::together)
    }

    fn look_ahead(&mut self, next: &[&Trajectory], cancel: &Cancel) {
        if let Some(Ok(critic)) = self.loaded.get_mut() {
            critic.look_ahead(next, cancel);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::Cached;
    use super::super::fake::FakeCritic;
    use super::*;
    use crate::trajectory::{Role, Step};

    fn run(n_actions: usize) -> Trajectory {
        let mut steps = vec![Step::new(Role::User, "task")];
        steps.extend((0..n_actions).map(|i| Step::new(Role::Assistant, format!("step {i}"))));
        Trajectory { steps, ..Trajectory::default() }
    }

    fn profile() -> &'static Profile {
        Profile::by_id("openhands-32b").unwrap()
    }

    struct Setup {
        store: Arc<Store>,
        loads: Arc<AtomicUsize>,
        _folder: tempfile::TempDir,
    }

    impl Setup {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Arc::new(Store::new(folder.path().join("scores")));
            Self { store, loads: Arc::default(), _folder: folder }
        }

        fn open(&self, stamp: &str, works: bool) -> Result<Cached, String> {
            let loads = Arc::clone(&self.loads);
            let open: Open = Box::new(move || {
                loads.fetch_add(1, Ordering::Relaxed);
                let fake = FakeCritic::new(profile(), [Some(0.5), Some(0.25)]);
                if works { Ok(Box::new(fake)) } else { Err("model.safetensors: gone".into()) }
            });
            let sketch = Sketch { stamp: stamp.into(), profile: profile().clone() };
            open_known(&self.store, Some(sketch), open).map(|critic| Cached::new(critic, Arc::clone(&self.store)))
        }

        fn loads(&self) -> usize {
            self.loads.load(Ordering::Relaxed)
        }
    }

    fn score(critic: &mut Cached, n_actions: usize) -> Result<Scores, ScoreError> {
        critic.score(&run(n_actions), &Cancel::default(), &mut |_| {})
    }

    #[test]
    fn what_is_known_and_scored_needs_no_loading_and_what_is_new_loads_once() {
        let setup = Setup::new();
        let mut first = setup.open("files of today", true).unwrap();
        let (info, scores) = (first.info().clone(), score(&mut first, 2).unwrap());
        assert_eq!(setup.loads(), 1);
        let mut second = setup.open("files of today", true).unwrap();
        assert_eq!(second.info(), &info, "all of it, without the model");
        let kept = score(&mut second, 2).unwrap();
        assert_eq!((kept.kept, setup.loads()), (true, 1));
        assert_eq!(Scores { kept: false, ..kept }, scores);
        assert!(!score(&mut second, 1).unwrap().kept && !score(&mut second, 3).unwrap().kept);
        assert_eq!(setup.loads(), 2);
        assert!(second.inspect(&run(1)).is_ok());
        assert_eq!((second.info(), setup.loads()), (&info, 2));
        assert!(setup.open("files of tomorrow", true).is_ok());
        assert_eq!(setup.loads(), 3, "changed files are another critic");
    }

    #[test]
    fn one_that_does_not_load_fails_when_it_is_needed_and_not_before() {
        let setup = Setup::new();
        let mut first = setup.open("files", true).unwrap();
        score(&mut first, 2).unwrap();
        let mut broken = setup.open("files", false).unwrap();
        assert!(score(&mut broken, 2).unwrap().kept);
        for _ in 0..2 {
            assert_eq!(score(&mut broken, 1), Err(ScoreError::Engine("model.safetensors: gone".into())));
        }
        assert!(broken.inspect(&run(1)).is_err());
        assert_eq!(setup.loads(), 2, "it is not tried again and again");
        assert!(setup.open("never seen", false).is_err());
    }
}
