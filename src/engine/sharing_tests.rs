//! What is reused is what would have been computed, to the last bit, and it is really not computed again.

use std::path::PathBuf;

use super::*;

const MODELS: [&str; 3] = ["qwen2-token-1", "qwen2-token-3-f16", "qwen3-token-1-bf16"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name)
}

fn open(name: &str, prefix_cache: usize, threads: usize) -> Model {
    let options =
        EngineOptions { threads: Some(threads), prefix_cache: Some(prefix_cache), ..EngineOptions::default() };
    Model::open(&fixture(name), &options).unwrap()
}

/// Values as bits, and how many tokens were computed for them.
fn run(model: &mut Model, ids: &[u32], reads: &[usize]) -> (Vec<u32>, u64) {
    let before = model.computed();
    let (mut values, mut order) = (Vec::new(), Vec::new());
    let mut found = |i: usize, row: &[f32]| {
        order.push(i);
        values.extend(row.iter().map(|v| v.to_bits()));
    };
    model.run(ids, reads, &|| false, &mut found).unwrap();
    assert_eq!(order, (0..reads.len()).collect::<Vec<_>>(), "from the left, each once");
    (values, model.computed() - before)
}

/// A text that shares `shared` tokens with all others and then goes its own way.
fn text(seed: u32, shared: usize, len: usize) -> Vec<u32> {
    let id = |i: u32| if (i as usize) < shared { i * 31 % 251 } else { (i * i + i * seed * 7) % 307 };
    (0..len as u32).map(id).collect()
}

#[test]
fn attempts_that_share_a_beginning_get_the_bits_they_get_apart() {
    for name in MODELS {
        let mut together = open(name, 64 << 20, 1);
        // Beginnings and ends at, just before and just behind blocks and chunks; one read in a chunk and many.
        let cases: [(u32, usize, usize, &[usize]); 7] = [
            (1, 900, 1300, &[400, 880, 1000, 1299]),
            (2, 900, 1030, &[400, 880, 950, 1029]),
            (3, 900, 901, &[400, 880, 900]),
            (4, 513, 800, &[400, 512, 799]),
            (5, 640, 1025, &[400, 1024]),
            (6, 127, 700, &[699]),
            (7, 1, 640, &[0, 1, 2, 500, 639]),
        ];
        for (seed, shared, len, reads) in cases {
            let ids = text(seed, shared, len);
            let (apart, all) = run(&mut open(name, 0, 1), &ids, reads);
            assert_eq!(all, len as u64);
            assert_eq!(run(&mut together, &ids, reads).0, apart, "{name} {seed}");
        }
        // And all of them once more, backwards: everything but the last block is there.
        for (seed, shared, len, reads) in cases.into_iter().rev() {
            let ids = text(seed, shared, len);
            let (again, computed) = run(&mut together, &ids, reads);
            assert_eq!(again, run(&mut open(name, 0, 1), &ids, reads).0, "{name} {seed} again");
            assert!(computed < 256, "{name} {seed}: {computed} computed again");
        }
    }
}

#[test]
fn five_attempts_compute_their_shared_beginning_once() {
    let mut model = open("qwen2-token-1", 64 << 20, 1);
    let (shared, own) = (3000, 600);
    let reads: Vec<usize> = (2900..shared + own).step_by(100).chain([shared + own - 1]).collect();
    let mut computed = Vec::new();
    for seed in 1..=5 {
        let ids = text(seed, shared, shared + own);
        let (values, count) = run(&mut model, &ids, &reads);
        if seed > 3 {
            assert_eq!(values, run(&mut open("qwen2-token-1", 0, 1), &ids, &reads).0, "attempt {seed}");
        }
        computed.push(count);
    }
    assert_eq!(computed, [3600, 3600 - 2944, 3600 - 2944, 3600 - 2944, 3600 - 2944]);
    assert!(5 * 3600 >= 2 * computed.iter().sum::<u64>(), "at least twice as fast, counted in tokens");
}

#[test]
fn two_issues_in_turn_do_not_push_each_other_out_unless_there_is_no_room() {
    let issues = [text(1, 0, 1500), text(2, 0, 1500)];
    let attempt = |issue: usize, seed: u32| {
        let mut ids = issues[issue].clone();
        ids.extend(text(seed, 0, 200));
        ids
    };
    let reads = [1400, 1699];
    for (room, second) in [(64 << 20, 1700 - 1408), (0, 1700)] {
        let mut model = open("qwen3-token-1-bf16", room, 1);
        let counts: Vec<u64> = [(0, 3), (1, 4), (0, 5), (1, 6)]
            .into_iter()
            .map(|(issue, seed)| run(&mut model, &attempt(issue, seed), &reads).1)
            .collect();
        assert_eq!(counts, [1700, 1700, second, second], "{room} bytes");
    }
}

#[test]
fn a_growing_text_goes_on_where_it_was_with_the_values_it_had() {
    let whole = text(9, 0, 2000);
    let reads: Vec<usize> = (60..2000).step_by(97).collect();
    let mut model = open("qwen2-token-1", 0, 1);
    let mut counts = Vec::new();
    for len in [700, 1000, 1010, 2000] {
        let reads: Vec<usize> = reads.iter().copied().filter(|r| *r < len).collect();
        let (values, count) = run(&mut model, &whole[..len], &reads);
        let (fresh, all) = run(&mut open("qwen2-token-1", 0, 1), &whole[..len], &reads);
        assert_eq!(values, fresh, "{len} tokens");
        assert_eq!(all, *reads.last().unwrap() as u64 + 1, "what follows the last value is not computed");
        counts.push(count);
    }
    // The last values are read at 642, 933, 933 again, and 1,903.
    assert_eq!(counts, [643, 934 - 640, 934 - 896, 1904 - 896]);
}

#[test]
fn a_value_nobody_has_read_yet_is_computed() {
    let ids = text(4, 0, 1100);
    let mut model = open("qwen2-token-3-f16", 64 << 20, 1);
    run(&mut model, &ids, &[300, 1099]);
    for (reads, computed) in [(&[300, 1099], 1100 - 1024), (&[600, 1099], 1100 - 512), (&[5, 1099], 1100)] {
        let (values, count) = run(&mut model, &ids, reads);
        assert_eq!(count, computed);
        assert_eq!(values, run(&mut open("qwen2-token-3-f16", 0, 1), &ids, reads).0);
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_stopped_also_after_another() {
    let (ids, other) = (text(5, 0, 2000), text(6, 0, 700));
    let reads: Vec<usize> = (0..2000).step_by(50).chain([1999]).collect();
    let mut model = open("qwen2-token-1", 64 << 20, 1);
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let enough = || seen.load(std::sync::atomic::Ordering::Relaxed) > 20;
    let mut count = |_: usize, _: &[f32]| {
        seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    assert_eq!(model.run(&ids, &reads, &enough, &mut count), Err(PassError::Stopped));
    let done = model.computed();
    assert_eq!(done, 1024 + 512 - 512);
    run(&mut model, &other, &[699]);
    let (values, computed) = run(&mut model, &ids, &reads);
    assert_eq!(computed, 2000 - done);
    assert_eq!(values, run(&mut open("qwen2-token-1", 0, 1), &ids, &reads).0);
}

#[test]
fn threads_do_not_change_what_is_shared() {
    let (a, b) = (text(1, 900, 1200), text(2, 900, 1100));
    let reads = [100, 850, 1000, 1099];
    let (plain, _) = run(&mut open("qwen2-token-1", 0, 1), &b, &reads);
    let mut model = open("qwen2-token-1", 64 << 20, 3);
    run(&mut model, &a, &reads);
    assert_eq!(run(&mut model, &b, &reads), (plain, 1100 - 896));
}

#[test]
fn values_computed_from_scratch_leave_nothing_behind() {
    let ids = text(1, 0, 1000);
    let mut model = open("qwen2-token-1", 64 << 20, 1);
    model.values(&ids, Chunks::Whole).unwrap();
    assert_eq!(run(&mut model, &ids, &[999]).1, 1000, "another way of chunking is another run");
}

/// With `TRAJSCOPE_REFS` naming a folder of reference checkpoints: the same on the shapes of a real model.
#[test]
fn on_a_large_model_too_where_there_is_one() {
    let Some(refs) = std::env::var_os("TRAJSCOPE_REFS") else { return };
    let open = |prefix_cache| {
        let options = EngineOptions { threads: Some(1), prefix_cache: Some(prefix_cache), ..EngineOptions::default() };
        Model::open(&Path::new(&refs).join("bench-05b"), &options).unwrap()
    };
    let (shared, own) = (700, 100);
    let reads = [650, 720, 799];
    let mut model = open(1 << 30);
    for seed in 1..=2 {
        let ids = text(seed, shared, shared + own);
        assert_eq!(run(&mut model, &ids, &reads).0, run(&mut open(0), &ids, &reads).0, "attempt {seed}");
    }
}
