//! Identity, label and patch of a row of a training set, under all the names they have.

use super::document::Row;
use super::json::Value;
use super::{action, chat, field};
use crate::trajectory::{Outcome, RawPlace, Role, Step, ToolSpec, Trajectory, Usage};

/// Pointer of a member of a row in the trajectory's own record: an element of a list has the whole list as its record.
pub fn pointer(row: Row<'_>, key: &str) -> String {
    if row.span.len == 0 { format!("/{}/{key}", row.record) } else { format!("/{key}") }
}

/// Where a row stands that is a step by itself.
pub fn place(row: Row<'_>) -> RawPlace {
    if row.span.len == 0 { RawPlace::element("", row.record) } else { RawPlace::record(row.span) }
}

/// A trajectory of a row's members; `steps` were read by the caller.
pub fn trajectory(row: &Value, steps: Vec<Step>) -> Trajectory {
    let first = |keys: &[&str]| keys.iter().find_map(|k| field::text(row, k));
    let outcome = outcome(row);
    let (instance, number) = instance(row);
    let mut trajectory = Trajectory {
        instance_id: instance,
        attempt: first(&["traj_id", "trajectory_id", "run_id", "trial_name"]).or(number),
        agent: first(&["agent", "agent_name"]),
        model: first(&["model", "model_name", "model_name_or_path"]),
        task: first(&["problem_statement"]),
        tools: tools(row),
        steps,
        patch: patch(row, outcome),
        exit_status: first(&["exit_status", "finish_reason", "exit_reason"]),
        error: first(&["error"]),
        outcome,
        usage: Usage::default(),
        ..Trajectory::default()
    };
    let benchmark = trajectory.instance_id.as_deref().is_some_and(super::names::looks_like_instance);
    if field::get(row, "generated_patch").is_some() || (benchmark && ends_in_fences(&trajectory.steps)) {
        swe_agent_actions(&mut trajectory.steps);
    }
    if trajectory.tools.is_empty() {
        observations(&mut trajectory.steps);
    }
    trajectory
}

/// The instance and the number that was put behind it to make the row's id unique. `id` names the instance in some
/// sets (mini-coder); elsewhere it is anything.
fn instance(row: &Value) -> (Option<String>, Option<String>) {
    match field::text(row, "instance_id") {
        Some(given) => match super::names::numbered_instance(&given) {
            (Some(instance), Some(number)) => (Some(instance), Some(number)),
            _ => (Some(given), None),
        },
        None => super::names::numbered_instance(field::str(row, "id").unwrap_or_default()),
    }
}

/// How observations begin that stand in user messages.
const OBSERVED: [&str; 7] = [
    "EXECUTION RESULT of [",
    "OBSERVATION:",
    "Observation:",
    "New Terminal Output",
    "Current terminal state",
    "<tool_response>",
    "<returncode>",
];

/// User messages that are the answer to an action in the text are observations: in runs without native calls only,
/// for there the critic is given both alike.
pub fn observations(steps: &mut [Step]) {
    if steps.iter().any(|s| !s.calls.is_empty()) {
        return;
    }
    let mut acted = false;
    for step in steps {
        let observed = OBSERVED.iter().any(|start| step.text.trim_start().starts_with(start));
        match step.role {
            Role::Assistant => acted = true,
            Role::User if acted && observed => step.role = Role::Tool,
            _ => {}
        }
    }
}

fn tools(row: &Value) -> Vec<ToolSpec> {
    let keys = ["tools", "tool_definitions"];
    let found = keys.iter().find_map(|k| field::embedded(row, k));
    found.as_deref().and_then(Value::as_array).map(|tools| chat::tool_specs(tools)).unwrap_or_default()
}

/// `resolved`, `target` (nebius), `verified` (mini-coder), `reward` 0 or 1, the report of an evaluation.
fn outcome(row: &Value) -> Outcome {
    let keys = ["resolved", "target", "verified", "reward"];
    let direct = keys.iter().find_map(|k| field::get(row, k).and_then(field::truth));
    let report = || field::at(row, &["test_result", "report", "resolved"]).and_then(field::truth);
    Outcome::from_bool(direct.or_else(report))
}

/// The agent's patch, never the gold one: rows of a benchmark carry that under `patch`, beside `test_patch`.
fn patch(row: &Value, outcome: Outcome) -> Option<String> {
    let named = ["generated_patch", "model_patch", "output_patch", "git_patch"];
    let evaluated = field::str_at(row, &["test_result", "git_patch"]);
    let benchmark = row.get("test_patch").is_some() || row.get("base_commit").is_some();
    let plain = if benchmark { None } else { field::str(row, "patch") };
    let patch = named.iter().find_map(|k| field::str(row, k)).or(evaluated).or(plain)?;
    // A resolved run has a patch: where the row shows none, it was lost, not empty.
    if patch.is_empty() && outcome == Outcome::Resolved { None } else { Some(patch.to_owned()) }
}

/// Does an answer usually end in a fence without a language, and none call a tool (SWE-smith's `ticks`)?
fn ends_in_fences(steps: &[Step]) -> bool {
    let acts = || steps.iter().filter(|s| s.is_action());
    let bare = acts().all(|s| s.calls.is_empty() && s.action.is_none());
    let fenced = acts().filter(|s| s.text.trim_end().ends_with("\n```") && action::last_fence(&s.text).is_some());
    bare && fenced.count() * 2 > acts().count()
}

/// Rows of SWE-agent runs: the last fenced block is the command, and the messages between are observations.
fn swe_agent_actions(steps: &mut [Step]) {
    let mut acted = false;
    for step in steps {
        match step.role {
            Role::Assistant => {
                acted = true;
                step.action = step.action.take().or_else(|| action::last_fence(&step.text).map(str::to_owned));
            }
            Role::User if acted => step.role = Role::Tool,
            _ => {}
        }
    }
}
