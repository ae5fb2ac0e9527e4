//! `trajscope doctor`: does the engine compute the right thing here, and what is there to compute with?

use serde_json::json;

use super::Verdict;
use super::args::ListArgs;
use super::out::Out;
use crate::config::Dirs;
use crate::engine::{self, CriticSpec, EngineOptions, SelfCheck};

/// Runs the checks. Findings: the forward pass differs from candle's own, or the embedded critic does not open.
pub fn run(args: &ListArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let check = engine::self_check();
    let embedded = engine::open(&CriticSpec::Embedded, &EngineOptions::default());
    let embedded = embedded.map(|critic| critic.info().clone()).map_err(|e| e.to_string());
    let good = check.is_good() && (embedded.is_ok() || !cfg!(feature = "embedded-critic"));
    if args.json {
        let (id, problem) = match &embedded {
            Ok(info) => (Some(format!("{} {}", info.id, info.fingerprint)), None),
            Err(why) => (None, Some(why)),
        };
        out.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "engine_check": {
                "max_abs_diff": check.max_abs_diff,
                "tolerance": check.tolerance,
                "tokens": check.tokens,
                "good": check.is_good(),
                "problem": check.problem,
            },
            "devices": check.devices,
            "instruction_sets": check.instruction_sets,
            "threads": check.threads,
            "cores": check.cores,
            "memory_gib": memory_gib(),
            "embedded_critic": id,
            "embedded_critic_problem": problem,
            "log": Dirs::find().map(|d| d.log_file()),
        }))?;
    } else {
        table(&check, out)?;
        let critic = match &embedded {
            Ok(info) => format!("{} (fingerprint {}), opens", info.id, info.fingerprint),
            Err(why) => why.clone(),
        };
        out.line(format!("embedded critic   {critic}"))?;
        if let Some(dirs) = Dirs::find() {
            out.line(format!("log               {}", dirs.log_file().display()))?;
            out.line(format!("own keys          {}", dirs.keys_file().display()))?;
        }
    }
    Ok(Verdict::findings_if(!good))
}

fn table(check: &SelfCheck, out: &mut Out) -> anyhow::Result<()> {
    let engine = match (check.max_abs_diff, &check.problem) {
        (Some(diff), _) => format!(
            "{}: differs from candle-transformers by at most {diff:.1e} over {} tokens (allowed {:.0e})",
            if check.is_good() { "good" } else { "WRONG" },
            check.tokens,
            check.tolerance
        ),
        (None, why) => format!("not checked: {}", why.as_deref().unwrap_or("no reason given")),
    };
    out.line(format!("trajscope         {}", env!("CARGO_PKG_VERSION")))?;
    out.line(format!("forward pass      {engine}"))?;
    out.line(format!("devices           {}", check.devices.join("; ")))?;
    out.line(format!("instruction sets  {}", check.instruction_sets.join(", ")))?;
    out.line(format!("threads           {} of {} cores", check.threads, check.cores))?;
    let memory =
        memory_gib().map_or_else(|| "unknown".to_owned(), |(free, all)| format!("{free:.1} of {all:.1} GiB free"));
    out.line(format!("memory            {memory}"))?;
    Ok(())
}

/// Free and total memory in GiB, where the system says so in `/proc/meminfo`.
fn memory_gib() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| -> Option<f64> {
        let line = text.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some((kib("MemAvailable:")? / 1_048_576.0, kib("MemTotal:")? / 1_048_576.0))
}
