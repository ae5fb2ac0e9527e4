//! What Terminus types: its answers are a JSON object (or XML) of keystrokes instead of calls.

use super::json::Value;
use super::{field, json};

/// Keystrokes of an answer, one command a line, and what was thought before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What is typed; the mark that the task is done is a line of its own.
    pub action: String,
    /// Analysis and plan.
    pub thought: Option<String>,
}

/// Shown for an answer that only says the task is done.
const DONE: &str = "task_complete";

/// Reads an answer; `None` if the text is none. Text around the object and broken JSON are common and allowed.
pub fn answer(text: &str) -> Option<Answer> {
    in_json(text).or_else(|| in_xml(text))
}

fn in_json(text: &str) -> Option<Answer> {
    if !text.contains("\"commands\"") {
        return None;
    }
    let starts = text.match_indices('{').map(|(at, _)| at).take(8);
    let values = starts.filter_map(|at| {
        let rest = text.get(at..)?.as_bytes();
        json::strict_prefix(rest).map(|(v, _)| v).or_else(|| json::repair_prefix(rest).ok().map(|p| p.value))
    });
    let value = values.into_iter().find(|v| v.get("commands").is_some_and(Value::is_array))?;
    let mut typed: Vec<String> = field::list(&value, "commands").iter().filter_map(keystrokes).collect();
    let done = |key: &&str| field::get(&value, key).and_then(field::truth) == Some(true);
    if [DONE, "is_task_complete"].iter().any(done) {
        typed.push(DONE.to_owned());
    }
    if typed.is_empty() {
        return None;
    }
    // The first Terminus called them otherwise.
    let thoughts = ["analysis", "plan", "state_analysis", "explanation"];
    let thought: Vec<&str> = thoughts.iter().filter_map(|k| field::str(&value, k)).collect();
    Some(Answer { action: typed.join("\n"), thought: Some(thought.join("\n")).filter(|t| !t.is_empty()) })
}

fn keystrokes(command: &Value) -> Option<String> {
    let typed = command.as_str().or_else(|| field::str(command, "keystrokes"))?.trim_end_matches(['\n', '\r']);
    Some(typed.to_owned()).filter(|t| !t.is_empty())
}

fn in_xml(text: &str) -> Option<Answer> {
    let mut typed: Vec<String> = Vec::new();
    for part in text.split("<keystrokes").skip(1) {
        let (_, body) = part.split_once('>')?;
        let body = body.split("</keystrokes>").next().unwrap_or(body).trim_end_matches(['\n', '\r']);
        typed.extend(Some(unescaped(body)).filter(|b| !b.is_empty()));
    }
    if element(text, DONE).is_some_and(|t| t.trim() == "true") {
        typed.push(DONE.to_owned());
    }
    if typed.is_empty() {
        return None;
    }
    let thought: Vec<&str> = ["analysis", "plan"].iter().filter_map(|k| element(text, k)).map(str::trim).collect();
    Some(Answer { action: typed.join("\n"), thought: Some(thought.join("\n")).filter(|t| !t.is_empty()) })
}

fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Option<String>)> {
        answer(text).map(|a| (a.action, a.thought))
    }

    #[test]
    fn json_answers_are_read_with_text_around_them_and_broken() {
        let whole = r#"I go. {"analysis": "A", "plan": "P", "commands": [{"keystrokes": "ls\n", "duration": 0.1}, {"keystrokes": "pwd\n"}], "task_complete": false} ok"#;
        assert_eq!(read(whole), Some(("ls\npwd".into(), Some("A\nP".into()))));
        let cut = r#"{"analysis": "A", "commands": [{"keystrokes": "ls -la\n"},]"#;
        assert_eq!(read(cut), Some(("ls -la".into(), Some("A".into()))));
        let done = r#"{"commands": [], "task_complete": true}"#;
        assert_eq!(read(done), Some(("task_complete".into(), None)));
        let first = r#"{"state_analysis": "S", "explanation": "E", "commands": [{"keystrokes": "ls\n", "is_blocking": true}], "is_task_complete": true}"#;
        assert_eq!(read(first), Some(("ls\ntask_complete".into(), Some("S\nE".into()))));
        assert_eq!(read(r#"{"commands": []}"#), None);
        assert_eq!(read(r#"a {x} "commands""#), None);
    }

    #[test]
    fn xml_answers_are_read() {
        let text = "<response><analysis>A</analysis><plan>P</plan><commands><keystrokes duration=\"0.1\">cat a &gt; b\n</keystrokes>\
                    <keystrokes>x</keystrokes></commands><task_complete>true</task_complete></response>";
        assert_eq!(read(text), Some(("cat a > b\nx\ntask_complete".into(), Some("A\nP".into()))));
        assert_eq!(read("<analysis>A</analysis>"), None);
        assert_eq!(read("nothing"), None);
    }
}
