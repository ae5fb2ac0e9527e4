//! `.aider.chat.history.md`: every run in the same file, behind a heading with its time.

use super::super::session;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::{certain, finish};
use crate::trajectory::{ByteSpan, RawPlace, Role, Source, Step, Trajectory};

const STARTED: &str = "# aider chat started at ";

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let text = sniff.text()?;
    certain(text.lines().any(|l| l.starts_with(STARTED)), "`# aider chat started at`")
}

/// Who a line is by.
fn role_of(line: &str) -> Role {
    match line {
        _ if line.starts_with("#### ") || line == "####" => Role::User,
        _ if line.starts_with("> ") || line == ">" => Role::Tool,
        _ => Role::Assistant,
    }
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let text = input.document.text();
    let mut trajectories: Vec<Trajectory> = Vec::new();
    // Offsets are those of the text as written, as long as it is valid UTF-8.
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, len) = (at as u64, line.len() as u64);
        at += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(time) = line.strip_prefix(STARTED) {
            let source = Source { record: trajectories.len(), span: ByteSpan { start, len }, ..Source::default() };
            let attempt = Some(time.trim().to_owned());
            trajectories.push(Trajectory { format: input.format, source, attempt, ..Trajectory::default() });
            continue;
        }
        let Some(out) = trajectories.last_mut() else { continue };
        out.source.span.len = (start + len).saturating_sub(out.source.span.start);
        add(out, line, start, len);
    }
    // A file whose bytes are not valid text has other offsets.
    let sound = text.len() as u64 == input.document.size();
    for out in &mut trajectories {
        for step in &mut out.steps {
            step.text.truncate(step.text.trim_end().len());
            if !sound {
                step.raw = RawPlace::default();
            }
        }
        if !sound {
            out.source.span = ByteSpan::default();
        }
        out.steps.retain(|s| !s.text.is_empty());
        out.agent = Some("aider".to_owned());
        finish(out);
        mark(out);
    }
    Decoded { trajectories, ..Decoded::default() }
}

/// Adds a line to the block it belongs to, or begins one.
fn add(out: &mut Trajectory, line: &str, start: u64, len: u64) {
    let role = role_of(line);
    let text = match role {
        Role::User => line.trim_start_matches('#').trim_start(),
        Role::Tool => line.trim_start_matches('>').trim(),
        _ => line,
    };
    // An answer may have headings of four too: those follow an empty line inside it, a prompt begins a new turn, and
    // nothing tells them apart but what stands before: a prompt follows tool output or the start.
    let answering = out.steps.last().is_some_and(|s| s.role == Role::Assistant && !s.text.trim().is_empty());
    let (role, text) = if role == Role::User && answering { (Role::Assistant, line) } else { (role, text) };
    match out.steps.last_mut() {
        Some(step) if step.role == role || role == Role::Assistant && text.trim().is_empty() => {
            step.text.push('\n');
            step.text.push_str(text);
            step.raw.span.len = (start + len).saturating_sub(step.raw.span.start);
        }
        _ if text.trim().is_empty() => {}
        _ => {
            let raw = RawPlace { span: ByteSpan { start, len }, ..RawPlace::default() };
            out.steps.push(Step { raw, ..Step::new(role, text) });
        }
    }
}

/// What aider says before the first answer is of the program, not of a tool.
fn mark(out: &mut Trajectory) {
    for step in out.steps.iter_mut().take_while(|s| s.role != Role::Assistant).filter(|s| s.role == Role::Tool) {
        *step = Step { raw: step.raw.clone(), ..session::note("aider", &step.text) };
    }
    for step in &mut out.steps {
        if step.role == Role::Tool {
            step.tool_name = Some("aider".to_owned());
        }
    }
}
