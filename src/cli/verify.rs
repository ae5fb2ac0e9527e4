//! `trajscope verify`: the engine against PyTorch's numbers in a model folder.

use anyhow::bail;
use serde_json::json;

use super::Verdict;
use super::args::VerifyArgs;
use super::out::Out;
use crate::engine::{self, Chunks, EngineOptions, Verification};

/// Runs the command. Findings: an output is further from PyTorch's than the tolerance.
pub fn run(args: &VerifyArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let chunks = match args.chunk {
        None => Chunks::Growing,
        Some(0) => Chunks::Whole,
        Some(size) => Chunks::Every(size),
    };
    if args.threads == Some(0) {
        bail!("--threads 0: expected at least 1");
    }
    if let Some(tolerance) = args.tolerance
        && !(tolerance >= 0.0 && tolerance.is_finite())
    {
        bail!("--tolerance {tolerance}: expected 0 or more");
    }
    let options = EngineOptions {
        device: args.device.parse().map_err(|e| anyhow::anyhow!("--device: {e}"))?,
        dtype: args.dtype.parse().map_err(|e| anyhow::anyhow!("--dtype: {e}"))?,
        threads: args.threads,
        ..EngineOptions::default()
    };
    let folder = engine::find_model(&args.model)?;
    let found = engine::verify(&folder, &options, chunks, args.tolerance)?;
    let chunk = match chunks {
        Chunks::Growing => "growing".to_owned(),
        Chunks::Whole => "whole".to_owned(),
        Chunks::Every(size) => size.to_string(),
    };
    if args.json {
        out.json(&line(&found, &chunk))?;
    } else {
        table(&found, &chunk, out)?;
    }
    Ok(Verdict::findings_if(!found.is_good()))
}

fn line(found: &Verification, chunk: &str) -> serde_json::Value {
    // JSON has no infinity: an output that is not a number gives null.
    let inputs = found.inputs.iter().map(|input| {
        json!({
            "tokens": input.tokens,
            "numbers": input.numbers,
            "max_abs_err": input.errors.max,
            "mean_abs_err": input.errors.mean,
            "greedy_equal": input.greedy_equal,
        })
    });
    json!({
        "architecture": found.architecture,
        "n_inputs": found.inputs.len(),
        "max_abs_err": found.max_abs_err,
        "mean_abs_err": found.mean_abs_err,
        "greedy_equal": found.greedy_equal,
        "good": found.is_good(),
        "tolerance": found.tolerance,
        "max_abs_err_f64": found.f64_errors.map(|e| e.max),
        "mean_abs_err_f64": found.f64_errors.map(|e| e.mean),
        "device": found.device,
        "dtype": found.dtype,
        "chunk": chunk,
        "inputs": inputs.collect::<Vec<_>>(),
    })
}

fn table(found: &Verification, chunk: &str, out: &mut Out) -> anyhow::Result<()> {
    let same = |equal: Option<bool>| match equal {
        None => "-",
        Some(true) => "equal",
        Some(false) => "DIFFERS",
    };
    out.line(format!(
        "{} on {}, weights {}, chunks {chunk}: {}",
        found.architecture,
        found.device,
        found.dtype,
        if found.is_good() { "good" } else { "WRONG" }
    ))?;
    out.line(format!("{:>8} {:>8} {:>12} {:>12}  {}", "tokens", "numbers", "max error", "mean error", "greedy"))?;
    for input in &found.inputs {
        out.line(format!(
            "{:>8} {:>8} {:>12.2e} {:>12.2e}  {}",
            input.tokens,
            input.numbers,
            input.errors.max,
            input.errors.mean,
            same(input.greedy_equal)
        ))?;
    }
    out.line(format!(
        "{:>8} {:>8} {:>12.2e} {:>12.2e}  {}",
        "all",
        found.inputs.iter().map(|i| i.numbers).sum::<usize>(),
        found.max_abs_err,
        found.mean_abs_err,
        same(found.greedy_equal)
    ))?;
    if let Some(errors) = found.f64_errors {
        out.line(format!("{:>17} {:>12.2e} {:>12.2e}", "against f64", errors.max, errors.mean))?;
    }
    out.line(format!("{:>17} {:>12.2e}", "allowed", found.tolerance))?;
    Ok(())
}
