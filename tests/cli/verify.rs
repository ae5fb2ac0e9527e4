//! `trajscope verify`, and critics by the name they have in the local Hugging Face cache.

use super::*;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name);
    path.to_string_lossy().into_owned()
}

#[test]
fn a_model_that_agrees_with_pytorch_exits_0_and_says_by_how_much() {
    let env = Env::new();
    for (name, architecture, inputs, greedy) in [
        ("small-causal", "Qwen2ForCausalLM", 3, json!(true)),
        ("small-yarn-all", "Qwen3ForTokenClassification", 4, json!(null)),
    ] {
        let output = env.run(&["verify", &fixture(name), "--chunk", "64", "--threads", "1", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let [line] = lines(&output).try_into().unwrap();
        assert_eq!((line["architecture"].as_str(), &line["n_inputs"]), (Some(architecture), &json!(inputs)));
        assert_eq!((&line["greedy_equal"], &line["good"], &line["chunk"]), (&greedy, &json!(true), &json!("64")));
        let (max, mean) = (line["max_abs_err"].as_f64().unwrap(), line["mean_abs_err"].as_f64().unwrap());
        assert!(mean <= max && max <= line["tolerance"].as_f64().unwrap() && max > 0.0, "{line}");
        assert_eq!(line["inputs"].as_array().unwrap().len(), inputs);
        assert_eq!((&line["inputs"][1]["tokens"], &line["device"]), (&json!(7), &json!("cpu")));
    }
    let table = stdout(&env.run(&["verify", &fixture("small-seq-3"), "--chunk", "0"]));
    assert!(table.starts_with("Qwen2ForSequenceClassification on cpu, weights f16, chunks whole: good\n"), "{table}");
    assert_eq!(table.lines().count(), 2 + 3 + 3, "{table}");
}

#[test]
fn past_the_tolerance_the_exit_code_is_1_and_without_a_reference_2() {
    let env = Env::new();
    let output = env.run(&["verify", &fixture("small-seq-1"), "--tolerance", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains(": WRONG\n"), "{}", stdout(&output));
    for (args, part) in [
        (vec!["verify", "/nowhere"], "/nowhere: no such folder; give a Hugging Face model folder"),
        (vec!["verify", "."], "reference.json: No such file"),
        (vec!["verify", ".", "--tolerance=-1"], "--tolerance -1: expected 0 or more"),
        (vec!["verify", ".", "--threads", "0"], "--threads 0: expected at least 1"),
        (vec!["verify", ".", "--dtype", "f8"], "--dtype: dtype \"f8\": expected one of"),
        (vec!["verify", "org/name"], "org/name: neither a folder nor in the Hugging Face cache ("),
    ] {
        let output = env.run(&args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{args:?}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn a_downloaded_critic_goes_by_its_name() {
    let env = Env::new();
    let model = env.path(".cache/huggingface/hub/models--some--critic");
    std::fs::create_dir_all(model.join("snapshots")).unwrap();
    std::fs::create_dir_all(model.join("refs")).unwrap();
    std::fs::write(model.join("refs/main"), "abc123").unwrap();
    std::os::unix::fs::symlink(fixture("qwen2-token-1"), model.join("snapshots/abc123")).unwrap();
    let run = env.write("run.traj.json", mini("a__b-1", ""));
    let run = run.to_str().unwrap();
    let output = env.run(&["score", run, "--json", "--critic", "some/critic"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output)[0]["critic"]["profile"], "openhands-32b");
    let output = env.run(&["score", run, "--critic", "some/other"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is some/critic; `huggingface-cli download some/other` gets it"));
}
