//! How much of what was read stays in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::load::LoadedFile;
use crate::trajectory::{SharedTrajectory, Trajectory};

/// Room for the steps of trajectories, shared by all reading threads.
#[derive(Debug)]
pub struct Keep {
    /// Bytes left; `None` = no bound.
    room: Option<AtomicU64>,
}

impl Keep {
    /// Room for so many bytes; `None` = for everything.
    pub fn new(bytes: Option<u64>) -> Self {
        Self { room: bytes.map(AtomicU64::new) }
    }

    /// Lets the trajectory's steps go if there is no room for them.
    pub fn settle(&self, trajectory: &mut Trajectory) {
        let Some(room) = &self.room else { return };
        let size = trajectory.size() as u64;
        let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        if taken.is_err() {
            trajectory.forget_steps();
        }
    }

    /// The same for one that was brought back, if there never was room for it: what was kept before has its room.
    pub fn settle_again(&self, trajectory: &mut SharedTrajectory) {
        let let_go = trajectory.ledger != Arc::default();
        if self.room.is_some() && let_go && trajectory.is_whole() {
            Arc::make_mut(trajectory).forget_steps();
        }
    }

    /// The same for everything in a file.
    pub fn settle_file(&self, file: &mut LoadedFile) {
        if self.room.is_some() {
            for trajectory in &mut file.trajectories {
                self.settle(Arc::make_mut(trajectory));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{Role, Step};

    #[test]
    fn what_does_not_fit_is_let_go() {
        let run = |n: usize| Trajectory { steps: vec![Step::new(Role::User, "x".repeat(n))], ..Trajectory::default() };
        let keep = Keep::new(Some(5_000));
        let (mut first, mut second, mut third) = (run(4_000), run(4_000), run(10));
        for trajectory in [&mut first, &mut second, &mut third] {
            keep.settle(trajectory);
        }
        assert!(first.is_whole() && !second.is_whole() && third.is_whole());
        assert_eq!(second.known_steps(), Some(1));
        let mut huge = run(1 << 20);
        Keep::new(None).settle(&mut huge);
        assert!(huge.is_whole());
    }
}
