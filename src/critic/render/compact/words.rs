//! The closed vocabulary of the compact rendering: every word it can write, as tables.
//!
//! A word is either plain (`traceback`) or a field with a size class (`edits=5-8`). The tokenizer of the small critic
//! has exactly these words, so nothing of a run's own text can reach the model except through them.

/// Size classes of counts.
pub const COUNTS: [&str; 10] = ["0", "1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+"];

/// Fields that carry a size class.
pub const FIELDS: [&str; 24] = [
    "thought",
    "lines",
    "repeats",
    "calls",
    "passed",
    "failed",
    "size",
    "actions",
    "edits",
    "edit-files",
    "views",
    "searches",
    "tests",
    "runs",
    "errors",
    "streak",
    "since-edit",
    "since-test",
    "patch-files",
    "patch-hunks",
    "patch-added",
    "patch-removed",
    "patch-tests",
    "patch-other",
];

/// Kinds of action, in order of the column `Kind`.
pub const KINDS: [&str; 16] = [
    "talk", "think", "plan", "view", "search", "edit", "create", "delete", "undo", "test", "run", "install", "git",
    "submit", "reject", "other",
];

/// Every other word.
pub const PLAIN: [&str; 72] = [
    // line heads
    "begin",
    "act",
    "obs",
    "now",
    "patch",
    // what the action is about
    "source-file",
    "test-file",
    "scratch-file",
    "doc-file",
    "config-file",
    "new-file",
    "seen-file",
    "edited-file",
    "py",
    "js",
    "ts",
    "java",
    "otherlang",
    "again",
    "loop",
    "same-kind",
    "many-calls",
    "part-of-file",
    // how the agent speaks
    "sure",
    "doubt",
    "sorry",
    "retry",
    "blocked",
    "insight",
    "cleanup",
    "edge-case",
    "existing-tests",
    "summary",
    // what the environment answered
    "silent",
    "exit-zero",
    "exit-error",
    "traceback",
    "syntax-error",
    "import-error",
    "name-error",
    "type-error",
    "value-error",
    "assertion",
    "other-error",
    "no-file",
    "no-command",
    "no-match",
    "edit-failed",
    "edit-ok",
    "timeout",
    "denied",
    "build-failed",
    "build-ok",
    "tests-ok",
    "tests-failed",
    "no-tests",
    "same-output",
    "seen-output",
    "long",
    "diff-shown",
    "ask-user",
    "warning",
    // state
    "untested",
    "last-ok",
    "last-failed",
    "reproduced",
    "scratch-left",
    // the candidate patch
    "patch-unknown",
    "patch-empty",
    "patch-new-file",
    "patch-only-tests",
    "patch-one-place",
];

/// Closes an action: the value of the action is read at this token.
pub const END: &str = "<|im_end|>";

/// Stands for a word the tokenizer does not have (none is ever written).
pub const UNKNOWN: &str = "<|unk|>";

/// Size class of a count.
pub fn class(n: usize) -> &'static str {
    let at = match n {
        0..=2 => n,
        3..=4 => 3,
        5..=8 => 4,
        9..=16 => 5,
        17..=32 => 6,
        33..=64 => 7,
        65..=128 => 8,
        _ => 9,
    };
    COUNTS.get(at).copied().unwrap_or("129+")
}

/// Every word the rendering can write, in the order of their token ids (special tokens first).
pub fn vocabulary() -> Vec<String> {
    let mut words: Vec<String> = [UNKNOWN, END].iter().map(|w| (*w).to_owned()).collect();
    words.extend(PLAIN.iter().chain(KINDS.iter()).map(|w| (*w).to_owned()));
    words.extend(FIELDS.iter().flat_map(|f| COUNTS.iter().map(move |c| format!("{f}={c}"))));
    words
}
