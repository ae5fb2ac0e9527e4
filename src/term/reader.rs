//! The worker that goes back to the files: steps of runs that are not in memory, raw records.

use std::ops::Range;

use tokio::sync::mpsc::Sender;

use crate::app::{Msg, RawRecord};
use crate::formats;
use crate::trajectory::{SharedTrajectory, TrajectoryKey};
use crate::work::LatestThread;

/// What is to be read.
pub(super) enum Wanted {
    /// The steps of a run.
    Run(TrajectoryKey, SharedTrajectory),
    /// Raw records of some steps.
    Raw(TrajectoryKey, SharedTrajectory, Range<usize>),
}

/// Starts the worker. It answers with [`Msg::Opened`] and [`Msg::RawRead`].
pub(super) fn spawn(send: Sender<Msg>) -> std::io::Result<LatestThread<Wanted>> {
    LatestThread::spawn("reader", move |wanted: Wanted, _newer: &dyn Fn() -> bool| {
        if send.blocking_send(answer(wanted)).is_err() {
            tracing::debug!("nobody waits for what was read any more");
        }
    })
}

pub(super) fn answer(wanted: Wanted) -> Msg {
    match wanted {
        Wanted::Run(key, trajectory) => Msg::Opened { key, run: formats::open(&trajectory) },
        Wanted::Raw(key, trajectory, steps) => {
            let records = steps.clone().map(|step| record(&trajectory, step)).collect();
            Msg::RawRead { key, steps, records }
        }
    }
}

fn record(trajectory: &SharedTrajectory, step: usize) -> RawRecord {
    let file = || trajectory.source.path.display().to_string();
    let Some(step) = trajectory.steps.get(step) else {
        return RawRecord { place: file(), text: Err("the trajectory has no such step".to_owned()) };
    };
    match formats::raw(trajectory, &step.raw) {
        Ok(raw) => {
            let end = raw.span.start + raw.span.len;
            let place = format!("{}, bytes {}–{end}", raw.file.display(), raw.span.start);
            RawRecord { place, text: Ok(raw.text) }
        }
        Err(why) => RawRecord { place: file(), text: Err(why) },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::trajectory::{ByteSpan, RawPlace, Role, Step, Trajectory};

    #[test]
    fn records_come_as_the_file_holds_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "{\"n\":1}\n{\"n\": 2.50}\n").unwrap();
        let mut step = Step::new(Role::Assistant, "x");
        step.raw = RawPlace::record(ByteSpan { start: 8, len: 11 });
        let mut run = Trajectory { steps: vec![step, Step::new(Role::Tool, "y")], ..Trajectory::default() };
        run.source.path = path;
        let run = Arc::new(run);
        let Msg::RawRead { records, .. } = answer(Wanted::Raw(run.key(), Arc::clone(&run), 0..3)) else { panic!() };
        assert_eq!(records[0].text.as_deref(), Ok("{\"n\": 2.50}"));
        assert!(records[0].place.ends_with("bytes 8–19"), "{}", records[0].place);
        assert!(records[1].text.as_ref().unwrap_err().contains("does not tell"));
        assert!(records[2].text.is_err());
        let Msg::Opened { run: Ok(same), .. } = answer(Wanted::Run(run.key(), Arc::clone(&run))) else { panic!() };
        assert!(Arc::ptr_eq(&same, &run), "it was in memory");
    }
}
