//! How fast a critic reads on this machine, beside what a plain product of matrices gives here.

use std::time::Instant;

use super::cpu::plain::plain_gflops;
use super::cpu::pool::Pool;
use super::error::EngineError;
use super::fit::Shape;
use super::machine::{cpu_seconds, load_average, peak_memory, processor};
use super::model::{Model, PassError};
use super::{CriticSpec, EngineOptions, embedded};

/// Tokens between two values: a usual action with what it saw.
const ACTION: usize = 400;
/// Most rounds of one length, and seconds after which no further one is begun.
const ROUNDS: usize = 5;
const LONG_ENOUGH: f64 = 15.0;
/// Columns of the plain product, so that its matrix stays small beside a large model's.
const MOST_COLUMNS: usize = 4096;
/// The length of the estimate.
pub const ESTIMATED: usize = 16_384;

/// One length.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchLine {
    /// Tokens of the text.
    pub tokens: usize,
    /// How often it was read.
    pub rounds: usize,
    /// Median of the rounds' wall time in seconds.
    pub wall: f64,
    /// Seconds of processor time a round, all threads together; `None` where the system does not say.
    pub cpu: Option<f64>,
    /// Billions of additions and multiplications a second of wall time, attention included.
    pub gflops: f64,
    /// `gflops` as a share of the plain product's; `None` on a device.
    pub of_plain: Option<f64>,
}

impl BenchLine {
    /// Tokens a second of wall time.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.wall
    }

    /// Tokens a second of processor time.
    pub fn tokens_per_cpu_second(&self) -> Option<f64> {
        self.cpu.filter(|cpu| *cpu > 0.0).map(|cpu| self.tokens as f64 / cpu)
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchReport {
    /// Class of the model, as config.json names it.
    pub class: String,
    /// Weights in matrices.
    pub parameters: u64,
    /// `"cpu"`, `"cuda:0"`, …
    pub device: String,
    /// Type of the weights.
    pub dtype: String,
    /// Threads.
    pub threads: usize,
    /// The processor.
    pub processor: Option<String>,
    /// Mean number of programs that wanted to run in the minute before.
    pub load_before: Option<f64>,
    /// Seconds to read and check the model.
    pub load: f64,
    /// Most bytes of memory this program has had: after loading, and in all.
    pub peak_loaded: Option<u64>,
    /// See [`BenchReport::peak_loaded`].
    pub peak: Option<u64>,
    /// Billions of additions and multiplications a second of a plain f32 product on as many threads; `None` on a
    /// device.
    pub plain_gflops: Option<f64>,
    /// The lengths.
    pub lines: Vec<BenchLine>,
    /// Seconds that a text of [`ESTIMATED`] tokens would take at the longest length's speed.
    pub estimate: Option<f64>,
    /// What makes the numbers doubtful, one line each.
    pub remarks: Vec<String>,
}

/// Loads a critic's model and reads texts of these lengths with it. `say` is told what goes on.
///
/// # Errors
/// The model cannot be loaded or run: one line.
pub fn bench(
    spec: &CriticSpec,
    options: &EngineOptions,
    lengths: &[usize],
    say: &mut dyn FnMut(&str),
) -> Result<BenchReport, EngineError> {
    let load_before = load_average();
    say("loading");
    let started = Instant::now();
    // Nothing is kept aside: every round reads everything.
    let options = EngineOptions { prefix_cache: Some(0), ..options.clone() };
    let mut model = match spec {
        CriticSpec::Embedded => embedded::model(&options)?,
        CriticSpec::Folder(folder) => Model::open(folder, &options)?,
    };
    let (load, peak_loaded) = (started.elapsed().as_secs_f64(), peak_memory());
    let shape = Shape::of(model.config(), model.labels());
    let on_cpu = model.device() == "cpu";
    let pool = Pool::new(model.threads());
    let columns = model.config().intermediate.min(MOST_COLUMNS);
    let plain = || plain_gflops(&pool, shape.hidden as usize, columns, 3);
    let mut best = if on_cpu { plain() } else { 0.0 };
    let mut lines = Vec::new();
    let mut remarks = Vec::new();
    for &tokens in lengths {
        if tokens > model.config().longest_text() {
            remarks.push(format!("{tokens} tokens: the model reads at most {}", model.config().longest_text()));
            continue;
        }
        say(&format!("{tokens} tokens"));
        lines.push(measure(&mut model, &shape, tokens)?);
        // Again: the processor may be slower when it is warm or shared.
        best = if on_cpu { best.max(plain()) } else { 0.0 };
    }
    for line in &mut lines {
        line.of_plain = on_cpu.then(|| line.gflops / best);
    }
    let busy = lines.iter().filter_map(|l| Some(l.cpu? / (l.wall * model.threads() as f64)));
    if let Some(share) = busy.reduce(f64::min).filter(|share| on_cpu && *share < 0.8) {
        remarks.push(format!(
            "this program had only {:.0} % of the time of its {} thread(s): others were running, or threads waited; \
             trust the processor time more than the wall time",
            100.0 * share,
            model.threads()
        ));
    }
    if let Some(load) = load_before.filter(|load| *load > 0.5) {
        remarks.push(format!("the machine was not idle: load average {load:.1} before the start"));
    }
    let estimate = lines.iter().max_by_key(|l| l.tokens).map(|l| work(&shape, ESTIMATED) / l.gflops / 1e9);
    Ok(BenchReport {
        class: model.config().class.clone(),
        parameters: shape.parameters(),
        device: model.device(),
        dtype: model.dtype().into(),
        threads: model.threads(),
        processor: processor(),
        load_before,
        load,
        peak_loaded,
        peak: peak_memory(),
        plain_gflops: on_cpu.then_some(best),
        lines,
        estimate,
        remarks,
    })
}

/// Additions and multiplications for a text.
fn work(shape: &Shape, tokens: usize) -> f64 {
    (shape.flops_per_token() * tokens as u64 + shape.attention_flops(tokens as u64)) as f64
}

fn measure(model: &mut Model, shape: &Shape, tokens: usize) -> Result<BenchLine, EngineError> {
    let rows = model.config().vocab_size;
    let ids: Vec<u32> = (0..tokens).map(|i| (i * 7919 % rows) as u32).collect();
    let mut reads: Vec<usize> = (ACTION..tokens).step_by(ACTION).collect();
    if reads.last() != Some(&(tokens - 1)) {
        reads.push(tokens - 1);
    }
    let mut read = |ids: &[u32], reads: &[usize]| {
        model.forget();
        let mut odd = 0;
        let done = model.run(ids, reads, &|| false, &mut |_, values| {
            odd += values.iter().filter(|v| !v.is_finite()).count();
        });
        match done {
            Ok(()) if odd == 0 => Ok(()),
            Ok(()) => Err(EngineError::Run(format!("{odd} values are not finite numbers: are the weights sound?"))),
            Err(PassError::Stopped) => Err(EngineError::Run("stopped".into())),
            Err(PassError::Failed(what)) => Err(EngineError::Run(what)),
        }
    };
    // Buffers, pages and threads are there after one round.
    let warm = tokens.min(ACTION);
    read(&ids[..warm], &[warm - 1])?;
    let (begun, cpu_before) = (Instant::now(), cpu_seconds());
    let mut walls = Vec::new();
    while walls.is_empty() || walls.len() < ROUNDS && begun.elapsed().as_secs_f64() < LONG_ENOUGH {
        let started = Instant::now();
        read(&ids, &reads)?;
        walls.push(started.elapsed().as_secs_f64());
    }
    let rounds = walls.len();
    let cpu = cpu_seconds().zip(cpu_before).map(|(after, before)| (after - before) / rounds as f64);
    walls.sort_by(f64::total_cmp);
    let wall = walls[rounds / 2];
    Ok(BenchLine { tokens, rounds, wall, cpu, gflops: work(shape, tokens) / wall / 1e9, of_plain: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_model_is_measured_and_nothing_is_reused() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
        let options = EngineOptions { threads: Some(1), ..EngineOptions::default() };
        let mut said = Vec::new();
        let spec = CriticSpec::Folder(folder);
        let report = bench(&spec, &options, &[64, 700, 1 << 30], &mut |what| said.push(what.to_owned())).unwrap();
        assert_eq!(said, ["loading", "64 tokens", "700 tokens"]);
        assert_eq!(report.lines.iter().map(|l| l.tokens).collect::<Vec<_>>(), [64, 700]);
        assert_eq!((report.device.as_str(), report.threads), ("cpu", 1));
        for line in &report.lines {
            assert!(line.wall > 0.0 && line.gflops > 0.0 && (1..=ROUNDS).contains(&line.rounds), "{line:?}");
            let share = line.of_plain.unwrap() * report.plain_gflops.unwrap();
            assert!((share / line.gflops - 1.0).abs() < 1e-9);
            assert!((line.tokens_per_second() * line.wall - line.tokens as f64).abs() < 1e-6);
        }
        let rate = report.lines[1].gflops * 1e9;
        let shape = Shape::of(&Model::open(&folder_of(&spec), &options).unwrap().config().clone(), 1);
        assert!((report.estimate.unwrap() - work(&shape, ESTIMATED) / rate).abs() < 1e-9);
        assert!(report.remarks[0].contains("reads at most"), "{:?}", report.remarks);
        assert!(report.peak.is_none() || report.peak >= report.peak_loaded);
    }

    fn folder_of(spec: &CriticSpec) -> std::path::PathBuf {
        match spec {
            CriticSpec::Folder(folder) => folder.clone(),
            CriticSpec::Embedded => panic!("not this one"),
        }
    }

    #[test]
    fn work_grows_with_the_square_of_the_length() {
        let shape = Shape::QWEN2_HALF;
        let linear = shape.flops_per_token() as f64;
        assert!(work(&shape, 1) > linear);
        assert!(work(&shape, 20_000) > 2.0 * work(&shape, 10_000));
    }
}
