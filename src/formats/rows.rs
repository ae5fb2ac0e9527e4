//! Identity, label and patch of a row of a training set, under all the names they have.

use serde_json::Value;

use super::document::Row;
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
    let mut trajectory = Trajectory {
        instance_id: first(&["instance_id"]).or_else(|| instance_in_id(row)),
        attempt: first(&["traj_id", "trajectory_id", "run_id", "trial_name"]),
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
    if field::get(row, "generated_patch").is_some() {
        swe_agent_actions(&mut trajectory.steps);
    }
    trajectory
}

/// `id` names the instance in some sets (mini-coder); elsewhere it is anything.
fn instance_in_id(row: &Value) -> Option<String> {
    field::text(row, "id").filter(|id| super::names::looks_like_instance(id))
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
