//! A thread for jobs of which only the newest matters: one running, one waiting slot that newer jobs overwrite.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

struct Slot<J> {
    waiting: Option<J>,
    stopping: bool,
}

type Shared<J> = Arc<(Mutex<Slot<J>>, Condvar)>;

/// The handle of such a thread. Dropping it lets the running job finish and joins.
pub struct LatestThread<J> {
    shared: Shared<J>,
    thread: Option<JoinHandle<()>>,
}

fn lock<J>(shared: &Shared<J>) -> MutexGuard<'_, Slot<J>> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J: Send + 'static> LatestThread<J> {
    /// Starts a thread called `name` that runs `work` on the newest job there is. A long job asks its second argument
    /// now and then whether a newer one waits, and may stop. A panic of `work` loses that job and is logged.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn spawn(name: &str, mut work: impl FnMut(J, &dyn Fn() -> bool) + Send + 'static) -> std::io::Result<Self> {
        let shared: Shared<J> = Arc::new((Mutex::new(Slot { waiting: None, stopping: false }), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some(job) = next(&theirs) {
                let newer = || {
                    let slot = lock(&theirs);
                    slot.stopping || slot.waiting.is_some()
                };
                let job = std::panic::AssertUnwindSafe(|| work(job, &newer));
                if std::panic::catch_unwind(job).is_err() {
                    tracing::error!("a job panicked and was dropped");
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Hands over a job; one that still waits is dropped. Never blocks on a running job.
    pub fn submit(&self, job: J) {
        lock(&self.shared).waiting = Some(job);
        self.shared.1.notify_one();
    }
}

fn next<J>(shared: &Shared<J>) -> Option<J> {
    let mut slot = lock(shared);
    loop {
        if slot.stopping {
            return None;
        }
        if let Some(job) = slot.waiting.take() {
            return Some(job);
        }
        slot = shared.1.wait(slot).unwrap_or_else(PoisonError::into_inner);
    }
}

impl<J> Drop for LatestThread<J> {
    fn drop(&mut self) {
        lock(&self.shared).stopping = true;
        self.shared.1.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a worker ended in a panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_the_newest_waiting_job_runs() {
        let (started, has_started) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let (done, results) = mpsc::channel();
        let thread = LatestThread::spawn("latest", move |job: usize, _: &dyn Fn() -> bool| {
            started.send(()).unwrap();
            may_go.recv().unwrap();
            done.send(job).unwrap();
        })
        .unwrap();
        thread.submit(1);
        has_started.recv().unwrap();
        (2..=9).for_each(|job| thread.submit(job));
        go.send(()).unwrap();
        has_started.recv().unwrap();
        go.send(()).unwrap();
        drop(thread);
        assert_eq!(results.iter().collect::<Vec<_>>(), [1, 9]);
    }

    #[test]
    fn a_panic_loses_one_job_only() {
        let (done, results) = mpsc::channel();
        let thread = LatestThread::spawn("latest", move |job: usize, _: &dyn Fn() -> bool| {
            assert!(job != 1, "told to");
            done.send(job).unwrap();
        })
        .unwrap();
        thread.submit(1);
        // The first may or may not have run before the second overwrites it; either way the second must run.
        thread.submit(2);
        assert_eq!(results.recv().unwrap(), 2);
    }

    #[test]
    fn a_long_job_learns_of_a_newer_one() {
        let (started, has_started) = mpsc::channel();
        let (done, results) = mpsc::channel();
        let thread = LatestThread::spawn("latest", move |job: usize, newer: &dyn Fn() -> bool| {
            started.send(()).unwrap();
            while job == 1 && !newer() {
                std::thread::yield_now();
            }
            done.send(job).unwrap();
        })
        .unwrap();
        thread.submit(1);
        has_started.recv().unwrap();
        thread.submit(2);
        assert_eq!((results.recv().unwrap(), results.recv().unwrap()), (1, 2));
    }
}
