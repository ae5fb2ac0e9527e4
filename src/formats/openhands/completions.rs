//! Dumps of single model calls, of which each repeats the whole conversation: V0's `llm_completions`, the SDK's logs.

use std::path::Path;

use super::super::chat::{self, Fold};
use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{field, names};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, ToolSpec, Trajectory, Usage};

/// Is this a dump of a model call?
fn is_dump(root: &Value) -> bool {
    let sent = ["messages", "input"].iter().any(|k| root.get(k).is_some_and(Value::is_array));
    sent && root.get("response").is_some() && (root.get("kwargs").is_some() || root.get("args").is_some())
}

/// One dump by itself.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let dump = sniff.object().is_some() && sniff.rows.first().is_some_and(|root| is_dump(root));
    if dump { Match::some(Confidence::Certain, "`messages`, `response` and `kwargs` of one model call") } else { None }
}

/// A folder of dumps named `<model>-<unix time>.json`.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let named: Vec<(usize, &Entry)> =
        folder.files_in("").into_iter().filter(|(_, e)| time_of(&e.name()).is_some()).collect();
    let (_, first) = named.first().filter(|_| named.len() > 1)?;
    if !first.value().is_some_and(|root| is_dump(&root)) {
        return None;
    }
    let members = named.into_iter().map(|(i, _)| i).collect();
    Some(Claim { members, reason: "files named <model>-<unix time>.json with `messages` and `response`".into() })
}

/// `<model>-1767716253.8470573.json`, `<model>-1769028008.528-03bb.json`: when the call was made.
fn time_of(name: &str) -> Option<f64> {
    let stem = name.strip_suffix(".json")?;
    let time = |part: &str| {
        let whole = part.split('.').next().unwrap_or_default();
        let digits = whole.len() >= 9 && part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if digits { part.parse::<f64>().ok() } else { None }
    };
    let (rest, last) = stem.rsplit_once('-')?;
    time(last).or_else(|| time(rest.rsplit_once('-')?.1))
}

/// Reads one dump: what was sent, and the answer.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut calls = Calls::default();
    let diagnostics = input.document.rows(|row| calls.add(row.value, None));
    Decoded { trajectories: calls.finish(input.path, input.format), diagnostics, ..Decoded::default() }
}

/// Reads a folder of dumps: one trajectory for each conversation in it.
pub fn decode_folder(input: &FolderInput<'_>) -> Decoded {
    let mut files: Vec<(f64, &Entry)> = input.members.iter().filter_map(|e| Some((time_of(&e.name())?, *e))).collect();
    files.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.path.cmp(&b.1.path)));
    let (mut calls, mut unreadable) = (Calls::default(), 0);
    for (_, entry) in files {
        match entry.value().filter(is_dump) {
            Some(root) => calls.add(&root, Some(&entry.path)),
            None => unreadable += 1,
        }
    }
    let mut decoded = Decoded { trajectories: calls.finish(input.path, input.format), ..Decoded::default() };
    if unreadable > 0 {
        let text = format!("{unreadable} files hold no model call and were left out");
        decoded.diagnostics.push(Diagnostic::new(Severity::Warning, "openhands.unreadable-call", text));
    }
    decoded
}

/// Calls put together into conversations.
#[derive(Default)]
struct Calls {
    conversations: Vec<Conversation>,
}

#[derive(Default)]
struct Conversation {
    fold: Fold,
    session: Option<String>,
    instance: Option<String>,
    model: Option<String>,
    agent: Option<String>,
    tools: Vec<ToolSpec>,
    usage: Usage,
}

impl Calls {
    fn add(&mut self, root: &Value, file: Option<&Path>) {
        let (prompt, answer) = (prompt(root, file), answer(root, file));
        let session = metadata(root).and_then(|m| field::text(m, "session_id"));
        let same = |c: &Conversation| c.session == session && c.fold.fits(&prompt);
        let at = self.conversations.iter().rposition(same).unwrap_or_else(|| {
            self.conversations.push(Conversation { session, ..Conversation::default() });
            self.conversations.len() - 1
        });
        if let Some(conversation) = self.conversations.get_mut(at) {
            conversation.note(root);
            conversation.fold.add(prompt, answer);
        }
    }

    fn finish(self, path: &Path, format: &'static str) -> Vec<Trajectory> {
        let longest = |session: &Option<String>| {
            let own = self.conversations.iter().enumerate().filter(|(_, c)| &c.session == session);
            own.max_by_key(|(i, c)| (c.fold.actions(), usize::MAX - i)).map(|(i, _)| i)
        };
        let main: Vec<bool> = self
            .conversations
            .iter()
            .enumerate()
            .map(|(i, c)| c.session.is_none() || longest(&c.session) == Some(i))
            .collect();
        let several = self.conversations.len() > 1;
        let read = self.conversations.into_iter().zip(main).enumerate().map(|(i, (conversation, main))| {
            let mut trajectory = conversation.finish(path);
            trajectory.format = format;
            trajectory.source.record = i;
            if !main {
                // A condenser or another helper, asked on the way.
                trajectory.parent = trajectory.session.take();
            } else if several && trajectory.session.is_none() {
                trajectory.attempt = Some(format!("conversation {}", i + 1));
            }
            trajectory
        });
        read.collect()
    }
}

impl Conversation {
    fn note(&mut self, root: &Value) {
        let metadata = metadata(root).unwrap_or(&Value::Null);
        let kwargs = field::get(root, "kwargs").unwrap_or(&Value::Null);
        let response = field::get(root, "response").unwrap_or(&Value::Null);
        self.instance = field::text(metadata, "instance_id").or(self.instance.take());
        self.model = field::text(response, "model").or_else(|| field::text(kwargs, "model")).or(self.model.take());
        let tags = field::list(metadata, "tags").iter().filter_map(Value::as_str);
        let agent = tags.filter_map(|t| t.strip_prefix("agent:")).next_back().map(str::to_owned);
        self.agent = agent.or(self.agent.take());
        let tools = [root, kwargs].into_iter().map(|v| chat::tool_specs(field::list(v, "tools")));
        self.tools = tools.into_iter().find(|t| !t.is_empty()).unwrap_or_else(|| std::mem::take(&mut self.tools));
        let tokens = |keys: [&str; 2]| {
            let used = field::get(response, "usage")?;
            keys.iter().find_map(|k| field::get(used, k).and_then(field::count))
        };
        let plus = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.usage.tokens_in = plus(self.usage.tokens_in, tokens(["prompt_tokens", "input_tokens"]));
        self.usage.tokens_out = plus(self.usage.tokens_out, tokens(["completion_tokens", "output_tokens"]));
        self.usage.api_calls = plus(self.usage.api_calls, Some(1));
        if let Some(cost) = cost(root) {
            self.usage.cost = Some(self.usage.cost.unwrap_or(0.0) + cost);
        }
    }

    fn finish(self, path: &Path) -> Trajectory {
        let (steps, cuts) = self.fold.finish();
        let mut trajectory = Trajectory {
            instance_id: self.instance.or_else(|| names::instance_of(path)),
            session: self.session,
            agent: self.agent.or_else(|| Some("OpenHands".to_owned())),
            model: self.model,
            tools: self.tools,
            usage: self.usage,
            steps,
            ..Trajectory::default()
        };
        if cuts > 0 {
            let text = format!(
                "earlier messages were dropped {cuts} times on the way (condensed): they are shown all the same"
            );
            trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "openhands.condensed", text));
        }
        trajectory
    }
}

/// Dollars of a call; 0 stands for a model without a price.
fn cost(root: &Value) -> Option<f64> {
    field::get(root, "cost").and_then(field::number).filter(|c| *c > 0.0)
}

fn metadata<'a>(root: &'a Value<'a>) -> Option<&'a Value<'a>> {
    let paths = [["extra_body", "metadata"], ["litellm_extra_body", "metadata"]];
    let kwargs = field::get(root, "kwargs")?;
    paths.iter().find_map(|p| field::at(kwargs, p)).or_else(|| field::get(kwargs, "metadata"))
}

/// What was sent. Where calls were emulated in the text, the dump holds them in native form as well.
fn prompt(root: &Value, file: Option<&Path>) -> Vec<Step> {
    let key = ["fncall_messages", "messages", "input"].into_iter().find(|k| !field::list(root, k).is_empty());
    let Some(key) = key else { return Vec::new() };
    let steps = chat::steps_at(field::list(root, key), &format!("/{key}"), |_, _| {});
    steps.into_iter().map(|step| placed(step, file)).collect()
}

/// What came back.
fn answer(root: &Value, file: Option<&Path>) -> Vec<Step> {
    let key = ["fncall_response", "response"].into_iter().find(|k| root.get(k).is_some_and(Value::is_object));
    let Some((key, response)) = key.and_then(|k| Some((k, field::get(root, k)?))) else { return Vec::new() };
    let choice = field::list(response, "choices").first().and_then(|c| field::get(c, "message"));
    let mut steps = match choice {
        Some(message) => {
            let raw = RawPlace { pointer: format!("/{key}/choices/0/message").into(), ..RawPlace::default() };
            chat::message_steps(message).into_iter().map(|step| Step { raw: raw.clone(), ..step }).collect()
        }
        None => chat::steps_at(field::list(response, "output"), &format!("/{key}/output"), |_, _| {}),
    };
    // A dump's time is that of its answer.
    let time = field::get(root, "timestamp").and_then(field::scalar_text);
    if let Some(step) = steps.iter_mut().find(|s| s.role == Role::Assistant) {
        step.cost = cost(root);
        step.timestamp = step.timestamp.take().or(time);
    }
    steps.into_iter().map(|step| placed(step, file)).collect()
}

fn placed(mut step: Step, file: Option<&Path>) -> Step {
    step.raw.file = file.map(Into::into);
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_time_of_a_call() {
        assert_eq!(time_of("__mnt__m__GLM-4.6-FP8-1767716253.5.json"), Some(1_767_716_253.5));
        assert_eq!(time_of("gpt-4o-mini-1769028008.5-03bb.json"), Some(1_769_028_008.5));
        for other in ["gpt-4o.json", "event-00001-aa.json", "0-25.json", "x-2024-01-01.json", "a-b"] {
            assert_eq!(time_of(other), None, "{other}");
        }
    }
}
