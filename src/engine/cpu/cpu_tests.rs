use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1")
}

fn open(settings: Settings) -> CpuModel {
    let text = std::fs::read(fixture().join("config.json")).unwrap();
    let config = ModelConfig::parse(&text, &fixture()).unwrap();
    CpuModel::load(&config, &mut Weights::open(&fixture()).unwrap(), settings).unwrap()
}

fn ids(count: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * 79 + i / 7) % 320) as u32).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Chunk by chunk, with the cache of all layers.
fn by_chunks(model: &mut CpuModel, ids: &[u32], ends: &[usize], reads: &[usize]) -> Vec<f32> {
    model.truncate(0);
    let (mut start, mut hidden) = (0, Vec::new());
    for &end in ends {
        let here: Vec<usize> = reads.iter().filter(|r| (start..end).contains(*r)).map(|r| r - start).collect();
        hidden.extend(model.append(&ids[start..end], &here, &|| false).unwrap());
        start = end;
    }
    hidden
}

fn parts(ends: &[usize], reads: &[usize]) -> Vec<Part> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let part = |(start, end): (usize, &usize)| {
        let rows: Vec<usize> = reads.iter().filter(|r| (start..*end).contains(*r)).map(|r| r - start).collect();
        Part { end: *end, wanted: rows.len(), rows }
    };
    starts.zip(ends).map(part).collect()
}

#[test]
fn layer_by_layer_is_chunk_by_chunk_to_the_last_bit() {
    let ids = ids(300);
    for (kv, threads) in [(KvChoice::F32, 1), (KvChoice::F32, 2), (KvChoice::F16, 1)] {
        let settings = || Settings { kv, ..Settings::plain(Pool::new(threads)) };
        let mut model = open(settings());
        for (ends, reads) in [
            (vec![128, 300], (0..300).collect::<Vec<_>>()),
            (vec![64, 128, 192, 256, 300], vec![5, 63, 64, 200, 299]),
            (vec![300], vec![299]),
        ] {
            let expected = by_chunks(&mut open(settings()), &ids, &ends, &reads);
            let found = model.by_layers(&ids, &parts(&ends, &reads), &|| false).unwrap();
            assert_eq!(bits(&found), bits(&expected), "{kv} {ends:?}");
            assert_eq!(model.cache.capacity(), 0, "nothing stays in the cache");
        }
    }
}

#[test]
fn a_text_is_too_long_when_its_keys_and_values_exceed_what_they_may_take() {
    let model = open(Settings { kv_memory: Some(1 << 20), ..Settings::plain(Pool::new(1)) });
    let per_token = model.cache.shape().bytes(1);
    let fits = ((1 << 20) / per_token) as usize;
    assert!(!model.is_too_long(fits) && model.is_too_long(fits + 1));
    let model = open(Settings::plain(Pool::new(1)));
    assert!(!model.is_too_long(1000) && model.is_too_long(usize::MAX / (4 * per_token as usize)));
}

#[test]
fn half_precision_keys_and_values_stay_near() {
    let ids = ids(300);
    let reads: Vec<usize> = (0..300).collect();
    let hidden = |kv| {
        let mut model = open(Settings { kv, ..Settings::plain(Pool::new(1)) });
        by_chunks(&mut model, &ids, &[128, 300], &reads)
    };
    let exact = hidden(KvChoice::F32);
    let size = (exact.iter().map(|v| f64::from(v * v)).sum::<f64>() / exact.len() as f64).sqrt();
    for (kv, most) in [(KvChoice::F16, 0.002), (KvChoice::Bf16, 0.016)] {
        let found = hidden(kv);
        let error = found.iter().zip(&exact).map(|(a, b)| f64::from(a - b).abs()).sum::<f64>() / exact.len() as f64;
        assert!(error / size < most && error > 0.0, "{kv}: {}", error / size);
    }
}

#[test]
fn a_stop_is_heeded_within_a_few_tasks_and_leaves_the_cache_as_it_was() {
    let ids = ids(256);
    for threads in [1, 2] {
        let mut model = open(Settings::plain(Pool::new(threads)));
        let expected = by_chunks(&mut model, &ids, &[128, 256], &[255]);
        model.truncate(128);
        let asked = AtomicUsize::new(0);
        model.append(&ids[128..], &[127], &|| asked.fetch_add(1, Ordering::Relaxed) > usize::MAX / 2).unwrap();
        let all = asked.load(Ordering::Relaxed);
        assert!(all > 20 * model.layers.len(), "asked often inside each layer: {all}");
        for after in [0, 1, 5, all / 2, all - threads - 1] {
            model.truncate(128);
            let asked = AtomicUsize::new(0);
            let stop = || asked.fetch_add(1, Ordering::Relaxed) >= after;
            assert_eq!(model.append(&ids[128..], &[127], &stop), Err(Stopped), "after {after}");
            assert!(asked.load(Ordering::Relaxed) <= after + threads, "nobody goes on after a stop");
            assert_eq!(model.cache.len(), 128);
            let again = model.append(&ids[128..], &[127], &|| false).unwrap();
            assert_eq!(bits(&again), bits(&expected), "after a stop at {after}");
        }
        assert_eq!(model.by_layers(&ids, &parts(&[128, 256], &[255]), &|| true), Err(Stopped));
    }
}

/// What a chunk needs besides the cache does not grow with the text.
#[test]
fn memory_grows_with_the_text_only_by_its_keys_and_values() {
    let mut model = open(Settings::plain(Pool::new(1)));
    let sizes = |model: &CpuModel| {
        let Buffers { residual, normed, qkv, queries, attention, gate_up, product, .. } = &model.buffers;
        [residual, normed, qkv, queries, attention, gate_up, product].map(Vec::capacity)
    };
    let ids = ids(2048);
    by_chunks(&mut model, &ids[..512], &[256, 512], &[511]);
    let short = sizes(&model);
    by_chunks(&mut model, &ids, &(1..=8).map(|i| i * 256).collect::<Vec<_>>(), &[2047]);
    assert_eq!(sizes(&model), short);
    let shape = model.cache.shape();
    assert_eq!(shape.bytes(65_536), 2 * shape.bytes(32_768), "linear");
}
