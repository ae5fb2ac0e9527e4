//! Public bug reports rebuilt as small inputs: what must come out of each (the numbers are those of `cases.tsv`).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::path::PathBuf;
use std::sync::Arc;

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Issue, Role, Trajectory, join};

fn open(name: &str) -> Option<Dataset> {
    let path: PathBuf = shared()?.join("cases").join(name);
    assert!(path.exists(), "{name} is gone");
    Some(load(&[path], &|_| {}))
}

fn only(dataset: &Dataset) -> &Trajectory {
    assert_eq!(dataset.trajectories.len(), 1, "{}", dataset.files[0].reason);
    Arc::as_ref(&dataset.trajectories[0])
}

fn issue<'a>(issues: &'a [Issue], name: &str) -> &'a Issue {
    issues.iter().find(|i| i.name() == name).unwrap()
}

#[test]
fn l01_l02_every_event_gets_a_row_and_every_text_is_shown_once() {
    let Some(data) = open("L01_oh_null_args.json") else { return };
    assert_eq!(only(&data).steps.len(), 5);
    let Some(data) = open("L02_oh_user_msg_shapes.json") else { return };
    let users: Vec<&str> = only(&data).steps.iter().filter(|s| s.role == Role::User).map(|s| s.text.as_str()).collect();
    assert_eq!(users.len(), 3);
    for (text, part) in users.iter().zip(["args.content", "message only", "content blocks"]) {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn l03_three_generations_of_history_are_three_trajectories_with_their_formats() {
    let Some(data) = open("L03_oh_output_three_histories.jsonl") else { return };
    let formats: Vec<&str> = data.trajectories.iter().map(|t| t.format).collect();
    assert_eq!(formats, ["openhands-0", "openhands-0", "openhands-1"]);
    assert!(data.trajectories.iter().all(|t| t.n_actions() == 1 && t.patch.is_some()));
}

#[test]
fn l04_null_lines_are_skipped_and_counted() {
    let Some(data) = open("L04_jsonl_null_lines.jsonl") else { return };
    assert_eq!(data.trajectories.len(), 2);
    assert!(data.files[0].diagnostics.iter().any(|d| d.code == "json.null-lines" && d.message.starts_with("2 null")));
}

#[test]
fn l06_error_row_then_good_row_are_two_attempts() {
    let Some(data) = open("L06_dup_instance_error_then_ok.jsonl") else { return };
    let issues = join(&data);
    let attempts = &issue(&issues, "demo__dup-1").attempts;
    let errors: Vec<bool> = attempts.iter().map(|a| a.trajectory.as_ref().unwrap().error.is_some()).collect();
    assert_eq!(errors, [true, false]);
    assert_ne!(attempts[0].name, attempts[1].name);
}

#[test]
fn l07_l09_l10_l35_sweagent_variants() {
    let Some(data) = open("L07_swea_content_list.traj") else { return };
    assert!(only(&data).steps.iter().all(|s| !s.text.contains("[{") && !s.text.contains("[object")));
    assert!(only(&data).steps.iter().any(|s| s.role == Role::User && !s.text.is_empty()));
    let Some(data) = open("L09_swea_old_messages_key.traj") else { return };
    assert_eq!((only(&data).format, only(&data).n_actions()), ("sweagent-1", 1));
    let Some(data) = open("L10_swea_submitted_no_submission.traj") else { return };
    assert_eq!(only(&data).patch, None);
    assert!(only(&data).diagnostics.iter().any(|d| d.code == "sweagent.no-submission"));
    let Some(data) = open("L35_swea_cost_missing.traj") else { return };
    assert_eq!(only(&data).usage.cost, None);
    assert!(only(&data).usage.api_calls.is_some());
}

#[test]
fn l11_reports_without_overlap_label_nothing() {
    let Some(data) = open("L11_results_no_overlap") else { return };
    assert_eq!(data.reports.len(), 3);
    assert!(join(&data).is_empty());
}

#[test]
fn l12_colours_stay_and_everything_else_a_terminal_obeys_goes() {
    let Some(data) = open("L12_mini_ansi_nul.traj.json") else { return };
    let step = only(&data).steps.iter().find(|s| s.text.contains('\u{1b}')).unwrap();
    assert!(step.text.contains('\0'), "the critic gets the original bytes");
    let shown = trajscope::text::sanitize(&step.text);
    assert_eq!(shown.trim_end(), "FAILED tests/test_a.py::x  end");
    let lines = trajscope::text::ansi_spans(&step.text);
    let red = lines[0].spans.iter().find(|s| s.style.fg != trajscope::text::Color::default()).unwrap();
    assert_eq!(&lines[0].text[red.range.clone()], "FAILED");
}

#[test]
fn l14_c04_actions_without_text_show_their_command() {
    let Some(data) = open("L14_mini_responses_api.traj.json") else { return };
    let t = only(&data);
    let action = t.steps.iter().find(|s| s.role == Role::Assistant).unwrap();
    assert_eq!((action.action.as_deref(), action.reasoning.as_deref()), (Some("ls"), Some("thinking")));
    assert_eq!(t.steps.iter().filter(|s| s.role == Role::Tool).count(), 2);
    let Some(data) = open("C04_tool_only_and_empty_actions.traj.json") else { return };
    let t = only(&data);
    assert_eq!(t.n_actions(), 3);
    assert_eq!(t.steps[t.action_steps()[0]].action.as_deref(), Some("ls"));
}

#[test]
fn l27_l28_text_is_repaired() {
    let Some(data) = open("L27_lone_surrogate.json") else { return };
    assert!(only(&data).steps.iter().any(|s| s.text.contains('\u{fffd}')));
    let Some(data) = open("L28_bom_crlf.jsonl") else { return };
    assert_eq!(only(&data).steps.len(), 2);
    assert!(only(&data).steps.iter().all(|s| !s.text.contains('\r')));
}

#[test]
fn l34_zero_metrics_are_unknown() {
    let Some(data) = open("L34_oh_zero_metrics.jsonl") else { return };
    assert_eq!((only(&data).usage.cost, only(&data).usage.tokens_in), (None, None));
}

#[test]
fn l37_each_is_named_in_one_line() {
    let expected = [
        ("L37_empty.jsonl", "empty file"),
        ("L37_only_braces.json", "no known format: a JSON object without named members"),
        ("L37_top_level_string.json", "a single JSON string"),
        ("L37_html_error_page.json", "an HTML page"),
    ];
    for (name, reason) in expected {
        let Some(data) = open(name) else { return };
        assert!(data.files[0].reason.starts_with(reason), "{name}: {}", data.files[0].reason);
        assert_eq!(data.files[0].format, None);
    }
}

#[test]
fn c03_nothing_to_score_is_said() {
    let Some(data) = open("C03_no_action_trajectory.traj.json") else { return };
    assert_eq!(only(&data).n_actions(), 0);
    assert!(only(&data).diagnostics.iter().any(|d| d.code == "trajectory.no-action"));
}

#[test]
fn r07_bad_arguments_and_tags_stay_as_written() {
    let Some(data) = open("R07_think_tags.json") else { return };
    let t = only(&data);
    assert!(t.steps[0].text.contains("<think>"));
    let calls: Vec<&str> = t.steps.iter().flat_map(|s| &s.calls).map(|c| c.arguments.as_str()).collect();
    assert_eq!(calls[0], "{not json");
}

#[test]
fn k01_k02_candidates_of_one_issue_are_all_kept() {
    let Some(data) = open("K01_candidates.jsonl") else { return };
    let issues = join(&data);
    let names: Vec<&str> = issue(&issues, "demo__k-1").attempts.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["run1", "run2", "run3", "run4", "run5", "run6", "run7"]);
    let Some(data) = open("K02_dup_preds") else { return };
    let issues = join(&data);
    let names: Vec<&str> = issue(&issues, "demo__k-1").attempts.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(issue(&issues, "demo__k-2").attempts[0].patch(), Some(""));
    assert_eq!(issue(&issues, "demo__k-3").attempts[0].patch(), Some(""));
}

#[test]
fn k04_five_forms_of_one_candidate() {
    let names = [
        "K04_preds.jsonl",
        "K04_preds_dict.json",
        "K04_preds_list.json",
        "K04_preds_patch_key.json",
        "K04_preds_string_value.json",
    ];
    for name in names {
        let Some(data) = open(name) else { return };
        assert_eq!(data.predictions.len(), 1, "{name}");
        assert_eq!(data.predictions[0].instance_id, "demo__p-1");
        assert!(data.predictions[0].patch.as_deref().is_some_and(|p| p.starts_with("diff --git")), "{name}");
    }
}

#[test]
fn l29_copied_context_is_neither_an_action_nor_counted() {
    let Some(data) = open("L29_atif_copied_context.json") else { return };
    let t = only(&data);
    assert_eq!((t.steps.len(), t.n_actions()), (3, 1));
    assert_eq!(t.steps.iter().map(|s| s.is_demo).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.cost), (Some(1100), Some(60), Some(0.6)));
    assert_eq!(t.steps.iter().filter_map(|s| s.cost).collect::<Vec<_>>(), [0.6]);
}

#[test]
fn l31_an_embedded_sub_agent_is_a_child_and_a_missing_one_is_named() {
    let Some(data) = open("L31_atif_subagents.json") else { return };
    assert_eq!(data.trajectories.len(), 2);
    let (main, sub) = (&data.trajectories[0], &data.trajectories[1]);
    assert_eq!((sub.session.as_deref(), sub.parent.as_deref()), (Some("sub-1"), main.session.as_deref()));
    assert_eq!((main.session.as_deref(), main.parent.as_deref()), (Some("main"), None));
    assert!(main.diagnostics.iter().any(|d| d.code == "atif.missing-subagent" && d.message.contains("missing.json")));
    assert!(main.steps.iter().any(|s| s.role == Role::Tool && s.text.contains("sub-1")));
}

#[test]
fn l15_a_patch_is_an_edit_action_with_its_diff() {
    let Some(data) = open("L15_codex_custom_tool_call.jsonl") else { return };
    let t = only(&data);
    assert_eq!((t.format, t.n_actions()), ("codex-rollout", 1));
    let edit = &t.steps[t.action_steps()[0]];
    assert_eq!(edit.calls[0].name, "apply_patch");
    assert!(
        edit.action.as_deref().unwrap().starts_with("apply_patch *** Begin Patch\n*** Add File: notes.txt\n+hello")
    );
    let answer = &t.steps[t.observations(0)][0];
    assert_eq!((answer.tool_name.as_deref(), answer.exit_code), (Some("apply_patch"), Some(0)));
    assert!(t.steps.iter().any(|s| s.role == Role::System && s.text == "be brief"));
}

#[test]
fn l17_a_codex_exec_stream_is_a_format_of_its_own() {
    let Some(data) = open("L17_codex_exec_stream.jsonl") else { return };
    let t = only(&data);
    assert_eq!((t.format, t.n_actions(), t.session.as_deref()), ("codex-exec", 1, Some("t1")));
    let answer = &t.steps[t.observations(0)][0];
    assert_eq!((answer.exit_code, answer.is_error), (Some(1), Some(true)));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached, t.usage.tokens_out), (Some(10), Some(4), Some(2)));
}

#[test]
fn l18_one_answer_in_three_lines_is_counted_once() {
    let Some(data) = open("L18_cc_dup_usage.jsonl") else { return };
    let t = only(&data);
    assert_eq!(t.n_actions(), 1);
    let action = &t.steps[1];
    assert_eq!((action.reasoning.as_deref(), action.text.as_str()), (Some("hm"), "ok"));
    assert_eq!(action.action.as_deref(), Some("ls"));
    // 100 fresh tokens and 50 from the cache.
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached, t.usage.tokens_out), (Some(150), Some(50), Some(20)));
    assert_eq!((t.usage.api_calls, t.usage.cost), (Some(1), None));
}

#[test]
fn l19_a_resumed_session_counts_once() {
    let Some(data) = open("L19_cc_resume") else { return };
    assert_eq!(data.trajectories.len(), 2);
    let (a, b) = (&data.trajectories[0], &data.trajectories[1]);
    assert!(a.source.path.ends_with("a.jsonl") && a.steps.iter().all(|s| !s.is_demo));
    assert_eq!(a.n_actions() + b.n_actions(), 2, "two answers in all");
    let copies: Vec<bool> = b.steps.iter().map(|s| s.is_demo).collect();
    assert_eq!(copies, [true, true, false]);
    let remark = b.diagnostics.iter().find(|d| d.code == "session.continues").unwrap();
    assert_eq!(remark.message, "continues a.jsonl: 2 steps are copies and counted there");
    assert_eq!(a.usage.tokens_in.unwrap() + b.usage.tokens_in.unwrap(), 300);
}

#[test]
fn l21_unknown_records_are_counted_and_the_rest_is_shown() {
    let Some(data) = open("L21_cc_unknown_types.jsonl") else { return };
    let t = only(&data);
    assert_eq!(t.format, "claude-code");
    assert!(t.steps.iter().any(|s| s.role == Role::User && s.text == "still shown"));
    let says = |text: &str| data.files[0].diagnostics.iter().any(|d| d.message.contains(text));
    assert!(says("1 record of unknown type `(none)` is shown raw"));
    assert!(says("2 records of unknown type `(no object)` are shown raw"));
    assert!(t.steps.iter().any(|s| s.text == "(no object): [1,2,3]"));
}

#[test]
fn l22_answers_without_id_model_or_usage_are_shown() {
    let Some(data) = open("L22_cc_assistant_no_id_model.jsonl") else { return };
    let t = only(&data);
    let texts: Vec<&str> = t.steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts, ["no id, no model, no usage", "content is a bare string", ""]);
    assert_eq!((t.usage, t.model.as_deref()), (trajscope::trajectory::Usage::default(), None));
}

#[test]
fn l23_every_shape_of_a_result_has_a_line() {
    let Some(data) = open("L23_cc_tool_result_shapes.jsonl") else { return };
    let t = only(&data);
    assert!(t.steps.iter().all(|s| s.role == Role::Tool));
    let texts: Vec<&str> = t.steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts, ["string", "block", "[tool Grep]", "[image image/png]", "", ""]);
    assert_eq!(t.steps[5].is_error, Some(true));
}

#[test]
fn l25_a_live_file_keeps_its_good_records() {
    let Some(data) = open("L25_truncated_and_nul_lines.jsonl") else { return };
    assert_eq!(only(&data).steps.len(), 2);
    assert!(data.files[0].diagnostics.iter().any(|d| d.message.contains("incomplete")));
}

#[test]
fn l32_a_sample_id_may_hold_anything_and_nothing_is_hidden() {
    let Some(data) = open("L32_inspect_slash_id.json") else { return };
    let t = only(&data);
    assert!(t.instance_id.as_deref().is_some_and(|id| id.ends_with("evals/id_2 ../x?y")));
    assert_eq!((t.n_actions(), t.outcome.as_bool(), t.attempt.as_deref()), (1, Some(true), Some("epoch 1")));
    let answer = t.steps.iter().find(|s| s.role == Role::Assistant).unwrap();
    assert!(answer.text.starts_with("Thought: x") && answer.text.ends_with("text after the words Final Answer"));
    assert!(t.diagnostics.iter().all(|d| d.code != "inspect.score"));
}

#[test]
fn c01_rewards_that_are_none_are_gaps() {
    let Some(data) = open("C01_scores_null_nan_range.jsonl") else { return };
    assert_eq!(data.files[0].format, Some("critic-scores"));
    let said = &data.files[0].diagnostics.last().unwrap().message;
    assert_eq!(said, "6 rewards, 1 of them missing (null or not a number); the others from -0.544 to 1.7");
    let Some(data) = open("C01b_scores_nan_token.jsonl") else { return };
    let said = &data.files[0].diagnostics.last().unwrap().message;
    assert_eq!(said, "3 rewards, 2 of them missing (null or not a number); the others from 0.5 to 0.5");
    assert!(data.trajectories.is_empty());
}

#[test]
fn d16_edits_without_a_patch_are_remarked() {
    let Some(data) = open("D16_empty_patch_but_edits.jsonl") else { return };
    assert_eq!(only(&data).patch.as_deref(), Some(""));
    let said = only(&data).diagnostics.iter().find(|d| d.code == "patch.empty-but-edits").unwrap();
    assert!(said.message.starts_with("edited 1 file, patch empty"), "{}", said.message);
}

#[test]
fn d10_a_missing_final_newline_is_kept() {
    let Some(data) = open("D10_preds_no_trailing_newline.json") else { return };
    let patch = data.predictions[0].patch.as_deref().unwrap();
    assert!(!patch.ends_with('\n') && trajscope::patch::parse(patch).no_final_newline);
}
