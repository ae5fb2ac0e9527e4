//! The threads of the forward pass.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// outside.
    pub(super) fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.workers {
            Some(workers) => workers.install(work),
            None => work(),
        }
    }

    /// Calls `task` once for each number below `count`, in any order, and returns when all are done. Every thread
    /// takes the next number when it is free: tasks may differ in size.
    pub(super) fn run(&self, count: usize, task: impl Fn(usize) + Sync) {
        match &self.workers {
            Some(workers) if count > 1 => {
                let next = AtomicUsize::new(0);
                workers.broadcast(|_| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= count {
                            return;
                        }
                        task(n);
                    }
                });
            }
            _ => (0..count).for_each(task),
        }
    }

    /// Splits `rows` rows into at most as many ranges as there are threads and calls `task(range)` on each.
    pub(super) fn split(&self, rows: usize, task: impl Fn(Range<usize>) + Sync) {
        let parts = self.threads.min(rows).max(1);
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
            pool.enter(|| pool.run(37, count));
            pool.split(37, |range| range.for_each(count));
            assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 2));
            pool.run(0, |_| panic!("no task"));
            pool.split(0, |_| panic!("no rows"));
        }
    }

    #[test]
    fn a_core_is_left_for_the_screen_when_there_are_several() {
        let cores = physical_cores();
        assert!(cores >= 1);
        assert_eq!(default_threads(), (cores - 1).max(1));
    }
}
