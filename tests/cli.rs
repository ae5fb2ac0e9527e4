//! The binary as a user meets it: exit codes, what goes to stdout and what to stderr, files never lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

#[path = "cli/cache.rs"]
mod cache;
#[path = "cli/verify.rs"]
mod verify;

/// Runs the binary with nothing of this machine's environment.
struct Env {
    dir: tempfile::TempDir,
}

impl Env {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trajscope"));
        command.args(args).env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// A mini-swe-agent run of two actions.
fn mini(instance: &str, patch: &str) -> String {
    json!({
        "info": {"exit_status": "Submitted", "submission": patch, "model_stats": {"instance_cost": null, "api_calls": 2}},
        "messages": [
            {"role": "system", "content": "You fix things."},
            {"role": "user", "content": "half(3) should be 1. Fix it."},
            {"role": "assistant", "content": "Look.\n\n```bash\ncat calc.py\n```"},
            {"role": "user", "content": "<returncode>0</returncode>\n<output>\ndef half(n): return n / 2\n</output>"},
            {"role": "assistant", "content": "Done.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
            {"role": "user", "content": patch},
        ],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": instance,
    })
    .to_string()
}

fn patch(line: &str) -> String {
    format!(
        "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-def half(n): return n / 2\n+{line}\n"
    )
}

fn two_runs(env: &Env) {
    env.write("run1/demo__calc-1/demo__calc-1.traj.json", mini("demo__calc-1", &patch("def half(n): return n // 2")));
    env.write("run2/demo__calc-1/demo__calc-1.traj.json", mini("demo__calc-1", &patch("def half(n): return int(n)")));
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-trajectories")
}

#[test]
fn help_names_every_command() {
    let env = Env::new();
    let output = env.run(&["--help"]);
    assert!(output.status.success());
    let help = stdout(&output);
    for command in ["score", "rank", "export", "inspect", "critics", "formats", "cache", "bench", "doctor"] {
        assert!(help.contains(command), "{command} is missing in\n{help}");
    }
}

#[test]
fn score_prints_one_object_a_trajectory() {
    let env = Env::new();
    two_runs(&env);
    let output = env.run(&["score", ".", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = lines(&output);
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["instance_id"], "demo__calc-1");
        assert_eq!(line["n_actions"], 2);
        assert_eq!(line["resolved"], Value::Null);
        assert_eq!(line["scores"].as_array().unwrap().len(), 2);
        assert_eq!(line["score"], line["scores"][1]["reward"]);
        assert!(line["scores"][0]["reward"].is_f64());
        assert!(line["tokens"].as_u64().unwrap() > 0);
        assert_eq!(line["truncated"], false);
        assert_eq!(line["critic"]["fingerprint"].as_str().unwrap().len(), 16);
    }
    assert_ne!(lines[0]["attempt"], lines[1]["attempt"]);
    assert_eq!(stderr(&output), "", "stderr is for remarks, and there are none");
}

#[test]
fn without_a_critic_rewards_are_null() {
    let env = Env::new();
    two_runs(&env);
    let output = env.run(&["score", "run1", "--json", "--critic", "none"]);
    let line = &lines(&output)[0];
    assert_eq!(line["critic"], Value::Null);
    assert_eq!(line["score"], Value::Null);
    assert_eq!(line["scores"][1]["reward"], Value::Null);
    assert_eq!(line["patch_bytes"], patch("def half(n): return n // 2").len());
}

#[test]
fn a_trajectory_without_actions_is_reported_and_is_no_failure() {
    let env = Env::new();
    let messages = json!({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "task"}],
        "info": {"exit_status": "", "submission": ""}, "trajectory_format": "mini-swe-agent-1"});
    env.write("empty.traj.json", messages.to_string());
    let output = env.run(&["score", "empty.traj.json", "--json"]);
    let line = &lines(&output)[0];
    assert_eq!((line["n_actions"].clone(), line["score"].clone()), (json!(0), Value::Null));
    assert!(line["diagnostics"].to_string().contains("nothing to score"), "{line}");
}

#[test]
fn bad_input_is_named_and_the_rest_is_read() {
    let env = Env::new();
    two_runs(&env);
    env.write("page.html", "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>");
    let output = env.run(&["score", "run1", "page.html", "--json", "--critic", "none"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output).len(), 1);
    assert!(stderr(&output).contains("page.html"), "{}", stderr(&output));
}

#[test]
fn nothing_usable_is_an_error_of_one_line() {
    let env = Env::new();
    for (name, content) in
        [("empty.jsonl", ""), ("braces.json", "{}"), ("text.json", "\"hello\""), ("bin", "\u{0}\u{1}")]
    {
        env.write(name, content);
        let output = env.run(&["score", name, "--json"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(stdout(&output), "");
        let said = stderr(&output);
        assert!(said.contains(name), "{name}: {said}");
        assert!(said.contains("formats tried"), "{name}: {said}");
    }
    let missing = env.run(&["score", "no-such-file"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no-such-file: cannot open"), "{}", stderr(&missing));
}

#[test]
fn rank_says_why_one_is_first() {
    let env = Env::new();
    two_runs(&env);
    env.write("run3/demo__calc-1/demo__calc-1.traj.json", mini("demo__calc-1", ""));
    let output = env.run(&["rank", ".", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let issue = &lines(&output)[0];
    let order = issue["order"].as_array().unwrap();
    assert_eq!(order.len(), 3);
    assert_eq!(issue["chosen"], order[0]["attempt"]);
    assert!(order[0]["score"].as_f64().unwrap() >= order[1]["score"].as_f64().unwrap());
    assert_eq!(order[2]["reason"], "empty patch");
    assert_eq!(order[2]["excluded"], true);
    assert_eq!(issue["best_at_1"], Value::Null, "there are no labels");
}

#[test]
fn export_keeps_every_byte_and_never_overwrites() {
    let env = Env::new();
    let odd = format!("\n{}\u{e9}\r\n", patch("# caf\u{e9} \u{1f600}"));
    env.write("run1/demo__calc-1/demo__calc-1.traj.json", mini("demo__calc-1", &odd));
    let output = env.run(&["export", "run1", "-o", "preds.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let written = std::fs::read_to_string(env.path("preds.jsonl")).unwrap();
    assert!(!written.contains("\\u"), "non-ASCII text is not escaped: {written}");
    let prediction: Value = serde_json::from_str(written.lines().next().unwrap()).unwrap();
    assert_eq!(prediction["model_patch"].as_str(), Some(odd.as_str()));
    assert_eq!(prediction["instance_id"], "demo__calc-1");

    std::fs::write(env.path("preds.jsonl"), "mine").unwrap();
    let refused = env.run(&["export", "run1", "-o", "preds.jsonl"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("exists already"), "{}", stderr(&refused));
    assert_eq!(std::fs::read_to_string(env.path("preds.jsonl")).unwrap(), "mine");
    assert!(env.run(&["export", "run1", "-o", "preds.jsonl", "--force"]).status.success());
    assert_eq!(std::fs::read_to_string(env.path("preds.jsonl")).unwrap(), written);
}

#[test]
fn inspect_prints_exactly_what_the_critic_gets() {
    let env = Env::new();
    two_runs(&env);
    let file = "run1/demo__calc-1/demo__calc-1.traj.json";
    let whole = env.run(&["inspect", file, "--critic-text"]);
    let first = env.run(&["inspect", file, "--critic-text", "--action", "0"]);
    assert!(whole.status.success() && first.status.success(), "{}", stderr(&whole));
    assert!(whole.stdout.starts_with(&first.stdout) && whole.stdout.len() > first.stdout.len());
    let described = env.run(&["inspect", file, "--json"]);
    let object = &lines(&described)[0];
    assert_eq!(object["positions"].as_array().unwrap().len(), 2);
    assert_eq!(object["chars"].as_u64().unwrap() as usize, stdout(&whole).chars().count());
    let none = env.run(&["inspect", file, "--action", "9"]);
    assert!(stderr(&none).contains("2 actions"), "{}", stderr(&none));
}

#[test]
fn the_tables_are_printed() {
    let env = Env::new();
    let formats = lines(&env.run(&["formats", "--json"]));
    assert!(formats.len() >= 8, "{formats:?}");
    assert!(formats.iter().all(|f| !f["recognised_by"].as_str().unwrap().is_empty()));
    let critics = lines(&env.run(&["critics", "--json"]));
    assert_eq!(critics.iter().filter(|c| c["embedded"] == true).count(), 1);
    assert!(critics.iter().any(|c| c["id"].as_str().unwrap().contains("openhands")));
}

#[test]
fn doctor_checks_the_engine() {
    let env = Env::new();
    let output = env.run(&["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = &lines(&output)[0];
    assert!(report["engine_check"]["max_abs_diff"].as_f64().unwrap() < 1e-4, "{report}");
    assert_eq!((&report["models"], &report["profiles"]), (&json!([]), &json!([])));
    assert_eq!(report["score_cache"]["entries"], 0);
    assert!(!report["kernels"]["int8"].as_str().unwrap().is_empty());
    let table = stdout(&env.run(&["doctor"]));
    for row in ["instruction sets", "kernels", "models            none", "score cache"] {
        assert!(table.contains(row), "{row} is missing in\n{table}");
    }
}

#[test]
fn doctor_lists_the_models_of_the_hugging_face_cache() {
    let env = Env::new();
    cache::downloaded(&env);
    env.write(".cache/huggingface/hub/models--all--bert/snapshots/x/config.json", "{}");
    let models = lines(&env.run(&["doctor", "--json"]))[0]["models"].clone();
    assert_eq!((&models[0]["name"], &models[0]["architecture"]), (&json!("all/bert"), &Value::Null));
    assert!(models[0]["problem"].is_string(), "{models}");
    assert_eq!(models[1]["name"], "all/critic");
    assert_eq!(models[1]["architecture"], "Qwen2ForTokenClassification");
    assert!(models[1]["needs_bytes"].as_u64() > models[1]["bytes"].as_u64(), "{models}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let env = Env::new();
    two_runs(&env);
    let mut child = env
        .command(&["score", ".", "--json", "--critic", "none"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

#[test]
fn an_unknown_critic_is_refused_in_words() {
    let env = Env::new();
    two_runs(&env);
    let output = env.run(&["score", "run1", "--critic", "gpt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--critic gpt"), "{}", stderr(&output));
    let missing = env.run(&["score", "run1", "--critic", "run1"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("config.json"), "{}", stderr(&missing));
}

#[test]
fn the_samples_are_read_scored_and_ranked_without_a_remark() {
    let env = Env::new();
    let samples = samples();
    let samples = samples.to_str().unwrap();
    let output = env.run(&["score", samples, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let scored = lines(&output);
    assert!(scored.len() >= 12, "{} trajectories", scored.len());
    for line in &scored {
        assert!(line["score"].is_f64(), "{line}");
        assert!(line["resolved"].is_boolean(), "every sample has a label: {}", line["path"]);
        assert!(line["scores"].as_array().unwrap().iter().all(|s| s["reward"].is_f64()), "{}", line["path"]);
    }
    let formats: std::collections::BTreeSet<&str> = scored.iter().map(|l| l["format"].as_str().unwrap()).collect();
    assert!(formats.len() >= 3, "{formats:?}");
    let ranked = lines(&env.run(&["rank", samples, "--json"]));
    assert!(ranked.len() >= 3);
    assert!(ranked.iter().all(|i| i["oracle"].is_f64()), "labels of every attempt are known");
    assert!(ranked.iter().any(|i| i["order"].to_string().contains("\"twins\":[\"")), "there are twins");
}

#[test]
fn joins_says_what_went_where_and_what_did_not() {
    let env = Env::new();
    two_runs(&env);
    env.write(
        "run1/preds.json",
        json!({"demo__calc-1": {"model_patch": patch("def half(n): return n // 2")}}).to_string(),
    );
    env.write(
        "run2/report.json",
        json!({"resolved_ids": ["demo/calc:pr-1"], "unresolved_ids": ["demo__gone-9"]}).to_string(),
    );
    let output = env.run(&["joins", "--json", "."]);
    assert_eq!(output.status.code(), Some(1), "a report names an instance nobody attempted");
    let found: Vec<(Value, Value, Value, Value)> = lines(&output)
        .into_iter()
        .map(|l| (l["what"].clone(), l["instance_id"].clone(), l["attempt"].clone(), l["rule"].clone()))
        .collect();
    let same = json!("lies in the folder of the same run");
    let expected = [
        (json!("trajectory"), json!("demo__calc-1"), json!("run1"), json!("no report speaks of it")),
        (json!("prediction"), json!("demo__calc-1"), json!("run1"), same.clone()),
        (json!("report"), json!("demo/calc:pr-1"), json!("run2"), same),
        (json!("report"), json!("demo__gone-9"), Value::Null, json!("no trajectory and no prediction of the instance")),
    ];
    assert_eq!(found, expected);
    let missing = lines(&env.run(&["joins", "--json", "--missing", "."]));
    assert_eq!(missing.len(), 2);
    let text = stdout(&env.run(&["joins", "."]));
    assert!(text.contains("report: 1 joined (lies in the folder of the same run), 1 not joined"), "{text}");
}

#[test]
fn bench_measures_what_it_says_and_refuses_what_it_cannot() {
    let env = Env::new();
    let output = env.run(&["bench", "--tokens", "64,300", "--threads", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = &lines(&output)[0];
    assert_eq!((report["device"].as_str(), report["threads"].as_u64()), (Some("cpu"), Some(1)));
    let lengths = report["lengths"].as_array().unwrap();
    assert_eq!(lengths.iter().map(|l| l["tokens"].as_u64().unwrap()).collect::<Vec<_>>(), [64, 300]);
    for line in lengths {
        for number in ["wall_s", "tokens_per_s", "gflops", "of_plain_gemm"] {
            assert!(line[number].as_f64().unwrap() > 0.0, "{number}: {line}");
        }
    }
    assert!(report["plain_gemm_gflops"].as_f64().unwrap() > 0.0);
    assert_eq!(report["estimate"]["tokens"], 16_384);
    let table = stdout(&env.run(&["bench", "--tokens", "64", "--threads", "1"]));
    assert!(table.contains("tokens/cpu-s") && table.contains("estimated, not measured"), "{table}");
    for (args, why) in [(["--tokens", "3"], "at least 16"), (["--critic", "none"], "computes nothing")] {
        let refused = env.run(&["bench", args[0], args[1]]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    }
}
