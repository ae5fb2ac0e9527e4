//! Requests that wait for the critic: the most urgent first, one replaceable slot a trajectory and kind. Among equals
//! the attempts of one issue go one after the other, so that the critic meets their common beginning while it has it.

use std::collections::{BTreeMap, HashMap};

use crate::trajectory::{SharedTrajectory, TrajectoryKey};

/// How soon an answer is needed; smaller is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// The trajectory on the screen: the newest such request goes first.
    Selected,
    /// Also on the screen.
    Visible,
    /// Everything else that is loaded.
    Rest,
}

/// Asks for the scores of a trajectory.
#[derive(Debug, Clone)]
pub struct ScoreRequest {
    /// The trajectory's name, given back with every answer.
    pub key: TrajectoryKey,
    /// Given back with every answer.
    pub generation: u64,
    /// What to score.
    pub trajectory: SharedTrajectory,
    /// How soon.
    pub priority: Priority,
}

/// Asks for what the critic reads. Goes before all scoring: it is quick, and somebody looks at an empty pane.
#[derive(Debug, Clone)]
pub struct InspectRequest {
    /// The trajectory's name, given back with the answer.
    pub key: TrajectoryKey,
    /// Given back with the answer.
    pub generation: u64,
    /// What to inspect.
    pub trajectory: SharedTrajectory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Inspect,
    Score,
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) key: TrajectoryKey,
    pub(super) generation: u64,
    pub(super) trajectory: SharedTrajectory,
    pub(super) priority: Priority,
}

impl From<ScoreRequest> for Request {
    fn from(request: ScoreRequest) -> Self {
        let ScoreRequest { key, generation, trajectory, priority } = request;
        Self { kind: Kind::Score, key, generation, trajectory, priority }
    }
}

impl From<InspectRequest> for Request {
    fn from(request: InspectRequest) -> Self {
        let InspectRequest { key, generation, trajectory } = request;
        Self { kind: Kind::Inspect, key, generation, trajectory, priority: Priority::Selected }
    }
}

impl Request {
    fn place(&self) -> (TrajectoryKey, Kind) {
        (self.key.clone(), self.kind)
    }
}

/// Order of the queue: kind, priority, then by turn (newest first for what is selected).
type Turn = (Kind, Priority, i64);

/// The waiting requests.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_turn: BTreeMap<Turn, Request>,
    turns: HashMap<(TrajectoryKey, Kind), Turn>,
    count: i64,
    /// Issue of the last trajectory that was taken to be scored.
    issue: Option<String>,
}

impl Queue {
    /// Adds a request in place of the one of the same trajectory and kind, if there is one.
    pub(super) fn push(&mut self, request: Request) {
        let place = request.place();
        if let Some(turn) = self.turns.remove(&place) {
            self.by_turn.remove(&turn);
        }
        self.count += 1;
        let order = if request.priority == Priority::Selected { -self.count } else { self.count };
        let turn = (request.kind, request.priority, order);
        self.turns.insert(place, turn);
        self.by_turn.insert(turn, request);
    }

    /// Puts an interrupted request back unless a newer one has taken its slot.
    pub(super) fn put_back(&mut self, request: Request) {
        if !self.turns.contains_key(&request.place()) {
            self.push(request);
        }
    }

    /// Takes the most urgent request; among equals one of the issue that was scored last.
    pub(super) fn pop(&mut self) -> Option<Request> {
        let (first, _) = self.by_turn.first_key_value()?;
        let turn = self.same_issue(*first).unwrap_or(*first);
        let request = self.by_turn.remove(&turn)?;
        self.turns.remove(&request.place());
        if request.kind == Kind::Score {
            self.issue.clone_from(&request.trajectory.instance_id);
        }
        Some(request)
    }

    /// The first request as urgent as that of turn `first` whose trajectory is of the issue that was scored last. What
    /// is on the screen keeps its own order: the newest first.
    fn same_issue(&self, first: Turn) -> Option<Turn> {
        let issue = self.issue.as_ref()?;
        let (kind, priority, _) = first;
        if kind != Kind::Score || priority == Priority::Selected {
            return None;
        }
        let equals = self.by_turn.range(first..=(kind, priority, i64::MAX));
        let mut of_issue = equals.filter(|(_, request)| request.trajectory.instance_id.as_ref() == Some(issue));
        of_issue.next().map(|(turn, _)| *turn)
    }

    /// Forgets what `keep` does not want.
    pub(super) fn retain(&mut self, keep: impl Fn(&Request) -> bool) {
        self.by_turn.retain(|_, request| keep(request));
        let by_turn = &self.by_turn;
        self.turns.retain(|_, turn| by_turn.contains_key(turn));
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        assert_eq!(self.by_turn.len(), self.turns.len());
        self.by_turn.len()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::trajectory::Trajectory;

    fn request(record: usize, priority: Priority, generation: u64) -> Request {
        let key = TrajectoryKey { path: PathBuf::from("x"), record };
        ScoreRequest { key, generation, trajectory: SharedTrajectory::default(), priority }.into()
    }

    fn inspect(record: usize) -> Request {
        let key = TrajectoryKey { path: PathBuf::from("x"), record };
        InspectRequest { key, generation: 1, trajectory: SharedTrajectory::default() }.into()
    }

    fn drain(queue: &mut Queue) -> Vec<(usize, Kind)> {
        std::iter::from_fn(|| queue.pop()).map(|request| (request.key.record, request.kind)).collect()
    }

    #[test]
    fn the_most_urgent_goes_first_and_equals_in_turn() {
        let mut queue = Queue::default();
        for (record, priority) in [
            (0, Priority::Rest),
            (1, Priority::Visible),
            (2, Priority::Rest),
            (3, Priority::Selected),
            (4, Priority::Visible),
            (5, Priority::Selected),
        ] {
            queue.push(request(record, priority, 1));
        }
        queue.push(inspect(6));
        let order: Vec<_> = drain(&mut queue).into_iter().map(|(record, _)| record).collect();
        assert_eq!(order, [6, 5, 3, 1, 4, 0, 2], "the newest selected one is on the screen");
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_slot_is_replaced_but_kinds_are_apart() {
        let mut queue = Queue::default();
        queue.push(request(0, Priority::Rest, 1));
        queue.push(request(1, Priority::Visible, 1));
        queue.push(request(0, Priority::Selected, 2));
        queue.push(inspect(0));
        assert_eq!(queue.len(), 3);
        assert_eq!(drain(&mut queue), [(0, Kind::Inspect), (0, Kind::Score), (1, Kind::Score)]);
    }

    #[test]
    fn an_interrupted_request_does_not_displace_a_newer_one() {
        let mut queue = Queue::default();
        queue.push(request(0, Priority::Rest, 2));
        queue.put_back(request(0, Priority::Rest, 1));
        assert_eq!(queue.pop().map(|request| request.generation), Some(2));
        queue.put_back(request(0, Priority::Rest, 1));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn attempts_of_one_issue_go_one_after_the_other_where_all_are_as_urgent() {
        let of = |record: usize, issue: Option<&str>, priority| {
            let mut request = request(record, priority, 1);
            let trajectory = Trajectory { instance_id: issue.map(str::to_owned), ..Trajectory::default() };
            request.trajectory = trajectory.into();
            request
        };
        let mut queue = Queue::default();
        for (record, issue) in
            [Some("a"), Some("b"), None, Some("a"), Some("b"), None, Some("a")].into_iter().enumerate()
        {
            queue.push(of(record, issue, Priority::Rest));
        }
        queue.push(of(7, Some("b"), Priority::Visible));
        queue.push(of(8, Some("c"), Priority::Selected));
        queue.push(of(9, Some("b"), Priority::Selected));
        queue.push(inspect(10));
        let order: Vec<_> = drain(&mut queue).into_iter().map(|(record, _)| record).collect();
        // b is still b after the visible one; runs of no known issue have nothing in common.
        assert_eq!(order, [10, 9, 8, 7, 1, 4, 0, 3, 6, 2, 5]);
    }

    #[test]
    fn what_is_not_wanted_is_forgotten() {
        let mut queue = Queue::default();
        for generation in 1..=4 {
            queue.push(request(generation as usize, Priority::Rest, generation));
        }
        queue.retain(|request| request.generation >= 3);
        assert_eq!(queue.len(), 2);
        queue.push(request(1, Priority::Rest, 5));
        assert_eq!(drain(&mut queue).len(), 3);
    }
}
