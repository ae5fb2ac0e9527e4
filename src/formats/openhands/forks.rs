//! Conversations that were rewound and taken up again: V1 events name their parent, so they form a tree, and every
//! way through it is an attempt.

use std::collections::{HashMap, HashSet};

use super::super::field;
use super::super::json::Value;

/// Parent of an event that begins a conversation.
const ROOT: &str = "__root__";

/// What is kept of an event to find the ways through a conversation.
struct Node {
    id: Option<String>,
    parent: Option<String>,
    /// Something was said or done: a way that only holds changes of state is none.
    counts: bool,
}

/// The tree of a conversation's events, in file order.
#[derive(Default)]
pub struct Forks {
    nodes: Vec<Node>,
}

/// One way through the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Its last event.
    pub leaf: usize,
    /// Which events lie on it.
    on: Vec<bool>,
}

impl Way {
    /// Does event number `at` lie on it?
    pub fn holds(&self, at: usize) -> bool {
        self.on.get(at).copied().unwrap_or(false)
    }
}

impl Forks {
    /// The next event.
    pub fn add(&mut self, event: &Value) {
        let kind = field::str(event, "kind").unwrap_or_default();
        self.nodes.push(Node {
            id: field::text(event, "id"),
            parent: field::text(event, "parent_id"),
            counts: matches!(kind, "MessageEvent" | "ActionEvent"),
        });
    }

    /// Every way from the beginning to a last event, in file order. One way that holds all of them where nothing was
    /// rewound, and for files that name no parents.
    pub fn ways(&self) -> Vec<Way> {
        let all = || vec![Way { leaf: self.nodes.len().saturating_sub(1), on: vec![true; self.nodes.len()] }];
        if self.nodes.iter().all(|n| n.parent.is_none()) {
            return all();
        }
        let parents = self.parents();
        let counts = self.counting(&parents);
        let inner: HashSet<usize> =
            parents.iter().enumerate().filter(|(i, _)| holds(&counts, *i)).filter_map(|(_, p)| *p).collect();
        let leaves: Vec<usize> = (0..self.nodes.len()).filter(|i| holds(&counts, *i) && !inner.contains(i)).collect();
        if leaves.len() < 2 {
            return all();
        }
        leaves.into_iter().map(|leaf| self.way(leaf, &parents, &counts)).collect()
    }

    /// Index of the event with an id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.id.as_deref() == Some(id))
    }

    /// The event each follows. Without a parent, or with one that is not there, it follows the one before it.
    fn parents(&self) -> Vec<Option<usize>> {
        let known: HashMap<&str, usize> =
            self.nodes.iter().enumerate().rev().filter_map(|(i, n)| Some((n.id.as_deref()?, i))).collect();
        let mut parents = Vec::with_capacity(self.nodes.len());
        // Events outside the tree hang on the last one inside it.
        let mut last = None;
        let named: HashSet<&str> = self.nodes.iter().filter_map(|n| n.parent.as_deref()).collect();
        for (i, node) in self.nodes.iter().enumerate() {
            let parent = match node.parent.as_deref() {
                Some(ROOT) => None,
                Some(id) => known.get(id).copied().filter(|p| *p < i).or(last),
                None => last,
            };
            parents.push(parent);
            if node.parent.is_some() || node.id.as_deref().is_some_and(|id| named.contains(id)) {
                last = Some(i);
            }
        }
        parents
    }

    /// Which events have something said or done at or behind them.
    fn counting(&self, parents: &[Option<usize>]) -> Vec<bool> {
        let mut counts: Vec<bool> = self.nodes.iter().map(|n| n.counts).collect();
        // Parents come first, so one pass from the end is enough.
        for (i, parent) in parents.iter().enumerate().rev() {
            if let (true, Some(parent)) = (holds(&counts, i), parent.and_then(|p| counts.get_mut(p))) {
                *parent = true;
            }
        }
        counts
    }

    fn way(&self, leaf: usize, parents: &[Option<usize>], counts: &[bool]) -> Way {
        let mut on = vec![false; self.nodes.len()];
        let mut at = Some(leaf);
        while let Some(i) = at {
            if let Some(on) = on.get_mut(i) {
                *on = true;
            }
            at = parents.get(i).copied().flatten();
        }
        // What merely happened beside an event belongs to every way through it.
        for (i, parent) in parents.iter().enumerate().filter(|(i, _)| !holds(counts, *i)) {
            let beside = parent.is_none_or(|p| holds(&on, p));
            if let Some(on) = on.get_mut(i) {
                *on |= beside;
            }
        }
        Way { leaf, on }
    }
}

fn holds(of: &[bool], at: usize) -> bool {
    of.get(at).copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::super::super::json::json;

    use super::*;

    fn ways(events: &[(&str, Option<&str>, &str)]) -> Vec<(usize, Vec<usize>)> {
        let mut forks = Forks::default();
        for (id, parent, kind) in events {
            forks.add(&json!({"id": id, "parent_id": parent, "kind": kind}));
        }
        let held = |way: &Way| (0..events.len()).filter(|i| way.holds(*i)).collect();
        forks.ways().iter().map(|way| (way.leaf, held(way))).collect()
    }

    #[test]
    fn without_parents_there_is_one_way() {
        let linear = [("a", None, "MessageEvent"), ("b", None, "ActionEvent")];
        assert_eq!(ways(&linear), [(1, vec![0, 1])]);
        assert_eq!(ways(&[]), [(0, vec![])]);
    }

    #[test]
    fn a_rewound_conversation_has_a_way_for_each_end() {
        let events = [
            ("s", Some("__root__"), "SystemPromptEvent"),
            ("u", Some("s"), "MessageEvent"),
            ("a", Some("u"), "ActionEvent"),
            ("x", None, "ConversationStateUpdateEvent"),
            ("b", Some("u"), "ActionEvent"),
            ("o", Some("b"), "ObservationEvent"),
            ("c", Some("o"), "MessageEvent"),
        ];
        assert_eq!(ways(&events), [(2, vec![0, 1, 2, 3]), (6, vec![0, 1, 4, 5, 6])]);
    }

    #[test]
    fn changes_of_state_and_unknown_parents_make_no_fork() {
        let events = [
            ("u", Some("__root__"), "MessageEvent"),
            ("x", Some("u"), "ConversationStateUpdateEvent"),
            ("a", Some("u"), "ActionEvent"),
            ("b", Some("gone"), "ActionEvent"),
            ("c", Some("c"), "MessageEvent"),
        ];
        assert_eq!(ways(&events), [(4, vec![0, 1, 2, 3, 4])]);
    }
}
