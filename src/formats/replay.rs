//! Counted once across files: a session that was resumed or forked repeats the session it came from.
//!
//! Every step of a session has its writer's id, or the model's. A step that stands in an earlier trajectory of the
//! same format too is a copy: it is shown, and neither an action nor counted. Which of two trajectories is the earlier
//! one is told by the first step that only one of them has.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::session;
use crate::trajectory::{Diagnostic, Severity, SharedTrajectory, Trajectory, Usage};

/// Formats of sessions, which can be resumed and forked. In the others equal ids mean nothing: a file may have been
/// exported twice on purpose.
const SESSIONS: [&str; 8] =
    ["claude-code", "claude-stream", "codex-rollout", "gemini-cli", "pi", "opencode", "copilot-cli", "qwen-code"];
/// Code of the remark that a session continues another.
pub const CONTINUES: &str = "session.continues";

/// Marks the copies. Linear in the number of steps. A trajectory that holds copies and whose steps were let go is
/// brought back by `open`.
pub fn mark(trajectories: &mut [SharedTrajectory], open: impl Fn(&SharedTrajectory) -> Option<SharedTrajectory>) {
    let sessions: Vec<usize> = (0..trajectories.len())
        .filter(|i| trajectories.get(*i).is_some_and(|t| SESSIONS.contains(&t.format)))
        .collect();
    if sessions.len() < 2 {
        return;
    }
    let keys: Vec<Vec<Option<u64>>> =
        sessions.iter().map(|i| trajectories.get(*i).map(|t| keys_of(t)).unwrap_or_default()).collect();
    // In how many trajectories does each step stand?
    let mut seen: HashMap<u64, (usize, bool)> = HashMap::new();
    for (at, keys) in keys.iter().enumerate() {
        for key in keys.iter().flatten() {
            let entry = seen.entry(*key).or_insert((at, false));
            entry.1 |= entry.0 != at;
        }
    }
    let shared = |key: &Option<u64>| key.is_some_and(|k| seen.get(&k).is_some_and(|s| s.1));
    let mut order: Vec<usize> =
        (0..sessions.len()).filter(|at| keys.get(*at).is_some_and(|k| k.iter().any(shared))).collect();
    for at in &order {
        let shared = sessions.get(*at).and_then(|i| trajectories.get_mut(*i)).filter(|t| !t.is_whole());
        if let Some(shared) = shared
            && let Some(whole) = open(shared)
        {
            *shared = whole;
        }
    }
    let own = |at: &usize| {
        let trajectory = sessions.get(*at).and_then(|i| trajectories.get(*i))?;
        let first = keys.get(*at)?.iter().position(|k| k.is_some() && !shared(k))?;
        // Steps without a time (notes) do not tell: the next one that has a time does.
        trajectory.steps.get(first..)?.iter().find_map(|s| s.timestamp.clone())
    };
    let path = |at: &usize| sessions.get(*at).and_then(|i| trajectories.get(*i)).map(|t| t.key());
    order.sort_by_cached_key(|at| (own(at), path(at)));
    let mut first: HashMap<u64, usize> = HashMap::new();
    for at in order {
        let (Some(keys), Some(&index)) = (keys.get(at), sessions.get(at)) else { continue };
        let owners: Vec<Option<usize>> = keys.iter().map(|k| k.and_then(|k| first.get(&k).copied())).collect();
        let owner = owners.iter().rev().find_map(|o| *o);
        if let Some(owner) = owner {
            let source = trajectories.get(owner).cloned();
            if let (Some(source), Some(shared)) = (source, trajectories.get_mut(index)) {
                copied(Arc::make_mut(shared), &source, &owners);
            }
        }
        for key in keys.iter().flatten() {
            first.entry(*key).or_insert(index);
        }
    }
}

/// What every step is known by, within its format.
fn keys_of(trajectory: &Trajectory) -> Vec<Option<u64>> {
    let of = |(identity, _): (Option<u64>, u64)| {
        let mut hasher = DefaultHasher::new();
        (trajectory.format, identity?).hash(&mut hasher);
        Some(hasher.finish())
    };
    trajectory.identities().into_iter().map(of).collect()
}

/// Marks the copies in a file that was read again, by what was known of it before: it has only grown since, and the
/// session it continues was not read again with it.
pub fn mark_again(trajectory: &mut Trajectory, known: &Trajectory) {
    let Some(remark) = known.diagnostics.iter().find(|d| d.code == CONTINUES) else { return };
    let before = session::totals(&trajectory.steps);
    for at in known.copies() {
        if let Some(step) = trajectory.steps.get_mut(at) {
            step.is_demo = true;
        }
    }
    let after = session::totals(&trajectory.steps);
    trajectory.usage = less(trajectory.usage, before, after);
    trajectory.diagnostics.push(remark.clone());
}

fn copied(trajectory: &mut Trajectory, source: &Trajectory, owners: &[Option<usize>]) {
    let before = session::totals(&trajectory.steps);
    let last = owners.iter().rposition(Option::is_some).unwrap_or(0);
    // Messages of a person get a new id in some versions, or none at all: those before the last copy that say the same
    // are copies too.
    let known: HashSet<u64> = source.identities().into_iter().map(|(_, said)| said).collect();
    let mut copies = 0;
    for (at, (step, owner)) in trajectory.steps.iter_mut().zip(owners).enumerate() {
        if owner.is_some() || at < last && known.contains(&step.said()) {
            step.is_demo = true;
            copies += 1;
        }
    }
    let after = session::totals(&trajectory.steps);
    trajectory.usage = less(trajectory.usage, before, after);
    let all = if copies == trajectory.steps.len() { "all " } else { "" };
    let name = source.source.path.file_name().unwrap_or_default().to_string_lossy();
    let s = if copies == 1 { " is a copy" } else { "s are copies" };
    let text = format!("continues {name}: {all}{copies} step{s} and counted there");
    trajectory.diagnostics.push(Diagnostic::new(Severity::Info, CONTINUES, text));
}

/// Totals without what the copies used, where that is known.
fn less(usage: Usage, before: Usage, after: Usage) -> Usage {
    let count = |total: Option<u64>, before: Option<u64>, after: Option<u64>| match (total, before) {
        (Some(total), Some(before)) => {
            let rest = total.saturating_sub(before - after.unwrap_or(0).min(before));
            // All of it was copied: this one used nothing that is known.
            Some(rest).filter(|_| after.is_some())
        }
        (total, _) => total,
    };
    let cost = match (usage.cost, before.cost) {
        (Some(total), Some(before)) => after.cost.map(|after| (total - (before - after)).max(0.0)),
        (total, _) => total,
    };
    Usage {
        cost,
        tokens_in: count(usage.tokens_in, before.tokens_in, after.tokens_in),
        tokens_cached: count(usage.tokens_cached, before.tokens_cached, after.tokens_cached),
        tokens_out: count(usage.tokens_out, before.tokens_out, after.tokens_out),
        api_calls: count(usage.api_calls, before.api_calls, after.api_calls),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::trajectory::{Role, Source, Step, Tokens};

    fn step(role: Role, id: &str, text: &str, time: &str) -> Step {
        let tokens = Some(Tokens { input: 10, cached: None, output: 1 }).filter(|_| role == Role::Assistant);
        let id = Some(id.into()).filter(|_| !id.is_empty());
        Step { id, tokens, timestamp: Some(time.into()), ..Step::new(role, text) }
    }

    fn session(name: &str, steps: Vec<Step>) -> SharedTrajectory {
        let usage = session::totals(&steps);
        let source = Source { path: PathBuf::from(name), ..Source::default() };
        Arc::new(Trajectory { source, format: "claude-code", steps, usage, ..Trajectory::default() })
    }

    fn demos(t: &Trajectory) -> Vec<bool> {
        t.steps.iter().map(|s| s.is_demo).collect()
    }

    #[test]
    fn a_resumed_session_repeats_the_one_before() {
        let old = || vec![step(Role::User, "u1", "hi", "1"), step(Role::Assistant, "m1", "first", "1")];
        let mut new = old();
        new.push(step(Role::Assistant, "m2", "second", "1"));
        let mut all = [session("b", new), session("a", old())];
        mark(&mut all, |_| None);
        assert_eq!((demos(&all[0]), demos(&all[1])), (vec![true, true, false], vec![false, false]));
        assert_eq!((all[0].usage.tokens_in, all[1].usage.tokens_in), (Some(10), Some(10)));
        assert_eq!((all[0].n_actions(), all[0].usage.api_calls), (1, Some(1)));
        assert_eq!(all[0].diagnostics[0].message, "continues a: 2 steps are copies and counted there");
        assert!(all[1].diagnostics.is_empty());
    }

    #[test]
    fn steps_that_were_let_go_are_brought_back_for_it() {
        let old = || vec![step(Role::User, "u1", "hi", "1"), step(Role::Assistant, "m1", "first", "1")];
        let mut new = old();
        new.push(step(Role::Assistant, "m2", "second", "1"));
        let whole = [session("b", new), session("a", old())];
        let mut all = whole.clone();
        for t in &mut all {
            Arc::make_mut(t).forget_steps();
        }
        let open = |t: &SharedTrajectory| whole.iter().find(|w| w.key() == t.key()).cloned();
        mark(&mut all, open);
        assert_eq!((demos(&all[0]), demos(&all[1])), (vec![true, true, false], vec![false, false]));
        let mut known = (*all[0]).clone();
        known.forget_steps();
        let mut again = (*whole[0]).clone();
        again.recall(&known);
        assert_eq!((demos(&again), again.usage), (vec![true, true, false], all[0].usage));
    }

    #[test]
    fn of_two_forks_the_one_that_went_on_first_is_the_original() {
        let fork = |name: &str, time: &str| {
            let common = step(Role::Assistant, "m1", "first", "1");
            session(name, vec![common, step(Role::Assistant, name, name, time)])
        };
        let mut all = [fork("a", "3"), fork("b", "2")];
        mark(&mut all, |_| None);
        assert_eq!((demos(&all[0]), demos(&all[1])), (vec![true, false], vec![false, false]));
    }

    #[test]
    fn short_ids_are_copies_only_with_the_same_text() {
        let one = |name: &str, text: &str| session(name, vec![step(Role::User, "msg-001", text, "1")]);
        let mut all = [one("a", "x"), one("b", "y"), one("c", "x")];
        mark(&mut all, |_| None);
        assert_eq!([demos(&all[0]), demos(&all[1]), demos(&all[2])], [vec![false], vec![false], vec![true]]);
        let long = "msg_0123456789012345678901";
        let of = |name: &str, text: &str| session(name, vec![step(Role::Assistant, long, text, "1")]);
        let mut all = [of("a", "cut"), of("b", "cut no more")];
        mark(&mut all, |_| None);
        assert_eq!((demos(&all[1]), all[1].usage.tokens_in), (vec![true], None));
    }

    #[test]
    fn prompts_with_new_ids_are_copies_before_the_last_copy_only() {
        let old = vec![step(Role::User, "", "go", "1"), step(Role::Assistant, "m1", "a", "1")];
        let new = vec![
            step(Role::User, "", "go", "1"),
            step(Role::Assistant, "m1", "a", "1"),
            step(Role::User, "", "go", "2"),
            step(Role::Assistant, "m2", "b", "2"),
        ];
        let mut all = [session("a", old), session("b", new)];
        mark(&mut all, |_| None);
        assert_eq!(demos(&all[1]), [true, true, false, false]);
    }

    #[test]
    fn other_formats_are_left_alone() {
        let of = |name: &str| {
            let shared = session(name, vec![step(Role::User, "u1", "hi", "1")]);
            Arc::new(Trajectory { format: "openhands-1", ..(*shared).clone() })
        };
        let mut all = [of("a"), of("b")];
        mark(&mut all, |_| None);
        assert_eq!((demos(&all[0]), demos(&all[1])), (vec![false], vec![false]));
    }
}
