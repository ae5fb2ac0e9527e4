//! What a person did to an order: moves and vetoes, each undoable.

/// One thing a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// The whole order after moving one attempt (indices of attempts, best first).
    Order(Vec<usize>),
    /// Never submit this attempt; with the person's reason (may be empty).
    Veto(usize, String),
    /// Take a veto back.
    Allow(usize),
}

/// The list of moves on one issue; what was undone can be redone until something new is done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manual {
    done: Vec<Move>,
    undone: Vec<Move>,
}

impl Manual {
    /// Moves attempt `attempt` by `by` places (negative = up) in `order`, the order now on screen. Stops at the ends;
    /// returns whether anything changed.
    pub fn shift(&mut self, order: &[usize], attempt: usize, by: isize) -> bool {
        let Some(from) = order.iter().position(|&a| a == attempt) else {
            return false;
        };
        let last = order.len().saturating_sub(1);
        let to = from.saturating_add_signed(by).min(last);
        if from == to {
            return false;
        }
        let mut moved = order.to_vec();
        let taken = moved.remove(from);
        moved.insert(to, taken);
        self.push(Move::Order(moved));
        true
    }

    /// Vetoes an attempt.
    pub fn veto(&mut self, attempt: usize, why: impl Into<String>) {
        self.push(Move::Veto(attempt, why.into()));
    }

    /// Takes a veto back.
    pub fn allow(&mut self, attempt: usize) {
        self.push(Move::Allow(attempt));
    }

    /// Undoes the latest move; `false` if there is none.
    pub fn undo(&mut self) -> bool {
        let last = self.done.pop();
        let any = last.is_some();
        self.undone.extend(last);
        any
    }

    /// Does the latest undone move again; `false` if there is none.
    pub fn redo(&mut self) -> bool {
        let last = self.undone.pop();
        let any = last.is_some();
        self.done.extend(last);
        any
    }

    /// Was anything done that still stands?
    pub fn has_moves(&self) -> bool {
        !self.done.is_empty()
    }

    /// Everything done and not undone, oldest first.
    pub fn moves(&self) -> &[Move] {
        &self.done
    }

    /// Is the attempt vetoed now?
    pub fn is_vetoed(&self, attempt: usize) -> bool {
        self.latest_veto(attempt).is_some()
    }

    /// The reason given for a standing veto, if any words were given.
    pub fn note(&self, attempt: usize) -> Option<&str> {
        self.latest_veto(attempt).filter(|why| !why.is_empty())
    }

    /// Lays the person's order over the critic's (`critic`: attempts, best first). Attempts the person has not yet
    /// seen when moving (loaded or scored later) keep their place after the ones that were placed by hand.
    pub fn apply(&self, critic: &[usize]) -> Vec<usize> {
        let placed = self.done.iter().rev().find_map(|m| match m {
            Move::Order(order) => Some(order),
            Move::Veto(..) | Move::Allow(_) => None,
        });
        let Some(placed) = placed else {
            return critic.to_vec();
        };
        let mut order: Vec<usize> = placed.iter().copied().filter(|a| critic.contains(a)).collect();
        order.extend(critic.iter().copied().filter(|a| !placed.contains(a)));
        order
    }

    /// Gives every attempt its new number, for when more files were joined; what has none any more is left out.
    pub fn renumber(&mut self, new: impl Fn(usize) -> Option<usize>) {
        let one = |step: Move| match step {
            Move::Order(order) => Some(Move::Order(order.into_iter().filter_map(&new).collect())),
            Move::Veto(attempt, why) => new(attempt).map(|a| Move::Veto(a, why)),
            Move::Allow(attempt) => new(attempt).map(Move::Allow),
        };
        self.done = std::mem::take(&mut self.done).into_iter().filter_map(one).collect();
        self.undone = std::mem::take(&mut self.undone).into_iter().filter_map(one).collect();
    }

    fn push(&mut self, step: Move) {
        self.done.push(step);
        self.undone.clear();
    }

    fn latest_veto(&self, attempt: usize) -> Option<&str> {
        self.done
            .iter()
            .rev()
            .find_map(|m| match m {
                Move::Veto(a, why) if *a == attempt => Some(Some(why.as_str())),
                Move::Allow(a) if *a == attempt => Some(None),
                _ => None,
            })
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_undo_and_redo() {
        let mut m = Manual::default();
        assert!(m.shift(&[0, 1, 2], 2, -2));
        assert_eq!(m.apply(&[0, 1, 2]), [2, 0, 1]);
        assert!(m.shift(&[2, 0, 1], 2, 1));
        assert_eq!(m.apply(&[0, 1, 2]), [0, 2, 1]);
        assert!(m.undo());
        assert_eq!(m.apply(&[0, 1, 2]), [2, 0, 1]);
        assert!(m.undo());
        assert!(!m.undo());
        assert_eq!(m.apply(&[0, 1, 2]), [0, 1, 2]);
        assert!(m.redo());
        assert_eq!(m.apply(&[0, 1, 2]), [2, 0, 1]);
    }

    #[test]
    fn a_new_move_forgets_what_was_undone() {
        let mut m = Manual::default();
        m.veto(0, "");
        m.undo();
        m.veto(1, "");
        assert!(!m.redo());
        assert!(m.is_vetoed(1) && !m.is_vetoed(0));
    }

    #[test]
    fn moves_follow_their_attempts_to_new_numbers() {
        let mut m = Manual::default();
        m.shift(&[0, 1, 2], 2, -2);
        m.veto(1, "why");
        m.undo();
        m.renumber(|a| (a != 0).then_some(a + 10));
        assert_eq!(m.apply(&[11, 12, 13]), [12, 11, 13]);
        assert!(m.redo());
        assert_eq!(m.note(11), Some("why"));
    }

    #[test]
    fn stops_at_the_ends() {
        let mut m = Manual::default();
        assert!(!m.shift(&[0, 1], 0, -1));
        assert!(!m.shift(&[0, 1], 1, 5));
        assert!(!m.shift(&[], 1, 5));
        assert!(!m.has_moves());
    }

    #[test]
    fn vetoes_can_be_taken_back() {
        let mut m = Manual::default();
        m.veto(3, "tests deleted");
        assert_eq!(m.note(3), Some("tests deleted"));
        m.allow(3);
        assert!(!m.is_vetoed(3));
        m.undo();
        assert!(m.is_vetoed(3));
    }

    #[test]
    fn attempts_that_came_later_follow_the_placed_ones() {
        let mut m = Manual::default();
        m.shift(&[0, 1], 1, -1);
        assert_eq!(m.apply(&[2, 0, 1]), [1, 0, 2]);
    }
}
