//! The thread that owns the critic.
//!
//! A model is opened, used and dropped on one OS thread. Requests come through a queue that never blocks the asker;
//! answers go out through the `send` given to [`CriticThread::spawn`], which may block when the receiver is behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::critic::{Cancel, Critic, ScoreError};
use crate::formats;
use crate::trajectory::TrajectoryKey;

use super::event::WorkEvent;
use super::queue::{InspectRequest, Kind, Priority, Queue, Request, ScoreRequest};
use super::text_of;

/// How long leaving the program waits for the critic to come to an end of its chunk.
const PATIENCE: Duration = Duration::from_secs(1);

/// After so many requests in a row that ended in a panic the critic is given up.
const MAX_PANICS: usize = 3;

/// Deep models on debug builds need more stack than a thread has by default.
const STACK: usize = 16 << 20;

/// What is being worked on.
struct Running {
    request: Request,
    cancel: Cancel,
    /// Rewards handed out so far.
    rewards: Arc<AtomicUsize>,
    n_actions: usize,
    /// Interrupted for something more urgent: it goes back into the queue.
    interrupted: bool,
}

#[derive(Default)]
struct State {
    queue: Queue,
    running: Option<Running>,
    stopping: bool,
    ended: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle of the critic's thread. Dropping it cancels the work and waits up to a second for the thread.
pub struct CriticThread {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl CriticThread {
    /// Starts the thread, which opens the critic with `open` and reports through `send` whether that worked.
    /// Requests may be made at once. `send` returns `false` when nobody listens any more; the thread then ends.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn spawn(
        open: impl FnOnce() -> Result<Box<dyn Critic>, String> + Send + 'static,
        send: impl Fn(WorkEvent) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("critic".to_owned()).stack_size(STACK).spawn(move || {
            super::nice::lower();
            Worker { shared: &theirs, send: &send }.run(open);
            theirs.lock().ended = true;
            theirs.wake.notify_all();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Asks for scores. A waiting request for the same trajectory is replaced. If the same request is being worked
    /// on, only its priority changes.
    pub fn request(&self, request: ScoreRequest) {
        self.push(request.into());
    }

    /// Asks for what the critic reads.
    pub fn inspect(&self, request: InspectRequest) {
        self.push(request.into());
    }

    fn push(&self, request: Request) {
        let mut state = self.shared.lock();
        if let Some(running) = &mut state.running {
            let same = running.request.key == request.key && running.request.kind == request.kind;
            if same && running.request.generation == request.generation && !running.interrupted {
                running.request.priority = request.priority;
                return;
            }
            if same {
                running.cancel.cancel();
            } else if makes_way(&request, running) {
                running.interrupted = true;
                running.cancel.cancel();
            }
        }
        state.queue.push(request);
        self.shared.wake.notify_all();
    }

    /// Forgets every request older than `generation`, also the one being worked on. Their cancellation is not
    /// reported.
    pub fn retain(&self, generation: u64) {
        self.forget(|request| request.generation >= generation);
    }

    /// Forgets every request, also the one being worked on.
    pub fn cancel_all(&self) {
        self.forget(|_| false);
    }

    fn forget(&self, keep: impl Fn(&Request) -> bool) {
        let mut state = self.shared.lock();
        state.queue.retain(&keep);
        if let Some(running) = state.running.as_mut().filter(|running| !keep(&running.request)) {
            running.interrupted = false;
            running.cancel.cancel();
        }
    }
}

/// Must the running work make way? What it has done of its last chunk is lost, and all if the critic has no room for
/// it, so only for something a person looks at, and not when it is nearly through.
fn makes_way(new: &Request, running: &Running) -> bool {
    let looked_at = new.kind == Kind::Inspect || new.priority == Priority::Selected;
    if !looked_at || running.request.kind == Kind::Inspect {
        return false;
    }
    let done = running.rewards.load(Ordering::Relaxed) as f64 / running.n_actions.max(1) as f64;
    let most = if running.request.priority == Priority::Selected { 0.25 } else { 0.75 };
    done < most
}

impl Drop for CriticThread {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stopping = true;
        if let Some(running) = &state.running {
            running.cancel.cancel();
        }
        self.shared.wake.notify_all();
        let waited = self.shared.wake.wait_timeout_while(state, PATIENCE, |state| !state.ended);
        let ended = waited.unwrap_or_else(PoisonError::into_inner).0.ended;
        match self.thread.take() {
            Some(thread) if ended => {
                if thread.join().is_err() {
                    tracing::error!("the critic's thread ended in a panic");
                }
            }
            _ => tracing::warn!("the critic is still busy after {PATIENCE:?}; it is left behind"),
        }
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    send: &'a dyn Fn(WorkEvent) -> bool,
}

impl Worker<'_> {
    fn run(&self, open: impl FnOnce() -> Result<Box<dyn Critic>, String>) {
        let opened = catch_unwind(AssertUnwindSafe(open));
        let opened = opened.unwrap_or_else(|panic| Err(format!("opening the critic panicked: {}", text_of(&*panic))));
        let mut critic = match opened {
            Ok(critic) => critic,
            Err(error) => {
                (self.send)(WorkEvent::CriticFailed(error));
                return;
            }
        };
        let mut listening = (self.send)(WorkEvent::CriticReady(Box::new(critic.info().clone())));
        let mut panics = 0;
        while listening && let Some(request) = self.next() {
            let answer = catch_unwind(AssertUnwindSafe(|| self.answer(&mut *critic, &request)));
            let interrupted = self.finished();
            let answer = match answer {
                Ok(answer) => {
                    panics = 0;
                    answer
                }
                Err(panic) => {
                    panics += 1;
                    let error = ScoreError::Engine(format!("the critic panicked: {}", text_of(&*panic)));
                    Some(failure(&request, error))
                }
            };
            listening = match answer {
                Some(event) => (self.send)(event),
                None if interrupted => {
                    self.shared.lock().queue.put_back(request);
                    true
                }
                None => true,
            };
            if panics == MAX_PANICS {
                let message = format!("the critic panicked {MAX_PANICS} times in a row and was given up; start again");
                (self.send)(WorkEvent::CriticFailed(message));
                return;
            }
        }
    }

    /// Waits for a request and marks it as running.
    fn next(&self) -> Option<Request> {
        let mut state = self.shared.lock();
        loop {
            if state.stopping {
                return None;
            }
            if let Some(request) = state.queue.pop() {
                state.running = Some(Running {
                    n_actions: request.trajectory.n_actions(),
                    request: request.clone(),
                    cancel: Cancel::default(),
                    rewards: Arc::default(),
                    interrupted: false,
                });
                return Some(request);
            }
            state = self.shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing is running any more. Was the last request interrupted for a more urgent one?
    fn finished(&self) -> bool {
        self.shared.lock().running.take().is_some_and(|running| running.interrupted)
    }

    /// Works on a request; `None` if it was cancelled.
    fn answer(&self, critic: &mut dyn Critic, request: &Request) -> Option<WorkEvent> {
        let (cancel, rewards) = {
            let state = self.shared.lock();
            state.running.as_ref().map(|running| (running.cancel.clone(), Arc::clone(&running.rewards)))?
        };
        let (key, generation) = (request.key.clone(), request.generation);
        // Its steps may have been let go: they are read again for as long as it is scored.
        let trajectory = match formats::open(&request.trajectory) {
            Ok(trajectory) => trajectory,
            Err(why) => return Some(failure(request, ScoreError::Engine(why))),
        };
        if request.kind == Kind::Inspect {
            let input = critic.inspect(&trajectory).map(Box::new);
            return (!cancel.is_cancelled()).then_some(WorkEvent::Inspected { key, generation, input });
        }
        let started = Instant::now();
        let outcome = critic.score(&trajectory, &cancel, &mut |score| {
            rewards.fetch_add(1, Ordering::Relaxed);
            let partial = WorkEvent::Partial { key: key.clone(), generation, score };
            // A late reward of cancelled work would only be thrown away.
            if !cancel.is_cancelled() && !(self.send)(partial) {
                cancel.cancel();
            }
        });
        let file = key_text(&key);
        tracing::debug!(file, ok = outcome.is_ok(), seconds = started.elapsed().as_secs_f64(), "scored");
        match outcome {
            Err(ScoreError::Cancelled) => None,
            // Finished just as it was cancelled: right all the same.
            Ok(scores) => Some(WorkEvent::Done { key, generation, scores: Box::new(scores) }),
            Err(error) => Some(failure(request, error)),
        }
    }
}

fn failure(request: &Request, error: ScoreError) -> WorkEvent {
    let (key, generation) = (request.key.clone(), request.generation);
    match request.kind {
        Kind::Score => WorkEvent::Failed { key, generation, error },
        Kind::Inspect => WorkEvent::Inspected { key, generation, input: Err(error) },
    }
}

fn key_text(key: &TrajectoryKey) -> String {
    format!("{}#{}", key.path.display(), key.record)
}

#[cfg(test)]
#[path = "critic_thread_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "critic_engine_tests.rs"]
mod engine_tests;
