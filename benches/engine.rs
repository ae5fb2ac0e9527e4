//! Speed and memory of the forward pass on the CPU.
//!
//! ```text
//! cargo bench --bench engine                                  # the small fixture checkpoint, one and two threads
//! TRAJSCOPE_BENCH_MODEL=DIR cargo bench --bench engine        # a checkpoint of your own (token classification)
//! cargo bench --bench engine -- --strategy                    # one pass against one call an action; shared beginnings
//! cargo bench --bench engine -- --long                        # 32k and 64k tokens, keys and values in f32 and f16
//! benches/compare.sh DIR                                      # all of it, and PyTorch and llama.cpp beside it
//! ```
//!
//! With `--serve` it reads lines `TOKENS THREADS [DTYPE [FILE]]` and answers `SECONDS CPU_SECONDS`, for the scripts that
//! run another engine in turns with this one; the values go to FILE, one a line.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use trajscope::engine::{Chunks, DtypeChoice, EngineOptions, KvChoice, Model, int8_kernel, machine};

/// Runs of one size; the median counts.
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
    let folder = std::env::var_os("TRAJSCOPE_BENCH_MODEL").map_or(fixture, PathBuf::from);
    let mut bench = Bench { folder, open: None };
    let asked = |name: &str| std::env::args().any(|arg| arg == name);
    if asked("--serve") {
        return serve(&mut bench);
    }
    println!("{} (all other work on the machine slows this down)", bench.folder.display());
    if asked("--strategy") {
        return strategies(&mut bench);
    }
    if asked("--long") {
        return long_texts(&mut bench);
    }
    println!("tokens per second, median of {ROUNDS}; 8-bit kernel: {}", int8_kernel());
    for dtype in [DtypeChoice::F32, DtypeChoice::Bf16, DtypeChoice::Int8] {
        for threads in [1, 2] {
            for tokens in [512, 2048] {
                let seconds = median((0..ROUNDS).map(|_| Ok(bench.read(tokens, threads, dtype)?.0.wall)))?;
                let speed = tokens as f64 / seconds;
                println!("{dtype} {tokens:>6} tokens {threads} thread(s): {speed:>9.0} tokens/s, peak {} MB", peak());
            }
        }
    }
    Ok(())
}

/// Seconds of one run.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

/// Runs `work` and says what it took.
fn cost<T>(work: impl FnOnce() -> Result<T>) -> Result<(Cost, T)> {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = work()?;
    Ok((Cost { wall: start.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu }, result))
}

/// A checkpoint, and the last way in which it was loaded.
struct Bench {
    folder: PathBuf,
    open: Option<(EngineOptions, Model)>,
}

impl Bench {
    /// The model loaded in this way. Only the last way stays loaded: a large model fits once.
    fn model(&mut self, options: EngineOptions) -> Result<&mut Model> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != options) {
            self.open = None;
            let model = Model::open(&self.folder, &options)?;
            self.open = Some((options, model));
        }
        Ok(&mut self.open.as_mut().context("just loaded")?.1)
    }

    /// What reading `tokens` tokens from scratch takes, with a value at every token; and the values.
    fn read(&mut self, tokens: usize, threads: usize, dtype: DtypeChoice) -> Result<(Cost, Vec<f32>)> {
        let model = self.model(EngineOptions { threads: Some(threads), dtype, ..EngineOptions::default() })?;
        let ids = text(model, tokens);
        cost(|| model.values(&ids, Chunks::Growing).map_err(|e| anyhow!(e)))
    }
}

/// Some text of this length.
fn text(model: &Model, tokens: usize) -> Vec<u32> {
    let vocab = model.config().vocab_size;
    (0..tokens).map(|i| ((i * 7919 + 17) % vocab) as u32).collect()
}

fn median(seconds: impl Iterator<Item = Result<f64>>) -> Result<f64> {
    let mut seconds = seconds.collect::<Result<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().context("at least one run")
}

fn serve(bench: &mut Bench) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let mut number = || words.next().context("expected TOKENS THREADS [DTYPE [FILE]]")?.parse().context("a number");
        let (tokens, threads) = (number()?, number()?);
        let dtype = words.next().unwrap_or("auto").parse().map_err(|e: String| anyhow!(e))?;
        let (cost, values) = bench.read(tokens, threads, dtype)?;
        if let Some(file) = words.next() {
            std::fs::write(file, values.iter().map(f32::to_string).collect::<Vec<_>>().join("\n"))?;
        }
        println!("{} {}", cost.wall, cost.cpu);
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// What reading a trajectory once saves, as ratios.
fn strategies(bench: &mut Bench) -> Result<()> {
    let model = bench.model(EngineOptions { threads: Some(2), ..EngineOptions::default() })?;
    let (actions, tokens) = (40, 16_384);
    let ids = text(model, tokens);
    let ends: Vec<usize> = (1..=actions).map(|i| i * tokens / actions).collect();
    let read =
        |model: &mut Model, ids: &[u32], at: &[usize]| model.logits(ids, at, Chunks::Growing).map_err(|e| anyhow!(e));
    let last: Vec<usize> = ends.iter().map(|end| end - 1).collect();
    let (once, values) = cost(|| read(model, &ids, &last))?;
    let (apart, each) =
        cost(|| ends.iter().map(|end| read(model, &ids[..*end], &[end - 1])).collect::<Result<Vec<_>>>())?;
    let worst = values.iter().zip(each.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    ratio(&format!("{actions} actions of {tokens} tokens: one pass against one call an action"), once, apart, worst);

    let (attempts, shared, own) = (5, 3000, 600);
    let texts: Vec<Vec<u32>> = (0..attempts)
        .map(|attempt| {
            let mut ids = text(model, shared + own);
            ids[shared..].iter_mut().for_each(|id| *id = (*id + 1 + attempt) % model.config().vocab_size as u32);
            ids
        })
        .collect();
    let at = [shared + own - 1];
    let (apart, each) = cost(|| texts.iter().map(|ids| read(model, ids, &at)).collect::<Result<Vec<_>>>())?;
    model.forget();
    let together =
        || texts.iter().map(|ids| model.values_at(ids, &at).map_err(|e| anyhow!(e))).collect::<Result<Vec<_>>>();
    let (once, values) = cost(together)?;
    let worst = values.iter().flatten().zip(each.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    ratio(
        &format!("{attempts} attempts, {shared} tokens shared and {own} own: shared against apart"),
        once,
        apart,
        worst,
    );
    Ok(())
}

fn ratio(what: &str, once: Cost, apart: Cost, worst: f32) {
    println!(
        "{what}: wall {:.2} against {:.2} s = {:.1}x, cpu {:.2} against {:.2} s = {:.1}x; values differ by {worst:.1e}; \
         peak {} MB",
        once.wall,
        apart.wall,
        apart.wall / once.wall,
        once.cpu,
        apart.cpu,
        apart.cpu / once.cpu.max(1e-9),
        peak()
    );
}

/// Long texts: time, memory, and how far half-precision keys and values are from f32.
fn long_texts(bench: &mut Bench) -> Result<()> {
    for tokens in [32_768, 65_536] {
        let mut exact: Vec<f32> = Vec::new();
        for (kv, kv_memory) in
            [(KvChoice::F32, None), (KvChoice::F16, None), (KvChoice::Bf16, None), (KvChoice::F32, Some(0))]
        {
            let options = EngineOptions { threads: Some(2), kv, kv_memory, ..EngineOptions::default() };
            let model = bench.model(options)?;
            let ids = text(model, tokens);
            let (cost, values) = cost(|| model.values(&ids, Chunks::Growing).map_err(|e| anyhow!(e)))?;
            if exact.is_empty() {
                exact.clone_from(&values);
            }
            let worst = values.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let how = if kv_memory.is_some() { "layer by layer" } else { "in chunks" };
            println!(
                "{tokens} tokens {how}, keys and values {kv}: {:.1} s, cpu {:.1} s, off by at most {worst:.1e}, now {} MB",
                cost.wall,
                cost.cpu,
                status("VmRSS:")
            );
        }
    }
    println!("peak {} MB", peak());
    Ok(())
}

/// Most memory this process has held, in MB (Linux; elsewhere 0).
fn peak() -> u64 {
    machine::peak_memory().unwrap_or_default() / (1 << 20)
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Processor time of this process so far (Linux; elsewhere 0): steadier than wall time on a shared machine.
fn cpu_seconds() -> f64 {
    machine::cpu_seconds().unwrap_or_default()
}
