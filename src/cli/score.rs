//! `trajscope score`: one line a trajectory, with the reward of every action.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::Verdict;
use super::args::ScoreArgs;
use super::load;
use super::out::{self, Out, outcome, reward, safe};
use crate::critic::{ActionScore, CriticInfo, ScoreError, Scores, drops};
use crate::formats;
use crate::trajectory::{Attempt, Diagnostic, Issue, Severity, SharedTrajectory};

/// Who scored, as in every JSON line.
#[derive(Debug, Serialize)]
pub struct CriticLine {
    id: String,
    profile: String,
    device: String,
    dtype: String,
    fingerprint: String,
    max_tokens: usize,
    note: String,
}

impl From<&CriticInfo> for CriticLine {
    fn from(info: &CriticInfo) -> Self {
        Self {
            id: info.id.clone(),
            profile: info.profile.clone(),
            device: info.device.clone(),
            dtype: info.dtype.clone(),
            fingerprint: info.fingerprint.clone(),
            max_tokens: info.max_tokens,
            note: info.note.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ScoreLine<'a> {
    path: String,
    record: usize,
    format: &'static str,
    instance_id: Option<&'a str>,
    attempt: &'a str,
    agent: Option<&'a str>,
    resolved: Option<bool>,
    n_actions: usize,
    patch_bytes: Option<usize>,
    critic: Option<&'a CriticLine>,
    tokens: Option<usize>,
    truncated: bool,
    score: Option<f64>,
    scores: Vec<ActionLine>,
    drops: Vec<DropLine>,
    diagnostics: Vec<DiagnosticLine<'a>>,
}

#[derive(Debug, Serialize)]
struct ActionLine {
    action: usize,
    step: usize,
    reward: Option<f64>,
    token_index: Option<usize>,
    after_cut: bool,
}

#[derive(Debug, Serialize)]
struct DropLine {
    action: usize,
    from: f64,
    to: f64,
    size: f64,
}

#[derive(Debug, Serialize)]
struct DiagnosticLine<'a> {
    severity: &'static str,
    code: &'a str,
    message: String,
    at: Option<String>,
}

impl<'a> From<&'a Diagnostic> for DiagnosticLine<'a> {
    fn from(d: &'a Diagnostic) -> Self {
        let at = d.at.to_string();
        let at = (!at.is_empty()).then_some(at);
        Self { severity: d.severity.name(), code: d.code, message: d.message.clone(), at }
    }
}

/// Runs the command. Findings: a trajectory with actions got no score, or something could not be read.
pub fn run(args: &ScoreArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let loaded = load::load(&args.paths)?;
    let mut opened = load::open_critic(&args.critic)?;
    let critic = &mut opened.critic;
    let info = critic.as_ref().map(|c| CriticLine::from(c.info()));
    let threshold = args.drop.or_else(|| critic.as_ref().map(|c| c.info().drop_threshold)).unwrap_or(0.0);
    let all = load::trajectories(&loaded.issues);
    let bar = load::progress(all.len());
    let mut findings = loaded.findings;
    if !args.json {
        out.line(table_head())?;
    }
    let mut lines = InOrder::default();
    let order = issue_by_issue(&all);
    for (place, &at) in order.iter().enumerate() {
        if let Some(critic) = critic.as_mut() {
            load::look_ahead(critic.as_mut(), place, order[place..].iter().map(|at| all[*at].2));
        }
        let (issue, index, trajectory) = all[at];
        let Some(attempt) = issue.attempts.get(index) else {
            lines.put(at, None);
            continue;
        };
        // Beyond what is kept in memory a trajectory is read again, and let go behind its line.
        let trajectory = &match formats::open(trajectory) {
            Ok(whole) => whole,
            Err(why) => {
                bar.suspend(|| out::remark(&why));
                findings = true;
                lines.put(at, None);
                continue;
            }
        };
        let result = critic.as_mut().map(|c| load::score_one(c.as_mut(), trajectory));
        if let Some(Err(error)) = &result {
            findings |= *error != ScoreError::NoActions;
            bar.suspend(|| load::remark_unscored(trajectory, error));
        }
        let text = if args.json {
            serde_json::to_string(&line(attempt, trajectory, info.as_ref(), result.as_ref(), threshold))?
        } else {
            table_row(issue, attempt, trajectory, result.as_ref(), threshold)
        };
        lines.put(at, Some(text));
        for text in lines.ready() {
            bar.suspend(|| out.line(text))?;
        }
        // A reader sees results as they come.
        out.flush()?;
        bar.inc(1);
    }
    for text in lines.ready() {
        out.line(text)?;
    }
    bar.finish_and_clear();
    opened.remark();
    Ok(Verdict::findings_if(findings))
}

/// The order of scoring: attempts of one issue one after the other, because the critic has their common beginning in
/// memory then; issues by their first trajectory.
fn issue_by_issue(all: &[(&Issue, usize, &SharedTrajectory)]) -> Vec<usize> {
    let mut first: HashMap<*const Issue, usize> = HashMap::new();
    let mut order: Vec<(usize, usize)> = Vec::with_capacity(all.len());
    for (at, (issue, ..)) in all.iter().enumerate() {
        order.push((*first.entry(std::ptr::from_ref(*issue)).or_insert(at), at));
    }
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// Lines that come in any order and leave in theirs.
#[derive(Default)]
struct InOrder {
    waiting: BTreeMap<usize, Option<String>>,
    next: usize,
}

impl InOrder {
    /// Place `at` has a line, or none.
    fn put(&mut self, at: usize, line: Option<String>) {
        self.waiting.insert(at, line);
    }

    /// The lines before which nothing is missing any more.
    fn ready(&mut self) -> Vec<String> {
        let mut ready = Vec::new();
        while let Some(line) = self.waiting.remove(&self.next) {
            ready.extend(line);
            self.next += 1;
        }
        ready
    }
}

fn line<'a>(
    attempt: &'a Attempt,
    trajectory: &'a SharedTrajectory,
    critic: Option<&'a CriticLine>,
    result: Option<&Result<Scores, ScoreError>>,
    threshold: f64,
) -> ScoreLine<'a> {
    let scores = result.and_then(|r| r.as_ref().ok());
    let steps = trajectory.action_steps();
    let unscored = ActionScore { action: 0, reward: None, token_index: None, after_cut: false };
    let action = |(action, &step): (usize, &usize)| {
        let s = scores.and_then(|s| s.actions.get(action)).unwrap_or(&unscored);
        ActionLine { action, step, reward: s.reward, token_index: s.token_index, after_cut: s.after_cut }
    };
    let found = scores.map(|s| drops(&s.actions, threshold)).unwrap_or_default();
    ScoreLine {
        path: trajectory.source.path.to_string_lossy().into_owned(),
        record: trajectory.source.record,
        format: trajectory.format,
        instance_id: trajectory.instance_id.as_deref(),
        attempt: &attempt.name,
        agent: trajectory.agent.as_deref(),
        resolved: attempt.label.outcome.as_bool(),
        n_actions: steps.len(),
        patch_bytes: attempt.patch().map(str::len),
        critic,
        tokens: scores.map(|s| s.tokens),
        truncated: scores.is_some_and(|s| s.cut.is_some()),
        score: scores.and_then(|s| s.score),
        scores: steps.iter().enumerate().map(action).collect(),
        drops: found.iter().map(|d| DropLine { action: d.action, from: d.from, to: d.to, size: d.size() }).collect(),
        diagnostics: diagnostics(trajectory, result),
    }
}

fn diagnostics<'a>(
    trajectory: &'a SharedTrajectory,
    result: Option<&Result<Scores, ScoreError>>,
) -> Vec<DiagnosticLine<'a>> {
    let mut all: Vec<DiagnosticLine<'_>> = trajectory.diagnostics.iter().map(DiagnosticLine::from).collect();
    let mut add = |severity: Severity, code, message: &str| {
        all.push(DiagnosticLine { severity: severity.name(), code, message: message.to_owned(), at: None });
    };
    match result {
        None => {}
        Some(Err(ScoreError::NoActions)) => {
            add(Severity::Info, "critic.no-actions", &ScoreError::NoActions.to_string());
        }
        Some(Err(error)) => add(Severity::Error, "critic.failed", &error.to_string()),
        Some(Ok(scores)) => {
            for warning in &scores.warnings {
                add(Severity::Warning, "critic.input", warning);
            }
            if let Some(cut) = &scores.cut {
                add(Severity::Warning, "critic.cut", &cut.note);
            }
        }
    }
    all
}

fn table_head() -> String {
    format!(
        "{:<28} {:<28} {:<10} {:>7} {:>7} {:>7}  {}",
        "instance", "attempt", "outcome", "actions", "score", "drop", "path"
    )
}

fn table_row(
    issue: &Issue,
    attempt: &Attempt,
    trajectory: &SharedTrajectory,
    result: Option<&Result<Scores, ScoreError>>,
    threshold: f64,
) -> String {
    let scores = result.and_then(|r| r.as_ref().ok());
    let largest = scores.and_then(|s| drops(&s.actions, threshold).first().map(|d| -d.size()));
    format!(
        "{:<28} {:<28} {:<10} {:>7} {:>7} {:>7}  {}",
        safe(&issue.name()),
        safe(&attempt.name),
        outcome(attempt.label.outcome),
        trajectory.n_actions(),
        reward(scores.and_then(|s| s.score)),
        reward(largest),
        safe(&trajectory.source.path.to_string_lossy()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::IssueId;

    #[test]
    fn lines_leave_in_their_order_as_soon_as_nothing_before_them_is_missing() {
        let mut lines = InOrder::default();
        lines.put(2, Some("c".into()));
        assert!(lines.ready().is_empty());
        lines.put(0, Some("a".into()));
        assert_eq!(lines.ready(), ["a"]);
        lines.put(1, None);
        assert_eq!(lines.ready(), ["c"], "one that could not be read holds up nobody");
        lines.put(3, Some("d".into()));
        assert_eq!(lines.ready(), ["d"]);
        assert!(lines.ready().is_empty());
    }

    #[test]
    fn attempts_of_an_issue_are_scored_one_after_the_other() {
        let issue = |id: &str| Issue { id: IssueId::Instance(id.into()), attempts: Vec::new() };
        let (a, b) = (issue("a"), issue("b"));
        let run = SharedTrajectory::default();
        let all = [(&a, 0, &run), (&b, 0, &run), (&a, 1, &run), (&b, 1, &run), (&a, 2, &run)];
        assert_eq!(issue_by_issue(&all), [0, 2, 4, 1, 3]);
    }
}
