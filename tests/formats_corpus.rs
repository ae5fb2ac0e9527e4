//! Every file of the corpus against what its manifest says of it; the result is the table `tests/corpus.tsv`.
//!
//! `TRAJSCOPE_UPDATE=1 cargo test --test formats_corpus` writes the table anew; look at the difference.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Attempt, Dataset, Issue, join};

/// Which of our formats a file may have that the manifest lists under a folder's name. A prefix of the id is enough.
const FAMILIES: [(&str, &[&str]); 21] = [
    ("atif", &["atif"]),
    ("autocoderover", &["autocoderover", "predictions", "run-statistics", "report"]),
    ("claude-code", &["claude"]),
    ("codex", &["codex"]),
    ("gemini-cli", &["gemini"]),
    ("harbor-trial", &["harbor"]),
    ("inspect", &["inspect"]),
    ("mini-swe-agent-v1", &["mini-swe-agent-1", "exit-statuses", "predictions", "report"]),
    (
        "mini-swe-agent-v2",
        &[
            "mini-swe-agent-2",
            "exit-statuses",
            "predictions",
            "report",
            "patch-file",
            "run-instance-log",
            "test-output",
        ],
    ),
    ("openhands-v0", &["openhands-0", "openhands-entries", "multi-swe-bench-config", "predictions", "report"]),
    ("openhands-v0-events", &["openhands-0-session"]),
    ("openhands-v0-llm-completions", &["llm-completion", "openhands-"]),
    ("openhands-v1-events", &["openhands-1", "llm-completion", "chat"]),
    ("otel-genai", &["otlp", "agents-sdk", "traces", "langsmith"]),
    ("pi", &["pi"]),
    ("sft-chat", &["chat", "adp", "harbor-traces"]),
    ("sweagent-v0", &["sweagent-", "predictions", "report", "eval-log", "run-instance-log", "submission-metadata"]),
    ("sweagent-v1", &["sweagent-1", "predictions", "patch-file"]),
    (
        "swebench-results",
        &[
            "report",
            "predictions",
            "patch-file",
            "eval-log",
            "run-instance-log",
            "test-output",
            "test-results",
            "leaderboard",
            "metrics-stub",
            "submission-metadata",
        ],
    ),
    ("terminal-bench", &["terminal-bench"]),
    // Fixtures of many agents, and files broken by hand: any format, see the table.
    ("other", &[""]),
];

/// What the manifest's `steps` counts, by our format.
fn counted(format: &str) -> Counted {
    match format {
        "sweagent-0" | "sweagent-1" => Counted::Actions,
        "mini-swe-agent-1" | "mini-swe-agent-2" | "openhands-0-events" | "gemini-cli" | "atif-viewer" | "gptme"
        | "tau-bench" | "adp" => Counted::Steps,
        "inspect-eval" | "inspect-json" | "openhands-0" => Counted::Trajectories,
        "atif" | "atif-parts" => Counted::Otherwise("ATIF steps, of which one holds a call and its observations"),
        "claude-code" => Counted::Otherwise(
            "lines that are messages: an answer in several lines is one step, and abandoned branches are left out",
        ),
        "codex-rollout" => Counted::Otherwise("lines, bookkeeping included"),
        "pi" => Counted::Otherwise("lines; an answer's blocks and notes are more or fewer steps"),
        "llm-completion" | "llm-completions" => Counted::Otherwise("the request's messages, without the answer"),
        "openhands-1-export" => Counted::Otherwise("entries of the export, some without a text"),
        "harbor-traces" | "chat" => Counted::Otherwise("conversations or messages, by the data set"),
        "moatless-0" => Counted::Otherwise("transitions, of which one can hold several actions"),
        _ => Counted::Otherwise("lines or entries of the file"),
    }
}

enum Counted {
    Actions,
    Steps,
    Trajectories,
    Otherwise(&'static str),
}

/// Labels that differ, and why.
fn excused(file: &str) -> Option<&'static str> {
    let reasons = [
        ("sweagent-v0/acr-cost_2_1/", "no report of this run lies on disk"),
        ("sweagent-v1/swe-smith/", "its report lies in another folder, swebench-results/swe-smith"),
        (
            "mini-swe-agent-v2/live-swe-agent/gpt-5-mini/",
            "the evaluation left no report of it, and its log decides nothing",
        ),
        ("inspect/", "the manifest does not look at scores"),
        ("sft-chat/", "the manifest does not look into rows"),
        ("other/docent/", "the manifest does not look at scores"),
        ("other/dars/", "one file holds many attempts"),
        ("other/moatless/", "one file holds many attempts"),
        ("other/trae/", "one file holds many candidates"),
        ("_derived-malformed/", "broken by hand from a labelled run"),
    ];
    reasons.iter().find(|(start, _)| file.starts_with(start)).map(|(_, why)| *why)
}

struct Known<'a> {
    file: &'a str,
    format: &'a str,
    steps: Option<usize>,
    patch: &'a str,
    label: &'a str,
}

struct Found {
    format: Option<&'static str>,
    reason: String,
    trajectories: usize,
    steps: usize,
    actions: usize,
    patch: bool,
    labels: Vec<&'static str>,
}

fn found(dataset: &Dataset, issues: &[Issue], path: &Path) -> Found {
    // Files of an archive lie below it.
    let here = |p: &Path| p == path || p.starts_with(path);
    let reports: Vec<_> = dataset.files.iter().filter(|f| here(&f.path)).collect();
    let runs: Vec<_> = dataset.trajectories.iter().filter(|t| here(&t.source.path)).collect();
    let attempts: Vec<&Attempt> =
        issues.iter().flat_map(|i| &i.attempts).filter(|a| a.path().is_some_and(here)).collect();
    let label = |a: &&Attempt| match a.label.outcome.as_bool() {
        Some(true) => "resolved",
        Some(false) => "unresolved",
        None => "unknown",
    };
    let mut labels: Vec<_> = attempts.iter().map(label).collect();
    labels.sort_unstable();
    labels.dedup();
    Found {
        format: reports.iter().find_map(|f| f.format),
        reason: reports.first().map_or("it was not looked at", |f| f.reason.as_str()).to_owned(),
        trajectories: runs.len(),
        steps: runs.iter().map(|t| t.steps.len()).sum(),
        actions: runs.iter().map(|t| t.n_actions()).sum(),
        patch: attempts.iter().any(|a| a.patch().is_some_and(|p| !p.trim().is_empty())),
        labels,
    }
}

/// What is wrong with a file, and the note that goes into the table.
fn judge(known: &Known<'_>, found: &Found) -> (Vec<String>, String) {
    let mut wrong = Vec::new();
    let mut notes = Vec::new();
    let families = FAMILIES.iter().find(|(name, _)| *name == known.format).map_or(&[""][..], |(_, ids)| ids);
    match found.format {
        Some(format) if families.iter().any(|f| format.starts_with(f)) => {}
        Some(format) => wrong.push(format!("format {format}")),
        None => notes.push(found.reason.clone()),
    }
    if found.trajectories == 0 {
        return (wrong, notes.join("; "));
    }
    if let Some(steps) = known.steps {
        let ours = match counted(found.format.unwrap_or_default()) {
            Counted::Actions => Some(found.actions),
            Counted::Steps => Some(found.steps),
            Counted::Trajectories => Some(found.trajectories),
            Counted::Otherwise(what) => {
                notes.push(format!("the manifest counts {what}"));
                None
            }
        };
        // A demonstration without a trajectory, and a resolver's file counted by its events.
        let odd = known.steps == Some(0) || known.file.starts_with("openhands-v0/resolver/");
        if ours.is_some_and(|n| n != steps) && !odd && known.format != "derived-malformed" {
            wrong.push(format!(
                "{} steps, {} actions, {} trajectories for {steps}",
                found.steps, found.actions, found.trajectories
            ));
        }
    }
    let patch = if found.patch { "y" } else { "n" };
    let broken = known.format == "derived-malformed";
    if ["y", "n"].contains(&known.patch) && known.patch != patch && !broken {
        wrong.push(format!("patch {patch}"));
    }
    if found.labels != [known.label] && !found.labels.is_empty() {
        match excused(known.file) {
            Some(why) => notes.push(why.to_owned()),
            None => wrong.push(format!("label {:?} for {}", found.labels, known.label)),
        }
    }
    (wrong, notes.join("; "))
}

#[test]
fn every_file_is_what_the_manifest_says() {
    let Some(shared) = shared() else { return };
    let corpus = shared.join("corpus");
    let dataset = load(std::slice::from_ref(&corpus), &|_| {});
    let issues = join(&dataset);
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let mut table =
        "file\tlisted as\tread as\tsteps listed\ttrajectories\tsteps\tactions\tpatch\tlabels\tnote\n".to_owned();
    let mut wrong = Vec::new();
    for line in manifest.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let known =
            Known { file: cells[0], format: cells[1], steps: cells[7].parse().ok(), patch: cells[9], label: cells[10] };
        let found = found(&dataset, &issues, &corpus.join(known.file));
        let (bad, note) = judge(&known, &found);
        wrong.extend(bad.into_iter().map(|b| format!("{}: {b} ({})", known.file, found.reason)));
        let note = note.replace(&corpus.display().to_string(), "corpus").replace('\t', " ");
        let format = found.format.unwrap_or("-");
        let patch = if found.trajectories == 0 {
            ""
        } else if found.patch {
            "y"
        } else {
            "n"
        };
        let steps = known.steps.map(|s| s.to_string()).unwrap_or_default();
        let (n, labels) = (found.trajectories, found.labels.join(","));
        writeln!(
            table,
            "{}\t{}\t{format}\t{steps}\t{n}\t{}\t{}\t{patch}\t{labels}\t{note}",
            known.file, known.format, found.steps, found.actions
        )
        .unwrap();
    }
    assert!(wrong.is_empty(), "{} files: {:#?}", wrong.len(), wrong);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus.tsv");
    compare(&path, &table);
}

fn compare(path: &PathBuf, table: &str) {
    if std::env::var_os("TRAJSCOPE_UPDATE").is_some() {
        std::fs::write(path, table).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    let differ = |(ours, theirs): &(&str, &str)| ours != theirs;
    let first = table.lines().zip(stored.lines()).find(differ);
    assert!(table == stored, "tests/corpus.tsv is old (TRAJSCOPE_UPDATE=1 writes it anew): {first:?}");
}
