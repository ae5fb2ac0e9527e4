//! Cursor's transcripts: lines without ids, times or results; older ones are plain text.

use super::super::json::{Map, Value};
use super::super::sniff::{Form, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{chat, field, session};
use super::{call, certain, of_file};
use crate::trajectory::{ByteSpan, RawPlace, Role, Step, ToolCall};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = |r: &&Value| {
        let content = field::at(r, &["message", "content"]).is_some();
        let foreign = ["type", "uuid", "id", "timestamp"].iter().any(|k| r.get(k).is_some());
        field::str(r, "role").is_some() && content && !foreign
    };
    let rows = sniff.form == Form::Lines || sniff.form == Form::Object;
    certain(rows && !sniff.rows.is_empty() && sniff.rows.iter().all(fits), "lines of `role` and `message`, no ids")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut steps: Vec<Step> = Vec::new();
    let diagnostics = input.document.rows(|row| {
        let content = field::at(row.value, &["message", "content"]).unwrap_or(&Value::Null);
        let parts = content.as_array().map_or(&[][..], Vec::as_slice);
        let text = session::text_of(content);
        let step = if chat::role_of(row.value) == Role::Assistant {
            let calls = parts.iter().filter(|p| field::str(p, "type") == Some("tool_use"));
            session::answer(text, None, calls.map(|p| call(p, "id", "name", "input")).collect())
        } else {
            Step::new(chat::role_of(row.value), asked(&text))
        };
        steps.push(Step { raw: RawPlace::record(row.span), ..step });
    });
    Decoded { trajectories: vec![of_file(input, "Cursor", steps)], diagnostics, ..Decoded::default() }
}

/// The prompt itself stands between tags.
fn asked(text: &str) -> String {
    let inside = text.split_once("<user_query>").and_then(|(before, rest)| {
        let (query, after) = rest.split_once("</user_query>")?;
        // More around it is context the model saw too: kept.
        (before.trim().is_empty() && after.trim().is_empty()).then_some(query)
    });
    inside.unwrap_or(text).trim().to_owned()
}

const HEADS: [(&str, Role); 2] = [("user:", Role::User), ("assistant:", Role::Assistant)];

pub(super) fn sniff_text(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    let first = text.lines().find(|l| !l.trim().is_empty())?.trim_end();
    certain(HEADS.iter().any(|(head, _)| first == *head), "the first line is `user:` or `assistant:`")
}

pub(super) fn decode_text(input: &Input<'_>) -> Decoded {
    let mut reader = Text::default();
    for (span, line) in &input.document.text_lines() {
        reader.line(line.trim_end_matches(['\n', '\r']), *span);
    }
    reader.close();
    Decoded { trajectories: vec![of_file(input, "Cursor", reader.steps)], ..Decoded::default() }
}

/// What the lines at hand belong to.
#[derive(Default, PartialEq, Clone, Copy)]
enum Part {
    #[default]
    Text,
    Thinking,
    Call,
    Result,
}

#[derive(Default)]
struct Text {
    steps: Vec<Step>,
    part: Part,
    block: String,
    span: ByteSpan,
    name: String,
    role: Option<Role>,
}

impl Text {
    fn line(&mut self, line: &str, span: ByteSpan) {
        if let Some((_, role)) = HEADS.iter().find(|(head, _)| line.trim_end() == *head) {
            self.close();
            (self.role, self.part, self.span) = (Some(*role), Part::Text, span);
            if *role == Role::Assistant {
                self.answer();
            }
            return;
        }
        let marks = [("[Thinking]", Part::Thinking), ("[Tool call]", Part::Call), ("[Tool result]", Part::Result)];
        let mark = marks.iter().find_map(|(mark, part)| Some((*part, line.strip_prefix(mark)?.trim())));
        if let Some((part, rest)) = mark.filter(|_| self.role == Some(Role::Assistant)) {
            self.close();
            (self.part, self.span) = (part, span);
            if part == Part::Thinking {
                self.block.push_str(rest);
                self.block.push('\n');
            } else {
                rest.clone_into(&mut self.name);
            }
        } else {
            self.block.push_str(line);
            self.block.push('\n');
            self.span.len = (span.start + span.len).saturating_sub(self.span.start);
        }
    }

    /// The answer that takes the next part: what comes behind a result is another one.
    fn answer(&mut self) -> Option<&mut Step> {
        let open = self.steps.last().is_some_and(|s| s.role == Role::Assistant);
        if !open {
            let raw = RawPlace::record(self.span);
            self.steps.push(Step { raw, ..Step::new(Role::Assistant, "") });
        }
        let end = self.span.start + self.span.len;
        let step = self.steps.last_mut()?;
        step.raw.span.len = end.saturating_sub(step.raw.span.start);
        Some(step)
    }

    fn close(&mut self) {
        let block = std::mem::take(&mut self.block);
        let text = block.trim();
        let part = std::mem::take(&mut self.part);
        match (self.role, part) {
            (Some(Role::User), _) => {
                let raw = RawPlace::record(self.span);
                self.steps.push(Step { raw, ..Step::new(Role::User, asked(text)) });
            }
            (Some(_), Part::Result) => {
                let name = Some(std::mem::take(&mut self.name)).filter(|n| !n.is_empty());
                let raw = RawPlace::record(self.span);
                self.steps.push(Step { raw, tool_name: name, ..Step::new(Role::Tool, text) });
            }
            (Some(_), Part::Call) => {
                let name = std::mem::take(&mut self.name);
                let arguments = arguments(text);
                if let Some(step) = self.answer() {
                    step.calls.push(ToolCall { id: String::new(), name, arguments });
                }
            }
            (Some(_), Part::Thinking) if !text.is_empty() => {
                if let Some(step) = self.answer() {
                    session::add_part(step, session::answer(String::new(), Some(text.to_owned()), Vec::new()));
                }
            }
            (Some(_), Part::Text) if !text.is_empty() => {
                if let Some(step) = self.answer() {
                    session::add_part(step, Step::new(Role::Assistant, text));
                }
            }
            _ => {}
        }
        // An answer of nothing (a head, then a user's) is none.
        let empty =
            |s: &Step| s.role == Role::Assistant && s.text.is_empty() && s.calls.is_empty() && s.reasoning.is_none();
        if self.steps.last().is_some_and(empty) {
            self.steps.pop();
        }
    }
}

/// `name: value` lines, indented, as an object; anything else as it is.
fn arguments(text: &str) -> String {
    let mut members = Map::new();
    let mut last: Option<String> = None;
    for line in text.lines() {
        match line.trim_start().split_once(':') {
            Some((key, value)) if !key.is_empty() && !key.contains(' ') => {
                members.insert(key, Value::from(value.trim()));
                last = Some(key.to_owned());
            }
            _ => match last.as_ref().and_then(|k| members.get_mut(k)) {
                Some(Value::String(value)) => {
                    let value = value.to_mut();
                    value.push('\n');
                    value.push_str(line.trim_end());
                }
                _ => return text.to_owned(),
            },
        }
    }
    Value::Object(members).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_lines_of_name_and_value() {
        assert_eq!(arguments("  path: a.py\n  limit: 5"), r#"{"path":"a.py","limit":"5"}"#);
        assert_eq!(arguments("  command: a\n    b c"), "{\"command\":\"a\\n    b c\"}");
        assert_eq!(arguments("just text"), "just text");
        assert_eq!(arguments(""), "{}");
    }

    #[test]
    fn a_prompt_stands_between_tags_unless_more_is_around_it() {
        assert_eq!(asked("<user_query>\nSum.\n</user_query>"), "Sum.");
        assert_eq!(asked("plain"), "plain");
        let around = "<context>x</context><user_query>Sum.</user_query>";
        assert_eq!(asked(around), around);
    }

    #[test]
    fn blocks_of_text_become_answers_and_results() {
        let mut reader = Text::default();
        let text = "user:\nhi\nassistant:\n[Tool call] A\n  x: 1\n[Tool call] B\n[Tool result] A\nr1\n[Tool result] B\nr2\nlater\n\
                    assistant:\nassistant:\nend\n";
        for line in text.lines() {
            reader.line(line, ByteSpan::default());
        }
        reader.close();
        let steps: Vec<(Role, &str, usize)> =
            reader.steps.iter().map(|s| (s.role, s.text.as_str(), s.calls.len())).collect();
        let right = [
            (Role::User, "hi", 0),
            (Role::Assistant, "", 2),
            (Role::Tool, "r1", 0),
            (Role::Tool, "r2\nlater", 0),
            (Role::Assistant, "end", 0),
        ];
        assert_eq!(steps, right);
    }
}
