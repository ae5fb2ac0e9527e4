//! What the readers of agents' session files share: counting what is not shown, putting the parts of one answer
//! together, pairing results with calls, and summing what the steps say.

use std::collections::{BTreeMap, HashMap};

use super::json::Value;
use super::{action, chat, field, names};
use crate::trajectory::{Diagnostic, Role, Severity, Step, ToolCall, Trajectory, Usage};

/// Characters of a record that is shown raw because nothing better is known about it.
const EXCERPT: usize = 200;
/// Kinds named one by one in a remark; further ones are counted together.
const NAMED_KINDS: usize = 20;
/// Longest name of a kind in a remark.
const KIND: usize = 40;

/// Counts the records that are not shown, or shown raw.
#[derive(Debug, Default)]
pub struct Tally {
    skipped: BTreeMap<String, usize>,
    unknown: BTreeMap<String, usize>,
}

impl Tally {
    /// A record with nothing in it for a reader, or that repeats another.
    pub fn skip(&mut self, kind: &str) {
        count(&mut self.skipped, kind);
    }

    /// A record of a kind that is not known: it is shown raw.
    pub fn unknown(&mut self, kind: &str) {
        count(&mut self.unknown, kind);
    }

    /// The remarks.
    pub fn finish(self) -> Vec<Diagnostic> {
        let mut remarks = Vec::new();
        for (kind, n) in self.unknown {
            let (s, are) = if n == 1 { ("", "is") } else { ("s", "are") };
            let text = format!("{n} record{s} of unknown type `{kind}` {are} shown raw");
            remarks.push(Diagnostic::new(Severity::Info, "session.unknown-record", text));
        }
        if !self.skipped.is_empty() {
            let all: usize = self.skipped.values().sum();
            let kinds: Vec<String> = self.skipped.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
            let text = format!("{all} bookkeeping records are counted, not shown: {}", kinds.join(", "));
            remarks.push(Diagnostic::new(Severity::Info, "session.bookkeeping", text));
        }
        remarks
    }
}

fn count(kinds: &mut BTreeMap<String, usize>, kind: &str) {
    let mut name: String = kind.chars().filter(|c| !c.is_control()).take(KIND).collect();
    if kinds.len() >= NAMED_KINDS && !kinds.contains_key(&name) {
        name = "others".to_owned();
    }
    *kinds.entry(name).or_insert(0) += 1;
}

/// A record shown raw: what it is and how it begins.
pub fn raw_step(kind: &str, record: &Value) -> Step {
    let mut text: String = record.to_string().chars().take(EXCERPT + 1).collect();
    if text.chars().count() > EXCERPT {
        text = text.chars().take(EXCERPT).chain(['…']).collect();
    }
    Step::new(Role::Meta, format!("{kind}: {text}"))
}

/// A line about something that happened beside the conversation.
pub fn note(kind: &str, text: &str) -> Step {
    Step::new(Role::Meta, if text.is_empty() { kind.to_owned() } else { format!("{kind}: {text}") })
}

/// Text of content in blocks, with a word in place of what is no text: never the bytes of an image.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().filter_map(part_text).filter(|t| !t.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(_) => part_text(content).unwrap_or_default(),
        other => chat::content_text(other),
    }
}

fn part_text(part: &Value) -> Option<String> {
    if let Some(text) = part.as_str() {
        return Some(text.to_owned());
    }
    let media = || {
        let places = [&["source", "media_type"][..], &["mimeType"], &["mime"], &["inlineData", "mimeType"]];
        places.iter().find_map(|path| field::str_at(part, path)).map_or(String::new(), |m| format!(" {m}"))
    };
    match field::str(part, "type").unwrap_or_default() {
        "image" | "input_image" | "image_url" => Some(format!("[image{}]", media())),
        "document" | "file" | "audio" | "video" => Some(format!("[{}{}]", field::str(part, "type")?, media())),
        "tool_reference" => Some(format!("[tool {}]", field::str(part, "tool_name").unwrap_or("reference"))),
        "tool_use" | "server_tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "reasoning"
        | "toolCall" | "tool_call" | "tool-call" | "tool-result" => None,
        _ if field::get(part, "inlineData").is_some() => Some(format!("[data{}]", media())),
        _ => match field::get(part, "text").or_else(|| field::get(part, "content")) {
            Some(inner) => Some(text_of(inner)),
            None if part.is_null() => None,
            None => Some(raw_step("part", part).text),
        },
    }
}

/// Puts another part of the same answer to an action.
pub fn add_part(step: &mut Step, more: Step) {
    step.raw.add(&more.raw);
    if !more.text.is_empty() {
        if !step.text.is_empty() {
            step.text.push('\n');
        }
        step.text.push_str(&more.text);
    }
    step.reasoning = match (step.reasoning.take(), more.reasoning) {
        (Some(a), Some(b)) => Some(format!("{a}\n{b}")),
        (a, b) => a.or(b),
    };
    step.calls.extend(more.calls);
    step.cost = match (step.cost, more.cost) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    step.timestamp = step.timestamp.take().or(more.timestamp);
    step.id = step.id.take().or(more.id);
    step.tokens = step.tokens.or(more.tokens);
}

/// An action of these calls, with what it says.
pub fn answer(text: String, reasoning: Option<String>, calls: Vec<ToolCall>) -> Step {
    let reasoning = reasoning.filter(|r| !r.is_empty());
    Step { reasoning, calls, ..Step::new(Role::Assistant, text) }
}

/// A result of a call.
pub fn result(call_id: Option<String>, text: String, is_error: Option<bool>) -> Step {
    Step { call_id, is_error, ..Step::new(Role::Tool, text) }
}

/// What every session needs once all its steps are there: results stand behind the action whose call they answer,
/// they have its name, and every action has a command to show.
pub fn settle(steps: &mut Vec<Step>) {
    pair(steps);
    for step in steps.iter_mut().filter(|s| s.role == Role::Assistant) {
        step.action =
            step.action.take().or_else(|| action::of_calls(&step.calls)).or_else(|| action::in_text(&step.text));
    }
}

/// Moves results that come late (parallel calls, a call in the background) to the action they answer, and names them.
fn pair(steps: &mut Vec<Step>) {
    let mut calls: HashMap<String, (usize, String)> = HashMap::new();
    let mut owners = Vec::with_capacity(steps.len());
    let mut owner = 0;
    for (at, step) in steps.iter_mut().enumerate() {
        match step.role {
            Role::Assistant => {
                owner = at + 1;
                let named = step.calls.iter().filter(|c| !c.id.is_empty());
                calls.extend(named.map(|c| (c.id.clone(), (owner, c.name.clone()))));
                owners.push(owner);
            }
            Role::Tool => match step.call_id.as_ref().and_then(|id| calls.get(id)) {
                Some((of, name)) => {
                    step.tool_name = step.tool_name.take().or_else(|| Some(name.clone()));
                    owners.push(*of);
                }
                None => owners.push(owner),
            },
            _ => owners.push(owner),
        }
    }
    if !owners.is_sorted() {
        let mut keyed: Vec<(usize, Step)> = owners.into_iter().zip(std::mem::take(steps)).collect();
        keyed.sort_by_key(|(owner, _)| *owner);
        steps.extend(keyed.into_iter().map(|(_, step)| step));
    }
}

/// Totals of what the steps say: a sum is unknown where no step says anything.
pub fn totals(steps: &[Step]) -> Usage {
    let mut usage = Usage::default();
    for step in steps.iter().filter(|s| !s.is_demo) {
        if let Some(tokens) = step.tokens {
            usage.tokens_in = Some(usage.tokens_in.unwrap_or(0).saturating_add(tokens.input));
            usage.tokens_out = Some(usage.tokens_out.unwrap_or(0).saturating_add(tokens.output));
            usage.api_calls = Some(usage.api_calls.unwrap_or(0) + 1);
            if let Some(cached) = tokens.cached {
                usage.tokens_cached = Some(usage.tokens_cached.unwrap_or(0).saturating_add(cached));
            }
        }
        if let Some(cost) = step.cost {
            usage.cost = Some(usage.cost.unwrap_or(0.0) + cost);
        }
    }
    usage
}

/// The instance a prompt names: agents that have no notion of one are told `instance_id: org__repo-1`.
pub fn instance_in_prompt(steps: &[Step]) -> Option<String> {
    let first = steps.iter().find(|s| s.role == Role::User && s.text.contains("instance_id"))?;
    let (_, rest) = first.text.split_once("instance_id")?;
    let rest = rest.trim_start_matches(['"', '\'', '`', ':', '=', ' ', '*']);
    let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "_-.".contains(*c)).collect();
    Some(name).filter(|n| names::looks_like_instance(n))
}

/// Fills in what follows from the steps.
pub fn complete(trajectory: &mut Trajectory) {
    settle(&mut trajectory.steps);
    // A sub-agent's task is none of its own: it must not stand among the attempts at the issue.
    if trajectory.instance_id.is_none() && trajectory.parent.is_none() {
        trajectory.instance_id = instance_in_prompt(&trajectory.steps);
    }
}

/// Exit code that a tool writes on the first lines of its output: `Exit code 1`, `Process exited with code 1`.
pub fn exit_code_in(text: &str) -> Option<i64> {
    let marks = ["Exit code: ", "Exit code ", "Process exited with code "];
    text.lines().take(4).find_map(|line| {
        let rest = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
        rest.trim().parse().ok()
    })
}

/// A time in milliseconds or seconds since 1970, or as written, as text.
pub fn time_of(value: &Value) -> Option<String> {
    field::scalar_text(value)
}

#[cfg(test)]
mod tests {
    use super::super::json::json;

    use super::*;
    use crate::trajectory::Tokens;

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall { id: id.into(), name: name.into(), arguments: String::new() }
    }

    #[test]
    fn late_results_stand_behind_their_action() {
        let mut steps = vec![
            Step::new(Role::User, "go"),
            answer(String::new(), None, vec![call("a", "read"), call("b", "grep")]),
            result(Some("b".into()), "B".into(), None),
            answer("next".into(), None, vec![call("c", "bash")]),
            result(Some("a".into()), "A".into(), None),
            Step::new(Role::User, "thanks"),
            result(Some("nobody".into()), "?".into(), None),
        ];
        settle(&mut steps);
        let seen: Vec<(&str, Option<&str>)> = steps.iter().map(|s| (s.text.as_str(), s.tool_name.as_deref())).collect();
        let right = [
            ("go", None),
            ("", None),
            ("B", Some("grep")),
            ("A", Some("read")),
            ("next", None),
            ("thanks", None),
            ("?", None),
        ];
        assert_eq!(seen, right);
        assert_eq!(steps[1].action.as_deref(), Some("read\ngrep"));
    }

    #[test]
    fn sums_of_nothing_are_unknown() {
        let mut steps = vec![Step::new(Role::Assistant, "a")];
        assert_eq!(totals(&steps), Usage::default());
        steps[0].tokens = Some(Tokens { input: 5, cached: None, output: 1 });
        let mut copy = Step::new(Role::Assistant, "b");
        copy.tokens = Some(Tokens { input: 7, cached: Some(2), output: 1 });
        copy.is_demo = true;
        steps.push(copy);
        let right = Usage { tokens_in: Some(5), tokens_out: Some(1), api_calls: Some(1), ..Usage::default() };
        assert_eq!(totals(&steps), right);
    }

    #[test]
    fn blocks_become_text_and_images_a_word() {
        let content = json!([{"type": "text", "text": "a"}, {"type": "tool_reference", "tool_name": "Grep"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}, "b",
            {"type": "tool_use", "id": "x"}, {"type": "odd", "x": 1}]);
        assert_eq!(text_of(&content), "a\n[tool Grep]\n[image image/png]\nb\npart: {\"type\":\"odd\",\"x\":1}");
    }

    #[test]
    fn a_prompt_may_name_the_instance() {
        let steps = |text: &str| vec![Step::new(Role::User, text)];
        assert_eq!(instance_in_prompt(&steps("  instance_id: o__r-12\n x")).as_deref(), Some("o__r-12"));
        assert_eq!(instance_in_prompt(&steps("\"instance_id\": \"o__r-12\"")).as_deref(), Some("o__r-12"));
        assert_eq!(instance_in_prompt(&steps("instance_id of nothing")), None);
    }

    #[test]
    fn exit_codes_are_found_in_the_first_lines_only() {
        assert_eq!(exit_code_in("Exit code 2\nno such file"), Some(2));
        assert_eq!(exit_code_in("Chunk ID: 1\nProcess exited with code 0\nOutput:\n"), Some(0));
        assert_eq!(exit_code_in("a\nb\nc\nd\nExit code 2"), None);
        assert_eq!(exit_code_in("Exit code of it"), None);
    }

    #[test]
    fn many_kinds_are_counted_together() {
        let mut tally = Tally::default();
        for i in 0..30 {
            tally.unknown(&format!("kind{i:02}"));
        }
        tally.skip("b");
        tally.skip("a");
        tally.skip("b");
        let remarks = tally.finish();
        assert_eq!(remarks.len(), 22);
        assert!(remarks.iter().any(|d| d.message == "10 records of unknown type `others` are shown raw"));
        assert_eq!(remarks[21].message, "3 bookkeeping records are counted, not shown: a 1, b 2");
    }
}
