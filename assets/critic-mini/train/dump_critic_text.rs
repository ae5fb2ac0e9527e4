//! Writes what the small critic reads, one run a line: the training data of `assets/critic-mini/train/train.py`.
//!
//! ```text
//! cargo run --release --example dump_critic_text -- --vocabulary > vocabulary.txt
//! cargo run --release --example dump_critic_text -- ../shared/labelled/trajectories > runs.jsonl
//! ```
//!
//! Training reads the very text that inference reads: there is no second implementation of the rendering.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use trajscope::critic::{Profile, compact_vocabulary, render};
use trajscope::trajectory::Trajectory;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if arguments.iter().any(|a| a == "--vocabulary") {
        for word in compact_vocabulary() {
            writeln!(out, "{word}")?;
        }
        return Ok(out.flush()?);
    }
    let Some(profile) = Profile::by_id("mini") else { anyhow::bail!("there is no built-in profile \"mini\"") };
    let paths: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let dataset = trajscope::formats::load(&paths, &|_| {});
    for trajectory in &dataset.trajectories {
        if trajectory.n_actions() > 0 {
            writeln!(out, "{}", line(profile, trajectory))?;
        }
    }
    Ok(out.flush()?)
}

/// One run as the training script reads it.
fn line(profile: &Profile, trajectory: &Trajectory) -> serde_json::Value {
    let text = render(profile, trajectory);
    let segments: Vec<_> = text.segments.iter().map(|s| json!([s.text, s.value.map(|v| v.end)])).collect();
    // The decoder of labelled runs writes the attempt as `source#number`.
    let attempt = trajectory.attempt.as_deref().unwrap_or_default();
    let (source, number) = attempt.rsplit_once('#').unwrap_or((attempt, "1"));
    json!({
        "source": source,
        "agent": trajectory.agent,
        "model": trajectory.model,
        "instance_id": trajectory.instance_id,
        "attempt": number,
        "path": trajectory.source.path.display().to_string(),
        "resolved": trajectory.outcome.as_bool(),
        "empty": trajectory.patch.as_deref().is_some_and(|p| p.trim().is_empty()),
        "segments": segments,
    })
}
