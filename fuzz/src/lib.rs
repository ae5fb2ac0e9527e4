//! The modules of trajscope that read foreign bytes, and nothing else: built with a fuzzer's instrumentation the whole
//! package (with its model code) would take a quarter of an hour.

#[path = "../../src/formats/mod.rs"]
pub mod formats;
#[path = "../../src/patch/mod.rs"]
pub mod patch;
#[path = "../../src/text/mod.rs"]
pub mod text;
#[path = "../../src/trajectory/mod.rs"]
pub mod trajectory;

use std::path::Path;

use trajectory::{Dataset, Trajectory};

/// What must hold of anything that was read, whatever the bytes were.
pub fn check(file: formats::LoadedFile, len: Option<u64>) {
    assert!(!file.report.reason.is_empty() && !file.report.reason.contains('\n'), "{:?}", file.report.reason);
    for trajectory in &file.trajectories {
        assert!(formats::formats().any(|f| f.id == trajectory.format), "{}", trajectory.format);
        let span = trajectory.source.span;
        assert!(len.is_none_or(|len| span.start + span.len <= len), "{span:?} of {len:?}");
        assert!(trajectory.usage.cost.is_none_or(f64::is_finite));
        assert_eq!(trajectory.action_steps().len(), trajectory.n_actions());
        let mut kept = Trajectory::clone(trajectory);
        kept.forget_steps();
        assert_eq!(kept.known_actions(), trajectory.known_actions());
    }
    let dataset = Dataset {
        trajectories: file.trajectories,
        predictions: file.predictions,
        reports: file.reports,
        files: vec![file.report],
    };
    for issue in trajectory::join(&dataset) {
        assert!(issue.attempts.iter().all(|a| !a.name.is_empty()));
        for attempt in &issue.attempts {
            if let Some(raw) = attempt.patch() {
                check_patch(raw);
            }
        }
    }
}

/// What must hold of any patch text.
pub fn check_patch(raw: &str) {
    let parsed = patch::parse(raw);
    let (added, removed) = parsed.stats();
    assert!(added + removed <= raw.lines().count() + 1);
    let again = patch::parse(raw);
    assert_eq!(again.stats(), (added, removed));
    // What two candidates are compared by does not depend on the line ends.
    if !raw.contains('\r') {
        assert_eq!(patch::normalize(&raw.replace('\n', "\r\n")), patch::normalize(raw));
    }
}

/// Reads bytes as a file by themselves.
pub fn read(name: &str, bytes: &[u8]) {
    let plain = !bytes.starts_with(&[0x1F, 0x8B]) && !bytes.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]);
    let len = plain.then_some(bytes.len() as u64);
    check(formats::load_bytes(Path::new(name), bytes.to_vec()), len);
}
