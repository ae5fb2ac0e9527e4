//! `trajscope doctor`: does the engine compute the right thing here, and what is there to compute with?

use std::path::Path;

use serde_json::{Value, json};

use super::Verdict;
use super::args::ListArgs;
use super::out::{Out, safe};
use crate::config::Dirs;
use crate::critic::{CriticInfo, Profile, store};
use crate::engine::fit::gigabytes;
use crate::engine::found::{FoundModel, USUAL_TOKENS, found_models};
use crate::engine::machine::{self, Memory};
use crate::engine::{self, CriticSpec, EngineOptions, SelfCheck};

/// What there is.
struct Report {
    check: SelfCheck,
    embedded: Result<CriticInfo, String>,
    memory: Option<Memory>,
    models: Vec<FoundModel>,
    /// File, and the id of the profile in it or why it cannot be read.
    profiles: Vec<(String, Result<String, String>)>,
    dirs: Option<Dirs>,
}

/// Runs the checks. Findings: the forward pass differs from candle's own, or the embedded critic does not open.
pub fn run(args: &ListArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let dirs = Dirs::find();
    let embedded = engine::open(&CriticSpec::Embedded, &EngineOptions::default());
    let report = Report {
        check: engine::self_check(),
        embedded: embedded.map(|critic| critic.info().clone()).map_err(|e| e.to_string()),
        memory: machine::memory(),
        models: found_models(),
        profiles: dirs.as_ref().map(|d| profiles(&d.critics())).unwrap_or_default(),
        dirs,
    };
    let good = report.check.is_good() && (report.embedded.is_ok() || !cfg!(feature = "embedded-critic"));
    if args.json {
        out.json(&object(&report))?;
    } else {
        for (label, text) in rows(&report) {
            out.line(format!("{label:<18}{text}"))?;
        }
    }
    Ok(Verdict::findings_if(!good))
}

/// The profiles in the user's folder.
fn profiles(folder: &Path) -> Vec<(String, Result<String, String>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    let read = |file: &Path| Profile::read(file).map(|p| p.id).map_err(|e| e.to_string());
    files.iter().map(|file| (file.display().to_string(), read(file))).collect()
}

/// Names of the instruction sets this processor has, and of those it lacks.
fn instruction_sets() -> (Vec<&'static str>, Vec<&'static str>) {
    let (there, missing): (Vec<_>, Vec<_>) = machine::instruction_sets().into_iter().partition(|(_, there)| *there);
    (there.into_iter().map(|s| s.0).collect(), missing.into_iter().map(|s| s.0).collect())
}

/// What multiplies matrices of 32-bit floats here: chosen by the `gemm` crate at run time.
fn f32_kernel(sets: &[&str]) -> &'static str {
    match () {
        () if sets.contains(&"avx512f") => "AVX-512",
        () if sets.contains(&"avx2") && sets.contains(&"fma") => "AVX2 and FMA",
        () if sets.contains(&"neon") => "NEON",
        () => "plain code, slow",
    }
}

fn object(report: &Report) -> Value {
    let Report { check, embedded, memory, models, profiles, dirs } = report;
    let (there, missing) = instruction_sets();
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let kept = dirs.as_ref().map(|d| (d.scores(), store::usage(&d.scores())));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "engine_check": {
            "max_abs_diff": check.max_abs_diff,
            "tolerance": check.tolerance,
            "tokens": check.tokens,
            "good": check.is_good(),
            "problem": check.problem,
        },
        "devices": check.devices,
        "processor": machine::processor(),
        "instruction_sets": there,
        "instruction_sets_missing": missing,
        "kernels": { "f32": f32_kernel(&there), "int8": engine::int8_kernel() },
        "threads": check.threads,
        "cores": check.cores,
        "memory_gib": memory.map(|m| (gib(m.available), gib(m.total))),
        "embedded_critic": embedded.as_ref().ok().map(|info| format!("{} {}", info.id, info.fingerprint)),
        "embedded_critic_problem": embedded.as_ref().err(),
        "models": models.iter().map(|m| json!({
            "name": m.name,
            "folder": m.folder,
            "architecture": m.class,
            "problem": m.problem,
            "bytes": m.bytes,
            "needs_bytes": m.needs,
            "fits": fits(m, *memory),
        })).collect::<Vec<_>>(),
        "profiles": profiles.iter().map(|(file, id)| json!({
            "file": file, "id": id.as_ref().ok(), "problem": id.as_ref().err(),
        })).collect::<Vec<_>>(),
        "score_cache": kept.map(|(folder, held)| json!({
            "folder": folder, "entries": held.entries, "bytes": held.bytes, "limit_bytes": store::LIMIT,
        })),
        "log": dirs.as_ref().map(Dirs::log_file),
    })
}

/// Does a model fit into the free memory? `None` where one of the two is not known.
fn fits(model: &FoundModel, memory: Option<Memory>) -> Option<bool> {
    Some(model.needs? <= memory?.available)
}

fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let Report { check, embedded, memory, models, profiles, dirs } = report;
    let (there, missing) = instruction_sets();
    let or_none = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let unknown = || "unknown".to_owned();
    let mut rows = vec![
        ("trajscope", env!("CARGO_PKG_VERSION").to_owned()),
        ("forward pass", forward_pass(check)),
        ("devices", check.devices.join("; ")),
        ("processor", machine::processor().unwrap_or_else(unknown)),
        ("instruction sets", format!("{}; not here: {}", or_none(&there), or_none(&missing))),
        ("kernels", format!("f32: {}; int8: {}", f32_kernel(&there), engine::int8_kernel())),
        ("threads", format!("{} of {} cores", check.threads, check.cores)),
        ("memory", memory.map_or_else(unknown, |m| format!("{:.1} of {:.1} GiB free", gib(m.available), gib(m.total)))),
        (
            "embedded critic",
            match embedded {
                Ok(info) => format!("{} (fingerprint {}), opens", info.id, info.fingerprint),
                Err(why) => why.clone(),
            },
        ),
    ];
    let none = "none in the local Hugging Face cache".to_owned();
    let models: Vec<String> = models.iter().map(|m| model(m, *memory)).collect();
    rows.extend(under("models", if models.is_empty() { vec![none] } else { models }));
    let profile = |(file, id): &(String, Result<String, String>)| match id {
        Ok(id) => format!("{id} ({})", safe(file)),
        Err(why) => safe(why),
    };
    rows.extend(under("own profiles", profiles.iter().map(profile).collect()));
    if let Some(dirs) = dirs {
        let held = store::usage(&dirs.scores());
        let mib = held.bytes as f64 / f64::from(1 << 20);
        let most = store::LIMIT >> 20;
        let folder = dirs.scores();
        rows.push((
            "score cache",
            format!("{} results, {mib:.1} of at most {most} MiB, {}", held.entries, folder.display()),
        ));
        rows.push(("log", dirs.log_file().display().to_string()));
        rows.push(("own keys", dirs.keys_file().display().to_string()));
    }
    rows
}

/// The label beside the first line only.
fn under(label: &'static str, lines: Vec<String>) -> impl Iterator<Item = (&'static str, String)> {
    lines.into_iter().enumerate().map(move |(i, line)| (if i == 0 { label } else { "" }, line))
}

fn model(model: &FoundModel, memory: Option<Memory>) -> String {
    let name = safe(&model.name);
    let (Some(class), Some(needs)) = (&model.class, model.needs) else {
        return format!("{name}: {}", safe(model.problem.as_deref().unwrap_or("not read")));
    };
    let verdict = match fits(model, memory) {
        Some(true) => "fits",
        Some(false) => "does not fit",
        None => "not known whether it fits",
    };
    let (size, needs) = (gigabytes(model.bytes), gigabytes(needs));
    format!("{name}: {}, {size}; {verdict}: needs {needs} with {USUAL_TOKENS} tokens", safe(class))
}

fn forward_pass(check: &SelfCheck) -> String {
    match (check.max_abs_diff, &check.problem) {
        (Some(diff), _) => format!(
            "{}: differs from candle-transformers by at most {diff:.1e} over {} tokens (allowed {:.0e})",
            if check.is_good() { "good" } else { "WRONG" },
            check.tokens,
            check.tolerance
        ),
        (None, why) => format!("not checked: {}", why.as_deref().unwrap_or("no reason given")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_fits_only_if_both_sides_are_known() {
        let found = |needs| FoundModel {
            name: "org/critic".into(),
            folder: "x".into(),
            class: Some("Qwen2ForTokenClassification".into()),
            problem: None,
            bytes: 1_000_000_000,
            needs,
        };
        let memory = Some(Memory { total: 8 << 30, available: 4_000_000_000 });
        assert_eq!(fits(&found(Some(4_000_000_000)), memory), Some(true));
        assert_eq!(fits(&found(Some(4_000_000_001)), memory), Some(false));
        assert_eq!((fits(&found(None), memory), fits(&found(Some(1)), None)), (None, None));
        assert_eq!(
            model(&found(Some(5_000_000_000)), memory),
            "org/critic: Qwen2ForTokenClassification, 1.0 GB; does not fit: needs 5.0 GB with 32768 tokens"
        );
    }

    #[test]
    fn own_profiles_are_listed_with_what_is_wrong_with_them() {
        let folder = tempfile::tempdir().unwrap();
        assert!(profiles(&folder.path().join("none")).is_empty());
        std::fs::write(folder.path().join("b.toml"), "id = 3").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let found = profiles(folder.path());
        assert_eq!(found.len(), 1);
        assert!(found[0].1.as_ref().unwrap_err().contains("b.toml"), "{found:?}");
    }

    #[test]
    fn the_best_kernel_is_named() {
        assert_eq!(f32_kernel(&["avx2", "fma", "avx512f"]), "AVX-512");
        assert_eq!(f32_kernel(&["avx2", "fma"]), "AVX2 and FMA");
        assert_eq!(f32_kernel(&["neon"]), "NEON");
        assert_eq!(f32_kernel(&["avx2"]), "plain code, slow");
    }
}
