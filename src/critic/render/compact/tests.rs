use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::trajectory::ToolCall;

const PATCH: &str = "diff --git a/src/size.py b/src/size.py\n--- a/src/size.py\n+++ b/src/size.py\n@@ -1,3 +1,4 @@\n \
                     def size(text):\n-    return len(text)\n+    if text is None:\n+        return 0\n";

fn rendered(trajectory: &Trajectory) -> CriticText {
    let positions = Positions { token: words::END.to_owned(), note: String::new() };
    render(&CompactOptions { patch: true }, &positions, trajectory)
}

fn acts(action: &str) -> Step {
    Step { action: Some(action.to_owned()), thought: Some("Look.".to_owned()), ..Step::new(Role::Assistant, action) }
}

fn run(steps: Vec<Step>, patch: Option<&str>) -> Trajectory {
    Trajectory { steps, patch: patch.map(str::to_owned), ..Trajectory::default() }
}

/// The kind word of the only action.
fn kind_of(step: Step) -> String {
    let text = rendered(&run(vec![step], None)).text();
    text.lines().nth(1).unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_whole_run_is_told_in_events() {
    let run = run(
        vec![
            Step::new(Role::System, "You are an agent."),
            Step::new(Role::User, "size(None) raises"),
            acts("python reproduce.py"),
            Step::new(
                Role::Tool,
                "Traceback (most recent call last):\nTypeError: object of type NoneType has no len()",
            ),
            acts("sed -i 's/a/b/' src/size.py"),
            Step::new(Role::Tool, ""),
            acts("python -m pytest tests"),
            Step { exit_code: Some(1), ..Step::new(Role::Tool, "1 failed, 3 passed in 0.10s") },
            acts("python -m pytest tests"),
            Step { exit_code: Some(0), ..Step::new(Role::Tool, "4 passed in 0.10s") },
            Step { thought: Some("Perfect! All tests pass.".to_owned()), ..acts("submit") },
            Step::new(Role::Meta, "saved"),
        ],
        Some(PATCH),
    );
    let told = rendered(&run);
    assert_eq!(
        told.text(),
        "begin\n\
         act run scratch-file py new-file lines=1 thought=0 now actions=1 runs=1 untested since-test=0 <|im_end|>\n\
         obs traceback type-error size=2\n\
         act edit source-file py new-file lines=1 thought=0 now actions=2 edits=1 edit-files=1 runs=1 errors=1 \
         streak=1 since-edit=0 last-failed since-test=1 reproduced <|im_end|>\n\
         act test thought=0 now actions=3-4 edits=1 edit-files=1 tests=1 runs=1 errors=1 streak=1 since-edit=1 \
         last-failed since-test=0 reproduced <|im_end|>\n\
         obs exit-error tests-failed passed=3-4 failed=1 size=1\n\
         act test loop same-kind thought=0 now actions=3-4 edits=1 edit-files=1 tests=2 runs=1 errors=2 streak=2 \
         repeats=1 since-edit=2 last-failed since-test=0 reproduced <|im_end|>\n\
         obs exit-zero tests-ok passed=3-4 size=1\n\
         act submit thought=1 sure now actions=5-8 edits=1 edit-files=1 tests=2 runs=1 errors=2 repeats=1 \
         since-edit=3-4 last-ok since-test=1 reproduced patch patch-files=1 patch-hunks=1 patch-added=2 \
         patch-removed=1 patch-tests=0 patch-other=0 py patch-one-place <|im_end|>\n"
    );
    let values: Vec<Value> = told.segments.iter().filter_map(|s| s.value).collect();
    assert_eq!(values.iter().map(|v| v.action).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for segment in &told.segments {
        if let Some(value) = segment.value {
            assert!(segment.text[..value.end].ends_with(words::END));
        }
    }
    assert!(told.segments[0].pinned && told.segments[1..].iter().all(|s| !s.pinned));
    assert_eq!(told.segments.iter().map(|s| s.turn).collect::<Vec<_>>(), [0, 1, 1, 2, 3, 3, 4, 4, 5]);
}

#[test]
fn the_same_action_is_the_same_in_every_format() {
    let native = |name: &str, arguments: &str| Step {
        calls: vec![ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() }],
        ..Step::new(Role::Assistant, "")
    };
    let fenced = "Run it.\n\n```bash\npython -m pytest tests\n```";
    for step in [
        acts("pytest tests"),
        acts("bash {\"command\": \"cd /x && pytest tests\"}"),
        acts("(bash)\ncommand: cd /x && pytest tests\ntimeout: 9"),
        acts("/bin/bash -lc 'pytest tests'"),
        native("execute_bash", "{\"command\": \"pytest tests\"}"),
        native("run_tests", "{}"),
        Step::new(Role::Assistant, fenced),
        Step::new(Role::Assistant, "<function=execute_bash>\n<parameter=command>pytest tests</parameter>\n</function>"),
        Step::new(Role::Assistant, "content='' tool_calls=[{'name': 'run_tests', 'args': {}}]"),
    ] {
        assert_eq!(kind_of(step.clone()), "test", "{step:?}");
    }
    for step in [
        acts("edit 1:2\nx = 1\nend_of_edit"),
        acts("src/a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE"),
        acts("(find_and_replace_code)\nfile_path: a.py"),
        native("str_replace_editor", "{\"command\": \"str_replace\", \"path\": \"a.py\", \"new_str\": \"x\"}"),
        native("edit_file", "not json"),
        native("mcp_tool_call", "{\"tool\": \"replace\", \"arguments\": {\"path\": \"a.py\"}}"),
        Step::new(Role::Assistant, "*** Begin Patch\n*** Update File: a.py"),
    ] {
        assert_eq!(kind_of(step.clone()), "edit", "{step:?}");
    }
}

#[test]
fn commands_have_a_kind() {
    for (command, kind) in [
        ("ls -la | head", "search"),
        ("grep -rn x src | head -5", "search"),
        ("cat a.py", "view"),
        ("nl -ba a.py | sed -n '1,20p'", "view"),
        ("open src/a.py 100", "view"),
        ("cat <<'EOF' > repro.py\nrm -rf /\npytest\nEOF", "create"),
        ("cat <<'EOF' > repro.py\nx\nEOF\npython repro.py", "run"),
        ("python - <<'EOF'\nprint(1)\nEOF", "run"),
        ("echo done", "other"),
        ("echo x > notes.txt", "create"),
        ("python a.py 2>/dev/null", "run"),
        ("git diff", "git"),
        ("git checkout -- a.py", "undo"),
        ("git apply x.patch", "edit"),
        ("rm repro.py", "delete"),
        ("pip install -e .", "install"),
        ("FOO=1 timeout 60 npm test", "test"),
        ("./tests/runtests.py --parallel 1", "test"),
        ("mvn -q test", "test"),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A", "submit"),
        ("submit", "submit"),
        ("frobnicate", "other"),
    ] {
        assert_eq!(kind_of(acts(command)), kind, "{command}");
    }
}

#[test]
fn tools_have_a_kind() {
    for (name, kind) in [
        ("think", "think"),
        ("finish", "submit"),
        ("reject", "reject"),
        ("view_file", "view"),
        ("get_class_info", "view"),
        ("SemanticSearch", "search"),
        ("create_file", "create"),
        ("undo_edit", "undo"),
        ("delete_file", "delete"),
        ("PlanToCode", "plan"),
        ("browser", "other"),
    ] {
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments: "{}".to_owned() };
        assert_eq!(kind_of(Step { calls: vec![call], ..Step::new(Role::Assistant, "") }), kind, "{name}");
    }
    assert_eq!(kind_of(Step::new(Role::Assistant, "I am done.")), "talk");
}

#[test]
fn answers_have_words() {
    let answer = |kind: &str, text: &str| {
        let told = rendered(&run(vec![acts(kind), Step::new(Role::Tool, text)], None)).text();
        told.lines().nth(2).unwrap_or_default().to_owned()
    };
    for (action, text, words) in [
        ("pytest", "=== 2 failed, 10 passed, 1 error in 3.2s ===", "tests-failed passed=9-16 failed=3-4"),
        ("python x.py", "Ran 5 tests in 0.1s\n\nFAILED (failures=2, errors=1)", "tests-failed passed=5-8 failed=3-4"),
        ("python x.py", "Ran 5 tests in 0.1s\n\nOK", "tests-ok passed=5-8"),
        ("mvn test", "Tests run: 7, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE", "passed=5-8 failed=1"),
        ("npm test", "  12 passing\n  2 failing", "tests-failed passed=9-16 failed=2"),
        ("python x.py", "SyntaxError: invalid syntax", "syntax-error"),
        ("rg x", "/bin/bash: rg: command not found", "obs size=1"),
        ("python x.py", "bash: python: command not found", "no-command"),
        ("edit 1:1\nx\nend_of_edit", "Your proposed edit has introduced new syntax error(s).", "edit-failed"),
        ("edit 1:1\nx\nend_of_edit", "The file a.py has been edited.", "edit-ok"),
        ("ls", "<returncode>2</returncode>\nls: No such file or directory", "exit-error no-file"),
        ("cat a.py", "raise ValueError('x')", "obs size=1"),
        ("python x.py", "Exception: odd", "other-error"),
    ] {
        assert!(answer(action, text).contains(words), "{text}: {} lacks {words}", answer(action, text));
    }
    assert_eq!(answer("ls", "  \n"), "");
}

#[test]
fn the_patch_is_told_at_the_last_action_only() {
    let steps = || vec![acts("ls"), Step::new(Role::Tool, "a"), acts("submit")];
    let last = |patch: Option<&str>| rendered(&run(steps(), patch)).text().lines().last().unwrap().to_owned();
    assert!(last(None).ends_with("patch-unknown <|im_end|>"));
    assert!(last(Some(" \n")).ends_with("patch-empty <|im_end|>"));
    let tests = "--- a/tests/test_x.py\n+++ b/tests/test_x.py\n@@ -1 +1 @@\n-a\n+b\n";
    assert!(last(Some(tests)).contains("patch-tests=1") && last(Some(tests)).contains("patch-only-tests"));
    let new =
        "diff --git a/notes.md b/notes.md\nnew file mode 100644\n--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1 @@\n+++ x\n";
    assert!(
        last(Some(new)).contains("patch-files=1 patch-hunks=1 patch-added=1 patch-removed=0"),
        "{}",
        last(Some(new))
    );
    assert!(last(Some(new)).contains("patch-other=1 patch-new-file"));
    let text = rendered(&run(steps(), Some(PATCH))).text();
    assert_eq!(text.matches("patch-files").count(), 1);
    let without = CompactOptions { patch: false };
    let positions = Positions { token: words::END.to_owned(), note: String::new() };
    assert!(!render(&without, &positions, &run(steps(), Some(PATCH))).text().contains("patch"));
}

#[test]
fn demonstrations_are_no_part_of_the_run() {
    let demo = Step { is_demo: true, ..acts("pytest") };
    let told = rendered(&run(vec![demo, Step::new(Role::User, "go"), acts("ls")], None));
    assert_eq!(told.n_values(), 1);
    assert!(!told.text().contains(" test "));
    assert_eq!(rendered(&Trajectory::default()).text(), "begin\n");
}

#[test]
fn words_are_unique_and_classes_grow() {
    let all = vocabulary();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    assert!(all.iter().all(|w| !w.contains(char::is_whitespace)));
    let classes: Vec<&str> = [0, 1, 2, 3, 5, 9, 17, 33, 65, 129, usize::MAX].map(class).to_vec();
    assert_eq!(classes[..10], words::COUNTS);
    assert_eq!(classes[10], "129+");
}

fn assert_known(trajectory: &Trajectory) {
    let known: HashSet<String> = vocabulary().into_iter().collect();
    let text = rendered(trajectory);
    assert_eq!(text.n_values(), trajectory.n_actions());
    for word in text.text().split_whitespace() {
        assert!(known.contains(word), "{word:?} is not in the vocabulary");
    }
}

proptest! {
    #[test]
    fn only_known_words_whatever_the_run_holds(
        parts in proptest::collection::vec(("\\PC{0,60}", "(\\PC|\n|`|<|=|\\{|\\(){0,60}", "(\\PC|\n){0,80}"), 0..6),
        patch in proptest::option::of("(\\+|-|@|\\PC|\n){0,80}"),
        native in any::<bool>(),
    ) {
        let mut steps = Vec::new();
        for (thought, action, answer) in parts {
            let mut step = Step::new(Role::Assistant, format!("{thought}\n{action}"));
            if native {
                step.calls = vec![ToolCall { id: String::new(), name: thought, arguments: action }];
            } else {
                step.action = Some(action);
            }
            steps.push(step);
            steps.push(Step::new(Role::Tool, answer));
        }
        assert_known(&run(steps, patch.as_deref()));
    }
}
