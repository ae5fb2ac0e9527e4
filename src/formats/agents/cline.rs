//! Cline and its forks: a folder for each task, with the messages of the API and those of the screen.

use super::super::json::{Map, Value};
use super::super::table::Decoded;
use super::super::tree::{Claim, Folder, FolderInput};
use super::super::{action, chat, field, session};
use super::finish;
use crate::trajectory::{RawPlace, Role, Step, Tokens, ToolCall, Trajectory};

const HISTORY: &str = "api_conversation_history.json";
const SCREEN: &str = "ui_messages.json";

pub(super) fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let (history, _) = folder.find(HISTORY)?;
    let beside = [SCREEN, "task_metadata.json", "history_item.json", "context_history.json", "settings.json"];
    let mut members: Vec<usize> = beside.iter().filter_map(|name| folder.find(name)).map(|(i, _)| i).collect();
    members.push(history);
    Some(Claim { members, reason: "api_conversation_history.json".into() })
}

pub(super) fn decode_folder(input: &FolderInput<'_>) -> Decoded {
    let mut out = Trajectory { format: input.format, agent: Some("Cline".to_owned()), ..Trajectory::default() };
    let name = input.path.file_name().map(|n| n.to_string_lossy().into_owned());
    out.session = name;
    let history = input.find(HISTORY);
    let messages = history.and_then(super::super::tree::Entry::value);
    let file = history.map(|e| std::sync::Arc::from(e.path.as_path()));
    let list = messages.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (i, message) in list.iter().enumerate() {
        let place = RawPlace { file: file.clone(), ..RawPlace::element("", i) };
        out.steps.extend(read(message).into_iter().map(|step| Step { raw: place.clone(), ..step }));
    }
    let screen = input.find(SCREEN).and_then(super::super::tree::Entry::value);
    let mut tally = session::Tally::default();
    if let Some(screen) = screen.as_ref().and_then(Value::as_array) {
        spent(&mut out.steps, screen);
        tally.skip(SCREEN);
    }
    finish(&mut out);
    Decoded { trajectories: vec![out], diagnostics: tally.finish(), ..Decoded::default() }
}

fn read(message: &Value) -> Vec<Step> {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let time = field::get(message, "ts").and_then(session::time_of);
    let text = session::text_of(content);
    let mut steps = Vec::new();
    if chat::role_of(message) == Role::Assistant {
        let thoughts: Vec<&str> = parts.iter().filter_map(|p| field::str(p, "thinking")).collect();
        let calls: Vec<ToolCall> = parts
            .iter()
            .filter(|p| field::str(p, "type") == Some("tool_use"))
            .map(|p| super::call(p, "id", "name", "input"))
            .collect();
        let mut step = session::answer(text, Some(thoughts.join("\n")), calls);
        if step.calls.is_empty() {
            step.action = tagged(&step.text);
        }
        steps.push(step);
    } else {
        let results = parts.iter().filter(|p| field::str(p, "type") == Some("tool_result"));
        steps.extend(results.map(|p| {
            let text = field::get(p, "content").map(session::text_of).unwrap_or_default();
            let failed = field::get(p, "is_error").and_then(field::truth);
            session::result(field::text(p, "tool_use_id"), text, failed)
        }));
        if !text.is_empty() || steps.is_empty() {
            steps.push(said(text));
        }
    }
    for step in &mut steps {
        step.timestamp = time.clone();
    }
    steps
}

/// Results come as messages of a person: `[execute_command for 'ls'] Result:`.
fn said(text: String) -> Step {
    let tool = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let tool = tool.filter(|(_, rest)| rest.trim_start().starts_with("Result:"));
    match tool.map(|(head, _)| head.split_whitespace().next().unwrap_or_default().to_owned()) {
        Some(name) => Step { tool_name: Some(name), ..Step::new(Role::Tool, text) },
        None => Step::new(Role::User, text),
    }
}

/// The tool an answer calls by tags: `<execute_command><command>ls</command></execute_command>`.
fn tagged(text: &str) -> Option<String> {
    const TOOLS: [&str; 16] = [
        "execute_command",
        "read_file",
        "write_to_file",
        "replace_in_file",
        "apply_diff",
        "insert_content",
        "search_and_replace",
        "search_files",
        "list_files",
        "list_code_definition_names",
        "browser_action",
        "use_mcp_tool",
        "access_mcp_resource",
        "ask_followup_question",
        "attempt_completion",
        "new_task",
    ];
    let calls: Vec<ToolCall> = TOOLS
        .iter()
        .filter_map(|name| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            let body = rest.split(&format!("</{name}>")).next().unwrap_or(rest);
            let mut arguments = Map::new();
            for part in body.split('<').filter(|p| !p.starts_with('/')) {
                if let Some((key, value)) = part.split_once('>').filter(|(k, _)| !k.contains([' ', '\n'])) {
                    arguments.get_or_insert(key, Value::from(value.trim()));
                }
            }
            let arguments = Value::Object(arguments).to_string();
            Some(ToolCall { id: String::new(), name: (*name).to_owned(), arguments })
        })
        .collect();
    action::of_calls(&calls)
}

/// What each call of the model used is written beside the messages of the screen, in the same order.
fn spent(steps: &mut [Step], screen: &[Value]) {
    let requests: Vec<Value> = screen
        .iter()
        .filter(|m| field::str(m, "say") == Some("api_req_started"))
        .filter_map(|m| field::embedded(m, "text").map(std::borrow::Cow::into_owned))
        .collect();
    let n = steps.iter().filter(|s| s.role == Role::Assistant).count();
    // Asked again after an error, a request has no answer: then nobody can say whose count it is.
    if requests.len() != n {
        if let Some(first) = steps.iter_mut().find(|s| s.role == Role::Assistant) {
            let cost: f64 = requests.iter().filter_map(|r| field::get(r, "cost").and_then(field::number)).sum();
            first.cost = Some(cost).filter(|c| *c > 0.0);
        }
        return;
    }
    for (step, request) in steps.iter_mut().filter(|s| s.role == Role::Assistant).zip(&requests) {
        let count = |key| field::get(request, key).and_then(field::count);
        step.cost = field::get(request, "cost").and_then(field::number).filter(|c| *c > 0.0);
        step.tokens = count("tokensIn").map(|fresh| {
            let cached = count("cacheReads");
            let input = fresh.saturating_add(cached.unwrap_or(0)).saturating_add(count("cacheWrites").unwrap_or(0));
            Tokens { input, cached, output: count("tokensOut").unwrap_or(0) }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::json::json;

    use super::*;

    #[test]
    fn tools_are_called_by_tags() {
        let text = "I look.\n<read_file>\n<path>a.py</path>\n</read_file>";
        assert_eq!(tagged(text).as_deref(), Some("read_file a.py"));
        let command =
            "<execute_command>\n<command>grep -n 'a > b' x</command>\n<requires_approval>false</requires_approval>";
        assert_eq!(tagged(command).as_deref(), Some("grep -n 'a > b' x"));
        assert_eq!(tagged("no tool at all <b>"), None);
        let done = tagged("<attempt_completion>\n<result>Done.</result>\n</attempt_completion>").unwrap();
        assert!(done.starts_with("attempt_completion"), "{done}");
    }

    #[test]
    fn results_come_as_messages_of_a_person() {
        let step = said("[read_file for 'a.py'] Result:\nx".to_owned());
        assert_eq!((step.role, step.tool_name.as_deref()), (Role::Tool, Some("read_file")));
        assert_eq!(said("[ERROR] You did not use a tool".to_owned()).role, Role::User);
        assert_eq!(said("go on".to_owned()).role, Role::User);
    }

    #[test]
    fn costs_go_to_their_answer_or_to_the_whole() {
        let request = |cost: f64| {
            let text = json!({"tokensIn": 1, "tokensOut": 2, "cost": cost}).to_string();
            json!({"type": "say", "say": "api_req_started", "text": text})
        };
        let answers =
            || vec![Step::new(Role::Assistant, "a"), Step::new(Role::Tool, "r"), Step::new(Role::Assistant, "b")];
        let mut steps = answers();
        spent(&mut steps, &[request(0.5), json!({"say": "text"}), request(0.25)]);
        assert_eq!((steps[0].cost, steps[2].cost), (Some(0.5), Some(0.25)));
        assert_eq!(steps[2].tokens, Some(Tokens { input: 1, cached: None, output: 2 }));
        // One request had no answer: only the sum is known.
        let mut steps = answers();
        spent(&mut steps, &[request(0.5), request(0.5), request(0.25)]);
        assert_eq!((steps[0].cost, steps[2].cost, steps[0].tokens), (Some(1.25), None, None));
        let mut none = answers();
        spent(&mut none, &[]);
        assert_eq!(none[0].cost, None);
    }
}
