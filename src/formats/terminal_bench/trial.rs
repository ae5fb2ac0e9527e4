//! The folder of one trial.

use super::super::cast::Recording;
use super::super::document::Document;
use super::super::json::Value;
use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{field, trial};
use super::run::Verdict;
use crate::trajectory::{Diagnostic, Role, Severity, Step, Trajectory};

/// The recording of the agent's terminal.
const RECORDING: &str = "sessions/agent.cast";

/// `results.json` beside recordings, panes or logs; a trial that was killed has no `results.json` yet.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let panes = !folder.files_in("panes").is_empty();
    let sessions = !folder.files_in("sessions").is_empty();
    let commands = folder.find("commands.txt").is_some();
    let result = folder.find("results.json");
    let reason = match result {
        Some((_, entry)) if panes || sessions || commands || !folder.files_below("agent-logs").is_empty() => {
            let value = entry.value()?;
            let fits = value.get("task_id").is_some() && value.get("is_resolved").is_some();
            fits.then_some("a folder with the result of a trial and its recordings")?
        }
        None if sessions && panes && commands => "a folder with the recordings of a trial that has no result",
        _ => return None,
    };
    Some(Claim { members: (0..folder.entries.len()).collect(), reason: reason.into() })
}

/// Reads the folder of a trial.
pub fn decode(input: &FolderInput<'_>) -> Decoded {
    let result = input.find("results.json").and_then(Entry::value).unwrap_or(Value::Null);
    let verdict = Verdict::of(&result);
    let mut decoded = Decoded::default();
    let log = trial::log(input, "agent-logs").or_else(|| trial::log(input, "agent"));
    match log {
        Some(log) => decoded.trajectories = log.trajectories,
        None => decoded.trajectories.extend(recorded(input)),
    }
    let Some(main) = decoded.trajectories.first_mut() else {
        let mut report = verdict.report();
        report.path = input.path.join("results.json");
        decoded.reports.push(report);
        let text = "neither the agent's log nor a recording of its terminal is there: only the outcome is known";
        decoded.diagnostics.push(Diagnostic::new(Severity::Warning, "terminal-bench.no-log", text));
        return decoded;
    };
    describe(main, &verdict, &result, input);
    for (record, trajectory) in decoded.trajectories.iter_mut().enumerate() {
        trajectory.format = input.format;
        trajectory.source.record = record;
        // A sub-agent's task is none of its own: it does not stand among the attempts at the task.
        if trajectory.parent.is_some() {
            trajectory.instance_id = None;
        }
    }
    decoded
}

/// The recording as a trajectory.
fn recorded(input: &FolderInput<'_>) -> Option<Trajectory> {
    let entry = input.find(RECORDING)?;
    let content = entry.read().ok()?;
    let document = Document::read(&content.bytes);
    let (recording, mut diagnostics) = Recording::read(&document);
    diagnostics.extend(recording.remarks());
    let mut steps = recording.steps;
    for step in &mut steps {
        step.raw = trial::whole_file(&entry.path);
    }
    Some(Trajectory { steps, diagnostics, ..Trajectory::default() })
}

fn describe(main: &mut Trajectory, verdict: &Verdict, result: &Value, input: &FolderInput<'_>) {
    main.instance_id = verdict.task.clone().or_else(|| main.instance_id.take());
    main.attempt.clone_from(&verdict.attempt);
    main.task = field::text(result, "instruction").or_else(|| main.task.take());
    main.outcome = verdict.outcome;
    main.exit_status = verdict.failure.clone().or_else(|| main.exit_status.take());
    let count = |key: &str| field::get(result, key).and_then(field::count).filter(|n| *n > 0);
    main.usage.tokens_in = count("total_input_tokens").or(main.usage.tokens_in);
    main.usage.tokens_out = count("total_output_tokens").or(main.usage.tokens_out);
    let metadata = metadata(input);
    main.agent = field::text(&metadata, "agent_name").or_else(|| main.agent.take());
    main.model = field::text(&metadata, "model_name").or_else(|| main.model.take());
    // What the tests said, and the screen they left.
    if let Some(text) = verdict.tests_text() {
        let raw = trial::inside_file(&input.path.join("results.json"), "/parser_results");
        main.steps.push(Step { raw, ..Step::new(Role::Meta, text) });
    }
    let pane = input.find("panes/post-test.txt");
    if let Some((entry, text)) = pane.and_then(|e| Some((e, trial::text(e)?))).filter(|(_, t)| !t.trim().is_empty()) {
        let raw = trial::whole_file(&entry.path);
        main.steps.push(Step { raw, ..Step::new(Role::Meta, format!("the screen after the tests:\n{text}")) });
    }
}

/// `run_metadata.json` of the run, one or two folders above the task's.
fn metadata(input: &FolderInput<'_>) -> Value<'static> {
    let above = input.path.ancestors().skip(1).take(3).map(|dir| dir.join("run_metadata.json"));
    let found = above.filter(|path| path.is_file()).find_map(|path| Entry::on_disk(path, 0).value());
    found.unwrap_or(Value::Null)
}
