//! Terminal recordings (asciicast 1 to 3): what was typed, and what the terminal showed until the next was typed.

use super::document::Document;
use super::field;
use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Role, Severity, Source, Step, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "asciicast",
    name: "Terminal recording",
    writer: "asciinema, and harnesses that record with it (Terminal-Bench, Harbor)",
    recognised: "a header with `version` and the terminal's size, then rows of time, kind and data",
    kind: Kind::Trajectory,
    reader: Reader::File { sniff, decode },
}];

/// A header, then events.
fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let header = sniff.rows.first()?.as_object()?;
    let version = header.get("version").and_then(Value::as_u64)?;
    let sized = (header.contains_key("width") && header.contains_key("height")) || header.contains_key("term");
    let events = sniff.rows.iter().skip(1).all(|row| is_event(row));
    let fits = (1..=3).contains(&version) && sized && sniff.form != Form::List && events;
    if fits {
        Match::some(Confidence::Certain, "a header with the terminal's size before rows of events")
    } else {
        None
    }
}

fn is_event(row: &Value) -> bool {
    let Some([time, kind, ..]) = row.as_array().map(Vec::as_slice) else {
        return false;
    };
    time.is_number() && kind.is_string()
}

/// Reads a recording by itself.
fn decode(input: &Input<'_>) -> Decoded {
    let (recording, mut diagnostics) = Recording::read(input.document);
    let mut trajectory = Trajectory { format: input.format, ..Trajectory::default() };
    trajectory.source = Source::default();
    diagnostics.extend(recording.remarks());
    trajectory.steps = recording.steps;
    Decoded { trajectories: vec![trajectory], diagnostics, ..Decoded::default() }
}

/// A recording as steps.
#[derive(Debug, Default)]
pub struct Recording {
    /// What was typed (actions, or the harness's own commands as remarks) and shown.
    pub steps: Vec<Step>,
    /// Was anything typed by whoever was recorded?
    pub acted: bool,
    /// Were the actions found at the shell's prompts because what was typed is not recorded?
    guessed: bool,
    /// Events of kinds nobody knows.
    unknown: usize,
}

impl Recording {
    /// Reads a document, with remarks about rows that could not be read.
    pub fn read(document: &Document<'_>) -> (Self, Vec<Diagnostic>) {
        let mut builder = Builder::default();
        let diagnostics = document.rows(|row| match row.value {
            Value::Object(_) => builder.header(row.value),
            event => builder.event(event),
        });
        (builder.finish(), diagnostics)
    }

    /// What is to be said of it.
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let mut remarks = Vec::new();
        let mut say = |severity, code, text: String| remarks.push(Diagnostic::new(severity, code, text));
        if !self.acted {
            let text = "no structured trajectory: only the recording of a terminal, in which the agent types nothing";
            say(Severity::Warning, "cast.only-recording", text.to_owned());
        }
        if self.guessed {
            let text = "what was typed is not recorded: the commands at the shell's prompts are taken for the actions";
            say(Severity::Info, "cast.prompts", text.to_owned());
        }
        if self.unknown > 0 {
            let text = format!("{} events of unknown kinds were left out", self.unknown);
            say(Severity::Warning, "cast.unknown-event", text);
        }
        remarks
    }
}

#[derive(Default)]
struct Builder {
    /// Seconds since 1970 of the start, where known.
    start: Option<f64>,
    /// Version 3 counts from the event before.
    relative: bool,
    clock: f64,
    typed: String,
    shown: String,
    shown_at: f64,
    steps: Vec<Step>,
    unknown: usize,
}

impl Builder {
    fn header(&mut self, header: &Value) {
        self.start = field::get(header, "timestamp").and_then(field::number);
        self.relative = header.get("version").and_then(Value::as_u64) == Some(3);
        // Version 1 is one object: delays and output.
        for event in field::list(header, "stdout") {
            if let Some([delay, data]) = event.as_array().map(Vec::as_slice) {
                self.clock += field::number(delay).unwrap_or(0.0);
                self.show(data.as_str().unwrap_or_default());
            }
        }
    }

    fn event(&mut self, event: &Value) {
        let Some([time, kind, data @ ..]) = event.as_array().map(Vec::as_slice) else {
            self.unknown += 1;
            return;
        };
        let time = field::number(time).unwrap_or(0.0);
        self.clock = if self.relative { self.clock + time } else { time };
        let data = data.first().and_then(Value::as_str).unwrap_or_default();
        match kind.as_str().unwrap_or_default() {
            "o" => self.show(data),
            "i" => self.typed(data),
            "m" => {
                self.flush_shown();
                self.push(Role::Meta, format!("marker: {data}"), self.clock);
            }
            // A new size, the end.
            "r" | "x" => {}
            _ => self.unknown += 1,
        }
    }

    fn show(&mut self, data: &str) {
        if self.shown.is_empty() {
            self.shown_at = self.clock;
        }
        self.shown.push_str(data);
    }

    /// What is typed at once is one action, however many lines it has; single keys are gathered to a line.
    fn typed(&mut self, data: &str) {
        for key in data.chars() {
            match key {
                '\r' | '\n' => self.typed.push('\n'),
                '\x7f' | '\x08' => drop(self.typed.pop()),
                '\x03' => self.typed.push_str("C-c\n"),
                '\x04' => self.typed.push_str("C-d\n"),
                key => self.typed.push(key),
            }
        }
        if self.typed.ends_with('\n') {
            self.flush_typed();
        }
    }

    fn flush_typed(&mut self) {
        let typed = std::mem::take(&mut self.typed);
        let typed = typed.trim_end_matches('\n');
        if typed.trim().is_empty() {
            return;
        }
        self.flush_shown();
        let mut step = Step::new(Role::Assistant, typed);
        step.action = Some(without_signal(typed).to_owned());
        step.timestamp = self.time(self.clock);
        self.steps.push(step);
    }

    fn flush_shown(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if !shown.trim().is_empty() {
            self.push(Role::Tool, shown, self.shown_at);
        }
    }

    fn push(&mut self, role: Role, text: String, at: f64) {
        let timestamp = self.time(at);
        self.steps.push(Step { timestamp, ..Step::new(role, text) });
    }

    fn time(&self, at: f64) -> Option<String> {
        self.start.map(|start| format!("{:.3}", start + at))
    }

    fn finish(mut self) -> Recording {
        self.flush_typed();
        self.flush_shown();
        let typed = self.steps.iter().any(|s| s.role == Role::Assistant);
        let mut guessed = false;
        if typed {
            self.leave_out_harness();
        } else if let Some(steps) = at_prompts(&self.steps) {
            guessed = true;
            self.steps = steps;
        }
        let acted = self.steps.iter().any(Step::is_action);
        Recording { steps: self.steps, acted, guessed, unknown: self.unknown }
    }

    /// An agent that is installed in the container acts through its own program: whatever was typed then was typed
    /// by the harness.
    fn leave_out_harness(&mut self) {
        let typed = || self.steps.iter().filter(|s| s.role == Role::Assistant);
        let installed = typed().any(|s| s.text.contains("/installed-agent/"));
        for step in self.steps.iter_mut().filter(|s| s.role == Role::Assistant) {
            if installed || is_harness(step.action.as_deref().unwrap_or_default()) {
                step.role = Role::Meta;
                step.text = format!("typed by the harness: {}", step.text);
                step.action = None;
            }
        }
    }
}

/// Typed by Terminal-Bench around the agent's own commands.
fn is_harness(line: &str) -> bool {
    matches!(line, "clear" | "C-d") || line.contains("/tests/run-tests.sh") || line.starts_with("asciinema rec ")
}

/// Without what a harness puts behind a command to learn when it has ended.
fn without_signal(typed: &str) -> &str {
    typed.strip_suffix("; tmux wait -S done").unwrap_or(typed)
}

/// Commands at the shell's prompts as actions; `None` if there is no prompt with a command.
fn at_prompts(steps: &[Step]) -> Option<Vec<Step>> {
    let mut found: Vec<Step> = Vec::new();
    let mut seen = false;
    for shown in steps {
        let text = plain(&shown.text);
        for line in text.split('\n') {
            let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
            if let Some(command) = at_prompt(line) {
                let mut step = Step::new(Role::Assistant, command);
                step.action = Some(command.to_owned());
                found.push(step);
                seen = true;
            } else if let Some(last) = found.last_mut().filter(|s| s.role == Role::Tool) {
                last.text.push('\n');
                last.text.push_str(line);
            } else {
                found.push(Step::new(Role::Tool, line));
            }
        }
    }
    found.retain(|s| s.role != Role::Tool || !s.text.trim().is_empty());
    if seen { Some(found) } else { None }
}

/// The command behind `user@host:path$ `.
fn at_prompt(line: &str) -> Option<&str> {
    let (user, rest) = line.split_once('@')?;
    let (host, rest) = rest.split_once(':')?;
    let named = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    let user = user.rsplit(' ').next().unwrap_or(user);
    let end = rest.find(['#', '$'])?;
    let command = rest.get(end + 1..)?.strip_prefix(' ')?.trim();
    let path = rest.get(..end)?;
    let fits = named(user) && named(host) && !path.contains(' ') && !command.is_empty();
    if fits { Some(command) } else { None }
}

/// Without escape sequences.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            // A title: up to BEL, or to ESC and a backslash.
            Some(']') => {
                while chars.next_if(|c| *c != '\x07' && *c != '\x1b').is_some() {}
                if chars.next() == Some('\x1b') {
                    chars.next();
                }
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests;
