//! The threads of the forward pass.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs independent tasks on a fixed number of threads; with one thread everything runs on the caller's.
#[derive(Debug)]
pub(in crate::engine) struct Pool {
    threads: usize,
    workers: Option<rayon::ThreadPool>,
}

impl Pool {
    /// A pool of `threads` (at least one). The threads inherit the niceness of the thread that makes the pool.
    /// When the system refuses new threads the pool works on the caller's alone.
    pub(in crate::engine) fn new(threads: usize) -> Self {
        let build =
            || rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("critic-{i}")).build();
        let workers = if threads > 1 { build().ok() } else { None };
        Self { threads: if workers.is_some() { threads } else { 1 }, workers }
    }

    /// Number of threads.
    pub(in crate::engine) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` on one of the pool's threads, so that the many short tasks inside it need not be handed over from
    /// outside. `stop` is asked before every task.
    pub(super) fn enter<T: Send>(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        work: impl FnOnce(&Crew<'_>) -> T + Send,
    ) -> T {
        let crew = Crew { pool: self, stop, stopped: AtomicBool::new(false) };
        match &self.workers {
            Some(workers) => workers.install(|| work(&crew)),
            None => work(&crew),
        }
    }

    /// The threads for work that nobody stops.
    pub(super) fn crew(&self) -> Crew<'_> {
        Crew { pool: self, stop: &|| false, stopped: AtomicBool::new(false) }
    }
}

/// A pool at work that may be stopped.
pub(super) struct Crew<'a> {
    pool: &'a Pool,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// Once told to stop it stays so: results are half done then.
    stopped: AtomicBool,
}

impl Crew<'_> {
    /// Number of threads.
    pub(super) fn threads(&self) -> usize {
        self.pool.threads
    }

    /// Was the work told to stop? What was computed since is worthless then.
    pub(super) fn is_stopped(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return true;
        }
        let stop = (self.stop)();
        if stop {
            self.stopped.store(true, Ordering::Relaxed);
        }
        stop
    }

    /// Calls `task` once for each number below `count`, in any order, and returns when all are done, or when the tasks
    /// begun are done after a stop. Every thread takes the next number when it is free: tasks may differ in size.
    pub(super) fn run(&self, count: usize, task: impl Fn(usize) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            while !self.is_stopped() {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return;
                }
                task(n);
            }
        };
        match &self.pool.workers {
            Some(workers) if count > 1 => {
                workers.broadcast(|_| work());
            }
            _ => work(),
        }
    }

    /// Splits `rows` rows into at most as many ranges as there are threads and calls `task(range)` on each.
    pub(super) fn split(&self, rows: usize, task: impl Fn(Range<usize>) + Sync) {
        let parts = self.threads().min(rows).max(1);
        let size = rows.div_ceil(parts);
        self.run(parts, |part| {
            let range = (part * size).min(rows)..((part + 1) * size).min(rows);
            if !range.is_empty() {
                task(range);
            }
        });
    }
}

/// One thread for every physical core but one, which the screen keeps; at least one.
pub fn default_threads() -> usize {
    physical_cores().saturating_sub(1).max(1)
}

/// Physical cores this process may use: two hardware threads of one core share its arithmetic units, so a second one
/// gains little and makes the screen wait. Where the system does not tell: its logical processors.
pub fn physical_cores() -> usize {
    let logical = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let Ok(folder) = std::fs::read_dir("/sys/devices/system/cpu") else { return logical };
    let cores: BTreeSet<String> = folder
        .flatten()
        .filter_map(|cpu| std::fs::read_to_string(cpu.path().join("topology/thread_siblings_list")).ok())
        .collect();
    if cores.is_empty() { logical } else { cores.len().min(logical) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_exactly_once() {
        for threads in [1, 2, 3] {
            let pool = Pool::new(threads);
            assert_eq!(pool.threads(), threads);
            let seen: Vec<AtomicUsize> = (0..37).map(|_| AtomicUsize::new(0)).collect();
            let count = |i: usize| {
                seen[i].fetch_add(1, Ordering::Relaxed);
            };
            pool.enter(&|| false, |crew| crew.run(37, count));
            pool.crew().split(37, |range| range.for_each(count));
            assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 2));
            pool.crew().run(0, |_| panic!("no task"));
            pool.crew().split(0, |_| panic!("no rows"));
        }
    }

    #[test]
    fn after_a_stop_only_tasks_that_had_begun_are_finished() {
        for threads in [1, 2, 3] {
            let done = AtomicUsize::new(0);
            let stop = || done.load(Ordering::Relaxed) >= 10;
            let pool = Pool::new(threads);
            let stopped = pool.enter(&stop, |crew| {
                crew.run(1000, |_| {
                    done.fetch_add(1, Ordering::Relaxed);
                });
                crew.run(1000, |_| panic!("stopped already"));
                crew.is_stopped()
            });
            let done = done.load(Ordering::Relaxed);
            assert!(stopped && (10..10 + threads).contains(&done), "{done} tasks on {threads} threads");
        }
    }

    #[test]
    fn a_core_is_left_for_the_screen_when_there_are_several() {
        let cores = physical_cores();
        assert!(cores >= 1);
        assert_eq!(default_threads(), (cores - 1).max(1));
    }
}
