use super::*;

/// Qwen2.5-32B as a language model: the numbers of its model card.
const LANGUAGE_32: Shape = Shape { outputs: 152_064, ..Shape::QWEN2_32 };

fn wish(shape: Shape, storage: Storage, tokens: u64) -> Wish {
    Wish { shape, storage, cache_number: 2, tokens, chunk: 2048 }
}

#[test]
fn parameters_are_those_of_the_model_cards() {
    let billions = |shape: Shape| shape.parameters() as f64 / 1e9;
    assert!((billions(LANGUAGE_32) - 32.76).abs() < 0.01, "{}", billions(LANGUAGE_32));
    assert!((billions(Shape::QWEN2_HALF) - 0.494).abs() < 0.001, "{}", billions(Shape::QWEN2_HALF));
    assert!((billions(Shape::QWEN3_4) - 4.02).abs() < 0.01, "{}", billions(Shape::QWEN3_4));
}

#[test]
fn the_32b_critic_in_every_storage() {
    let sizes: Vec<String> = Storage::ALL.iter().map(|s| gigabytes(Shape::QWEN2_32.weight_bytes(*s))).collect();
    assert_eq!(sizes, ["127.9 GB", "64.0 GB", "34.0 GB", "26.2 GB", "19.2 GB"]);
    assert_eq!(Shape::QWEN2_32.cache_bytes_per_token(2), 262_144);
    assert_eq!(gigabytes(262_144 * 32_768), "8.6 GB");
}

#[test]
fn rows_that_are_no_k_quant_take_the_next_type() {
    // 896 = 3.5 × 256: llama.cpp falls back to blocks of 32.
    assert_eq!(bytes(2, 896, Storage::Q6K, false), bytes(2, 896, Storage::Q8_0, false));
    assert_eq!(bytes(1, 896, Storage::Q4KM, false), 28 * 22);
    assert_eq!(bytes(1, 512, Storage::Q4KM, false), 288);
    assert_eq!(bytes(1, 512, Storage::Q4KM, true), 420);
    assert_eq!((0..16).filter(|l| more_bits(*l, 16)).collect::<Vec<_>>(), [0, 1, 4, 7, 10, 13, 14, 15]);
}

#[test]
fn what_fits_is_not_talked_about() {
    assert_eq!(wish(Shape::QWEN2_32, Storage::Half, 32_768).advice(Some(140_000_000_000)), None);
    let need = wish(Shape::QWEN2_HALF, Storage::Half, 1024).bytes();
    assert_eq!(wish(Shape::QWEN2_HALF, Storage::Half, 1024).advice(Some(need)), None);
    assert!(wish(Shape::QWEN2_HALF, Storage::Half, 1024).advice(Some(need - 1)).is_some());
}

#[test]
fn a_24_gb_card_is_told_which_file_and_length_fit() {
    let said = wish(Shape::QWEN2_32, Storage::Half, 32_768).advice(Some(23_600_000_000)).unwrap();
    assert_eq!(
        said,
        "needs 64.0 GB of weights + 8.6 GB for 32,768 tokens + about 1.1 GB to work in; 23.6 GB are free: \
         a Q4_K_M GGUF (19.2 GB) would with `--max-tokens 12288`"
    );
    let wish = Wish { storage: Storage::Q4KM, tokens: 12_288, ..wish(Shape::QWEN2_32, Storage::Half, 0) };
    assert!(wish.bytes() <= 23_600_000_000, "the advice is true");
    assert!(Wish { tokens: 13_312, ..wish }.bytes() > 23_600_000_000, "and the longest");
}

#[test]
fn fewer_tokens_come_first_and_the_smallest_weights_that_suffice_end_the_list() {
    let said = wish(Shape::QWEN2_32, Storage::Half, 131_072).advice(Some(79_000_000_000)).unwrap();
    assert!(said.ends_with("are free: `--max-tokens 52224` would fit; `--dtype q8_0` (34.0 GB) would fit"), "{said}");
}

#[test]
fn where_nothing_fits_the_way_out_is_the_cpu() {
    let said = wish(Shape::QWEN2_32, Storage::Q8_0, 4096).advice(Some(8_000_000_000)).unwrap();
    let end = "a Q6_K GGUF (26.2 GB), a Q4_K_M GGUF (19.2 GB) would not either; use `--device cpu` or a smaller model";
    assert!(said.ends_with(end), "{said}");
    let said = wish(Shape::QWEN2_32, Storage::Q4KM, 4096).advice(Some(8_000_000_000)).unwrap();
    assert!(said.ends_with("8.0 GB are free: use `--device cpu` or a smaller model"), "{said}");
}

#[test]
fn unknown_memory_is_said_to_be_unknown() {
    let said = wish(Shape::QWEN2_HALF, Storage::F32, 512).advice(None).unwrap();
    assert!(said.ends_with("; how much is free is not known here"), "{said}");
}

#[test]
fn work_counts_every_layer_and_half_of_all_pairs() {
    // 31.2 billion weights in layers, two operations each.
    assert_eq!(Shape::QWEN2_32.flops_per_token(), 2 * 64 * 487_587_840);
    // One token sees itself: a score and its weighted value, a multiplication and an addition each.
    assert_eq!(Shape::QWEN2_HALF.attention_flops(1), 24 * 14 * 64 * 4);
}

#[test]
fn numbers_are_written_for_people() {
    assert_eq!([thousands(7), thousands(1234), thousands(1_234_567)], ["7", "1,234", "1,234,567"]);
    assert_eq!([gigabytes(99_000_000), gigabytes(100_000_000)], ["99.0 MB", "0.1 GB"]);
    assert_eq!(["f32", "bf16", "f16", "q8_0", "q6_k", "q4_k"].map(Storage::of_dtype), {
        use Storage::{F32, Half, Q4KM, Q6K, Q8_0};
        [F32, Half, Half, Q8_0, Q6K, Q4KM]
    });
}
