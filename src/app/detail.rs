//! The texts of the Timeline's tabs.

use crate::critic::{CriticInput, display::format_reward};
use crate::text;
use crate::trajectory::{Attempt, Role, Severity, Step, Trajectory};

use super::RawRecord;
use super::data::{IssueEntry, outcome_word};
use super::doc::{Doc, DocLine, Paint, Scroll, Tone};
use super::outline::OutlineRow;
use super::scores::Scoring;

/// A tab of the detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tab {
    /// What the agent wrote and did.
    #[default]
    Action,
    /// What the environment answered.
    Observation,
    /// The attempt's candidate patch.
    Patch,
    /// What the critic read.
    Input,
    /// The run as a whole.
    Run,
    /// The records of the action and its observations, exactly as the file holds them.
    Raw,
}

impl Tab {
    /// All of them, in the order on the screen.
    pub const ALL: [Self; 6] = [Self::Action, Self::Observation, Self::Patch, Self::Input, Self::Run, Self::Raw];

    /// The title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Action => "Action",
            Self::Observation => "Observation",
            Self::Patch => "Patch",
            Self::Input => "Critic input",
            Self::Run => "Run",
            Self::Raw => "Raw",
        }
    }

    /// The title where there is little room.
    pub fn short_title(self) -> &'static str {
        match self {
            Self::Action => "Act",
            Self::Observation => "Obs",
            Self::Patch => "Patch",
            Self::Input => "Input",
            Self::Run => "Run",
            Self::Raw => "Raw",
        }
    }

    /// The tab `by` places further, round and round.
    pub fn step(self, by: isize) -> Self {
        let n = Self::ALL.len() as isize;
        let at = Self::ALL.iter().position(|t| *t == self).unwrap_or(0) as isize;
        Self::ALL[(at + by).rem_euclid(n) as usize]
    }
}

/// What the agent wrote and did in one step.
pub fn action(step: &Step) -> Doc {
    let mut doc = Doc::default();
    if let Some(reasoning) = step.reasoning.as_deref().filter(|r| !r.trim().is_empty()) {
        doc.push(Tone::Heading, "reasoning (kept apart from the message)");
        doc.push_foreign(Tone::Thought, reasoning);
    }
    if let Some(thought) = step.thought.as_deref().filter(|t| !t.trim().is_empty()) {
        doc.push(Tone::Heading, "thought");
        doc.push_foreign(Tone::Thought, thought);
    }
    if let Some(command) = step.action.as_deref().filter(|a| !a.trim().is_empty()) {
        doc.push(Tone::Heading, "command");
        doc.push_foreign(Tone::Command, command);
    }
    let shown_in_parts = step.thought.is_some() && step.action.is_some();
    if !step.text.trim().is_empty() && !shown_in_parts {
        if !doc.lines.is_empty() {
            doc.push(Tone::Heading, "message");
        }
        doc.push_foreign(Tone::Plain, &step.text);
    }
    for call in &step.calls {
        doc.push(Tone::Heading, format!("call {}", text::one_line(&call.name)));
        arguments(&mut doc, &call.arguments);
    }
    if doc.lines.is_empty() {
        doc.push(Tone::Note, "the turn is blank: the agent wrote nothing and called nothing");
    }
    if let Some(cost) = step.cost {
        doc.push(Tone::Note, format!("cost of this model call: ${cost:.4}"));
    }
    doc
}

/// Arguments of a call: one part a value, so that code in them keeps its lines; invalid JSON as it stands.
fn arguments(doc: &mut Doc, raw: &str) {
    match serde_json::from_str::<serde_json::Value>(raw) {
        Ok(serde_json::Value::Object(values)) => {
            for (name, value) in &values {
                match value {
                    serde_json::Value::String(s) if s.contains('\n') || s.len() > 60 => {
                        doc.push(Tone::Note, format!("{}:", text::one_line(name)));
                        doc.push_foreign(Tone::Command, s);
                    }
                    serde_json::Value::String(s) => {
                        let line = format!("{}: {}", text::one_line(name), text::sanitize(s));
                        doc.push_line(DocLine { text: line, tone: Tone::Command, ..DocLine::default() });
                    }
                    other => {
                        let line = format!("{}: {}", text::one_line(name), text::sanitize(&other.to_string()));
                        doc.push_line(DocLine { text: line, tone: Tone::Command, ..DocLine::default() });
                    }
                }
            }
        }
        Ok(_) => doc.push_foreign(Tone::Command, raw),
        Err(_) if raw.trim().is_empty() => doc.push(Tone::Note, "no arguments"),
        Err(e) => {
            doc.push(Tone::Error, format!("arguments are not JSON ({e}); as written:"));
            doc.push_foreign(Tone::Command, raw);
        }
    }
}

/// Raw records, indented so that a person can read them; every token stands as it was written.
pub fn raw(records: &[RawRecord], first: usize) -> Doc {
    let mut doc = Doc::default();
    for (i, record) in records.iter().enumerate() {
        doc.push(Tone::Heading, format!("step {}: {}", first + i + 1, text::one_line(&record.place)));
        match &record.text {
            Ok(raw) => doc.push_foreign(Tone::Plain, &text::indent_json(raw)),
            Err(why) => doc.push(Tone::Error, text::one_line(why)),
        }
    }
    doc
}

/// What the environment answered to one action.
pub fn observation(trajectory: &Trajectory, row: &OutlineRow) -> Doc {
    let mut doc = Doc::default();
    let steps = trajectory.steps.get(row.observations.clone()).unwrap_or_default();
    for step in steps {
        let mut head = match step.role {
            Role::System => "system".to_owned(),
            Role::User => "user message".to_owned(),
            Role::Tool => "tool".to_owned(),
            Role::Meta => "note of the harness (the model did not see it)".to_owned(),
            Role::Assistant => "agent (demonstration)".to_owned(),
        };
        if let Some(name) = &step.tool_name {
            head.push(' ');
            head.push_str(&text::one_line(name));
        }
        if let Some(code) = step.exit_code {
            head.push_str(&format!(" · exit code {code}"));
        }
        let failed = step.is_error == Some(true) || step.exit_code.is_some_and(|c| c != 0);
        if step.is_error == Some(true) {
            head.push_str(" · error");
        }
        doc.push(if failed { Tone::Error } else { Tone::Heading }, head);
        if step.text.trim().is_empty() {
            doc.push(Tone::Note, "empty");
        } else {
            doc.push_foreign(Tone::Plain, &step.text);
        }
    }
    if doc.lines.is_empty() {
        doc.push(Tone::Note, "no observation: the run ended with this action");
    }
    doc
}

/// What the critic read, with a mark after every token at which a value was read. The second value is the place of
/// action `selected`.
pub fn input(input: &CriticInput, scoring: Option<&Scoring>, selected: usize) -> (Doc, Scroll) {
    let mut doc = Doc::default();
    let mut place = Scroll::default();
    doc.push(Tone::Note, format!("{} tokens; this is every byte the critic got", input.tokens));
    if let Some(cut) = &input.cut {
        doc.push(Tone::Error, format!("cut: {}", text::one_line(&cut.note)));
    }
    for warning in &input.warnings {
        doc.push(Tone::Note, text::one_line(warning));
    }
    let mut from = 0;
    for &(action, token, end) in &input.positions {
        let piece = input.text.get(from..end).unwrap_or_default();
        doc.push_foreign(Tone::Plain, &visible(piece));
        let reward = format_reward(scoring.and_then(|s| s.reward(action)), 4);
        let here = if action == selected { "◀◀" } else { "◀" };
        if action == selected {
            place = Scroll { line: doc.lines.len(), byte: 0 };
        }
        let text = format!("{here} value of action {} read at token {token}: {reward}", action + 1);
        let spans = if action == selected { vec![(0..text.len(), Paint::Tone(Tone::Mark))] } else { Vec::new() };
        doc.lines.push(DocLine { text, tone: Tone::Heading, gutter: String::new(), spans });
        from = end;
        // The line end that belongs to the turn just closed would show as an empty line of its own.
        if input.text.get(from..).is_some_and(|rest| rest.starts_with('\n')) {
            from += 1;
        }
    }
    let rest = input.text.get(from..).unwrap_or_default();
    if !rest.is_empty() {
        doc.push_foreign(Tone::Plain, &visible(rest));
    }
    (doc, place)
}

/// Control characters written out by their pictures: here it matters that the critic got the escape sequence and not
/// the colour.
fn visible(raw: &str) -> String {
    let picture = |c: char| match c {
        '\n' => '\n',
        '\u{7f}' => '␡',
        c if c.is_ascii_control() => char::from_u32(0x2400 + u32::from(c)).unwrap_or(c),
        c => c,
    };
    raw.chars().map(picture).collect()
}

/// The run: whose it is, where it comes from, what is odd about it, and what it was told to do.
pub fn run(entry: &IssueEntry, number: usize, scoring: Option<&Scoring>) -> Doc {
    let mut doc = Doc::default();
    let Some(attempt) = entry.issue.attempts.get(number) else {
        return doc;
    };
    doc.push(Tone::Heading, format!("attempt {} at {}", entry.attempts[number].name, entry.name));
    label(&mut doc, attempt);
    if let Some(patch) = &entry.attempts[number].facts.patch {
        let hash = patch.sha256.get(..12).unwrap_or(&patch.sha256);
        let files = patch.files.len();
        doc.push(Tone::Plain, format!("patch: {files} files, +{} −{}, sha256 {hash}…", patch.added, patch.removed));
    }
    for badge in &entry.attempts[number].facts.badges {
        doc.push(Tone::Note, format!("{}: {}", badge.label(), badge.help()));
    }
    if let Some(result) = scoring.and_then(|s| s.result.as_deref()) {
        let kept = if result.kept { ", scores kept from an earlier run" } else { "" };
        doc.push(Tone::Plain, format!("critic: {} tokens rendered{kept}", result.tokens));
        for line in result.cut.iter().map(|c| &c.note).chain(&result.warnings) {
            doc.push(Tone::Note, text::one_line(line));
        }
    }
    if let Some(trajectory) = &attempt.trajectory {
        about(&mut doc, trajectory);
    }
    doc
}

fn label(doc: &mut Doc, attempt: &Attempt) {
    let label = &attempt.label;
    let mut line = format!("outcome: {}", outcome_word(label.outcome));
    if let Some(reason) = &label.reason {
        line.push_str(&format!(" ({})", text::one_line(reason)));
    }
    if let Some(from) = &label.from {
        line.push_str(&format!(", says {}", path_text(from)));
    }
    doc.push(Tone::Plain, line);
    for other in &label.contradicted_by {
        doc.push(Tone::Error, format!("another outcome stands in {}", path_text(other)));
    }
    if let Some(prediction) = &attempt.prediction {
        doc.push(Tone::Plain, format!("prediction: {}", path_text(&prediction.path)));
    }
    for d in &attempt.diagnostics {
        doc.push(Tone::Note, text::one_line(&d.message));
    }
}

fn about(doc: &mut Doc, trajectory: &Trajectory) {
    let source = &trajectory.source;
    let mut line = |name: &str, value: Option<String>| {
        doc.push(Tone::Plain, format!("{name}: {}", value.as_deref().map_or("unknown".to_owned(), text::one_line)));
    };
    line("file", Some(format!("{} (record {})", path_text(&source.path), source.record)));
    line("format", Some(trajectory.format.to_owned()));
    line("agent", trajectory.agent.clone());
    line("model", trajectory.model.clone());
    line("ended", trajectory.exit_status.clone());
    line("cost", trajectory.usage.cost.map(|c| format!("${c:.2}")));
    let tokens = trajectory.usage.tokens_in.zip(trajectory.usage.tokens_out);
    let cached = trajectory.usage.tokens_cached.map_or(String::new(), |c| format!(" ({c} from a cache)"));
    line("tokens of the agent", tokens.map(|(i, o)| format!("{i} in{cached}, {o} out")));
    if let Some(error) = &trajectory.error {
        doc.push(Tone::Heading, "error");
        doc.push_foreign(Tone::Error, error);
    }
    if !trajectory.diagnostics.is_empty() {
        doc.push(Tone::Heading, "remarks of the reader");
    }
    for d in &trajectory.diagnostics {
        let tone = if d.severity == Severity::Error { Tone::Error } else { Tone::Note };
        let place = d.at.to_string();
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        doc.push(tone, format!("{} {}: {}{place}", d.severity.name(), d.code, text::one_line(&d.message)));
    }
    let before = trajectory.steps.iter().take_while(|s| !s.is_action());
    for step in before {
        let demo = if step.is_demo { " (demonstration)" } else { "" };
        let head = match step.role {
            Role::System => "system prompt",
            Role::User => "task",
            Role::Tool => "tool",
            Role::Meta => "note of the harness",
            Role::Assistant => "agent",
        };
        doc.push(Tone::Heading, format!("{head}{demo}"));
        doc.push_foreign(Tone::Plain, &step.text);
    }
}

fn path_text(path: &std::path::Path) -> String {
    text::one_line(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::outline::Outline;
    use crate::critic::{ActionScore, Cut};
    use crate::trajectory::ToolCall;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    fn lines(doc: &Doc) -> Vec<&str> {
        doc.lines.iter().map(|l| l.text.as_str()).collect()
    }

    #[test]
    fn an_action_reads_in_the_order_it_was_written() {
        let mut step = Step::new(Role::Assistant, "I will look.");
        step.reasoning = Some("Where is it?".to_owned());
        step.calls = vec![call("bash", r#"{"command": "ls", "timeout": 5}"#)];
        let doc = action(&step);
        let expected = [
            "reasoning (kept apart from the message)",
            "Where is it?",
            "message",
            "I will look.",
            "call bash",
            "command: ls",
            "timeout: 5",
        ];
        assert_eq!(lines(&doc), expected);
        assert_eq!(doc.lines[1].tone, Tone::Thought);
        assert_eq!(doc.lines[5].tone, Tone::Command);
    }

    #[test]
    fn a_value_of_several_lines_keeps_its_lines() {
        let mut step = Step::new(Role::Assistant, "");
        step.calls = vec![call("edit", "{\"new\": \"if x:\\n    y\\n\"}")];
        assert_eq!(lines(&action(&step)), ["call edit", "new:", "if x:", "    y"]);
    }

    #[test]
    fn arguments_that_are_not_json_are_shown_as_written_and_marked() {
        let mut step = Step::new(Role::Assistant, "");
        step.calls = vec![call("bash", "{ls"), call("think", ""), call("odd", "[1]")];
        let doc = action(&step);
        assert!(doc.lines.iter().any(|l| l.tone == Tone::Error && l.text.contains("not JSON")));
        assert!(lines(&doc).contains(&"{ls"));
        assert!(lines(&doc).contains(&"no arguments"));
        assert!(lines(&doc).contains(&"[1]"));
    }

    #[test]
    fn thought_and_command_given_apart_are_not_shown_twice() {
        let mut step = Step::new(Role::Assistant, "Look.\n```\nls\n```");
        step.thought = Some("Look.".to_owned());
        step.action = Some("ls".to_owned());
        assert_eq!(lines(&action(&step)), ["thought", "Look.", "command", "ls"]);
        step.thought = None;
        assert!(lines(&action(&step)).contains(&"Look."), "what was not given apart stays");
    }

    #[test]
    fn an_observation_says_whose_it_is_and_how_it_ended() {
        let mut failed = Step::new(Role::Tool, "boom");
        failed.tool_name = Some("bash".to_owned());
        failed.exit_code = Some(2);
        failed.is_error = Some(true);
        let turn = Step::new(Role::Assistant, "x");
        let steps = vec![turn, failed, Step::new(Role::Meta, ""), Step::new(Role::User, "go on")];
        let trajectory = Trajectory { steps, ..Trajectory::default() };
        let outline = Outline::of(&trajectory, &[]);
        let doc = observation(&trajectory, &outline.rows[0]);
        assert_eq!(doc.lines[0].text, "tool bash · exit code 2 · error");
        assert_eq!(doc.lines[0].tone, Tone::Error);
        assert!(lines(&doc).contains(&"note of the harness (the model did not see it)"));
        assert!(lines(&doc).contains(&"empty"));
        assert!(lines(&doc).contains(&"go on"));
    }

    fn read() -> CriticInput {
        let text = "task<|a|>one<|a|>\ntwo<|a|>\nrest".to_owned();
        let at = |nth: usize| text.match_indices("<|a|>").nth(nth).map(|(i, m)| i + m.len()).unwrap();
        let positions = vec![(0, 11, at(0)), (1, 22, at(1)), (2, 33, at(2))];
        CriticInput { positions, tokens: 40, text, ..CriticInput::default() }
    }

    #[test]
    fn the_input_is_whole_and_every_value_stands_behind_its_token() {
        let mut input_read = read();
        input_read.cut = Some(Cut { note: "oldest left out".to_owned(), ..Cut::default() });
        input_read.warnings = vec!["no tools in the file".to_owned()];
        let actions = [Some(0.5), None, Some(0.25)];
        let score = |(action, reward)| ActionScore { action, reward, token_index: None, after_cut: false };
        let scoring = Scoring { actions: actions.into_iter().enumerate().map(score).collect(), ..Scoring::default() };
        let (doc, place) = input(&input_read, Some(&scoring), 1);
        let expected = [
            "40 tokens; this is every byte the critic got",
            "cut: oldest left out",
            "no tools in the file",
            "task<|a|>",
            "◀ value of action 1 read at token 11: 0.5000",
            "one<|a|>",
            "◀◀ value of action 2 read at token 22: -",
            "two<|a|>",
            "◀ value of action 3 read at token 33: 0.2500",
            "rest",
        ];
        assert_eq!(lines(&doc), expected);
        assert_eq!(place.line, 6);
    }

    #[test]
    fn control_characters_of_the_input_are_seen() {
        assert_eq!(visible("a\tb\u{1b}[1m\u{7f}\n"), "a␉b␛[1m␡\n");
    }

    #[test]
    fn tabs_go_round_and_have_two_titles_each() {
        assert_eq!(Tab::Raw.step(1), Tab::Action);
        assert_eq!(Tab::Action.step(-1), Tab::Raw);
        for tab in Tab::ALL {
            assert!(tab.short_title().len() <= tab.title().len());
        }
    }
}
