//! The actions of one trajectory in a line each: what the agent did, and whether the answer was an error.

use std::ops::Range;

use crate::text;
use crate::trajectory::{Step, ToolCall, Trajectory};

use super::facts::Loop;

/// Longest summary kept, in bytes of source text: more than any list is wide.
const SUMMARY_BYTES: usize = 240;

/// How an action ended, as far as its observations tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Nothing says that it failed.
    Fine,
    /// The environment says that it failed.
    Error,
    /// The command left with this exit code.
    Exit(i64),
    /// There is no observation: the run ended here.
    Silent,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineRow {
    /// Its step.
    pub step: usize,
    /// The steps of its observations.
    pub observations: Range<usize>,
    /// What the agent did, one safe line.
    pub summary: String,
    /// Tool name, where there is a call.
    pub tool: Option<String>,
    /// How it ended.
    pub ending: Ending,
    /// Part of a loop.
    pub looping: bool,
}

/// The actions of a trajectory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// One row an action.
    pub rows: Vec<OutlineRow>,
}

impl Outline {
    /// Reads a trajectory.
    pub fn of(trajectory: &Trajectory, loops: &[Loop]) -> Self {
        let steps = trajectory.action_steps();
        let ends = steps.iter().skip(1).copied().chain([trajectory.steps.len()]);
        let row = |(action, (&step, end)): (usize, (&usize, usize))| {
            let observations = step + 1..end;
            let (tool, summary) = summarise(&trajectory.steps[step]);
            let looping = loops.iter().any(|l| (l.start..l.start + l.period * l.rounds).contains(&action));
            let ending = ending(&trajectory.steps[observations.clone()]);
            OutlineRow { step, observations, summary, tool, ending, looping }
        };
        Self { rows: steps.iter().zip(ends).enumerate().map(row).collect() }
    }
}

fn ending(observations: &[Step]) -> Ending {
    if observations.is_empty() {
        return Ending::Silent;
    }
    let code = observations.iter().find_map(|s| s.exit_code.filter(|c| *c != 0));
    match code {
        Some(code) => Ending::Exit(code),
        None if observations.iter().any(|s| s.is_error == Some(true)) => Ending::Error,
        None => Ending::Fine,
    }
}

/// Tool and one line for an assistant step.
fn summarise(step: &Step) -> (Option<String>, String) {
    if let Some(call) = step.calls.first() {
        let more = step.calls.len() - 1;
        let more = if more > 0 { format!(" (+{more} more)") } else { String::new() };
        return (Some(text::one_line(&call.name)), format!("{}{more}", summarise_call(call)));
    }
    if let Some(action) = step.action.as_deref().filter(|a| !a.trim().is_empty()) {
        return (None, first_line(action));
    }
    if step.text.trim().is_empty() {
        return (None, "(no action: the turn is blank)".to_owned());
    }
    (None, format!("“{}”", first_line(&step.text)))
}

/// The arguments as they matter in a list: a command alone, else the values in their order.
fn summarise_call(call: &ToolCall) -> String {
    let Ok(serde_json::Value::Object(arguments)) = serde_json::from_str(&call.arguments) else {
        return first_line(&call.arguments);
    };
    let values: Vec<String> = arguments.values().take(4).map(summarise_value).filter(|v| !v.is_empty()).collect();
    values.join(" ")
}

/// A value in one line: a command in words as one typed it, a patch by the first file it touches.
fn summarise_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(s) if s.trim_start().starts_with("*** Begin Patch") => {
            let files: Vec<&str> =
                s.lines().filter_map(|l| l.strip_prefix("*** ")?.split_once(" File: ")).map(|(_, f)| f).collect();
            let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
            files.first().map_or_else(|| first_line(s), |file| format!("{}{more}", text::one_line(file)))
        }
        serde_json::Value::String(s) => first_line(s),
        serde_json::Value::Array(words) if !words.is_empty() && words.iter().all(serde_json::Value::is_string) => {
            let words: Vec<&str> = words.iter().filter_map(serde_json::Value::as_str).collect();
            match words.as_slice() {
                [shell, flag, script] if shell.ends_with("sh") && flag.starts_with('-') => first_line(script),
                _ => first_line(&words.join(" ")),
            }
        }
        other => first_line(&other.to_string()),
    }
}

/// The first line that says something, cut to a length no list shows, with a mark if more follows.
fn first_line(raw: &str) -> String {
    let mut lines = raw.lines().filter(|l| !l.trim().is_empty());
    let Some(first) = lines.next() else {
        return String::new();
    };
    let mut end = first.len().min(SUMMARY_BYTES);
    while !first.is_char_boundary(end) {
        end -= 1;
    }
    let more = if lines.next().is_some() || end < first.len() { " …" } else { "" };
    format!("{}{more}", text::one_line(&first[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Role;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    #[test]
    fn a_call_shows_its_values_and_invalid_arguments_as_they_are() {
        let mut step = Step::new(Role::Assistant, "");
        step.calls = vec![call("bash", r#"{"command": "ls -l\ncat x"}"#)];
        assert_eq!(summarise(&step), (Some("bash".to_owned()), "ls -l …".to_owned()));
        step.calls = vec![call("edit", r#"{"command":"view","path":"/a.py","range":[1,2]}"#), call("bash", "{}")];
        assert_eq!(summarise(&step).1, "view /a.py [1,2] (+1 more)");
        step.calls = vec![call("bash", "{not json")];
        assert_eq!(summarise(&step).1, "{not json");
        step.calls = vec![call("shell", r#"{"command":["bash","-lc","ls -a"]}"#)];
        assert_eq!(summarise(&step).1, "ls -a");
        step.calls = vec![call("shell", r#"{"command":["git","diff"],"workdir":"/w"}"#)];
        assert_eq!(summarise(&step).1, "git diff /w");
        let patch = r#"{"input":"*** Begin Patch\n*** Update File: a.py\n+x\n*** Add File: b.py\n+y\n*** End Patch"}"#;
        step.calls = vec![call("apply_patch", patch)];
        assert_eq!(summarise(&step).1, "a.py and 1 more");
    }

    #[test]
    fn a_blank_turn_says_so_and_prose_is_quoted() {
        assert!(summarise(&Step::new(Role::Assistant, " \n")).1.contains("no action"));
        assert_eq!(summarise(&Step::new(Role::Assistant, "\nI am done.\nBye")).1, "“I am done. …”");
    }

    #[test]
    fn hostile_text_is_made_safe_and_cut_at_a_character() {
        let raw = format!("{}→ [/dim]\x1b[2J", "a".repeat(SUMMARY_BYTES - 1));
        let line = first_line(&raw);
        assert!(!line.contains('\x1b') && line.ends_with(" …"), "{line}");
    }

    #[test]
    fn endings_come_from_the_observations_that_follow() {
        let mut fail = Step::new(Role::Tool, "boom");
        fail.exit_code = Some(2);
        let mut error = Step::new(Role::Tool, "no such tool");
        error.is_error = Some(true);
        let turn = || Step::new(Role::Assistant, "x");
        let fine = Step::new(Role::User, "ok");
        let steps = vec![Step::new(Role::System, ""), turn(), fail, turn(), error, turn(), fine, turn()];
        let outline = Outline::of(&Trajectory { steps, ..Trajectory::default() }, &[]);
        let endings: Vec<Ending> = outline.rows.iter().map(|r| r.ending).collect();
        assert_eq!(endings, [Ending::Exit(2), Ending::Error, Ending::Fine, Ending::Silent]);
        assert_eq!(outline.rows[2].observations, 6..7);
    }
}
