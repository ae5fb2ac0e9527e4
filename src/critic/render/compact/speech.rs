//! How the agent speaks: a few words found in what it writes around its command.

/// Words and the phrases (lower case) that call for them.
const PHRASES: [(&str, &[&str]); 10] = [
    (
        "sure",
        &[
            "perfect",
            "great!",
            "excellent",
            "successfully",
            "works as expected",
            "all tests pass",
            "working correctly",
            "is fixed",
            "confirmed",
            "verified",
            "works correctly",
        ],
    ),
    (
        "doubt",
        &[
            "however,",
            "wait,",
            "hmm",
            "actually,",
            "strange",
            "unexpected",
            "still fail",
            "doesn't work",
            "not working",
            "didn't work",
            "not sure",
            "interesting",
        ],
    ),
    ("sorry", &["apolog", "sorry", "my mistake", "unfortunately", "i made a mistake"]),
    (
        "retry",
        &[
            "try again",
            "another approach",
            "different approach",
            "alternative",
            "let me try",
            "let's try",
            "instead,",
            "let me fix",
            "correct the",
        ],
    ),
    (
        "blocked",
        &[
            "unable to",
            "cannot ",
            "can't ",
            "not installed",
            "not available",
            "missing depend",
            "environment issue",
            "unrelated to",
            "pre-existing",
        ],
    ),
    ("insight", &["root cause", "the problem is", "the issue is", "i understand", "i found", "i can see", "now i see"]),
    ("cleanup", &["clean up", "remove the test", "remove the temp", "remove the repro", "delete the"]),
    ("edge-case", &["edge case", "corner case", "backward", "compatib"]),
    ("existing-tests", &["existing test", "test suite", "regression"]),
    ("summary", &["summary", "in summary", "changes made", "the fix", "implemented", "i have "]),
];

/// The words that fit, in a fixed order.
pub fn speech(text: &str) -> Vec<&'static str> {
    let lower = text.to_ascii_lowercase();
    PHRASES.iter().filter(|(_, marks)| marks.iter().any(|m| lower.contains(m))).map(|(word, _)| *word).collect()
}
