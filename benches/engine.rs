//! Tokens per second of the forward pass on the CPU.
//!
//! ```text
//! cargo bench --bench engine                                  # the small fixture checkpoint, one and two threads
//! TRAJSCOPE_BENCH_MODEL=DIR cargo bench --bench engine        # a checkpoint of your own (token classification)
//! python benches/peer_torch.py DIR                            # beside PyTorch on the same checkpoint, in turns
//! ```
//!
//! With `--serve` it reads lines `TOKENS THREADS` and answers `SECONDS CPU_SECONDS`, for peer_torch.py.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use trajscope::engine::{Chunks, EngineOptions, Model};

/// Runs of one size; the median counts.
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
    let folder = std::env::var_os("TRAJSCOPE_BENCH_MODEL").map_or(fixture, PathBuf::from);
    let mut models = Models { folder, open: BTreeMap::new() };
    if std::env::args().any(|arg| arg == "--serve") {
        return serve(&mut models);
    }
    println!(
        "{}: tokens per second, median of {ROUNDS} (all other work on the machine slows this down)",
        models.folder.display()
    );
    for threads in [1, 2] {
        for tokens in [512, 2048] {
            let mut seconds = Vec::new();
            for _ in 0..ROUNDS {
                seconds.push(models.measure(tokens, threads)?.0);
            }
            seconds.sort_by(f64::total_cmp);
            println!("{tokens:>6} tokens {threads} thread(s): {:>9.0} tokens/s", tokens as f64 / seconds[ROUNDS / 2]);
        }
    }
    Ok(())
}

/// One loaded model a number of threads.
struct Models {
    folder: PathBuf,
    open: BTreeMap<usize, Model>,
}

impl Models {
    /// Wall and processor seconds of reading `tokens` tokens from scratch, with a value at every token.
    fn measure(&mut self, tokens: usize, threads: usize) -> Result<(f64, f64)> {
        // Only the last number of threads stays loaded: a large model fits once.
        self.open.retain(|open, _| *open == threads);
        if !self.open.contains_key(&threads) {
            let options = EngineOptions { threads: Some(threads), ..EngineOptions::default() };
            self.open.insert(threads, Model::open(&self.folder, &options)?);
        }
        let model = self.open.get_mut(&threads).context("just loaded")?;
        let vocab = model.config().vocab_size;
        let ids: Vec<u32> = (0..tokens).map(|i| ((i * 7919 + 17) % vocab) as u32).collect();
        let (start, cpu) = (Instant::now(), cpu_seconds());
        model.values(&ids, Chunks::Growing).map_err(|e| anyhow!(e))?;
        Ok((start.elapsed().as_secs_f64(), cpu_seconds() - cpu))
    }
}

fn serve(models: &mut Models) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (tokens, threads) = line.trim().split_once(' ').context("expected TOKENS THREADS")?;
        let (wall, cpu) = models.measure(tokens.parse()?, threads.parse()?)?;
        println!("{wall} {cpu}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Processor time of this process so far (Linux; elsewhere 0): steadier than wall time on a shared machine.
fn cpu_seconds() -> f64 {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // After the name in parentheses; fields 14 and 15 of the whole line, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}
