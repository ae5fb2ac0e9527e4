//! Which tokens are read together when a text is longer than the critic may read.
//!
//! Values are causal: inside the longest prefix that fits they are exactly those of the whole text. For later actions
//! a window keeps what is pinned (system prompt, task) and the newest exchanges before them. Windows overlap so that
//! an action has at least half a window before it, or everything there is.

use std::iter::once;
use std::ops::Range;

use crate::critic::CutPolicy;

/// Segments that are kept or cut together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// Its tokens in the whole text.
    pub(super) tokens: Range<usize>,
    /// One past the last token at which a value is read; `None` = no value in it.
    pub(super) value_end: Option<usize>,
    /// Never cut.
    pub(super) pinned: bool,
}

/// Tokens that are read in one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// Ranges of the whole text's tokens, in order.
    pub(super) spans: Vec<Range<usize>>,
    /// Units whose values are taken from this window.
    pub(super) units: Range<usize>,
    /// Was something before the units cut?
    pub(super) cut: bool,
}

impl Window {
    /// Number of tokens.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.spans.iter().map(ExactSizeIterator::len).sum()
    }

    /// Where token `token` of the whole text lies in this window.
    pub(super) fn position(&self, token: usize) -> Option<usize> {
        let mut before = 0;
        for span in &self.spans {
            if span.contains(&token) {
                return Some(before + token - span.start);
            }
            before += span.len();
        }
        None
    }
}

/// How a text is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// In order of the actions they score.
    pub(super) windows: Vec<Window>,
    /// Units with values that no window may hold: too long by themselves, or excluded by the policy.
    pub(super) unscored: Vec<usize>,
    /// Nothing was cut before the values of units below this one.
    pub(super) exact_until: usize,
}

/// Plans the windows of at most `max` tokens.
pub(super) fn plan(units: &[Unit], max: usize, policy: CutPolicy) -> Plan {
    let mut prefix = units.iter().take_while(|u| u.tokens.end <= max).count();
    // Of the first unit that does not fit whole, the part up to its last value may.
    if units.get(prefix).and_then(|u| u.value_end).is_some_and(|end| end <= max) {
        prefix += 1;
    }
    let mut plan = Plan { exact_until: prefix, ..Plan::default() };
    if let Some(end) = last_value(units, 0..prefix) {
        plan.windows.push(Window { spans: once(0..end).collect(), units: 0..prefix, cut: false });
    }
    let with_value = |range: Range<usize>| range.filter(|i| units[*i].value_end.is_some());
    if policy == CutPolicy::Prefix {
        plan.unscored = with_value(prefix..units.len()).collect();
        return plan;
    }
    let first = plan.windows.len();
    let mut open = units.len();
    while let Some(newest) = with_value(prefix..open).next_back() {
        if let Some(mut window) = window_ending_at(units, newest, max) {
            window.units.start = window.units.start.max(prefix);
            open = window.units.start;
            plan.windows.push(window);
        } else {
            plan.unscored.push(newest);
            open = newest;
        }
    }
    plan.windows[first..].reverse();
    plan.unscored.reverse();
    plan
}

/// One past the last token read for the values of some units.
fn last_value(units: &[Unit], range: Range<usize>) -> Option<usize> {
    units[range].iter().rev().find_map(|u| u.value_end)
}

/// The window whose newest unit is `newest`: all that is pinned before it, and as many exchanges as fit, newest first.
/// It scores the units that have at least half a window before them, and the newest one in any case.
fn window_ending_at(units: &[Unit], newest: usize, max: usize) -> Option<Window> {
    let end = units[newest].value_end?;
    let size = |unit: &Unit| unit.tokens.len();
    let pinned: usize = units[..newest].iter().filter(|u| u.pinned).map(size).sum();
    let mut left = max.checked_sub(pinned + end - units[newest].tokens.start)?;
    let mut oldest = newest;
    while oldest > 0 {
        let unit = &units[oldest - 1];
        if !unit.pinned {
            let Some(rest) = left.checked_sub(size(unit)) else { break };
            left = rest;
        }
        oldest -= 1;
    }
    let kept: Vec<usize> = (0..=newest).filter(|i| *i >= oldest || units[*i].pinned).collect();
    let mut spans: Vec<Range<usize>> = Vec::new();
    let (mut before, mut start) = (0, newest);
    for index in kept {
        let range = if index == newest { units[index].tokens.start..end } else { units[index].tokens.clone() };
        if index >= oldest && before >= max / 2 {
            start = start.min(index);
        }
        before += range.len();
        match spans.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => spans.push(range),
        }
    }
    Some(Window { spans, units: start..newest + 1, cut: oldest > 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of the given sizes: the first is pinned, all others have a value two tokens before their end.
    fn units(sizes: &[usize]) -> Vec<Unit> {
        let mut at = 0;
        sizes
            .iter()
            .enumerate()
            .map(|(i, size)| {
                let tokens = at..at + size;
                at += size;
                let value_end = (i > 0).then_some(tokens.end.saturating_sub(2).max(tokens.start + 1));
                Unit { tokens, value_end, pinned: i == 0 }
            })
            .collect()
    }

    fn scored(plan: &Plan, units: &[Unit]) -> Vec<usize> {
        plan.windows.iter().flat_map(|w| w.units.clone()).filter(|i| units[*i].value_end.is_some()).collect()
    }

    #[test]
    fn a_text_that_fits_is_one_window_up_to_its_last_value() {
        let units = units(&[10, 5, 5]);
        let plan = plan(&units, 20, CutPolicy::OldestTurns);
        assert_eq!(plan.windows, [Window { spans: once(0..18).collect(), units: 0..3, cut: false }]);
        assert_eq!((plan.exact_until, plan.unscored.is_empty()), (3, true));
    }

    #[test]
    fn a_last_exchange_fits_if_its_value_does() {
        let plan = plan(&units(&[10, 5, 5]), 18, CutPolicy::OldestTurns);
        assert_eq!((plan.windows.len(), plan.exact_until), (1, 3));
    }

    #[test]
    fn every_value_is_read_once_in_windows_that_fit_and_keep_what_is_pinned() {
        for max in [24, 30, 40, 77, 100] {
            let sizes = [[7].as_slice(), [5, 9, 3, 12, 6, 6, 8].repeat(6).as_slice()].concat();
            let units = units(&sizes);
            let plan = plan(&units, max, CutPolicy::OldestTurns);
            assert_eq!(scored(&plan, &units), (1..units.len()).collect::<Vec<_>>(), "max {max}");
            for window in &plan.windows {
                assert!(window.len() <= max && window.spans[0].start == 0 && window.spans[0].end >= 7);
                let end = window.spans.last().unwrap().end;
                assert_eq!(Some(end), units[window.units.end - 1].value_end);
                for unit in window.units.clone().filter(|u| *u > 0) {
                    let read = window.position(units[unit].value_end.unwrap() - 1);
                    assert!(read.is_some(), "the value's token is in the window");
                    let enough = window.position(units[unit].tokens.start).unwrap() >= max / 2;
                    assert!(!window.cut || enough || unit + 1 == window.units.end);
                }
            }
            assert!(!plan.windows[0].cut && plan.windows[1..].iter().all(|w| w.cut));
            assert_eq!(plan.windows[0].units.end, plan.exact_until);
        }
    }

    #[test]
    fn the_last_action_gets_as_much_of_the_past_as_fits() {
        let units = units(&[4, 10, 10, 10, 10, 10]);
        let plan = plan(&units, 34, CutPolicy::OldestTurns);
        let last = plan.windows.last().unwrap();
        assert_eq!(last.spans, [0..4, 24..52], "30 tokens are left after 4 pinned: two units and 8 of the last");
        assert_eq!(last.position(51), Some(31));
        assert_eq!(last.position(10), None);
    }

    #[test]
    fn an_exchange_too_long_for_any_window_is_left_unscored() {
        let units = units(&[4, 10, 50, 10, 10]);
        let plan = plan(&units, 30, CutPolicy::OldestTurns);
        assert_eq!(plan.unscored, [2]);
        assert_eq!(scored(&plan, &units), [1, 3, 4]);
        assert_eq!(plan.windows.last().unwrap().spans, [0..4, 64..82]);
    }

    #[test]
    fn pinned_text_that_fills_the_window_leaves_all_unscored() {
        let plan = plan(&units(&[40, 10, 10]), 30, CutPolicy::OldestTurns);
        assert_eq!((plan.windows.len(), plan.unscored, plan.exact_until), (0, vec![1, 2], 0));
    }

    #[test]
    fn the_prefix_policy_reads_only_the_beginning() {
        let plan = plan(&units(&[4, 10, 10, 10, 10]), 30, CutPolicy::Prefix);
        assert_eq!((plan.windows.len(), plan.exact_until, plan.unscored), (1, 3, vec![3, 4]));
    }
}
