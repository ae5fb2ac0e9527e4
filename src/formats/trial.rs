//! What a benchmark's harness leaves of one trial: the agent's log in whatever format it is, beside the verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::load::LoadedFile;
use super::tree::{Entry, FolderInput};
use super::{atif, terminus};
use crate::trajectory::{ByteSpan, RawPlace, Role, Step, Trajectory};

/// An agent's log, read.
#[derive(Debug)]
pub struct Log {
    /// The attempt first, then its sub-agents. Never empty.
    pub trajectories: Vec<Trajectory>,
}

/// What a log may be, by how much is in it: the first that holds a trajectory is read, so that no run stands there
/// twice.
const SOURCES: [Source; 5] = [Source::Atif, Source::Native, Source::Folders, Source::Session, Source::Other];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// `trajectory.json` and what belongs to it.
    Atif,
    /// The agent's own trajectory file.
    Native,
    /// Stores of many files, before their files one by one.
    Folders,
    /// Session logs of coding agents.
    Session,
    /// What the agent printed.
    Other,
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default()
}

/// What a file of the log (its path from the log's folder) is.
fn source_of(path: &Path) -> Option<Source> {
    let file = name(path);
    let ends = |endings: &[&str]| endings.iter().any(|e| file.ends_with(e));
    let below = |names: &[&str]| {
        let is = |c: &str| names.iter().any(|n| c.starts_with(n));
        path.parent().is_some_and(|dir| dir.iter().any(|c| c.to_str().is_some_and(is)))
    };
    if ends(&[".json"]) && (file.starts_with("trajectory.") || below(&["subagent"])) {
        Some(Source::Atif)
    } else if ends(&[".trajectory.json", ".trajectory.jsonl", ".traj", ".traj.json"]) {
        Some(Source::Native)
    } else if below(&["sessions", "projects", "chats"]) && ends(&[".jsonl", ".json", ".jsonl.zst"]) {
        Some(Source::Session)
    } else if ends(&[".txt", ".json", ".jsonl", ".log"]) && episode(path).is_none() {
        Some(Source::Other)
    } else {
        None
    }
}

/// Reads the agent's log among the members below a folder (from the trial's).
pub fn log(input: &FolderInput<'_>, folder: &str) -> Option<Log> {
    let dir = input.path.join(folder);
    let members: Vec<&Entry> = input.members.iter().copied().filter(|e| e.path.starts_with(&dir)).collect();
    for source in SOURCES {
        let fits = |e: &&Entry| e.path.strip_prefix(&dir).ok().and_then(source_of) == Some(source);
        let files: Vec<&Entry> = members.iter().copied().filter(fits).collect();
        let mut found: Vec<Trajectory> = match source {
            Source::Atif => atif::join_files(&files).trajectories,
            Source::Folders => input.decode_folders(&dir).into_iter().flat_map(adopted).collect(),
            _ => files.iter().flat_map(|e| adopted(input.decode_member(e))).collect(),
        };
        found.retain(|t| t.steps.iter().any(|s| s.role == Role::Assistant));
        if !found.is_empty() {
            return Some(Log { trajectories: one_attempt(found) });
        }
    }
    let episodes = episodes(&members)?;
    Some(Log { trajectories: vec![episodes] })
}

/// The trajectories of a member, with their raw records in that member's file.
fn adopted(file: LoadedFile) -> Vec<Trajectory> {
    let own = |t: Arc<Trajectory>| {
        let mut trajectory = Arc::unwrap_or_clone(t);
        let file: Arc<Path> = Arc::from(trajectory.source.path.as_path());
        for step in &mut trajectory.steps {
            step.raw.file.get_or_insert_with(|| Arc::clone(&file));
            if step.raw.span == ByteSpan::default() {
                step.raw.span = trajectory.source.span;
            }
        }
        trajectory.source = crate::trajectory::Source::default();
        trajectory
    };
    file.trajectories.into_iter().map(own).collect()
}

/// Of several logs of one trial the longest is the attempt; a session twice is there once, and others are below it.
fn one_attempt(found: Vec<Trajectory>) -> Vec<Trajectory> {
    let mut kept: Vec<Trajectory> = Vec::new();
    for trajectory in found {
        let twin = kept.iter_mut().find(|t| t.session == trajectory.session && t.parent == trajectory.parent);
        match twin {
            Some(twin) if twin.steps.len() < trajectory.steps.len() => *twin = trajectory,
            Some(_) => {}
            None => kept.push(trajectory),
        }
    }
    let longest = |t: &Trajectory| (t.parent.is_none(), t.n_actions());
    let best = kept.iter().map(longest).max();
    if let Some(at) = kept.iter().position(|t| Some(longest(t)) == best) {
        let main = kept.remove(at);
        let session = main.session.clone().unwrap_or_default();
        kept.iter_mut().filter(|t| t.parent.is_none()).for_each(|t| t.parent = Some(session.clone()));
        kept.insert(0, main);
    }
    kept
}

/// The number of a folder `episode-N` that a file lies in directly.
fn episode(path: &Path) -> Option<u32> {
    path.parent()?.file_name()?.to_str()?.strip_prefix("episode-")?.parse().ok()
}

/// What Terminus leaves of each call: the prompt and the answer.
fn episodes(members: &[&Entry]) -> Option<Trajectory> {
    let mut numbered: Vec<(u32, &Entry)> = members.iter().filter_map(|e| Some((episode(&e.path)?, *e))).collect();
    // In a folder the prompt comes before the response.
    numbered.sort_by(|(a, x), (b, y)| (a, &x.path).cmp(&(b, &y.path)));
    let first = numbered.first()?.0;
    let mut steps = Vec::new();
    for (number, entry) in numbered {
        let role = match name(&entry.path) {
            // Later prompts are what the terminal showed.
            "prompt.txt" if number == first => Role::User,
            "prompt.txt" => Role::Tool,
            "response.txt" | "response.json" => Role::Assistant,
            _ => continue,
        };
        let mut step = Step::new(role, text(entry).unwrap_or_default());
        step.raw = whole_file(&entry.path);
        if let (Role::Assistant, Some(answer)) = (role, terminus::answer(&step.text)) {
            step.action = Some(answer.action);
            step.thought = answer.thought;
        }
        steps.push(step);
    }
    let acted = steps.iter().any(Step::is_action);
    acted.then(|| Trajectory { steps, agent: Some("terminus".to_owned()), ..Trajectory::default() })
}

/// The raw place of a step that is a file.
pub fn whole_file(path: &Path) -> RawPlace {
    RawPlace { file: Some(Arc::from(path)), ..RawPlace::default() }
}

/// A place inside a file of JSON.
pub fn inside_file(path: &Path, pointer: &str) -> RawPlace {
    RawPlace { file: Some(Arc::from(path)), pointer: pointer.into(), ..RawPlace::default() }
}

/// The text of a member; bytes that are not UTF-8 are replaced.
pub fn text(entry: &Entry) -> Option<String> {
    let content = entry.read().ok()?;
    Some(String::from_utf8_lossy(&content.bytes).into_owned())
}

/// The patch the trial saved, and how many files could be it.
pub fn patch(input: &FolderInput<'_>, folders: &[&str]) -> (Option<String>, usize) {
    let dirs: Vec<PathBuf> = folders.iter().map(|f| input.path.join(f)).collect();
    let is_patch = |e: &&&Entry| {
        let ends = e.path.extension().is_some_and(|x| x == "patch" || x == "diff");
        ends && dirs.iter().any(|d| e.path.starts_with(d))
    };
    let files: Vec<&&Entry> = input.members.iter().filter(is_patch).collect();
    match files.as_slice() {
        [only] => (text(only), 1),
        several => (None, several.len()),
    }
}
