//! `trajscope rank`: the order of every issue's attempts, and what it is worth where labels exist.

use serde::Serialize;

use super::Verdict;
use super::args::RankArgs;
use super::load::{self, ScoreTable};
use super::out::{Out, outcome, reward, safe};
use crate::rank::{self, Manual, Ranking, Reason, Row, metrics};
use crate::trajectory::Issue;

#[derive(Debug, Serialize)]
struct IssueLine<'a> {
    instance_id: Option<&'a str>,
    issue: String,
    order: Vec<RowLine<'a>>,
    chosen: Option<&'a str>,
    best_at_1: Option<f64>,
    random_at_1: Option<f64>,
    oracle: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RowLine<'a> {
    rank: usize,
    path: Option<String>,
    record: Option<usize>,
    attempt: &'a str,
    score: Option<f64>,
    resolved: Option<bool>,
    patch_sha256: Option<&'a str>,
    twins: Vec<&'a str>,
    excluded: bool,
    reason: Option<&'static str>,
}

/// The critic's order of one issue.
pub fn ranking(issue: &Issue, scores: &ScoreTable) -> Ranking {
    let score = |i: usize| scores.score(issue.attempts.get(i)?.trajectory.as_ref()?);
    rank::order(&rank::candidates(issue, score), &Manual::default())
}

/// Runs the command. Findings: something could not be read or scored.
pub fn run(args: &RankArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let loaded = load::load(&args.paths)?;
    let mut opened = load::open_critic(&args.critic)?;
    let (scores, unscored) = load::score_all(&loaded.issues, opened.critic.as_deref_mut());
    opened.remark();
    let rankings: Vec<Ranking> = loaded.issues.iter().map(|issue| ranking(issue, &scores)).collect();
    for (issue, ranking) in loaded.issues.iter().zip(&rankings) {
        if args.json {
            out.json(&line(issue, ranking))?;
        } else {
            table(issue, ranking, out)?;
        }
    }
    if !args.json {
        summary(&rankings, out)?;
    }
    Ok(Verdict::findings_if(loaded.findings || unscored))
}

fn line<'a>(issue: &'a Issue, ranking: &'a Ranking) -> IssueLine<'a> {
    let (best_at_1, random_at_1, oracle) = metrics::of_issue(ranking);
    let name = |i: usize| issue.attempts.get(i).map(|a| a.name.as_str());
    IssueLine {
        instance_id: match &issue.id {
            crate::trajectory::IssueId::Instance(id) => Some(id),
            crate::trajectory::IssueId::Unnamed(..) => None,
        },
        issue: issue.name(),
        order: ranking.rows.iter().map(|row| row_line(issue, row)).collect(),
        chosen: ranking.chosen.and_then(name),
        best_at_1,
        random_at_1,
        oracle,
    }
}

fn row_line<'a>(issue: &'a Issue, row: &'a Row) -> RowLine<'a> {
    let attempt = issue.attempts.get(row.candidate.attempt);
    let source = attempt.and_then(|a| a.trajectory.as_ref()).map(|t| &t.source);
    let prediction = attempt.and_then(|a| a.prediction.as_ref());
    let path = source.map(|s| &s.path).or_else(|| prediction.map(|p| &p.path));
    RowLine {
        rank: row.rank,
        path: path.map(|p| p.to_string_lossy().into_owned()),
        record: source.map(|s| s.record),
        attempt: attempt.map_or("", |a| &a.name),
        score: row.candidate.score,
        resolved: row.candidate.outcome.as_bool(),
        patch_sha256: row.candidate.patch_sha256.as_deref(),
        twins: row.twins.iter().filter_map(|&t| issue.attempts.get(t).map(|a| a.name.as_str())).collect(),
        excluded: row.reason.is_some_and(Reason::excludes),
        reason: row.reason.map(Reason::text),
    }
}

fn table(issue: &Issue, ranking: &Ranking, out: &mut Out) -> anyhow::Result<()> {
    out.line(safe(&issue.name()))?;
    for row in &ranking.rows {
        let name = issue.attempts.get(row.candidate.attempt).map_or("", |a| &a.name);
        let mark = if ranking.chosen == Some(row.candidate.attempt) { '>' } else { ' ' };
        let score = reward(row.candidate.score);
        let reason = row.reason.map_or("", Reason::text);
        let label = outcome(row.candidate.outcome);
        out.line(format!("{mark} {:>2}  {score:>7}  {label:<10}  {:<30} {reason}", row.rank, safe(name)))?;
    }
    Ok(())
}

fn summary(rankings: &[Ranking], out: &mut Out) -> anyhow::Result<()> {
    let worth = metrics::over(rankings);
    let share = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |v| format!("{:.1} %", v * 100.0));
    out.line(format!(
        "\n{} issues with all labels: best@1 {}, random {}, oracle {} ({} without all labels, {} not ranked)",
        worth.issues,
        share(worth.best_at_1),
        share(worth.random_at_1),
        share(worth.oracle),
        worth.unlabelled,
        worth.unranked,
    ))?;
    Ok(())
}
