//! How fast files are read: decoding of one file's bytes, by format, and the way from a folder to joined issues.
//!
//! Real files of the corpus where it lies beside the project, else a generated one. `cargo bench --bench load`.

use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::BytesCount;
use trajscope::formats::{load, load_bytes};
use trajscope::testing::shared;
use trajscope::trajectory::join;

fn main() {
    divan::main();
}

/// Real files, one a format, of a usual size.
const FILES: [&str; 5] = [
    "sweagent-v0/coder/trajs/sympy__sympy-13177.traj",
    "sweagent-v1/swe-smith/trajectories/pandas-dev__pandas.95280573.pr_53652/pandas-dev__pandas.95280573.pr_53652.traj",
    "mini-swe-agent-v1/gemini-3-pro-74pct/trajs/sympy__sympy-13091/sympy__sympy-13091.traj.json",
    "mini-swe-agent-v2/live-swe-agent/gpt-5-mini/django__django-13590/django__django-13590.traj.json",
    "sft-chat/adp/swe-gym_openhands_sampled_trajectories/sample_raw.json",
];

#[divan::bench(args = FILES)]
fn decode(bencher: Bencher<'_, '_>, file: &str) {
    let path = shared().map(|s| s.join("corpus").join(file));
    let bytes = path.and_then(|p| std::fs::read(p).ok()).unwrap_or_else(|| generated(400));
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .with_inputs(|| bytes.clone())
        .bench_values(|bytes| load_bytes(Path::new(file), bytes));
}

/// A file of one long run, in case there is no corpus.
#[divan::bench(args = [100, 1_000, 10_000])]
fn decode_generated(bencher: Bencher<'_, '_>, steps: usize) {
    let bytes = generated(steps);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .with_inputs(|| bytes.clone())
        .bench_values(|bytes| load_bytes(Path::new("o__r-1.traj.json"), bytes));
}

/// A folder of runs with predictions and reports, from disk to issues.
#[divan::bench(sample_count = 10)]
fn folder_to_issues(bencher: Bencher<'_, '_>) {
    let Some(folder) = shared().map(|s| s.join("corpus/mini-swe-agent-v1")) else { return };
    let paths = vec![folder];
    let bytes: u64 = load(&paths, &|_| {}).files.iter().filter_map(|f| Some(f.path.metadata().ok()?.len())).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| join(&load(&paths, &|_| {})));
}

/// Joining alone, on everything the corpus holds.
#[divan::bench(sample_count = 10)]
fn join_corpus(bencher: Bencher<'_, '_>) {
    let Some(corpus) = shared().map(|s| s.join("corpus")) else { return };
    let paths: Vec<PathBuf> =
        ["sweagent-v0", "mini-swe-agent-v1", "mini-swe-agent-v2"].map(|f| corpus.join(f)).to_vec();
    let dataset = load(&paths, &|_| {});
    bencher.bench(|| join(&dataset));
}

/// A mini-swe-agent file with this many actions.
fn generated(steps: usize) -> Vec<u8> {
    let mut messages = vec![serde_json::json!({"role": "system", "content": "You fix bugs."})];
    for i in 0..steps {
        let text = format!("THOUGHT: step {i}\n\n```bash\nsed -n '{i},{}p' pkg/module.py\n```", i + 40);
        messages.push(serde_json::json!({"role": "assistant", "content": text}));
        let lines = "    1\tdef half(n): \"é\" \\n\n".repeat(40);
        let text = format!("<returncode>0</returncode>\n<output>\n{lines}</output>");
        messages.push(serde_json::json!({"role": "user", "content": text}));
    }
    let file = serde_json::json!({"trajectory_format": "mini-swe-agent-1", "instance_id": "o__r-1", "info": {"exit_status": "Submitted", "submission": ""}, "messages": messages});
    serde_json::to_vec_pretty(&file).unwrap_or_default()
}
