//! What the headless commands share: read and join the paths, open the critic, score with progress.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::CriticArgs;
use super::out;
use crate::config::Dirs;
use crate::critic::store::Store;
use crate::critic::{Cached, Cancel, Critic, Profile, ScoreError, Scores, open_known};
use crate::engine::{self, CriticSpec, DeviceChoice, DtypeChoice, EngineOptions};
use crate::formats;
use crate::term::OpenCritic;
use crate::trajectory::{Dataset, Issue, Severity, SharedTrajectory, Trajectory, join};

/// Bytes of steps kept in memory; those of further trajectories are read again when they are scored.
const KEEP: u64 = 256 << 20;

/// The paths read and joined.
pub struct Loaded {
    /// Everything read.
    pub dataset: Dataset,
    /// The same, joined.
    pub issues: Vec<Issue>,
    /// Something could not be read; it was said on stderr.
    pub findings: bool,
}

/// Reads the paths; says on stderr what was not understood. Fails when nothing usable was found at all.
pub fn load(paths: &[PathBuf]) -> anyhow::Result<Loaded> {
    must_exist(paths)?;
    let dataset = formats::load_within(paths, Some(KEEP), &|_| {});
    let mut findings = false;
    for file in &dataset.files {
        let named = paths.contains(&file.path);
        if file.format.is_none() && named {
            out::remark(&format!("{}: {}", file.path.display(), file.reason));
            findings = true;
        }
        for d in file.diagnostics.iter().filter(|d| d.severity == Severity::Error) {
            let at = d.at.to_string();
            let at = if at.is_empty() { at } else { format!("{at}: ") };
            out::remark(&format!("{}: {at}{}", file.path.display(), d.message));
            findings = true;
        }
    }
    let issues = join(&dataset);
    if issues.is_empty() {
        let tried: Vec<&str> = formats::formats().map(|f| f.id).collect();
        bail!("no trajectory or prediction in {} file(s); formats tried: {}", dataset.files.len(), tried.join(", "));
    }
    Ok(Loaded { dataset, issues, findings })
}

/// Fails on the first path that is not there: a typing error should not look like an empty folder.
pub fn must_exist(paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        if let Err(error) = std::fs::metadata(path) {
            bail!("{}: cannot open: {error}; give an existing file or folder", path.display());
        }
    }
    Ok(())
}

/// A critic opened for a command, and what is kept of its scores.
pub struct Opened {
    /// `None` for `--critic none`.
    pub critic: Option<Box<dyn Critic>>,
    store: Option<Arc<Store>>,
}

impl Opened {
    /// One line on stderr if scores could not be kept or read again: it costs time, not scores.
    pub fn remark(&self) {
        if let Some(line) = self.store.as_ref().and_then(|s| s.report().remark()) {
            out::remark(&line);
        }
    }
}

/// Opens the critic named on the command line.
pub fn open_critic(args: &CriticArgs) -> anyhow::Result<Opened> {
    let Some((spec, options)) = spec(args)? else {
        return Ok(Opened { critic: None, store: None });
    };
    let store = store(args);
    let critic = open_keeping(&spec, &options, store.as_ref()).map_err(anyhow::Error::msg)?;
    Ok(Opened { critic: Some(critic), store })
}

/// Where scores are kept; `None` with `--no-cache`, or if the user has no home.
pub fn store(args: &CriticArgs) -> Option<Arc<Store>> {
    let dirs = if args.no_cache { None } else { Dirs::find() };
    dirs.map(|dirs| Arc::new(Store::new(dirs.scores())))
}

/// The critic with the store before it. One that was opened before is loaded when there is something to compute.
fn open_keeping(
    spec: &CriticSpec,
    options: &EngineOptions,
    store: Option<&Arc<Store>>,
) -> Result<Box<dyn Critic>, String> {
    let (spec, options) = (spec.clone(), options.clone());
    let Some(store) = store else { return engine::open(&spec, &options).map_err(|e| e.to_string()) };
    let sketch = engine::sketch(&spec, &options);
    let open = move || engine::open(&spec, &options).map_err(|e| e.to_string());
    let critic = open_known(store, sketch, Box::new(open))?;
    Ok(Box::new(Cached::new(critic, Arc::clone(store))))
}

/// How the screen opens the critic, on the critic's own thread; `None` for `none`.
pub fn opener(args: &CriticArgs) -> anyhow::Result<Option<OpenCritic>> {
    let store = store(args);
    let opener = |(spec, options)| -> OpenCritic { Box::new(move || open_keeping(&spec, &options, store.as_ref())) };
    Ok(spec(args)?.map(opener))
}

/// What the arguments mean: which critic with which options; `None` for `none`.
pub fn spec(args: &CriticArgs) -> anyhow::Result<Option<(CriticSpec, EngineOptions)>> {
    let spec = match args.critic.as_str() {
        "none" => return Ok(None),
        "mini" => CriticSpec::Embedded,
        path if Path::new(path).exists() => CriticSpec::Folder(path.into()),
        name if engine::is_hub_name(name) => CriticSpec::Folder(engine::find_model(name)?),
        other => bail!(
            "--critic {other}: neither `mini`, `none` nor a path; give a Hugging Face model folder, a GGUF file or the \
             name of a downloaded model (org/name)"
        ),
    };
    let device: DeviceChoice = args.device.parse().map_err(|e| anyhow::anyhow!("--device: {e}"))?;
    let dtype: DtypeChoice = args.dtype.parse().map_err(|e| anyhow::anyhow!("--dtype: {e}"))?;
    if args.threads == Some(0) {
        bail!("--threads 0: expected at least 1");
    }
    if args.max_tokens.is_some_and(|n| n < 16) {
        bail!("--max-tokens: expected at least 16");
    }
    let profile = args.profile.as_deref().map(profile).transpose()?;
    let kv = args.kv.parse().map_err(|e| anyhow::anyhow!("--kv: {e}"))?;
    if let Some(gigabytes) = args.kv_memory
        && !(gigabytes >= 0.0 && gigabytes.is_finite())
    {
        bail!("--kv-memory {gigabytes}: expected gigabytes, 0 or more");
    }
    let kv_memory = args.kv_memory.map(|gigabytes| (gigabytes * 1e9) as u64);
    let prefix_cache = args.prefix_cache.map(|mib| mib.saturating_mul(1 << 20));
    let (threads, max_tokens) = (args.threads, args.max_tokens);
    let options = EngineOptions { device, dtype, threads, profile, max_tokens, prefix_cache, kv, kv_memory };
    Ok(Some((spec, options)))
}

fn profile(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = Profile::by_id(name) {
        return Ok(profile.clone());
    }
    let text = std::fs::read_to_string(name)
        .with_context(|| format!("--profile {name}: neither an id of `trajscope critics` nor a readable file"))?;
    Ok(Profile::parse(&text, name)?)
}

/// Scores by trajectory, found again by file and record.
#[derive(Default)]
pub struct ScoreTable {
    by_source: HashMap<(PathBuf, usize), Result<Scores, ScoreError>>,
}

impl ScoreTable {
    /// The result for one trajectory; `None` if it was never scored.
    pub fn get(&self, trajectory: &SharedTrajectory) -> Option<&Result<Scores, ScoreError>> {
        self.by_source.get(&(trajectory.source.path.clone(), trajectory.source.record))
    }

    /// The trajectory's score, if it has one.
    pub fn score(&self, trajectory: &SharedTrajectory) -> Option<f64> {
        self.get(trajectory)?.as_ref().ok()?.score
    }
}

/// Scores every trajectory of the issues, in order; failures are remarks, never the end.
pub fn score_all(issues: &[Issue], critic: Option<&mut (dyn Critic + 'static)>) -> (ScoreTable, bool) {
    let mut table = ScoreTable::default();
    let Some(critic) = critic else {
        return (table, false);
    };
    let all: Vec<&SharedTrajectory> =
        issues.iter().flat_map(|i| &i.attempts).filter_map(|a| a.trajectory.as_ref()).collect();
    let bar = progress(all.len());
    let mut findings = false;
    for (at, trajectory) in all.iter().enumerate() {
        look_ahead(critic, at, all[at..].iter().copied());
        let result = score_one(critic, trajectory);
        if let Err(error) = &result {
            findings |= *error != ScoreError::NoActions;
            bar.suspend(|| remark_unscored(trajectory, error));
        }
        table.by_source.insert((trajectory.source.path.clone(), trajectory.source.record), result);
        bar.inc(1);
    }
    bar.finish_and_clear();
    (table, findings)
}

/// Lets a critic that is faster on several trajectories at once compute those that come next. `next` begins with the
/// one that is scored now, the `at`th.
pub fn look_ahead<'a>(critic: &mut dyn Critic, at: usize, next: impl Iterator<Item = &'a SharedTrajectory>) {
    let many = critic.together();
    if many < 2 || !at.is_multiple_of(many) {
        return;
    }
    // One that cannot be read is reported when it is scored.
    let whole: Vec<SharedTrajectory> = next.take(many).filter_map(|t| formats::open(t).ok()).collect();
    let whole: Vec<&Trajectory> = whole.iter().map(AsRef::as_ref).collect();
    critic.look_ahead(&whole, &Cancel::default());
}

/// Scores one trajectory to the end.
pub fn score_one(critic: &mut dyn Critic, trajectory: &SharedTrajectory) -> Result<Scores, ScoreError> {
    let whole = formats::open(trajectory).map_err(ScoreError::Engine)?;
    critic.score(&whole, &Cancel::default(), &mut |_| {})
}

/// One line on stderr about a trajectory without scores.
pub fn remark_unscored(trajectory: &SharedTrajectory, error: &ScoreError) {
    let source = &trajectory.source;
    out::remark(&format!("{} record {}: not scored: {error}", source.path.display(), source.record));
}

/// A bar on stderr if it is a terminal, else nothing.
pub fn progress(len: usize) -> ProgressBar {
    if !out::wants_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(len as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} trajectories scored, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// A line on stderr that says what goes on, if it is a terminal.
pub fn spinner() -> ProgressBar {
    if !out::wants_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} … {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

/// The attempts that have a trajectory, with their issue, in order of path and record.
pub fn trajectories(issues: &[Issue]) -> Vec<(&Issue, usize, &SharedTrajectory)> {
    let mut all: Vec<(&Issue, usize, &SharedTrajectory)> = issues
        .iter()
        .flat_map(|issue| {
            let of = |(i, a): (usize, &'_ crate::trajectory::Attempt)| a.trajectory.as_ref().map(|_| i);
            let with: Vec<usize> = issue.attempts.iter().enumerate().filter_map(of).collect();
            with.into_iter().filter_map(move |i| Some((issue, i, issue.attempts.get(i)?.trajectory.as_ref()?)))
        })
        .collect();
    all.sort_by(|a, b| {
        let key = |t: &Arc<crate::trajectory::Trajectory>| (t.source.path.clone(), t.source.record);
        key(a.2).cmp(&key(b.2))
    });
    all
}
