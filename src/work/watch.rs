//! Files that are still being written: looked at now and then, read again when they have changed.
//!
//! By size and time of change, not by a notification of the system: agents write to network file systems and into
//! containers, where none comes. A half-written last line is read as soon as its rest is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::formats;
use crate::trajectory::{Dataset, SharedTrajectory, TrajectoryKey};

use super::event::WorkEvent;

/// How often the files are looked at, if they are few.
const INTERVAL: Duration = Duration::from_secs(1);
/// What looking at one file may take of it.
const PER_FILE: Duration = Duration::from_micros(500);

/// What tells that a file has changed.
type Mark = (u64, Option<SystemTime>);

/// The files of a data set.
#[derive(Debug, Default)]
pub(super) struct Watch {
    files: BTreeMap<PathBuf, Mark>,
    /// Folders and archives that were read as one: what is read again when a file below them changes.
    units: BTreeSet<PathBuf>,
    /// Sessions that repeat others: a file read again by itself would count their steps once more.
    continued: BTreeMap<TrajectoryKey, SharedTrajectory>,
}

impl Watch {
    /// What was read, which began at this time: what changed since counts as changed.
    pub(super) fn new(read: &Dataset, began: SystemTime) -> Self {
        let mut watch = Self::default();
        let continues = |t: &&SharedTrajectory| t.diagnostics.iter().any(|d| d.code == formats::CONTINUES);
        watch.continued = read.trajectories.iter().filter(continues).map(|t| (t.key(), lean(t))).collect();
        for report in &read.files {
            match std::fs::metadata(&report.path) {
                Ok(meta) if meta.is_file() => {
                    let changed = meta.modified().ok().filter(|at| *at > began);
                    // A file that changed while it was read is read again at the first look.
                    let mark = if changed.is_some() { (0, None) } else { mark(&report.path).unwrap_or_default() };
                    watch.files.insert(report.path.clone(), mark);
                }
                Ok(_) => {
                    watch.units.insert(report.path.clone());
                }
                // Inside an archive, or gone.
                Err(_) => {}
            }
        }
        watch
    }

    /// How long to wait before the next look: longer the more files there are.
    pub(super) fn interval(&self) -> Duration {
        INTERVAL.max(PER_FILE * 10 * u32::try_from(self.files.len()).unwrap_or(u32::MAX))
    }

    /// Reads what has changed again and reports it; `false` if nobody listens any more.
    pub(super) fn look(&mut self, send: &(dyn Fn(WorkEvent) -> bool + Sync)) -> bool {
        let mut changed = BTreeSet::new();
        for (path, known) in &mut self.files {
            // A file that is gone keeps what was read of it.
            if let Some(now) = mark(path).filter(|now| now != known) {
                *known = now;
                changed.insert(unit(&self.units, path));
            }
        }
        if changed.is_empty() {
            return true;
        }
        let paths: Vec<PathBuf> = changed.into_iter().collect();
        let mut dataset: Dataset = formats::load_within(&paths, Some(super::loader::KEEP), &|_| {});
        for trajectory in &mut dataset.trajectories {
            if let Some(known) = self.continued.get(&trajectory.key()) {
                count_once(trajectory, known);
            }
        }
        send(WorkEvent::Changed(Box::new(dataset)))
    }
}

/// Marks what a session repeats of another, as it was known before its file grew.
fn count_once(trajectory: &mut SharedTrajectory, known: &SharedTrajectory) {
    // Marks are made on steps. Those that cannot be read any more keep what the file says of them.
    let Ok(mut whole) = formats::open(trajectory) else { return };
    // A session that was read together with the one it continues is marked already.
    if whole.diagnostics.iter().any(|d| d.code == formats::CONTINUES) {
        return;
    }
    formats::mark_again(Arc::make_mut(&mut whole), known);
    *trajectory = if trajectory.is_whole() { whole } else { lean(&whole) };
}

/// Without its steps: only what is counted of them.
fn lean(trajectory: &SharedTrajectory) -> SharedTrajectory {
    let mut lean = Arc::clone(trajectory);
    Arc::make_mut(&mut lean).forget_steps();
    lean
}

fn mark(path: &Path) -> Option<Mark> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

fn unit(units: &BTreeSet<PathBuf>, path: &Path) -> PathBuf {
    path.ancestors().skip(1).find(|above| units.contains(*above)).unwrap_or(path).to_path_buf()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Mutex;

    use super::*;

    fn message(role: &str) -> String {
        format!("{{\"role\":\"{role}\",\"content\":\"x\"}}\n")
    }

    #[test]
    fn a_half_written_line_is_read_when_its_rest_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        std::fs::write(&path, message("user") + &message("assistant") + "{\"role\":\"assis").unwrap();
        let first = formats::load(std::slice::from_ref(&path), &|_| {});
        assert_eq!(first.trajectories[0].n_actions(), 1);
        assert!(first.files[0].diagnostics.iter().any(|d| d.message.contains("still writing")), "{:?}", first.files[0]);
        let later = SystemTime::now() + Duration::from_mins(1);
        let mut watch = Watch::new(&first, later);
        let events = Mutex::new(Vec::new());
        let send = |event| {
            events.lock().unwrap().push(event);
            true
        };
        assert!(watch.look(&send));
        assert!(events.lock().unwrap().is_empty(), "nothing has changed");
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"tant\",\"content\":\"y\"}\n").unwrap();
        drop(file);
        assert!(watch.look(&send));
        let events = events.into_inner().unwrap();
        let [WorkEvent::Changed(now)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(now.trajectories[0].n_actions(), 2);
        assert!(now.files[0].diagnostics.is_empty());
    }

    #[test]
    fn a_resumed_session_that_grows_still_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let answer = |id: &str, session: &str| {
            format!(
                "{{\"type\":\"assistant\",\"uuid\":\"u-{id}\",\"parentUuid\":null,\"sessionId\":\"{session}\",\"timestamp\":\"2025-01-01T00:00:0{}Z\",\"message\":{{\"id\":\"msg_0123456789012345678{id}\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"said {id}\"}}],\"usage\":{{\"input_tokens\":10,\"output_tokens\":1}}}}}}\n",
                id.len()
            )
        };
        let (old, new) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl"));
        std::fs::write(&old, answer("1", "s1")).unwrap();
        let linked = answer("22", "s2").replace("\"parentUuid\":null", "\"parentUuid\":\"u-1\"");
        std::fs::write(&new, answer("1", "s2") + &linked).unwrap();
        let read = formats::load(&[folder.path().to_path_buf()], &|_| {});
        let of = |data: &Dataset| {
            let run = data.trajectories.iter().find(|t| t.source.path == new).unwrap();
            (run.n_actions(), run.usage.tokens_in)
        };
        assert_eq!(of(&read), (1, Some(10)));
        let mut watch = Watch::new(&read, SystemTime::now() + Duration::from_mins(1));
        let more = answer("333", "s2").replace("\"parentUuid\":null", "\"parentUuid\":\"u-22\"");
        std::fs::write(&new, answer("1", "s2") + &linked + &more).unwrap();
        let seen = Mutex::new(None);
        assert!(watch.look(&|event| {
            if let WorkEvent::Changed(now) = event {
                *seen.lock().unwrap() = Some(of(&now));
            }
            true
        }));
        assert_eq!(seen.into_inner().unwrap(), Some((2, Some(20))), "two of its own, the copy counted elsewhere");
    }

    #[test]
    fn files_of_a_folder_that_was_read_as_one_are_read_together() {
        let units = BTreeSet::from([PathBuf::from("a/conversation")]);
        assert_eq!(unit(&units, Path::new("a/conversation/events/1.json")), Path::new("a/conversation"));
        assert_eq!(unit(&units, Path::new("a/b.json")), Path::new("a/b.json"));
    }

    #[test]
    fn many_files_are_looked_at_less_often() {
        let mut watch = Watch::default();
        assert_eq!(watch.interval(), INTERVAL);
        watch.files = (0..2_000).map(|i| (PathBuf::from(i.to_string()), (0, None))).collect();
        assert_eq!(watch.interval(), Duration::from_secs(10));
    }

    #[test]
    fn a_file_that_changed_while_it_was_read_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        std::fs::write(&path, message("user") + &message("assistant")).unwrap();
        let read = formats::load(std::slice::from_ref(&path), &|_| {});
        let mut watch = Watch::new(&read, SystemTime::UNIX_EPOCH);
        let seen = Mutex::new(0);
        assert!(!watch.look(&|_| {
            *seen.lock().unwrap() += 1;
            false
        }));
        assert_eq!(seen.into_inner().unwrap(), 1);
    }
}
