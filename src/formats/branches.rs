//! A session is a tree: going back in it, or asking again, starts a branch beside what was there before.

use std::collections::{BTreeSet, HashMap};

/// What a record is to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A person's message: where it stands beside another branch, one of the two was abandoned.
    Prompt,
    /// A part of an answer of the model; the number tells answers apart.
    Answer(usize),
    /// Results of calls, notes: they hang beside the path where calls ran in parallel.
    Beside,
}

/// The records that have a place in the tree, in file order.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<(Option<usize>, Node)>,
    by_id: HashMap<String, usize>,
}

impl Tree {
    /// Adds a record; `None` if one with this id is there already. Only a record that was written before can be the
    /// parent, so there are no cycles; one whose parent is missing begins a tree of its own.
    pub fn add(&mut self, id: &str, parent: Option<&str>, node: Node) -> Option<usize> {
        if self.by_id.contains_key(id) {
            return None;
        }
        let parent = parent.and_then(|p| self.by_id.get(p)).copied();
        let at = self.nodes.len();
        self.by_id.insert(id.to_owned(), at);
        self.nodes.push((parent, node));
        Some(at)
    }

    /// The number of the record with this id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Which records are on the branch that was followed to its end, and how many branches are not.
    ///
    /// The path from the last record of each tree up to its root is live. Beside it live results of calls (the calls
    /// of one answer are written one under the other, and each result under its call), notes, and the other parts of
    /// the answers on the path. A prompt or another answer beside the path begins an abandoned branch.
    pub fn live(&self) -> (Vec<bool>, usize) {
        let parent = |at: usize| self.nodes.get(at).and_then(|(parent, _)| *parent);
        let mut root = Vec::with_capacity(self.nodes.len());
        let mut leaf: HashMap<usize, usize> = HashMap::new();
        for at in 0..self.nodes.len() {
            let of = parent(at).and_then(|p| root.get(p).copied()).unwrap_or(at);
            root.push(of);
            leaf.insert(of, at);
        }
        let mut live = vec![false; self.nodes.len()];
        let mut answers = BTreeSet::new();
        for leaf in leaf.into_values() {
            let mut at = Some(leaf);
            while let Some(i) = at {
                if let Some(live) = live.get_mut(i) {
                    *live = true;
                }
                if let Some((_, Node::Answer(which))) = self.nodes.get(i) {
                    answers.insert(*which);
                }
                at = parent(i);
            }
        }
        let mut abandoned = 0;
        for (at, (above, node)) in self.nodes.iter().enumerate() {
            let above_live = above.is_none_or(|a| live.get(a) == Some(&true));
            if live.get(at) == Some(&true) || !above_live {
                continue;
            }
            let stays = match node {
                Node::Beside => true,
                Node::Answer(which) => answers.contains(which),
                Node::Prompt => false,
            };
            match live.get_mut(at) {
                Some(live) if stays => *live = true,
                _ => abandoned += 1,
            }
        }
        (live, abandoned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_calls_are_no_branches() {
        let mut tree = Tree::default();
        tree.add("u", None, Node::Prompt);
        tree.add("a1", Some("u"), Node::Answer(0));
        tree.add("a2", Some("a1"), Node::Answer(0));
        tree.add("r1", Some("a1"), Node::Beside);
        tree.add("r2", Some("a2"), Node::Beside);
        tree.add("b", Some("r2"), Node::Answer(1));
        assert_eq!(tree.live(), (vec![true; 6], 0));
        // The same cut before the second result: the rest of the answer stays.
        let mut tree = Tree::default();
        tree.add("a1", None, Node::Answer(0));
        tree.add("a2", Some("a1"), Node::Answer(0));
        tree.add("r1", Some("a1"), Node::Beside);
        assert_eq!(tree.live(), (vec![true; 3], 0));
    }

    #[test]
    fn prompts_and_answers_beside_the_path_are_abandoned_with_all_below() {
        let mut tree = Tree::default();
        tree.add("u", None, Node::Prompt);
        tree.add("a", Some("u"), Node::Answer(0));
        tree.add("u2", Some("a"), Node::Prompt);
        tree.add("b", Some("u2"), Node::Answer(1));
        tree.add("u3", Some("a"), Node::Prompt);
        tree.add("c", Some("u3"), Node::Answer(2));
        tree.add("r", Some("b"), Node::Beside);
        tree.add("d", Some("u3"), Node::Answer(3));
        let (live, abandoned) = tree.live();
        assert_eq!(live, [true, true, false, false, true, false, false, true]);
        assert_eq!(abandoned, 2);
    }

    #[test]
    fn repeated_ids_are_told_and_missing_parents_begin_anew() {
        let mut tree = Tree::default();
        assert_eq!(tree.add("x", Some("gone"), Node::Prompt), Some(0));
        assert_eq!(tree.add("x", None, Node::Prompt), None);
        assert_eq!(tree.add("y", Some("y"), Node::Prompt), Some(1), "its own parent");
        assert_eq!((tree.live(), tree.find("y")), ((vec![true, true], 0), Some(1)));
    }
}
