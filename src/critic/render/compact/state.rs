//! What has happened so far in a run, as counts: told again at every action, so that a small model need not count.

use std::collections::{HashMap, HashSet};

use super::call::{Call, Kind};
use super::observe::{self, Observation};
use super::words::class;

/// Running counts.
#[derive(Debug, Default)]
pub struct State {
    actions: usize,
    edits: usize,
    views: usize,
    searches: usize,
    tests: usize,
    runs: usize,
    errors: usize,
    streak: usize,
    repeats: usize,
    since_edit: usize,
    since_test: usize,
    last_test: Option<bool>,
    reproduced: bool,
    scratch: HashSet<String>,
    edited: HashMap<String, usize>,
    viewed: HashSet<String>,
    raw: HashMap<String, usize>,
    last_raw: String,
    last_path: Option<String>,
    last_kind: Option<Kind>,
    outputs: HashSet<String>,
    last_output: String,
}

impl State {
    /// Does the answer to the last action quote files, so that the names of errors in it say nothing?
    pub fn quotes(&self) -> observe::Quotes {
        match self.last_kind {
            Some(Kind::View | Kind::Search | Kind::Plan | Kind::Git | Kind::Submit) => observe::Quotes::Only,
            Some(Kind::Edit | Kind::Create) => observe::Quotes::Partly,
            _ => observe::Quotes::Nothing,
        }
    }

    /// The file a call is about when it names none: an editor changes the file opened last.
    pub fn complete(&self, call: &mut Call) {
        if call.path.is_none() && call.kind == Kind::Edit {
            call.path.clone_from(&self.last_path);
        }
    }

    /// What is special about a call, given what came before.
    pub fn novelty(&self, call: &Call) -> Vec<&'static str> {
        let mut words = Vec::new();
        if let Some(path) = &call.path {
            words.push(if self.edited.contains_key(path) {
                "edited-file"
            } else if self.viewed.contains(path) {
                "seen-file"
            } else {
                "new-file"
            });
        }
        if self.last_raw == call.raw {
            words.push("loop");
        } else if self.raw.contains_key(&call.raw) {
            words.push("again");
        }
        if self.last_kind == Some(call.kind) {
            words.push("same-kind");
        }
        words
    }

    /// Takes the calls of one action into account.
    pub fn act(&mut self, calls: &[Call], scratch: impl Fn(&Call) -> bool) {
        self.actions += 1;
        self.since_edit += 1;
        self.since_test += 1;
        for call in calls {
            self.take(call, scratch(call));
        }
        if calls.is_empty() {
            self.last_kind = Some(Kind::Talk);
            self.last_raw.clear();
        }
    }

    fn take(&mut self, call: &Call, scratch: bool) {
        match call.kind {
            Kind::Edit | Kind::Create | Kind::Undo if !scratch => {
                self.edits += 1;
                self.since_edit = 0;
                let path = call.path.clone().unwrap_or_default();
                *self.edited.entry(path).or_default() += 1;
            }
            Kind::Edit | Kind::Create => drop(call.path.clone().map(|p| self.scratch.insert(p))),
            Kind::Delete => self.scratch.clear(),
            Kind::View => self.views += 1,
            Kind::Search => self.searches += 1,
            Kind::Test => {
                self.tests += 1;
                self.since_test = 0;
            }
            Kind::Run => {
                self.runs += 1;
                self.since_test = 0;
            }
            _ => {}
        }
        if let Some(path) = &call.path {
            self.viewed.insert(path.clone());
            if matches!(call.kind, Kind::View | Kind::Edit | Kind::Create) {
                self.last_path = Some(path.clone());
            }
        }
        let times = self.raw.entry(call.raw.clone()).or_default();
        *times += 1;
        self.repeats += usize::from(*times > 1);
        self.last_raw.clone_from(&call.raw);
        self.last_kind = Some(call.kind);
    }

    /// Words on how an observation compares with those before; takes it into account.
    pub fn answer(&mut self, seen: &Observation) -> Option<&'static str> {
        if seen.bad {
            self.errors += 1;
            self.streak += 1;
            self.reproduced |= self.edits == 0 && matches!(self.last_kind, Some(Kind::Run | Kind::Test));
        } else {
            self.streak = 0;
        }
        if let Some(passed) = seen.tests() {
            self.last_test = Some(passed);
        } else if matches!(self.last_kind, Some(Kind::Run | Kind::Test)) {
            self.last_test = Some(!seen.bad);
        }
        let word = if seen.raw.is_empty() {
            None
        } else if seen.raw == self.last_output {
            Some("same-output")
        } else {
            self.outputs.contains(&seen.raw).then_some("seen-output")
        };
        self.outputs.insert(seen.raw.clone());
        self.last_output.clone_from(&seen.raw);
        word
    }

    /// The state in words, after the action it closes.
    pub fn words(&self, line: &mut Vec<String>) {
        line.push("now".to_owned());
        let counts = [
            ("actions", self.actions),
            ("edits", self.edits),
            ("edit-files", self.edited.len()),
            ("views", self.views),
            ("searches", self.searches),
            ("tests", self.tests),
            ("runs", self.runs),
            ("errors", self.errors),
            ("streak", self.streak),
            ("repeats", self.repeats),
        ];
        line.extend(counts.iter().filter(|(_, n)| *n > 0).map(|(field, n)| format!("{field}={}", class(*n))));
        if self.edits > 0 {
            line.push(format!("since-edit={}", class(self.since_edit)));
        }
        let word = match self.last_test {
            None => "untested",
            Some(true) => "last-ok",
            Some(false) => "last-failed",
        };
        line.push(word.to_owned());
        if self.tests + self.runs > 0 {
            line.push(format!("since-test={}", class(self.since_test)));
        }
        if self.reproduced {
            line.push("reproduced".to_owned());
        }
        if !self.scratch.is_empty() {
            line.push("scratch-left".to_owned());
        }
    }
}
