//! Issue texts that lie beside a file of labelled steps.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::document::Document;
use super::load::LoadedFile;
use super::table::Input;
use super::{bytes, labelled};

/// Files in which issue texts are looked for, beside a file of labelled steps or one folder above.
const TASK_FILES: [&str; 2] = ["instances.jsonl.gz", "instances.jsonl"];

type Tasks = Arc<BTreeMap<String, String>>;

/// Issue texts by the file they were read from: read once for all files beside it.
#[derive(Default)]
pub struct TaskCache {
    files: Mutex<HashMap<PathBuf, Tasks>>,
}

impl TaskCache {
    /// Gives every trajectory of a file the text of its issue, where one is found.
    pub fn fill(&self, path: &Path, file: &mut LoadedFile) {
        let above = path.ancestors().skip(1).take(2);
        let beside = above.flat_map(|folder| TASK_FILES.map(|name| folder.join(name))).find(|p| p.is_file());
        let Some(beside) = beside else {
            return;
        };
        let tasks = self.read(&beside);
        for trajectory in &mut file.trajectories {
            let text = trajectory.instance_id.as_ref().and_then(|id| tasks.get(id));
            if let (None, Some(text)) = (&trajectory.task, text) {
                Arc::make_mut(trajectory).task = Some(text.clone());
            }
        }
    }

    fn read(&self, path: &Path) -> Tasks {
        // Held while reading, so that the other threads wait for the texts instead of reading them too.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = files.entry(path.to_owned()).or_insert_with(|| {
            let content = bytes::read(path).unwrap_or_default();
            let document = Document::read(&content.bytes);
            Arc::new(labelled::decode_tasks(&Input { path, document: &document, format: "tasks" }).tasks)
        });
        Arc::clone(tasks)
    }
}
