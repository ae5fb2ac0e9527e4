use super::super::{Segment, Value};
use std::time::{Duration, SystemTime};

use super::folder::{BLOCK, FORGOTTEN, RENEW};
use super::*;

fn text(words: &[&str]) -> CriticText {
    let segment = |(i, t): (usize, &&str)| Segment {
        text: (*t).to_owned(),
        value: Some(Value { action: i, end: t.len() }),
        pinned: i == 0,
        turn: i,
    };
    CriticText { segments: words.iter().enumerate().map(segment).collect(), warnings: vec!["no tools".into()] }
}

fn key(words: &[&str]) -> Key {
    Key::new("critic", words.len(), &text(words))
}

fn scores(rewards: &[Option<f64>]) -> Scores {
    let action = |(action, &reward): (usize, &Option<f64>)| ActionScore {
        action,
        reward,
        token_index: reward.map(|_| 40 * action),
        after_cut: action > 1,
    };
    Scores {
        actions: rewards.iter().enumerate().map(action).collect(),
        score: rewards.last().copied().flatten(),
        tokens: 1234,
        cut: Some(Cut { exact_until: 2, unscored: vec![3], note: "a \"note\"\nof two lines é".into() }),
        warnings: vec!["no tools".into()],
        kept: false,
    }
}

fn kept(scores: &Scores) -> Scores {
    Scores { kept: true, ..scores.clone() }
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("scores"));
    (folder, store)
}

#[test]
fn what_is_put_is_got_to_the_last_bit() {
    let (_folder, store) = store();
    let (key, scores) = (key(&["a", "b", "c", "d"]), scores(&[Some(0.1), None, Some(-0.0), Some(1e-310)]));
    assert_eq!(store.get(&key), None);
    store.put(&key, &scores);
    let found = store.get(&key).unwrap();
    assert_eq!(found, kept(&scores));
    assert_eq!(found.actions[2].reward.map(f64::to_bits), Some((-0.0f64).to_bits()));
    let report = store.report();
    assert_eq!((report.found, report.missing, report.written, report.remark()), (1, 1, 1, None));
}

#[test]
fn everything_that_is_read_is_in_the_key() {
    let base = text(&["ab", "c"]);
    let keys = |change: fn(&mut CriticText)| {
        let mut text = base.clone();
        change(&mut text);
        Key::new("critic", 2, &text).hash
    };
    let mut all = vec![
        keys(|_| {}),
        Key::new("other", 2, &base).hash,
        Key::new("critic", 3, &base).hash,
        keys(|t| t.segments[0].text = "a".into()),
        // The same whole text, parted elsewhere.
        keys(|t| {
            t.segments[0].text = "a".into();
            t.segments[1].text = "bc".into();
        }),
        keys(|t| t.segments[0].pinned = false),
        keys(|t| t.segments[1].turn = 0),
        keys(|t| t.segments[1].value = None),
        keys(|t| t.segments[1].value = Some(Value { action: 1, end: 0 })),
        keys(|t| t.warnings.clear()),
    ];
    let len = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), len);
    assert_eq!(keys(|_| {}), Key::new("critic", 2, &base).hash);
}

#[test]
fn no_damage_to_a_file_ever_gives_a_score() {
    let (_folder, store) = store();
    let (key, scores) = (key(&["a", "b"]), scores(&[Some(0.25), Some(0.75)]));
    store.put(&key, &scores);
    let file = store.place(&key.hash);
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&file, &flipped).unwrap();
        assert_eq!(store.get(&key), None, "byte {at} flipped");
        fs::write(&file, &whole[..at]).unwrap();
        assert_eq!(store.get(&key), None, "cut to {at} bytes");
    }
    fs::write(&file, [&whole[..], b"x"].concat()).unwrap();
    assert_eq!(store.get(&key), None, "something behind it");
    let report = store.report();
    assert_eq!((report.found, report.damaged), (0, 2 * whole.len() + 1));
    let remark = report.remark().unwrap();
    assert!(remark.contains("damaged file(s) ignored") && remark.contains(ENDING), "{remark}");
    store.put(&key, &scores);
    assert_eq!(store.get(&key), Some(kept(&scores)), "a damaged file is replaced");
}

#[test]
fn a_sound_file_of_another_key_or_with_impossible_numbers_is_not_believed() {
    let (_folder, store) = store();
    let (mine, other) = (key(&["a", "b"]), key(&["a", "c"]));
    store.put(&other, &scores(&[Some(0.5), Some(0.5)]));
    fs::create_dir_all(store.place(&mine.hash).parent().unwrap()).unwrap();
    fs::copy(store.place(&other.hash), store.place(&mine.hash)).unwrap();
    assert_eq!(store.get(&mine), None);
    assert!(store.report().problem.unwrap().ends_with("belongs to another key"));
    for (bad, why) in [
        (scores(&[Some(0.5)]), "1 actions, expected 2"),
        (scores(&[Some(f64::NAN), None]), "not a finite number"),
        (scores(&[None, Some(f64::INFINITY)]), "not a finite number"),
    ] {
        let said = decode(&encode(&mine, &bad).unwrap(), &mine).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_place_that_cannot_be_written_or_read_is_said_once_and_costs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let store = Store::new(file.clone());
    store.put(&key(&["a"]), &scores(&[Some(0.5)]));
    store.put(&key(&["b"]), &scores(&[Some(0.5)]));
    let report = store.report();
    assert_eq!((report.written, report.unwritten), (0, 2));
    assert!(report.remark().unwrap().contains("2 result(s) not kept"), "{report:?}");
    assert_eq!(fs::read(&file).unwrap(), b"not a folder");
    // A folder in the place of a file.
    let (_folder, store) = self::store();
    fs::create_dir_all(store.place(&key(&["a"]).hash)).unwrap();
    assert_eq!(store.get(&key(&["a"])), None);
    store.put(&key(&["a"]), &scores(&[Some(0.5)]));
    let report = store.report();
    assert_eq!((report.damaged, report.unwritten), (1, 1));
}

/// Keys of one of the 256 folders.
fn neighbours(n: usize) -> Vec<Key> {
    let all = (0..).map(|i: u32| key(&[&i.to_string()]));
    all.filter(|k| k.hash.starts_with("7f")).take(n).collect()
}

fn age(store: &Store, key: &Key, seconds: u64) {
    let file = File::options().append(true).open(store.place(&key.hash)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn the_longest_unused_go_when_a_folder_is_full() {
    let folder = tempfile::tempdir().unwrap();
    // Three files a folder.
    let store = Store::bounded(folder.path().to_owned(), 3 * BLOCK * FOLDERS);
    let keys = neighbours(5);
    let scores = scores(&[Some(0.5)]);
    for (i, key) in keys[..3].iter().enumerate() {
        store.put(key, &scores);
        age(&store, key, RENEW.as_secs() + 1000 - 100 * i as u64);
    }
    assert!(store.get(&keys[0]).is_some(), "used again, so no longer the oldest");
    store.put(&keys[3], &scores);
    let there = |store: &Store| keys.iter().map(|k| store.get(k).is_some()).collect::<Vec<_>>();
    assert_eq!(there(&store), [true, false, true, true, false]);
    assert_eq!(usage(folder.path()), Usage { entries: 3, bytes: 3 * BLOCK });
    // Room for nothing: the newest stays all the same, or nothing would ever be kept.
    Store::bounded(folder.path().to_owned(), 0).put(&keys[4], &scores);
    assert_eq!(there(&store), [false, false, false, false, true]);
}

#[test]
fn what_a_crash_left_half_written_goes_after_a_while_and_foreign_files_stay() {
    let (_folder, store) = store();
    let keys = neighbours(2);
    store.put(&keys[0], &scores(&[Some(0.5)]));
    let place = store.place(&keys[0].hash).parent().unwrap().to_owned();
    let (old, new, foreign) = (place.join(".old.unfinished"), place.join(".new.unfinished"), place.join("notes.txt"));
    for path in [&old, &new, &foreign] {
        fs::write(path, "half").unwrap();
    }
    for path in [&old, &foreign] {
        let long_ago = SystemTime::now() - FORGOTTEN - Duration::from_secs(10);
        File::options().append(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    store.put(&keys[1], &scores(&[Some(0.5)]));
    assert_eq!([old.exists(), new.exists(), foreign.exists()], [false, true, true]);
    assert_eq!(clear(&store.folder).unwrap(), Usage { entries: 2, bytes: 3 * BLOCK });
    assert_eq!([new.exists(), foreign.exists()], [false, true], "only the store's own files are removed");
    assert_eq!(usage(&store.folder), Usage::default());
    assert_eq!(clear(Path::new("/no/such/folder")).unwrap(), Usage::default());
}

#[test]
fn many_writers_and_readers_of_one_key_see_whole_results_only() {
    let (_folder, store) = store();
    let key = key(&["a", "b"]);
    let one = scores(&[Some(0.25), Some(0.75)]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = Store::new(store.folder.clone());
                for _ in 0..50 {
                    own.put(&key, &one);
                    assert_eq!(own.get(&key), Some(kept(&one)));
                }
                let report = own.report();
                assert_eq!((report.damaged, report.unwritten), (0, 0), "{report:?}");
            });
        }
    });
    assert_eq!(usage(&store.folder).entries, 1);
}

#[test]
fn a_note_is_found_by_its_name_and_is_no_result() {
    let (_folder, store) = store();
    assert_eq!(store.recall("model"), None);
    store.remember("model", "who it is\n\"é\"");
    store.remember("other", "");
    assert_eq!(
        (store.recall("model").as_deref(), store.recall("other").as_deref()),
        (Some("who it is\n\"é\""), Some(""))
    );
    let report = store.report();
    assert_eq!((report.found, report.missing, report.written), (0, 0, 0));
    fs::copy(store.place(&note_hash("other")), store.place(&note_hash("model"))).unwrap();
    assert_eq!(store.recall("model"), None, "not its own");
    assert!(store.report().problem.unwrap().ends_with("belongs to another name"));
}
