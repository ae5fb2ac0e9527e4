//! The critic's thread with a real critic: what it computes of files that grow and of attempts that come in turn, and
//! how soon it stops.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};

use super::*;
use crate::critic::{ActionScore, CriticInfo, CriticInput, Scores};
use crate::engine::{self, CriticSpec, EngineOptions};
use crate::trajectory::{Role, SharedTrajectory, Source, Step, Trajectory};

const TIMEOUT: Duration = Duration::from_mins(5);

/// Reports how many tokens went through the model for each request.
struct Watched {
    inner: Box<dyn Critic>,
    computed: Sender<u64>,
}

impl Critic for Watched {
    fn info(&self) -> &CriticInfo {
        self.inner.info()
    }

    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        let before = self.inner.computed();
        let result = self.inner.score(trajectory, cancel, partial);
        self.computed.send(self.inner.computed() - before).unwrap();
        result
    }

    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
        self.inner.inspect(trajectory)
    }
}

struct Watch {
    thread: CriticThread,
    events: Receiver<WorkEvent>,
    computed: Receiver<u64>,
}

impl Watch {
    fn new(prefix_cache: usize) -> Self {
        let (send, events) = mpsc::channel();
        let (computed, computed_in) = mpsc::channel();
        let open = move || {
            let inner = open(prefix_cache);
            Ok(Box::new(Watched { inner, computed }) as Box<dyn Critic>)
        };
        let thread = CriticThread::spawn(open, move |event| send.send(event).is_ok()).unwrap();
        Self { thread, events, computed: computed_in }
    }

    fn ask(&self, trajectory: &SharedTrajectory, generation: u64, priority: Priority) {
        let (key, trajectory) = (trajectory.key(), Arc::clone(trajectory));
        self.thread.request(ScoreRequest { key, generation, trajectory, priority });
    }

    /// The next scores, and the tokens computed for them.
    fn done(&self) -> (Scores, u64) {
        loop {
            match self.events.recv_timeout(TIMEOUT).expect("an answer in time") {
                WorkEvent::Done { scores, .. } => return (*scores, self.computed.recv_timeout(TIMEOUT).unwrap()),
                WorkEvent::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
}

fn open(prefix_cache: usize) -> Box<dyn Critic> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
    let options = EngineOptions { threads: Some(1), prefix_cache: Some(prefix_cache), ..EngineOptions::default() };
    engine::open(&CriticSpec::Folder(folder), &options).unwrap()
}

fn fresh(trajectory: &Trajectory) -> (Scores, u64) {
    let mut critic = open(0);
    let scores = critic.score(trajectory, &Cancel::default(), &mut |_| {}).unwrap();
    (scores, critic.computed())
}

/// A run of so many actions whose first `shared` are the same in all runs.
fn run(name: &str, shared: usize, n_actions: usize) -> SharedTrajectory {
    let mut steps = vec![Step::new(Role::System, "You fix bugs."), Step::new(Role::User, "Fix issue 17, please.")];
    for i in 0..n_actions {
        let own = if i < shared { "the same" } else { name };
        steps.push(Step::new(Role::Assistant, format!("{own}: look at file {i}")));
        steps.push(Step::new(Role::User, format!("{own} says {} times {i}", "very ".repeat(12))));
    }
    let source = Source { path: name.into(), ..Source::default() };
    Arc::new(Trajectory { source, steps, instance_id: Some("issue".into()), ..Trajectory::default() })
}

#[test]
fn a_file_that_grows_is_scored_on_from_where_it_was() {
    let watch = Watch::new(0);
    let mut all = 0;
    for (generation, n_actions) in [(1, 8), (2, 9), (3, 16)] {
        let grown = run("run-1", 0, n_actions);
        watch.ask(&grown, generation, Priority::Selected);
        let (scores, computed) = watch.done();
        let (expected, whole) = fresh(&grown);
        assert_eq!(scores, expected, "{n_actions} actions");
        // All of the first, then what came since and less than two blocks before it.
        assert!(computed <= whole - all + 256, "{n_actions} actions: {computed} of {whole} tokens, {all} before");
        assert!(computed >= whole - all);
        all = whole;
    }
    assert!(all > 1024, "{all} tokens are too few for this test");
}

#[test]
fn looking_at_attempts_in_turn_computes_each_part_once() {
    let (a, b, grown) = (run("a", 6, 12), run("b", 6, 12), run("a", 6, 14));
    let watch = Watch::new(64 << 20);
    let mut counts = Vec::new();
    for (generation, trajectory) in [(1, &a), (2, &b), (3, &grown), (4, &b)] {
        watch.ask(trajectory, generation, Priority::Selected);
        let (scores, computed) = watch.done();
        let (expected, whole) = fresh(trajectory);
        assert_eq!(scores, expected);
        counts.push((computed, whole));
    }
    assert_eq!(counts[0].0, counts[0].1);
    assert!(counts[1].0 < counts[1].1 * 2 / 3, "half of it is shared: {counts:?}");
    assert!(counts[2].0 < counts[2].1 / 3 && counts[3].0 <= 256, "{counts:?}");
}

#[test]
fn what_was_interrupted_is_not_computed_again() {
    let (long, short) = (run("long", 0, 24), run("short", 0, 2));
    let watch = Watch::new(64 << 20);
    watch.ask(&long, 1, Priority::Rest);
    let rewarded = |event: &WorkEvent| matches!(event, WorkEvent::Partial { score, .. } if score.action == 8);
    while !rewarded(&watch.events.recv_timeout(TIMEOUT).unwrap()) {}
    watch.ask(&short, 1, Priority::Selected);
    let (first, before) = watch.done();
    if first.actions.len() == 24 {
        // The machine was quicker than this thread: there was nothing to interrupt.
        return;
    }
    watch.computed.recv_timeout(TIMEOUT).unwrap();
    let (scores, rest) = watch.done();
    let (expected, whole) = fresh(&long);
    assert_eq!(scores, expected);
    assert!(before + rest <= whole + 128 && rest < whole, "{before} and then {rest} of {whole}");
}

/// Works until it is cancelled, and says how often it asked after that was to be seen.
struct Endless(CriticInfo, Sender<Cancel>);

impl Critic for Endless {
    fn info(&self) -> &CriticInfo {
        &self.0
    }

    fn score(
        &mut self,
        _: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        self.1.send(cancel.clone()).unwrap();
        while !cancel.is_cancelled() {
            partial(ActionScore { action: 0, reward: None, token_index: None, after_cut: false });
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(ScoreError::Cancelled)
    }

    fn inspect(&self, _: &Trajectory) -> Result<CriticInput, ScoreError> {
        Err(ScoreError::NoActions)
    }
}

#[test]
fn work_that_is_not_wanted_any_more_is_told_so_before_the_request_returns() {
    let (send, events) = mpsc::channel();
    let (cancels_out, cancels) = mpsc::channel();
    let open = move || Ok(Box::new(Endless(CriticInfo::default(), cancels_out)) as Box<dyn Critic>);
    let thread = CriticThread::spawn(open, move |event| send.send(event).is_ok()).unwrap();
    let trajectories: Vec<SharedTrajectory> = (0..4).map(|i| run(&i.to_string(), 0, 4)).collect();
    let ask = |i: usize, generation, priority| {
        let trajectory: &SharedTrajectory = &trajectories[i];
        thread.request(ScoreRequest {
            key: trajectory.key(),
            generation,
            trajectory: Arc::clone(trajectory),
            priority,
        });
    };
    let next = || cancels.recv_timeout(TIMEOUT).expect("the next request is begun");
    ask(0, 1, Priority::Rest);
    let running = next();
    ask(0, 2, Priority::Rest);
    assert!(running.is_cancelled(), "the same trajectory, changed");
    let running = next();
    ask(1, 2, Priority::Visible);
    assert!(!running.is_cancelled(), "not urgent enough");
    ask(2, 2, Priority::Selected);
    assert!(running.is_cancelled(), "somebody looks at another");
    let running = next();
    thread.retain(3);
    assert!(running.is_cancelled(), "everything is of the past");
    ask(3, 3, Priority::Rest);
    let running = next();
    thread.cancel_all();
    assert!(running.is_cancelled());
    ask(0, 4, Priority::Rest);
    let running = next();
    drop(thread);
    assert!(running.is_cancelled(), "the program is left");
    drop(events);
}
