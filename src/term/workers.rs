//! Runs the effects: hands work to the threads of `work`, brings their answers back as messages.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tokio::sync::mpsc::Sender;

use crate::app::highlight::HighlightRequest;
use crate::app::{Effect, ExportEntry, Msg, Priority};
use crate::export::{Chosen, Shape, WriteError, to_bytes, write_new};
use crate::work::{self, CriticThread, InspectRequest, LatestThread, ScoreRequest, WorkEvent};

use super::reader::{self, Wanted};
use super::{OpenCritic, syntax};

/// The threads behind the screen. Dropping it ends them: exports are finished, the critic gets a second.
pub(super) struct Workers {
    send: Sender<Msg>,
    critic: Option<CriticThread>,
    highlight: LatestThread<Vec<HighlightRequest>>,
    reader: LatestThread<Wanted>,
    exports: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts reading `paths` and opening the critic. Every answer goes to `send`.
    ///
    /// # Errors
    /// The system has no threads to give.
    pub(super) fn start(paths: Vec<PathBuf>, critic: Option<OpenCritic>, send: Sender<Msg>) -> io::Result<Self> {
        work::spawn_loader(paths, sender(send.clone()))?;
        let critic = critic.map(|open| CriticThread::spawn(open, sender(send.clone()))).transpose()?;
        let highlight = syntax::spawn(send.clone())?;
        let reader = reader::spawn(send.clone())?;
        Ok(Self { send, critic, highlight, reader, exports: Vec::new() })
    }

    /// Runs one effect; `true` if it is to leave the program.
    pub(super) fn run(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Quit => return true,
            Effect::Score { key, generation, trajectory, priority } => {
                if let Some(critic) = &self.critic {
                    critic.request(ScoreRequest { key, generation, trajectory, priority: urgency(priority) });
                }
            }
            Effect::Inspect { key, generation, trajectory } => {
                if let Some(critic) = &self.critic {
                    critic.inspect(InspectRequest { key, generation, trajectory });
                }
            }
            Effect::OpenRun { key, trajectory } => self.reader.submit(Wanted::Run(key, trajectory)),
            Effect::ReadRaw { key, trajectory, steps } => self.reader.submit(Wanted::Raw(key, trajectory, steps)),
            Effect::Highlight(requests) => self.highlight.submit(requests),
            Effect::Export { path, overwrite, entries } => self.export(path, overwrite, entries),
        }
        false
    }

    /// Writes on a thread of its own: a disk may take its time to flush.
    fn export(&mut self, path: PathBuf, overwrite: bool, entries: Vec<ExportEntry>) {
        let send = self.send.clone();
        let name = path.display().to_string();
        let thread = std::thread::Builder::new().name("export".to_owned()).spawn(move || {
            let answer = export(&path, overwrite, entries);
            if send.blocking_send(answer).is_err() {
                tracing::info!("the screen was closed before an export was reported");
            }
        });
        match thread {
            Ok(thread) => self.exports.push(thread),
            Err(error) => {
                let failed = Msg::ExportFailed { path: name, exists: false, error: error.to_string() };
                // The queue is only full while the loop is behind, and this is called from the loop.
                if self.send.try_send(failed).is_err() {
                    tracing::error!("export failed: {error}");
                }
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for export in self.exports.drain(..) {
            if export.join().is_err() {
                tracing::error!("an export ended in a panic; the file it was to replace is untouched");
            }
        }
    }
}

fn urgency(priority: Priority) -> work::Priority {
    match priority {
        Priority::Selected => work::Priority::Selected,
        Priority::Visible => work::Priority::Visible,
        Priority::Background => work::Priority::Rest,
    }
}

/// A sender of work events that waits while the screen is behind.
fn sender(send: Sender<Msg>) -> impl Fn(WorkEvent) -> bool + Send + Sync + 'static {
    move |event| send.blocking_send(message(event)).is_ok()
}

fn message(event: WorkEvent) -> Msg {
    match event {
        WorkEvent::Files(part) => Msg::FileLoaded(part),
        WorkEvent::Loaded(whole) => Msg::Loaded(whole),
        WorkEvent::Changed(part) => Msg::FilesChanged(part),
        WorkEvent::LoadFailed(why) => Msg::Note(why),
        WorkEvent::CriticReady(info) => Msg::CriticReady(info),
        WorkEvent::CriticFailed(why) => Msg::CriticFailed(why),
        WorkEvent::Partial { key, generation, score } => Msg::Partial { key, generation, score },
        WorkEvent::Done { key, generation, scores } => Msg::Done { key, generation, scores },
        WorkEvent::Failed { key, generation, error } => Msg::Failed { key, generation, error },
        WorkEvent::Inspected { key, generation, input } => Msg::Inspected { key, generation, input },
    }
}

fn export(path: &Path, overwrite: bool, entries: Vec<ExportEntry>) -> Msg {
    let chosen = |entry: ExportEntry| Chosen {
        instance_id: entry.instance_id,
        model: Some(entry.model),
        patch: entry.patch.as_ref().to_owned(),
    };
    let chosen: Vec<Chosen> = entries.into_iter().map(chosen).collect();
    let name = path.display().to_string();
    match write_new(path, &to_bytes(&chosen, Shape::of(path), None), overwrite) {
        Ok(()) => Msg::ExportDone { path: name, written: chosen.len() },
        Err(error) => {
            let exists = matches!(error, WriteError::Exists(_));
            Msg::ExportFailed { path: name, exists, error: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn entries() -> Vec<ExportEntry> {
        let entry = |id: &str, patch: &str| ExportEntry {
            instance_id: id.to_owned(),
            model: "m".to_owned(),
            patch: patch.into(),
        };
        vec![entry("a__b-1", "diff\r\nno final newline"), entry("a__b-2", "")]
    }

    #[test]
    fn an_export_keeps_every_byte_and_asks_before_it_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("preds.jsonl");
        assert!(matches!(export(&path, false, entries()), Msg::ExportDone { written: 2, .. }));
        let rows: Vec<serde_json::Value> =
            fs::read_to_string(&path).unwrap().lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(rows[0]["model_patch"], "diff\r\nno final newline");
        assert_eq!(rows[0]["model_name_or_path"], "m");
        let before = fs::read(&path).unwrap();
        assert!(matches!(export(&path, false, Vec::new()), Msg::ExportFailed { exists: true, .. }));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert!(matches!(export(&path, true, entries()), Msg::ExportDone { .. }));
    }

    #[test]
    fn an_export_that_cannot_be_written_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/folder/preds.json");
        let Msg::ExportFailed { exists, error, .. } = export(&missing, true, entries()) else { panic!("written") };
        assert!(!exists);
        assert!(error.contains("does not exist"), "{error}");
    }

    #[test]
    fn leaving_finishes_an_export() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("preds.jsonl");
        let (send, receive) = tokio::sync::mpsc::channel(8);
        let mut workers = Workers::start(Vec::new(), None, send).unwrap();
        drop(receive);
        assert!(!workers.run(Effect::Export { path: path.clone(), overwrite: false, entries: entries() }));
        assert!(workers.run(Effect::Quit));
        drop(workers);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
