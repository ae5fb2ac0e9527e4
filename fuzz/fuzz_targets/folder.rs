//! A folder of files: names and contents are the fuzzer's, divided by NUL bytes. Also as an archive.
#![no_main]

use std::path::{Component, Path};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().unwrap();
    if bytes.starts_with(b"PK") || bytes.starts_with(&[0x1F, 0x8B]) {
        std::fs::write(folder.path().join("log.eval"), bytes).unwrap();
    } else {
        let mut parts = bytes.split(|b| *b == 0);
        while let (Some(name), Some(content)) = (parts.next(), parts.next()) {
            let name = String::from_utf8_lossy(name).into_owned();
            let plain = Path::new(&name).components().all(|c| matches!(c, Component::Normal(_)));
            if !plain || name.is_empty() || name.len() > 120 {
                continue;
            }
            let path = folder.path().join(name);
            if std::fs::create_dir_all(path.parent().unwrap()).is_ok() {
                drop(std::fs::write(path, content));
            }
        }
    }
    let dataset = trajscope_fuzz::formats::load(&[folder.path().to_path_buf()], &|file| trajscope_fuzz::check(file, None));
    for trajectory in &dataset.trajectories {
        for step in trajectory.steps.iter().take(4) {
            drop(trajscope_fuzz::formats::raw(trajectory, &step.raw));
        }
    }
});
