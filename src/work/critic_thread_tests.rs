//! Tests of the critic's thread with critics that do as they are told.

use std::sync::mpsc::{self, Receiver};

use super::*;
use crate::critic::fake::{FakeCritic, Gate};
use crate::critic::{ActionScore, CriticInfo, CriticInput, Profile, Scores};
use crate::trajectory::{Role, SharedTrajectory, Source, Step, Trajectory};

const TIMEOUT: Duration = Duration::from_secs(20);

fn run(record: usize, n_actions: usize) -> SharedTrajectory {
    let mut steps = vec![Step::new(Role::User, "task")];
    steps.extend((0..n_actions).map(|i| Step::new(Role::Assistant, format!("step {i}"))));
    let source = Source { path: "runs.jsonl".into(), record, ..Source::default() };
    Arc::new(Trajectory { source, steps, ..Trajectory::default() })
}

fn score_of(trajectory: &SharedTrajectory, generation: u64, priority: Priority) -> ScoreRequest {
    ScoreRequest { key: trajectory.key(), generation, trajectory: Arc::clone(trajectory), priority }
}

fn fake(rewards: &[f64]) -> FakeCritic {
    FakeCritic::new(Profile::by_id("openhands-32b").unwrap(), rewards.iter().copied().map(Some))
}

fn spawn(critic: impl Critic + 'static) -> (CriticThread, Receiver<WorkEvent>) {
    let (send, events) = mpsc::sync_channel(256);
    let thread = CriticThread::spawn(move || Ok(Box::new(critic)), move |event| send.send(event).is_ok()).unwrap();
    assert!(matches!(events.recv_timeout(TIMEOUT), Ok(WorkEvent::CriticReady(_))));
    (thread, events)
}

/// The next event that ends a request: `(record, what)`.
fn next_end(events: &Receiver<WorkEvent>) -> (usize, &'static str) {
    loop {
        match events.recv_timeout(TIMEOUT).expect("an answer in time") {
            WorkEvent::Done { key, .. } => return (key.record, "done"),
            WorkEvent::Failed { key, .. } => return (key.record, "failed"),
            WorkEvent::Inspected { key, .. } => return (key.record, "inspected"),
            WorkEvent::CriticFailed(_) => return (usize::MAX, "given up"),
            _ => {}
        }
    }
}

/// Waits until the first reward of `record` is out: it is being worked on.
fn until_running(events: &Receiver<WorkEvent>, record: usize) {
    loop {
        let event = events.recv_timeout(TIMEOUT).expect("a reward in time");
        if matches!(event, WorkEvent::Partial { key, .. } if key.record == record) {
            return;
        }
    }
}

#[test]
fn rewards_come_one_by_one_and_then_together() {
    let (thread, events) = spawn(fake(&[0.5, 0.25]));
    thread.request(score_of(&run(3, 2), 7, Priority::Selected));
    let mut seen = Vec::new();
    let scores = loop {
        match events.recv_timeout(TIMEOUT).unwrap() {
            WorkEvent::Partial { key, generation, score } => {
                assert_eq!((key.record, generation), (3, 7));
                seen.push(score);
            }
            WorkEvent::Done { key, generation, scores } => {
                assert_eq!((key.record, generation), (3, 7));
                break scores;
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(seen, scores.actions);
    assert_eq!(scores.score, Some(0.25));
}

#[test]
fn requests_made_before_the_critic_is_open_wait_for_it() {
    let (send, events) = mpsc::sync_channel(256);
    let (go, may_go) = mpsc::channel::<()>();
    let open = move || {
        may_go.recv().unwrap();
        Ok(Box::new(fake(&[0.5])) as Box<dyn Critic>)
    };
    let thread = CriticThread::spawn(open, move |event| send.send(event).is_ok()).unwrap();
    thread.request(score_of(&run(0, 1), 1, Priority::Rest));
    go.send(()).unwrap();
    assert_eq!(next_end(&events), (0, "done"));
}

#[test]
fn a_critic_that_does_not_open_says_so() {
    type Open = fn() -> Result<Box<dyn Critic>, String>;
    let failures: [Open; 2] = [|| Err("model.safetensors: no such file".to_owned()), || panic!("while opening")];
    for (open, expected) in failures.into_iter().zip(["no such file", "while opening"]) {
        let (send, events) = mpsc::sync_channel(4);
        let thread = CriticThread::spawn(open, move |event| send.send(event).is_ok()).unwrap();
        let WorkEvent::CriticFailed(message) = events.recv_timeout(TIMEOUT).unwrap() else { panic!("not failed") };
        assert!(message.contains(expected), "{message}");
        thread.request(score_of(&run(0, 1), 1, Priority::Rest));
        drop(thread);
        assert!(events.recv().is_err(), "nothing more is said");
    }
}

#[test]
fn what_is_on_the_screen_interrupts_the_background_which_then_goes_on() {
    let gate = Gate::default();
    let (thread, events) = spawn(fake(&[0.5; 4]).waiting_at(1, &gate));
    thread.request(score_of(&run(0, 4), 1, Priority::Rest));
    until_running(&events, 0);
    thread.request(score_of(&run(1, 1), 1, Priority::Selected));
    assert_eq!(next_end(&events), (1, "done"), "run 0 waits at the gate and is interrupted");
    gate.open();
    assert_eq!(next_end(&events), (0, "done"));
}

#[test]
fn inspecting_goes_before_scoring() {
    let gate = Gate::default();
    let (thread, events) = spawn(fake(&[0.5; 8]).waiting_at(1, &gate));
    thread.request(score_of(&run(0, 8), 1, Priority::Selected));
    until_running(&events, 0);
    let other = run(1, 1);
    thread.inspect(InspectRequest { key: other.key(), generation: 1, trajectory: other });
    assert_eq!(next_end(&events), (1, "inspected"));
    gate.open();
    assert_eq!(next_end(&events), (0, "done"));
}

#[test]
fn background_does_not_interrupt_background() {
    let gate = Gate::default();
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &gate));
    thread.request(score_of(&run(0, 2), 1, Priority::Rest));
    until_running(&events, 0);
    thread.request(score_of(&run(1, 1), 1, Priority::Visible));
    gate.open();
    assert_eq!(next_end(&events), (0, "done"));
    assert_eq!(next_end(&events), (1, "done"));
}

#[test]
fn a_newer_generation_replaces_the_running_one() {
    let gate = Gate::default();
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &gate));
    let trajectory = run(0, 2);
    thread.request(score_of(&trajectory, 1, Priority::Rest));
    until_running(&events, 0);
    thread.request(score_of(&trajectory, 2, Priority::Rest));
    gate.open();
    loop {
        match events.recv_timeout(TIMEOUT).unwrap() {
            WorkEvent::Done { generation, .. } => break assert_eq!(generation, 2),
            WorkEvent::Partial { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_same_request_again_does_not_start_over() {
    let gate = Gate::default();
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &gate));
    let trajectory = run(0, 2);
    thread.request(score_of(&trajectory, 1, Priority::Rest));
    until_running(&events, 0);
    thread.request(score_of(&trajectory, 1, Priority::Selected));
    gate.open();
    assert_eq!(next_end(&events), (0, "done"));
    thread.request(score_of(&run(1, 1), 1, Priority::Rest));
    assert_eq!(next_end(&events), (1, "done"), "run 0 was scored once");
}

#[test]
fn forgotten_requests_are_not_answered() {
    let gate = Gate::default();
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &gate));
    thread.request(score_of(&run(0, 2), 1, Priority::Rest));
    until_running(&events, 0);
    thread.request(score_of(&run(1, 1), 1, Priority::Rest));
    thread.retain(2);
    gate.open();
    thread.request(score_of(&run(2, 1), 2, Priority::Rest));
    assert_eq!(next_end(&events), (2, "done"));
    thread.request(score_of(&run(3, 1), 2, Priority::Rest));
    assert_eq!(next_end(&events), (3, "done"));
}

#[test]
fn cancelling_all_stops_what_runs() {
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &Gate::default()));
    thread.request(score_of(&run(0, 2), 1, Priority::Rest));
    until_running(&events, 0);
    thread.cancel_all();
    thread.request(score_of(&run(1, 1), 1, Priority::Rest));
    assert_eq!(next_end(&events), (1, "done"));
}

#[test]
fn failures_are_told_apart_from_success() {
    let (thread, events) = spawn(fake(&[0.5; 2]).failing_at(1, "out of memory"));
    thread.request(score_of(&run(0, 2), 1, Priority::Rest));
    assert_eq!(next_end(&events), (0, "failed"));
    thread.request(score_of(&run(1, 0), 1, Priority::Rest));
    assert_eq!(next_end(&events), (1, "failed"), "a run without actions");
    thread.request(score_of(&run(2, 1), 1, Priority::Rest));
    assert_eq!(next_end(&events), (2, "done"), "the critic goes on");
}

/// Panics on every trajectory whose record is odd.
struct Panicking(FakeCritic);

impl Critic for Panicking {
    fn info(&self) -> &CriticInfo {
        self.0.info()
    }

    fn score(
        &mut self,
        trajectory: &Trajectory,
        cancel: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        assert!(trajectory.source.record.is_multiple_of(2), "odd record");
        self.0.score(trajectory, cancel, partial)
    }

    fn inspect(&self, trajectory: &Trajectory) -> Result<CriticInput, ScoreError> {
        self.0.inspect(trajectory)
    }
}

#[test]
fn a_panic_is_reported_and_the_thread_goes_on() {
    let (thread, events) = spawn(Panicking(fake(&[0.5])));
    thread.request(score_of(&run(1, 1), 1, Priority::Rest));
    match events.recv_timeout(TIMEOUT).unwrap() {
        WorkEvent::Failed { error: ScoreError::Engine(why), .. } => assert!(why.contains("odd record"), "{why}"),
        other => panic!("{other:?}"),
    }
    for record in [0, 3, 5, 2] {
        thread.request(score_of(&run(record, 1), 1, Priority::Rest));
        let right = if record % 2 == 0 { "done" } else { "failed" };
        assert_eq!(next_end(&events), (record, right));
    }
}

#[test]
fn too_many_panics_in_a_row_end_it() {
    let (thread, events) = spawn(Panicking(fake(&[0.5])));
    for record in [1, 3, 5] {
        thread.request(score_of(&run(record, 1), 1, Priority::Rest));
        assert_eq!(next_end(&events), (record, "failed"));
    }
    assert_eq!(next_end(&events).1, "given up");
    thread.request(score_of(&run(0, 1), 1, Priority::Rest));
    drop(thread);
    assert!(events.recv().is_err());
}

#[test]
fn leaving_while_busy_is_quick() {
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &Gate::default()));
    thread.request(score_of(&run(0, 2), 1, Priority::Rest));
    until_running(&events, 0);
    let started = Instant::now();
    drop(thread);
    assert!(started.elapsed() < PATIENCE, "the cancel is seen at the gate");
    assert!(events.iter().all(|event| matches!(event, WorkEvent::Partial { .. })));
}

/// Never looks at its cancel.
struct Deaf(Receiver<()>, CriticInfo);

impl Critic for Deaf {
    fn info(&self) -> &CriticInfo {
        &self.1
    }

    fn score(
        &mut self,
        _: &Trajectory,
        _: &Cancel,
        partial: &mut dyn FnMut(ActionScore),
    ) -> Result<Scores, ScoreError> {
        partial(ActionScore { action: 0, reward: Some(0.5), token_index: None, after_cut: false });
        self.0.recv().map_err(|_gone| ScoreError::Cancelled)?;
        Ok(Scores::default())
    }

    fn inspect(&self, _: &Trajectory) -> Result<CriticInput, ScoreError> {
        Err(ScoreError::NoActions)
    }
}

#[test]
fn a_critic_that_does_not_stop_is_left_behind() {
    let (release, held) = mpsc::channel();
    let (thread, events) = spawn(Deaf(held, CriticInfo::default()));
    thread.request(score_of(&run(0, 1), 1, Priority::Rest));
    until_running(&events, 0);
    let started = Instant::now();
    drop(thread);
    let waited = started.elapsed();
    assert!(waited >= PATIENCE && waited < PATIENCE * 5, "{waited:?}");
    release.send(()).unwrap();
    assert_eq!(next_end(&events), (0, "done"), "its late answer harms nobody");
}

#[test]
fn the_thread_ends_when_nobody_listens() {
    let (thread, events) = spawn(fake(&[0.5; 2]).waiting_at(1, &Gate::default()));
    thread.request(score_of(&run(0, 2), 1, Priority::Rest));
    until_running(&events, 0);
    drop(events);
    thread.request(score_of(&run(1, 1), 1, Priority::Selected));
    let state = thread.shared.lock();
    let state = thread.shared.wake.wait_timeout_while(state, TIMEOUT, |state| !state.ended).unwrap().0;
    assert!(state.ended);
}
