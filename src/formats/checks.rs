//! Remarks about a trajectory that hold for every format.

use std::collections::BTreeSet;

use super::json;
use super::json::Value;
use crate::trajectory::{Diagnostic, Role, Severity, Step, ToolCall, Trajectory};

/// Tools and verbs that change a file.
const EDITS: [&str; 16] = [
    "str_replace",
    "insert",
    "create",
    "edit",
    "write",
    "multiedit",
    "write_file",
    "edit_file",
    "replace",
    "apply_patch",
    "search_replace",
    "create_file",
    "insert_text",
    "str_replace_based_edit",
    "notebookedit",
    "patch",
];

/// Remarks about the patch and about runs without any action.
pub fn check(trajectory: &mut Trajectory) {
    let mut remark = |severity, code, text: String| trajectory.diagnostics.push(Diagnostic::new(severity, code, text));
    match trajectory.patch.as_deref() {
        Some(patch) if patch.trim().is_empty() => {
            let files = edited(&trajectory.steps);
            if !files.is_empty() {
                let n = files.len();
                let text = format!(
                    "edited {n} file{}, patch empty: the changes were lost, undone or not asked for",
                    if n == 1 { "" } else { "s" }
                );
                remark(Severity::Warning, "patch.empty-but-edits", text);
            }
        }
        Some(patch) if !is_diff(patch) => {
            let text = "the submission is not a diff (a flag or an error text?): kept as it is";
            remark(Severity::Warning, "patch.not-a-diff", text.to_owned());
        }
        _ => {}
    }
    if trajectory.known_actions() == Some(0) {
        let text = "no assistant step: there is nothing to score".to_owned();
        trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "trajectory.no-action", text));
    }
}

fn is_diff(patch: &str) -> bool {
    patch.lines().any(|l| l.starts_with("diff --git ") || l.starts_with("--- ") || l.starts_with("@@ "))
}

/// The files that actions changed, as far as an editor's calls say so, and the environment did not refuse.
fn edited(steps: &[Step]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for (i, step) in steps.iter().enumerate().filter(|(_, s)| s.is_action()) {
        let answer = steps.get(i + 1).filter(|s| s.role == Role::Tool);
        if answer.is_some_and(|a| a.is_error == Some(true)) {
            continue;
        }
        files.extend(step.calls.iter().filter_map(edited_by));
        if step.calls.is_empty() {
            files.extend(step.action.as_deref().and_then(edited_in_words));
        }
    }
    files
}

fn edited_by(call: &ToolCall) -> Option<String> {
    let arguments = json::parse(call.arguments.as_bytes()).ok()?.value;
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = ["path", "file_path", "filename", "file"].iter().find_map(|k| text(k))?;
    // An editor of many commands says which; one of its own name needs none.
    let verb = text("command").unwrap_or(&call.name).to_lowercase();
    EDITS.contains(&verb.as_str()).then(|| path.to_owned())
}

/// `str_replace /a.py …`, `create a.py`: an editor's verb and a path, written as a command.
fn edited_in_words(action: &str) -> Option<String> {
    let mut words = action.lines().next()?.split_whitespace();
    let verb = words.next()?.to_lowercase();
    let path = words.next()?;
    let is_path = path.contains('/') || path.contains('.');
    (EDITS.contains(&verb.as_str()) && is_path).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: Vec<Step>, patch: &str) -> Vec<&'static str> {
        let mut trajectory = Trajectory { steps, patch: Some(patch.to_owned()), ..Trajectory::default() };
        check(&mut trajectory);
        trajectory.diagnostics.iter().map(|d| d.code).collect()
    }

    fn call(name: &str, arguments: &str) -> Step {
        let mut step = Step::new(Role::Assistant, "");
        step.calls = vec![ToolCall { id: String::new(), name: name.into(), arguments: arguments.into() }];
        step
    }

    fn said(action: &str) -> Step {
        Step { action: Some(action.to_owned()), ..Step::new(Role::Assistant, action) }
    }

    #[test]
    fn an_empty_patch_after_edits_is_remarked_and_counted() {
        let edit = || call("str_replace_editor", r#"{"command": "str_replace", "path": "/a.py"}"#);
        assert_eq!(run(vec![edit(), edit()], "\n"), ["patch.empty-but-edits"]);
        assert_eq!(run(vec![call("Edit", r#"{"file_path": "/a.py"}"#)], ""), ["patch.empty-but-edits"]);
        assert_eq!(run(vec![said("create a.py")], ""), ["patch.empty-but-edits"]);
        assert_eq!(edited(&[edit(), edit(), said("insert /b.py 3")]).len(), 2);
        assert_eq!(run(vec![edit()], "diff --git a/a b/a\n"), [] as [&str; 0]);
    }

    #[test]
    fn looking_and_refused_edits_are_none() {
        let view = call("str_replace_editor", r#"{"command": "view", "path": "/a.py"}"#);
        let mut refused = Step::new(Role::Tool, "no match");
        refused.is_error = Some(true);
        let edit = call("str_replace_editor", r#"{"command": "create", "path": "/a.py"}"#);
        assert_eq!(run(vec![view, edit, refused, said("ls a.py"), said("edit 1:2")], ""), [] as [&str; 0]);
        assert_eq!(run(vec![said("ls")], "exit_error"), ["patch.not-a-diff"]);
    }
}
