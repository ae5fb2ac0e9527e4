//! Files that are still being written: looked at now and then, read again when they have changed.
//!
//! By size and time of change, not by a notification of the system: agents write to network file systems and into
//! containers, where none comes. A half-written last line is read as soon as its rest is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::formats;
use crate::trajectory::{Dataset, FileReport};

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
}

impl Watch {
    /// The files that were read, which began at this time: what changed since counts as changed.
    pub(super) fn new(read: &[FileReport], began: SystemTime) -> Self {
        let mut watch = Self::default();
        for report in read {
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
        let dataset: Dataset = formats::load_within(&paths, Some(super::loader::KEEP), &|_| {});
        send(WorkEvent::Changed(Box::new(dataset)))
    }
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
        let mut watch = Watch::new(&first.files, later);
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
        let mut watch = Watch::new(&read.files, SystemTime::UNIX_EPOCH);
        let seen = Mutex::new(0);
        assert!(!watch.look(&|_| {
            *seen.lock().unwrap() += 1;
            false
        }));
        assert_eq!(seen.into_inner().unwrap(), 1);
    }
}
