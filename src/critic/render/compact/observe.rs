//! What the environment answered, reduced to words: exit, class of error, test results, size.

use super::words::class;
use crate::trajectory::Step;

/// Bytes looked at from each end of a long observation.
const HEAD: usize = 4_000;
/// See [`HEAD`].
const TAIL: usize = 6_000;

/// An observation, understood as far as the rendering needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Plain words, in a fixed order.
    pub words: Vec<&'static str>,
    /// Tests that passed and failed, where the output counts them.
    pub passed: Option<usize>,
    /// See `passed`.
    pub failed: Option<usize>,
    /// Lines of text.
    pub lines: usize,
    /// Something went wrong.
    pub bad: bool,
    /// The text without what changes from run to run, to find repetitions.
    pub raw: String,
}

impl Observation {
    /// Did it show tests, and did they all pass?
    pub fn tests(&self) -> Option<bool> {
        if self.words.contains(&"tests-failed") {
            return Some(false);
        }
        self.words.contains(&"tests-ok").then_some(true)
    }

    /// Size class of the text.
    pub fn size(&self) -> &'static str {
        class(self.lines)
    }
}

/// How much of an answer is text of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// A program's own output.
    Nothing,
    /// The changed lines are shown beside the result.
    Partly,
    /// Files and nothing else.
    Only,
}

/// Reads the steps that answer an action.
pub fn observe(steps: &[&Step], quotes: Quotes) -> Observation {
    let text = steps.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join("\n");
    let window = window(&text);
    let lower = window.to_ascii_lowercase();
    let mut seen =
        Observation { lines: text.trim().lines().count(), raw: window.trim().to_owned(), ..Default::default() };
    exit(&mut seen, steps, &lower);
    let broken =
        ["Traceback (most recent", "SyntaxError", "IndentationError", "E999"].iter().any(|m| window.contains(m));
    if seen.bad || quotes == Quotes::Nothing || quotes == Quotes::Partly && broken {
        errors(&mut seen, &window, &lower);
    }
    if seen.bad || quotes != Quotes::Only {
        tests(&mut seen, &lower);
    }
    failures(&mut seen, &lower);
    for (word, marks) in NOTES {
        if marks.iter().any(|m| lower.contains(m)) {
            seen.words.push(word);
        }
    }
    if text.trim().is_empty() {
        seen.words.push("silent");
    }
    if text.len() > HEAD + TAIL {
        seen.words.push("long");
    }
    seen
}

/// Both ends of a text, cut at character boundaries.
fn window(text: &str) -> String {
    if text.len() <= HEAD + TAIL {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(HEAD);
    let tail = text.ceil_char_boundary(text.len() - TAIL);
    format!("{}\n{}", text.get(..head).unwrap_or(""), text.get(tail..).unwrap_or(""))
}

/// Exit code: from the steps, else as the harnesses print it.
fn exit(seen: &mut Observation, steps: &[&Step], lower: &str) {
    let given = steps.iter().find_map(|s| s.exit_code);
    let printed = || {
        ["<returncode>", "exit code: ", "exit code ", "exit status "].iter().find_map(|mark| number_after(lower, mark))
    };
    let short = || lower.strip_prefix("exit ").and_then(leading_number);
    match given.or_else(printed).or_else(short) {
        Some(0) => seen.words.push("exit-zero"),
        Some(_) => {
            seen.words.push("exit-error");
            seen.bad = true;
        }
        None if steps.iter().any(|s| s.is_error == Some(true)) => {
            seen.words.push("exit-error");
            seen.bad = true;
        }
        None => {}
    }
}

/// Classes of error, by the marks that name them; case matters (`Error` is a class, `error` may be prose).
const ERRORS: [(&str, &[&str]); 10] = [
    ("traceback", &["Traceback (most recent call last)", "\tat ", "    at "]),
    ("syntax-error", &["SyntaxError", "IndentationError", "E999", "introduced new syntax error", "TabError"]),
    ("import-error", &["ImportError", "ModuleNotFoundError", "Cannot find module", "ClassNotFoundException"]),
    ("name-error", &["NameError", "AttributeError", "ReferenceError", "cannot find symbol", "is not defined"]),
    ("type-error", &["TypeError", "error TS", "incompatible types", "ClassCastException"]),
    ("value-error", &["ValueError", "KeyError", "IndexError", "NullPointerException", "IllegalArgumentException"]),
    ("assertion", &["AssertionError", "AssertionFailedError", "ComparisonFailure", "Expected:", "assert "]),
    ("denied", &["Permission denied", "PermissionError"]),
    ("no-command", &["command not found", "not recognized as"]),
    ("no-file", &["No such file or directory", "FileNotFoundError", "does not exist", "File not found", "not found:"]),
];

/// Errors named in lower case.
const FAILURES: [(&str, &[&str]); 4] = [
    (
        "edit-failed",
        &[
            "no replacement was performed",
            "did not appear verbatim",
            "failed to apply",
            "proposed edit has",
            "failed to match",
            "no exact match",
            "patch failed",
            "could not find",
            "not unique",
            "multiple occurrences",
            "\"updated\": false",
            "invalid patch",
        ],
    ),
    ("timeout", &["timed out", "timeoutexpired", "timeout exceeded"]),
    ("build-failed", &["build failure", "compilation error", "build failed", "failed to compile", "npm err!"]),
    ("no-match", &["no matches", "no results", "found 0 ", "no files found", "no search results", "nothing found"]),
];

/// Remarks that are no errors.
const NOTES: [(&str, &[&str]); 5] = [
    (
        "edit-ok",
        &[
            "has been edited",
            "created successfully",
            "applied edit to",
            "file updated",
            "\"updated\": true",
            "edit was applied",
            "has been updated",
            "successfully replaced",
            "successfully edited",
            "successfully created",
            "applied the change",
        ],
    ),
    ("build-ok", &["build success", "compiled successfully"]),
    ("diff-shown", &["diff --git", "\n+++ ", "\n@@ "]),
    ("ask-user", &["please continue working", "never ask for human", "add these files to the chat"]),
    ("warning", &["warning"]),
];

fn errors(seen: &mut Observation, window: &str, lower: &str) {
    for (word, marks) in ERRORS {
        if marks.iter().any(|m| window.contains(m)) {
            seen.words.push(word);
            seen.bad |= !matches!(word, "assertion");
        }
    }
    if !seen.bad && (window.contains("Error:") || window.contains("Exception:") || lower.contains("\nerror")) {
        seen.words.push("other-error");
        seen.bad = true;
    }
}

fn failures(seen: &mut Observation, lower: &str) {
    for (word, marks) in FAILURES {
        if marks.iter().any(|m| lower.contains(m)) {
            seen.words.push(word);
            seen.bad |= word != "no-match";
        }
    }
}

/// Test results as the common runners print them.
fn tests(seen: &mut Observation, lower: &str) {
    let (mut passed, mut failed) = (None, None);
    let mut good = false;
    let mut bad = false;
    for line in lower.lines().rev().take(400) {
        let counted = counts(line);
        if let Some(n) = counted.0 {
            passed = passed.or(Some(n));
        }
        if let Some(n) = counted.1 {
            failed = failed.or(Some(n));
        }
        let line = line.trim();
        good |= line == "ok" || line.starts_with("ok (") || line.contains("all tests passed");
        bad |= line.starts_with("failed (") || line.contains("there are test failures") || line.starts_with("--- fail");
    }
    bad |= failed.is_some_and(|n| n > 0);
    good |= passed.is_some_and(|n| n > 0);
    if lower.contains("no tests ran") || lower.contains("ran 0 tests") || lower.contains("collected 0 items") {
        seen.words.push("no-tests");
    }
    if bad {
        seen.words.push("tests-failed");
        seen.bad = true;
    } else if good {
        seen.words.push("tests-ok");
    }
    seen.passed = passed;
    seen.failed = failed;
}

/// `(passed, failed)` of one lower-case line: pytest, unittest, jest, mocha, maven.
fn counts(line: &str) -> (Option<usize>, Option<usize>) {
    let before = |word: &str| -> Option<usize> {
        let at = line.find(word)?;
        let digits: String = line.get(..at)?.trim_end().chars().rev().take_while(char::is_ascii_digit).collect();
        digits.chars().rev().collect::<String>().parse().ok()
    };
    let after = |word: &str| number_after(line, word).and_then(|n| usize::try_from(n).ok());
    if line.contains("tests run:") {
        let bad = after("failures: ").unwrap_or(0) + after("errors: ").unwrap_or(0);
        return (after("tests run: ").map(|n| n.saturating_sub(bad)), Some(bad));
    }
    if line.contains("failed (") {
        let bad = after("failures=").unwrap_or(0) + after("errors=").unwrap_or(0);
        return (None, Some(bad));
    }
    let passed = before(" passed").or_else(|| before(" passing"));
    let failed = before(" failed").or_else(|| before(" failing"));
    let broken = before(" error");
    let failed = match (failed, broken) {
        (None, Some(n)) if passed.is_some() || line.contains(" in ") => Some(n),
        (Some(n), Some(more)) => Some(n + more),
        (failed, _) => failed,
    };
    let ran = (line.starts_with("ran ") && line.contains(" test")).then(|| after("ran ")).flatten();
    (passed.or(ran), failed)
}

/// The number that follows `mark`.
fn number_after(text: &str, mark: &str) -> Option<i64> {
    let at = text.find(mark)?;
    leading_number(text.get(at + mark.len()..)?)
}

fn leading_number(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
