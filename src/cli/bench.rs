//! `trajscope bench`: how fast a critic reads on this machine.

use anyhow::bail;
use serde_json::json;

use super::args::BenchArgs;
use super::out::{self, Out};
use super::{Verdict, bench_random, load};
use crate::engine::bench::{BenchLine, BenchReport, ESTIMATED, bench};

/// Loads the model, measures, prints.
pub fn run(args: &BenchArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    if let Some(shape) = args.random {
        return bench_random::run(args, shape, out);
    }
    let Some((spec, options)) = load::spec(&args.critic)? else {
        bail!("--critic none computes nothing; name a critic");
    };
    if let Some(few) = args.tokens.iter().find(|n| **n < 16) {
        bail!("--tokens {few}: expected at least 16");
    }
    let bar = load::spinner();
    let report = bench(&spec, &options, &args.tokens, &mut |what| bar.set_message(what.to_owned()))?;
    bar.finish_and_clear();
    if report.lines.is_empty() {
        bail!("nothing measured: {}", report.remarks.join("; "));
    }
    if args.json {
        out.json(&object(&args.critic.critic, &report))?;
        return Ok(Verdict::Clean);
    }
    table(&args.critic.critic, &report, out)?;
    Ok(Verdict::Clean)
}

fn object(critic: &str, report: &BenchReport) -> serde_json::Value {
    let line = |l: &BenchLine| {
        json!({
            "tokens": l.tokens,
            "rounds": l.rounds,
            "wall_s": l.wall,
            "cpu_s": l.cpu,
            "tokens_per_s": l.tokens_per_second(),
            "tokens_per_cpu_s": l.tokens_per_cpu_second(),
            "gflops": l.gflops,
            "of_plain_gemm": l.of_plain,
        })
    };
    json!({
        "critic": critic,
        "architecture": report.class,
        "parameters": report.parameters,
        "device": report.device,
        "dtype": report.dtype,
        "threads": report.threads,
        "processor": report.processor,
        "load_average_before": report.load_before,
        "load_s": report.load,
        "peak_memory_loaded_bytes": report.peak_loaded,
        "peak_memory_bytes": report.peak,
        "plain_gemm_gflops": report.plain_gflops,
        "lengths": report.lines.iter().map(line).collect::<Vec<_>>(),
        "estimate": { "tokens": ESTIMATED, "seconds": report.estimate },
        "remarks": report.remarks,
    })
}

fn table(critic: &str, report: &BenchReport, out: &mut Out) -> anyhow::Result<()> {
    let unknown = || "unknown".to_owned();
    let mib = |bytes: Option<u64>| bytes.map_or_else(unknown, |b| format!("{:.0} MiB", b as f64 / f64::from(1 << 20)));
    let millions = report.parameters as f64 / 1e6;
    let BenchReport { class, dtype, device, threads, .. } = report;
    out.line(format!("critic      {} ({class}, {millions:.0}M weights, {dtype})", out::safe(critic)))?;
    out.line(format!(
        "runs on     {device}, {threads} thread(s) of {}",
        report.processor.clone().unwrap_or_else(unknown)
    ))?;
    out.line(format!("loaded in   {:.2} s (faster when the files were read before)", report.load))?;
    out.line(format!("memory      {} after loading, {} at most", mib(report.peak_loaded), mib(report.peak)))?;
    if let Some(plain) = report.plain_gflops {
        out.line(format!("plain f32   {plain:.1} GFLOP/s: what a product of matrices gives here on as many threads"))?;
    }
    out.line("")?;
    out.line("  tokens  rounds    wall s     cpu s  tokens/s  tokens/cpu-s   GFLOP/s  of plain")?;
    for l in &report.lines {
        let or_dash = |number: Option<f64>, places: usize| number.map_or("-".into(), |n| format!("{n:.places$}"));
        out.line(format!(
            "{:>8}  {:>6}  {:>8.3}  {:>8}  {:>8.0}  {:>12}  {:>8.1}  {:>8}",
            l.tokens,
            l.rounds,
            l.wall,
            or_dash(l.cpu, 3),
            l.tokens_per_second(),
            or_dash(l.tokens_per_cpu_second(), 0),
            l.gflops,
            l.of_plain.map_or("-".into(), |share| format!("{:.0} %", 100.0 * share)),
        ))?;
    }
    if let Some(seconds) = report.estimate {
        out.line(format!(
            "\nA trajectory of {ESTIMATED} tokens takes about {seconds:.1} s (estimated, not measured)."
        ))?;
    }
    for remark in &report.remarks {
        out.line(format!("Note: {remark}."))?;
    }
    Ok(())
}
