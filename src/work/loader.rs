//! The thread that reads files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::formats::{self, LoadedFile};
use crate::trajectory::Dataset;

use super::event::WorkEvent;
use super::watch::Watch;

/// Files are reported together when they come faster than this: whoever listens joins them anew each time.
const TOGETHER: Duration = Duration::from_millis(100);

/// Bytes of steps kept in memory; those of further trajectories are read again when they are looked at.
pub(super) const KEEP: u64 = 48 << 20;

/// Reads everything at and below `paths` on a thread of its own: what was read so far in parts
/// ([`WorkEvent::Files`]), then the whole ([`WorkEvent::Loaded`]). `send` returns `false` when nobody listens.
///
/// # Errors
/// The system has no thread to give.
pub fn spawn_loader(
    paths: Vec<PathBuf>,
    send: impl Fn(WorkEvent) -> bool + Send + Sync + 'static,
) -> std::io::Result<()> {
    let load = move |on_file: &(dyn Fn(LoadedFile) + Sync)| formats::load_within(&paths, Some(KEEP), on_file);
    std::thread::Builder::new().name("loader".to_owned()).spawn(move || {
        if let Some(mut watch) = run(load, &send) {
            loop {
                std::thread::sleep(watch.interval());
                if !watch.look(&send) {
                    return;
                }
            }
        }
    })?;
    Ok(())
}

/// What was read and not yet reported.
struct Parts {
    waiting: Dataset,
    last: Option<Instant>,
}

/// Reports what `load` reads; the watch over it, if everything was read and somebody still listens.
fn run(
    load: impl FnOnce(&(dyn Fn(LoadedFile) + Sync)) -> Dataset,
    send: &(dyn Fn(WorkEvent) -> bool + Sync),
) -> Option<Watch> {
    let began = SystemTime::now();
    let parts = Mutex::new(Parts { waiting: Dataset::default(), last: None });
    let on_file = |file: LoadedFile| {
        let ready = {
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            add(&mut parts.waiting, file);
            let due = parts.last.is_none_or(|last| last.elapsed() >= TOGETHER);
            due.then(|| {
                parts.last = Some(Instant::now());
                std::mem::take(&mut parts.waiting)
            })
        };
        // Outside the lock: a slow listener must not hold up the other reading threads.
        if let Some(ready) = ready
            && !send(WorkEvent::Files(Box::new(ready)))
        {
            tracing::debug!("nobody waits for the files any more");
        }
    };
    match catch_unwind(AssertUnwindSafe(|| load(&on_file))) {
        Ok(dataset) => {
            let watch = Watch::new(&dataset, began);
            send(WorkEvent::Loaded(Box::new(dataset))).then_some(watch)
        }
        Err(panic) => {
            let why = super::text_of(&*panic);
            let event = WorkEvent::LoadFailed(format!("reading the files stopped early: {why}; please report this"));
            send(event);
            None
        }
    }
}

fn add(dataset: &mut Dataset, file: LoadedFile) {
    dataset.trajectories.extend(file.trajectories);
    dataset.predictions.extend(file.predictions);
    dataset.reports.extend(file.reports);
    dataset.files.push(file.report);
    dataset.files.extend(file.members);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::trajectory::FileReport;

    fn file(name: &str) -> LoadedFile {
        let report = FileReport {
            path: name.into(),
            format: None,
            reason: "made up".to_owned(),
            foreign: false,
            trajectories: 0,
            diagnostics: Vec::new(),
        };
        LoadedFile {
            report,
            members: Vec::new(),
            trajectories: Vec::new(),
            predictions: Vec::new(),
            reports: Vec::new(),
        }
    }

    #[test]
    fn the_first_file_is_reported_at_once_and_a_burst_together() {
        let (send, events) = mpsc::channel();
        let load = |on_file: &(dyn Fn(LoadedFile) + Sync)| {
            for n in 0..50 {
                on_file(file(&n.to_string()));
            }
            Dataset { files: vec![file("whole").report], ..Dataset::default() }
        };
        assert!(run(load, &|event| send.send(event).is_ok()).is_some());
        drop(send);
        let events: Vec<_> = events.iter().collect();
        assert!(events.len() < 50, "{}", events.len());
        assert!(matches!(&events[0], WorkEvent::Files(part) if part.files.len() == 1));
        assert!(matches!(events.last(), Some(WorkEvent::Loaded(whole)) if whole.files[0].path.ends_with("whole")));
    }

    #[test]
    fn a_panic_while_reading_is_told() {
        let (send, events) = mpsc::channel();
        assert!(run(|_| panic!("bad luck"), &|event| send.send(event).is_ok()).is_none());
        assert!(matches!(events.recv(), Ok(WorkEvent::LoadFailed(why)) if why.contains("bad luck")));
    }

    #[test]
    fn real_files_arrive() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("a.json"),
            "[{\"role\":\"user\",\"content\":\"t\"},{\"role\":\"assistant\",\"content\":\"a\"}]",
        )
        .unwrap();
        std::fs::write(folder.path().join("b.bin"), [0_u8, 1, 2]).unwrap();
        let (send, events) = mpsc::channel();
        spawn_loader(vec![folder.path().to_owned()], move |event| send.send(event).is_ok()).unwrap();
        let mut whole = None;
        for event in events {
            match event {
                WorkEvent::Loaded(dataset) => {
                    whole = Some(dataset);
                    break;
                }
                WorkEvent::Files(_) => {}
                other => panic!("{other:?}"),
            }
        }
        let whole = whole.unwrap();
        assert_eq!(whole.files.len(), 2);
        assert_eq!(whole.trajectories.len(), 1);
    }
}
