//! What one file knows of a session, for another file of the same session that does not: OpenHands' event store names
//! no instance, its dumps of model calls name both.

use std::collections::BTreeMap;

use crate::trajectory::{SharedTrajectory, Trajectory};

/// Instances by session.
pub struct Sessions<'a> {
    /// `None` = the session is said to be of several instances.
    instances: BTreeMap<String, Option<&'a str>>,
}

impl<'a> Sessions<'a> {
    /// What the trajectories say.
    pub fn new(trajectories: &'a [SharedTrajectory]) -> Self {
        let mut instances: BTreeMap<String, Option<&str>> = BTreeMap::new();
        for trajectory in trajectories {
            if let (Some(session), Some(instance)) = (session_of(trajectory), trajectory.instance_id.as_deref()) {
                let known = instances.entry(session).or_insert(Some(instance));
                *known = known.filter(|known| *known == instance);
            }
        }
        Self { instances }
    }

    /// The instance of a trajectory that does not say, if another of the same session does.
    pub fn instance(&self, trajectory: &Trajectory) -> Option<&'a str> {
        self.instances.get(&session_of(trajectory)?).copied().flatten()
    }
}

/// Are these two records of the same session, written in different forms? Helpers of a session are none of its records.
pub fn same(a: &Trajectory, b: &Trajectory) -> bool {
    let whole = |t: &Trajectory| t.attempt.is_none() && t.parent.is_none();
    let formats = a.format != b.format && whole(a) && whole(b);
    formats && session_of(a).is_some_and(|session| session_of(b).as_ref() == Some(&session))
}

/// The session's id; with or without hyphens it is the same.
fn session_of(trajectory: &Trajectory) -> Option<String> {
    let id: String = trajectory.session.as_deref()?.chars().filter(|c| *c != '-').collect();
    Some(id).filter(|id| id.len() >= 8)
}
