use std::path::{Path, PathBuf};

use super::super::json::{Value, json};
use super::super::load::{LoadedFile, load, load_bytes};
use crate::trajectory::Role::{self, Assistant, Meta, System, Tool, User};
use crate::trajectory::{Dataset, Tokens, Trajectory, Usage};

fn read(value: &Value) -> LoadedFile {
    load_bytes(Path::new("run.json"), value.to_string().into_bytes())
}

fn sample(name: &str) -> Dataset {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats").join(name);
    load(&[path], &|_| {})
}

fn codes(trajectory: &Trajectory) -> Vec<&'static str> {
    trajectory.diagnostics.iter().map(|d| d.code).collect()
}

fn usage(cost: f64, tokens_in: u64, tokens_out: u64) -> Usage {
    Usage {
        cost: Some(cost),
        tokens_in: Some(tokens_in),
        tokens_out: Some(tokens_out),
        api_calls: None,
        ..Usage::default()
    }
}

#[test]
fn one_agent_step_is_one_action_with_its_results_behind_it() {
    let data = sample("atif");
    let t = &data.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [System, User, Assistant, Assistant, Tool, Tool, Meta, Tool, Assistant, Tool, Meta, Meta]);
    assert_eq!(t.steps[1].text, "TASK\n[image: shots/1.png]\n[audio: a.wav]");
    assert!(t.steps[2].is_demo && t.steps[2].cost.is_none());
    assert_eq!(t.steps[3].action.as_deref(), Some("ls\ndelegate {\"to\":\"helper\"}"));
    assert_eq!((t.steps[3].reasoning.as_deref(), t.steps[3].cost), (Some("hm"), Some(0.01)));
    assert_eq!((t.steps[4].call_id.as_deref(), t.steps[4].tool_name.as_deref()), (Some("a"), Some("bash_command")));
    assert_eq!(t.steps[5].text, "[sub-agent trajectory sub-1]\n[sub-agent trajectory gone.json: a helper]");
    assert_eq!((t.steps[8].action.as_deref(), t.steps[8].thought.as_deref()), (Some("make"), Some("A\nP")));
    assert_eq!((t.steps[9].exit_code, t.steps[9].is_error), (Some(2), Some(true)));
    assert_eq!(t.steps[9].raw.pointer.as_ref(), "/steps/5");
    assert_eq!(
        (t.steps[10].text.as_str(), t.steps[11].text.as_str()),
        ("a step of a kind nobody knows", "made by hand")
    );
    assert_eq!(t.n_actions(), 2);
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("terminus-2 2.0.0"), Some("openai/m")));
    assert_eq!((t.instance_id.as_deref(), t.tools.len()), (Some("o__r-1"), 1));
    assert_eq!(t.usage, Usage { api_calls: Some(3), tokens_cached: Some(50), ..usage(0.03, 210, 30) });
    assert_eq!(t.steps[3].tokens, Some(Tokens { input: 100, cached: Some(50), output: 10 }));
    assert!(t.steps[2].tokens.is_none(), "copied");
    assert_eq!(codes(t), ["atif.token-lists", "atif.unknown-source", "atif.copied", "atif.missing-subagent"]);
    assert!(t.diagnostics[0].message.starts_with("3 lists"));
    assert!(t.diagnostics[3].message.contains("`gone.json`"));
}

#[test]
fn an_embedded_sub_agent_is_a_trajectory_with_its_parent() {
    let data = sample("atif");
    let sub = &data.trajectories[1];
    assert_eq!((sub.session.as_deref(), sub.parent.as_deref()), (Some("sub-1"), Some("s-1")));
    assert_eq!((sub.n_actions(), sub.source.record, sub.instance_id.as_deref()), (1, 1, None));
    assert_eq!(sub.steps[1].raw.pointer.as_ref(), "/subagent_trajectories/0/steps/1");
    assert_eq!((sub.usage.tokens_in, sub.usage.cost), (Some(7), None));
}

#[test]
fn segments_are_one_trajectory_and_what_they_copied_is_shown_once() {
    let data = sample("atif-parts");
    let names: Vec<(Option<&str>, Option<&str>)> =
        data.trajectories.iter().map(|t| (t.session.as_deref(), t.parent.as_deref())).collect();
    assert_eq!(names, [(Some("child"), Some("s-2")), (Some("s-2"), None), (Some("s-2-sum"), Some("s-2"))]);
    let attempts: Vec<&str> = data.trajectories.iter().map(|t| t.attempt.as_deref().unwrap()).collect();
    assert_eq!(attempts, ["child", "trajectory", "trajectory.summarization-1-summary"]);
    let main = &data.trajectories[1];
    let texts: Vec<(&str, bool)> = main.steps.iter().map(|s| (s.text.as_str(), s.is_demo)).collect();
    assert_eq!(texts[0], ("TASK", false));
    assert!(texts.contains(&("what was done: ls", true)), "copied, and new here");
    assert_eq!(texts.iter().filter(|(text, _)| *text == "TASK").count(), 1);
    assert_eq!(main.n_actions(), 2);
    assert_eq!(main.usage, usage(0.035, 350, 35), "the last segment counts on");
    assert_eq!(codes(main), ["atif.missing-subagent"]);
    assert!(main.steps.last().unwrap().raw.file.as_ref().unwrap().ends_with("trajectory.cont-1.json"));
    assert_eq!(data.files.iter().filter(|f| f.reason.contains("read together")).count(), 4);
}

#[test]
fn a_chain_starts_anew_where_its_totals_do() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, prompt: u64, next: Option<&str>| {
        let step = json!({"source": "agent", "message": name, "metrics": {"prompt_tokens": prompt}});
        let root = json!({"schema_version": "ATIF-v1.5", "steps": [step], "continued_trajectory_ref": next,
                          "final_metrics": {"total_prompt_tokens": prompt}});
        std::fs::write(dir.path().join(name), root.to_string()).unwrap();
    };
    write("x.trajectory.json", 100, Some("trajectory.cont-1.json"));
    write("x.trajectory.cont-1.json", 50, None);
    write("x.trajectory.cont-2.json", 30, Some("trajectory.cont-3.json"));
    write("alone.json", 1, Some("alone.cont-1.json"));
    let data = load(&[dir.path().to_path_buf()], &|_| {});
    assert_eq!(data.trajectories.len(), 2);
    let (alone, chain) = (&data.trajectories[1], &data.trajectories[0]);
    assert_eq!(chain.steps.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().len(), 3);
    assert_eq!(chain.usage.tokens_in, Some(180));
    assert_eq!(codes(chain), ["atif.missing-continuation"]);
    assert_eq!(codes(alone), ["atif.missing-continuation"]);
    assert!(alone.diagnostics[0].message.contains("`alone.cont-1.json`"));
}

#[test]
fn a_chain_that_bites_its_tail_ends() {
    let dir = tempfile::tempdir().unwrap();
    for (name, next) in [("trajectory.json", "trajectory.cont-1.json"), ("trajectory.cont-1.json", "trajectory.json")] {
        let root = json!({"steps": [{"source": "agent", "message": name}], "continued_trajectory_ref": next});
        std::fs::write(dir.path().join(name), root.to_string()).unwrap();
    }
    let data = load(&[dir.path().to_path_buf()], &|_| {});
    assert_eq!(data.trajectories.iter().map(|t| t.steps.len()).sum::<usize>(), 2);
}

#[test]
fn totals_come_from_the_file_or_else_from_its_own_steps() {
    let steps = json!([
        {"source": "agent", "message": "a", "is_copied_context": true, "metrics": {"prompt_tokens": 10, "cost_usd": 0.5}},
        {"source": "agent", "message": "b", "metrics": {"prompt_tokens": 20, "cost_usd": 0.25}}
    ]);
    let with = |totals: Value| {
        let file = read(&json!({"schema_version": "ATIF-v1.7", "steps": steps.clone(), "final_metrics": totals}));
        let t = &file.trajectories[0];
        (t.usage.tokens_in, t.usage.cost, codes(t).contains(&"atif.counted-twice"))
    };
    assert_eq!(with(json!(null)), (Some(20), Some(0.25), false));
    assert_eq!(with(json!({"total_prompt_tokens": 99, "total_cost_usd": 1.0})), (Some(99), Some(1.0), false));
    assert_eq!(with(json!({"total_prompt_tokens": 30, "total_cost_usd": 0.75})), (Some(20), Some(0.25), true));
    assert_eq!(with(json!({"total_prompt_tokens": 0, "total_cost_usd": 0.0})), (None, None, false));
}

#[test]
fn files_nearly_atif_are_read_too() {
    let like = json!({"agent": "helper", "extra": {"observed_events": []}, "steps": [
        {"source": "user", "message": "task"},
        {"source": "agent", "message": null, "tool_calls": [{"id": "1", "name": "bash", "arguments": "{\"command\": \"ls\"}"}], "observation": "x.py"},
        {"source": "agent", "message": "ok", "observation": {"results": [{"content": [{"type": "text", "text": "part"}]}]}}
    ]});
    let file = read(&like);
    assert_eq!(file.report.format, Some("atif"));
    let t = &file.trajectories[0];
    assert_eq!(
        (t.steps[1].action.as_deref(), t.steps[2].text.as_str(), t.steps[4].text.as_str()),
        (Some("ls"), "x.py", "part")
    );
    assert_eq!((t.agent.as_deref(), t.session.as_deref()), (Some("helper"), None));
    let rows = [like.to_string(), json!({"schema_version": "ATIF-v1.0", "steps": []}).to_string(), "{\"x\": 1}".into()];
    let file = load_bytes(&PathBuf::from("rows.jsonl"), rows.join("\n").into_bytes());
    assert_eq!((file.trajectories.len(), file.trajectories[1].source.record), (2, 1));
    assert!(file.report.diagnostics.iter().any(|d| d.code == "atif.no-steps" && d.message.starts_with("1 rows")));
}

#[test]
fn a_viewers_form_is_not_atif() {
    let data = sample("atif-viewer");
    let t = &data.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Meta, Role::Meta]);
    assert_eq!((t.steps[1].action.as_deref(), t.steps[1].reasoning.as_deref()), (Some("ls"), Some("hm")));
    assert_eq!(t.steps[2].tool_name.as_deref(), Some("bash"));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out), (Some(10), Some(2)));
    assert_eq!(t.steps[4].text, "1 passed");
}
