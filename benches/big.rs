//! A file of a gigabyte and the corpus against Python's `json.loads`, in one run, as ratios.
//!
//! `cargo bench --bench big`. `TRAJSCOPE_BENCH_BYTES` sets the size of the generated file (1e9). Python 3 is only the
//! peer: without it the ratios are left out and that is said.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints what it measured, and fails loudly")]

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use trajscope::formats::load_within;
use trajscope::testing::shared;
use trajscope::trajectory::Body;

/// What people run today: every line through `json.loads`.
const PEER: &str = r"
import json, sys, time
start = time.perf_counter()
n = 0
for path in sys.argv[1:]:
    try:
        with open(path, 'rb') as file:
            for line in file:
                if line.strip():
                    json.loads(line)
                    n += 1
    except ValueError:
        try:
            with open(path, 'rb') as file:
                json.loads(file.read())
                n += 1
        except ValueError:
            pass
print(time.perf_counter() - start)
";

fn main() {
    // `cargo test --benches` and the like ask for nothing that takes a minute.
    if std::env::args().any(|a| a == "--test" || a == "--list") {
        return;
    }
    let bytes: f64 = std::env::var("TRAJSCOPE_BENCH_BYTES").ok().and_then(|b| b.parse().ok()).unwrap_or(1e9);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output.jsonl");
    generate(&path, bytes as u64);
    let size = path.metadata().unwrap().len();
    println!("generated output.jsonl: {:.2} GB", size as f64 / 1e9);
    let peer = peer(std::slice::from_ref(&path));
    let before = resident();
    let run = measure(std::slice::from_ref(&path));
    println!(
        "first rows after {:.3} s, all rows indexed after {:.3} s, all read after {:.3} s",
        secs(run.first),
        secs(run.indexed),
        secs(run.whole)
    );
    println!(
        "resident: {} MB when indexed, {} MB at the end, {before} MB before: {:.1} % of the file",
        run.indexed_mb,
        run.end_mb,
        run.end_mb as f64 * 1e8 / size as f64
    );
    ratios("generated", peer, &[("index", run.indexed), ("full parse, index included", run.whole)]);

    let Some(corpus) = shared().map(|s| s.join("corpus")) else {
        println!("SKIPPED: no corpus beside the project (TRAJSCOPE_SHARED)");
        return;
    };
    let mut files = Vec::new();
    walk(&corpus, &mut files);
    let start = Instant::now();
    let dataset = load_within(&[corpus], None, &|_| {});
    let ours = start.elapsed();
    println!(
        "corpus: {} files, {} trajectories in {:.3} s",
        dataset.files.len(),
        dataset.trajectories.len(),
        secs(ours)
    );
    ratios("corpus", self::peer(&files), &[("full parse", ours)]);
}

struct Run {
    first: Duration,
    indexed: Duration,
    whole: Duration,
    indexed_mb: u64,
    end_mb: u64,
}

fn measure(paths: &[PathBuf]) -> Run {
    let marks: Mutex<(Option<Duration>, Duration, u64)> = Mutex::new((None, Duration::ZERO, 0));
    let start = Instant::now();
    let dataset = load_within(paths, Some(0), &|part| {
        let now = start.elapsed();
        let mut marks = marks.lock().unwrap();
        if marks.0.is_none() && !part.trajectories.is_empty() {
            marks.0 = Some(now);
        }
        if part.trajectories.iter().any(|t| t.body == Body::Found) {
            (marks.1, marks.2) = (now, resident());
        }
    });
    let whole = start.elapsed();
    let actions: usize = dataset.trajectories.iter().map(|t| t.n_actions()).sum();
    println!("{} rows, {actions} actions", dataset.trajectories.len());
    let marks = marks.into_inner().unwrap();
    Run { first: marks.0.unwrap_or(whole), indexed: marks.1, whole, indexed_mb: marks.2, end_mb: resident() }
}

fn ratios(what: &str, peer: Option<f64>, ours: &[(&str, Duration)]) {
    let Some(peer) = peer else {
        println!("SKIPPED: no python3, so no ratios for {what}");
        return;
    };
    println!("{what}: json.loads over lines took {peer:.2} s");
    for (name, took) in ours {
        println!("{what}: {name}: {:.1}x", peer / secs(*took));
    }
}

fn secs(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn peer(paths: &[PathBuf]) -> Option<f64> {
    let output = Command::new("python3").arg("-c").arg(PEER).args(paths).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// Resident memory in MB; 0 where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kb| kb / 1000)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

/// Rows of an evaluation as OpenHands writes them, of half a megabyte each, with the proportions of real ones: every
/// call repeated in the model's response, observations from a line to a screenful and more.
fn generate(path: &Path, bytes: u64) {
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    let mut random = 7_u64;
    let (mut written, mut row) = (0, 0);
    while written < bytes {
        let line = one_row(row, &mut random);
        file.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        row += 1;
    }
    file.flush().unwrap();
}

fn next(random: &mut u64, below: u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % below
}

/// Text like code, escaped as it stands in JSON.
fn code(random: &mut u64, len: usize) -> String {
    const WORDS: [&str; 12] = [
        "def",
        "return",
        "self.value",
        "import",
        "error",
        "for item in",
        "if not",
        "None",
        "path",
        "assert",
        "the",
        "(a, b)",
    ];
    let mut text = String::with_capacity(len + 40);
    while text.len() < len {
        text.push_str(&" ".repeat(4 * next(random, 4) as usize));
        for _ in 0..=next(random, 6) {
            text.push_str(WORDS[next(random, 12) as usize]);
            text.push(' ');
        }
        text.push_str(if next(random, 9) == 0 { "\\\"quoted\\\"\\n" } else { "\\n" });
    }
    text
}

fn one_row(row: u64, random: &mut u64) -> String {
    let mut out = String::with_capacity(1 << 19);
    let patch = "diff --git a/x.py b/x.py\\n--- a/x.py\\n+++ b/x.py\\n@@ -1 +1 @@\\n-a\\n+b\\n";
    write!(out, r#"{{"instance_id":"django__django-{}","test_result":{{"git_patch":"{patch}"}},"instruction":"{}","metadata":{{"agent_class":"CodeActAgent","llm_config":{{"model":"m"}}}},"history":["#, 10_000 + row, code(random, 3_000)).unwrap();
    let steps = 60 + next(random, 140);
    for id in 0..steps {
        if id > 0 {
            out.push(',');
        }
        if id % 2 == 0 {
            let (thought, command) = (code(random, 300), code(random, 80));
            write!(out, r#"{{"id":{id},"timestamp":"2025-01-01T00:00:00","source":"agent","message":"Running","action":"run","args":{{"command":"{command}","thought":"{thought}","is_input":false,"blocking":false,"hidden":false,"confirmation_state":"confirmed"}},"tool_call_metadata":{{"function_name":"execute_bash","tool_call_id":"c{id}","model_response":{{"id":"r{id}","choices":[{{"finish_reason":"tool_calls","message":{{"content":"{thought}","role":"assistant","tool_calls":[{{"id":"c{id}","type":"function","function":{{"name":"execute_bash","arguments":"{{\"command\": \"x\"}}"}}}}]}}}}],"usage":{{"prompt_tokens":1000,"completion_tokens":30}}}},"total_calls_in_response":1}}}}"#).unwrap();
        } else {
            let sizes = [80, 300, 900, 3_000, 9_000, 20_000];
            let len = sizes[next(random, 6) as usize];
            let content = code(random, len);
            write!(out, r#"{{"id":{id},"timestamp":"2025-01-01T00:00:01","source":"agent","message":"Executed","cause":{},"observation":"run","content":"{content}","extras":{{"command":"x","metadata":{{"exit_code":0,"pid":1,"working_dir":"/w","py_interpreter_path":"/p","prefix":"","suffix":""}},"hidden":false}},"success":true}}"#, id - 1).unwrap();
        }
    }
    writeln!(out, r#"],"metrics":{{"accumulated_cost":0.5,"costs":[]}},"error":null,"instance":{{"repo":"django/django","problem_statement":"{}","patch":"{patch}"}},"report":{{"resolved":{}}}}}"#, code(random, 2_000), row.is_multiple_of(3)).unwrap();
    out
}
