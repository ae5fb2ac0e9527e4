//! Chats in Markdown: `#### ` is what the person wrote, `> ` what the program said, the rest is the model.

use super::super::action;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use crate::trajectory::{ByteSpan, RawPlace, Role, Source, Step, Trajectory};

/// The line a session begins with.
const START: &str = "# aider chat started at ";

/// Markdown with the line a session begins with.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.text()?.lines().take(200).any(|line| line.starts_with(START));
    if fits { Match::some(Confidence::Certain, "`# aider chat started at`") } else { None }
}

/// Every session of the file is a trajectory.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut sessions: Vec<Session> = Vec::new();
    for (span, line) in &input.document.text_lines() {
        let at = span.start;
        if let Some(when) = line.strip_prefix(START) {
            let mut session = Session { start: at, ..Session::default() };
            session.when = Some(when.trim().to_owned());
            sessions.push(session);
        } else {
            if sessions.is_empty() {
                sessions.push(Session { start: at, ..Session::default() });
            }
            if let Some(session) = sessions.last_mut() {
                session.line(line, *span);
            }
        }
    }
    let mut decoded = Decoded::default();
    for session in sessions.into_iter().filter(|s| !s.steps.is_empty()) {
        let mut trajectory = session.trajectory();
        trajectory.source.record = decoded.trajectories.len();
        trajectory.format = input.format;
        decoded.trajectories.push(trajectory);
    }
    decoded
}

#[derive(Default)]
struct Session {
    start: u64,
    end: u64,
    when: Option<String>,
    model: Option<String>,
    cost: Option<f64>,
    steps: Vec<Step>,
}

impl Session {
    /// Adds a line to the step that is open if it is of the same kind, else opens one.
    fn line(&mut self, line: &str, span: ByteSpan) {
        self.end = span.start + span.len;
        let (role, text) =
            match (line.strip_prefix("#### "), line.strip_prefix("> ").or_else(|| line.strip_prefix('>'))) {
                (Some(text), _) => (Role::User, text),
                (None, Some(text)) => (Role::Tool, text),
                _ => (Role::Assistant, line),
            };
        if role == Role::Tool {
            self.said(text.trim());
        }
        // Answers have headings too. What a person writes stands behind something the program said, or ends in the two
        // spaces the program puts there.
        let answering = self.steps.last().is_some_and(|s| s.role == Role::Assistant && !s.text.trim().is_empty());
        let heading = role == Role::User && answering && !line.trim_end_matches(['\r', '\n']).ends_with("  ");
        let (role, text) = if heading { (Role::Assistant, line) } else { (role, text) };
        match self.steps.last_mut() {
            // A blank line belongs to whatever was open.
            Some(last) if last.role == role || line.trim().is_empty() => {
                last.text.push_str(if line.trim().is_empty() { "\n" } else { text });
                last.raw.span.len = span.start + span.len - last.raw.span.start;
            }
            _ if line.trim().is_empty() => {}
            _ => {
                let mut step = Step::new(role, text);
                step.raw = RawPlace::record(span);
                self.steps.push(step);
            }
        }
    }

    /// What the program says of itself: `Model: gpt-4o with …`, `Tokens: … Cost: $0.02 message, $0.10 session.`
    fn said(&mut self, text: &str) {
        for mark in ["Main model: ", "Model: ", "Models: "] {
            if let (None, Some(rest)) = (&self.model, text.strip_prefix(mark)) {
                self.model = rest.split([' ', ',']).next().map(str::to_owned);
            }
        }
        let cost = text.split_once("message, $").and_then(|(_, rest)| rest.split(' ').next());
        self.cost = cost.and_then(|c| c.parse().ok()).filter(|c| *c > 0.0).or(self.cost);
    }

    fn trajectory(mut self) -> Trajectory {
        let mut spoke = false;
        for step in &mut self.steps {
            step.text.truncate(step.text.trim_end().len());
            match step.role {
                Role::Assistant => {
                    spoke = true;
                    step.action = action::in_text(&step.text);
                }
                // Before the model spoke, the program only introduces itself.
                Role::Tool if !spoke => step.role = Role::Meta,
                _ => {}
            }
        }
        let mut out = Trajectory {
            source: Source {
                span: ByteSpan { start: self.start, len: self.end.saturating_sub(self.start) },
                ..Source::default()
            },
            agent: Some("aider".to_owned()),
            model: self.model,
            attempt: self.when,
            steps: self.steps,
            ..Trajectory::default()
        };
        out.usage.cost = self.cost;
        out
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::load::load_bytes;
    use super::*;

    #[test]
    fn a_history_of_two_sessions() {
        let text = "\n# aider chat started at 2024-05-01 10:00:00\n\n> Aider v0.35  \n> Model: gpt-4o with diff edit format  \n\n\
                    #### half(3) should be 1  \n#### fix it  \n\nI will change calc.py.\n\n```bash\nls\n```\n\n> Applied edit to calc.py  \n\
                    > Tokens: 2k sent, 100 received. Cost: $0.02 message, $0.10 session.  \n\n#### thanks\n\n\
                    # aider chat started at 2024-05-02 10:00:00\n\n> Aider v0.35\n";
        let file = load_bytes(Path::new("o__r-1.md"), text.as_bytes().to_vec());
        assert_eq!((file.report.format, file.trajectories.len()), (Some("aider-chat"), 2));
        let t = &file.trajectories[0];
        let found: Vec<(Role, &str)> = t.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
        assert_eq!(found[0].0, Role::Meta);
        assert_eq!(found[1], (Role::User, "half(3) should be 1  \nfix it"));
        assert_eq!(found[2], (Role::Assistant, "I will change calc.py.\n\n```bash\nls\n```"));
        assert_eq!(found[3].0, Role::Tool);
        assert_eq!(found[4], (Role::User, "thanks"));
        assert_eq!(t.steps[2].action.as_deref(), Some("ls"));
        assert_eq!((t.model.as_deref(), t.usage.cost), (Some("gpt-4o"), Some(0.1)));
        assert_eq!(t.attempt.as_deref(), Some("2024-05-01 10:00:00"));
        let span = t.steps[2].raw.span;
        let raw = &text[span.start as usize..(span.start + span.len) as usize];
        assert!(raw.starts_with("I will change") && raw.ends_with("```\n\n"), "{raw:?}");
        assert_eq!(t.source.span.start, 1);
    }

    #[test]
    fn a_heading_in_an_answer_is_no_prompt() {
        let text = "# aider chat started at 2026-01-01 10:00:00\n\n#### go\nThe plan:\n\n#### Step 1\nDo it.\n\n\
                    #### and now?  \nDone.\n";
        let file = load_bytes(Path::new(".aider.chat.history.md"), text.as_bytes().to_vec());
        let steps: Vec<(Role, &str)> = file.trajectories[0].steps.iter().map(|s| (s.role, s.text.as_str())).collect();
        let right = [
            (Role::User, "go"),
            (Role::Assistant, "The plan:\n\n#### Step 1\nDo it."),
            (Role::User, "and now?"),
            (Role::Assistant, "Done."),
        ];
        assert_eq!(steps, right);
    }
}
