//! What was joined to what, by which rule, and what was not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Dataset, Issue};

/// What a line of the account is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Joined {
    /// A trajectory that is a copy of another, or has no label.
    Trajectory,
    /// A prediction.
    Prediction,
    /// What a report says about one instance.
    Report,
}

impl Joined {
    /// Lower-case name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trajectory => "trajectory",
            Self::Prediction => "prediction",
            Self::Report => "report",
        }
    }
}

/// By which rule something found its attempt, or why it found none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Both stand in the same file.
    SameFile,
    /// Both lie in the folder of the same run.
    SameRun,
    /// It is the only run below the folder the other lies in.
    OnlyBelow,
    /// It is the only run in a folder above.
    OnlyAbove,
    /// The run or the model is called the same.
    SameName,
    /// The patches are the same.
    SamePatch,
    /// The run or the model is called the same, and so are the patches.
    SameNameAndPatch,
    /// Of several attempts of the run, the only one that was predicted.
    OnlyPredicted,
    /// Of several attempts of the run, all those with a patch, which is the same.
    OnlyPatch,
    /// Of several predictions of one file the last one: it is the one the harness keeps.
    LastOfFile,
    /// The report lists the resolved instances of the run as a whole and does not name this one.
    NotListed,
    /// It says what was said already.
    Again,
    /// It is an attempt of its own.
    Alone,
    /// Not joined: there is no attempt at the instance.
    NoAttempt,
    /// Not joined: the attempts lie elsewhere, and neither name nor patch is the same.
    Elsewhere,
    /// Not joined: several attempts fit, and nothing tells them apart.
    Several,
    /// Not joined: the report says nothing certain about the instance (not submitted, pending).
    SaysNothing,
    /// Reports or logs speak of it, but none decides it.
    Undecided,
    /// No report speaks of it.
    NoReport,
}

impl Rule {
    /// The words for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::SameFile => "stands in the same file",
            Self::SameRun => "lies in the folder of the same run",
            Self::OnlyBelow => "the only run below its folder",
            Self::OnlyAbove => "the only run in a folder above",
            Self::SameName => "the run or model is called the same",
            Self::SamePatch => "the same patch",
            Self::SameNameAndPatch => "the same name and the same patch",
            Self::OnlyPredicted => "the only attempt of the run that was predicted",
            Self::OnlyPatch => "the only patch of the run",
            Self::LastOfFile => "the last prediction of its file, which is the one the harness keeps",
            Self::NotListed => "the report lists the resolved instances of the run, and not this one",
            Self::Again => "says what is known already",
            Self::Alone => "an attempt of its own: no trajectory fits",
            Self::NoAttempt => "no trajectory and no prediction of the instance",
            Self::Elsewhere => "the attempts lie elsewhere, and neither name nor patch is the same",
            Self::Several => "several attempts fit, and nothing tells them apart",
            Self::SaysNothing => "says nothing certain (not submitted, pending or failed to run)",
            Self::Undecided => "what is said of it decides nothing (not submitted, pending, or only a log)",
            Self::NoReport => "no report speaks of it",
        }
    }

    /// Did it come to an attempt?
    pub fn is_joined(self) -> bool {
        !matches!(
            self,
            Self::NoAttempt | Self::Elsewhere | Self::Several | Self::SaysNothing | Self::Undecided | Self::NoReport
        )
    }
}

/// One line of the account: where one prediction, one statement of a report, or one trajectory went.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JoinLine {
    /// The file it stands in.
    pub path: PathBuf,
    /// What it is.
    pub what: Joined,
    /// 0-based record in the file (0 for a report).
    pub record: usize,
    /// Instance, in the spelling of the file; `None` for a trajectory that names none.
    pub instance: Option<String>,
    /// Name of the issue and of the attempt it came to, if it came to one.
    pub attempt: Option<(String, String)>,
    /// The rule.
    pub rule: Rule,
}

/// Where an attempt stands: its file and record. Names are given at the very end.
pub type Target = (PathBuf, usize);

/// Takes down what happens while joining, if somebody wants to know.
#[derive(Debug, Default)]
pub struct Log {
    on: bool,
    entries: Vec<(JoinLine, Option<Target>)>,
}

impl Log {
    /// One that takes everything down.
    pub fn on() -> Self {
        Self { on: true, ..Self::default() }
    }

    /// Takes down one line.
    pub fn add(
        &mut self,
        what: Joined,
        (path, record): (&Path, usize),
        instance: Option<&str>,
        target: Option<Target>,
        rule: Rule,
    ) {
        if self.on {
            let instance = instance.map(str::to_owned);
            let line = JoinLine { path: path.to_owned(), what, record, instance, attempt: None, rule };
            self.entries.push((line, target));
        }
    }

    /// The lines in order of file, kind and record, with the names the attempts got.
    pub fn lines(self, issues: &[Issue]) -> Vec<JoinLine> {
        let mut names: BTreeMap<(&Path, usize), (String, String)> = BTreeMap::new();
        for issue in issues {
            for attempt in &issue.attempts {
                if let Some(path) = attempt.path() {
                    names.insert((path, attempt.record()), (issue.name(), attempt.name.clone()));
                }
            }
        }
        let named = self.entries.into_iter().map(|(mut line, target)| {
            line.attempt = target.and_then(|(path, record)| names.get(&(path.as_path(), record)).cloned());
            line
        });
        let mut lines: Vec<JoinLine> = named.collect();
        lines.sort();
        lines
    }
}

/// What became of every prediction, of what every report says about each instance, and of every trajectory that has
/// no label or is a copy. Pure; joins once more, because nobody needs this every time.
pub fn account(dataset: &Dataset) -> Vec<JoinLine> {
    let mut log = Log::on();
    let issues = super::join_with(dataset, &mut log);
    log.lines(&issues)
}

/// The same in few lines: how many of a file's statements went where, by rule; joined ones first.
pub fn summary(lines: &[JoinLine]) -> Vec<(PathBuf, String)> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let rules: &mut BTreeMap<(bool, Rule), usize> = counts.entry((line.path.as_path(), line.what)).or_default();
        *rules.entry((!line.rule.is_joined(), line.rule)).or_default() += 1;
    }
    let told = counts.into_iter().map(|((path, what), rules)| {
        let parts: Vec<String> = rules
            .into_iter()
            .map(|((_, rule), n)| {
                let joined = match (what, rule.is_joined()) {
                    (_, true) => "joined",
                    (Joined::Trajectory, false) => "without label",
                    (_, false) => "not joined",
                };
                format!("{n} {joined} ({})", rule.text())
            })
            .collect();
        (path.to_owned(), format!("{}: {}", what.name(), parts.join(", ")))
    });
    told.collect()
}
