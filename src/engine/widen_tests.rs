use super::*;

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits()
}

#[test]
fn half_floats_widen_exactly() {
    let cases = [
        (0x0000, 0.0),
        (0x8000, -0.0),
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x3555, 0.333_251_95),
        (0x0001, 5.960_464_5e-8),
        (0x03ff, 6.097_555e-5),
        (0x0400, 6.103_515_6e-5),
        (0x7bff, 65504.0),
        (0x7c00, f32::INFINITY),
        (0xfc00, f32::NEG_INFINITY),
    ];
    for (bits, value) in cases {
        assert_eq!(f16_to_f32(bits).to_bits(), f32::to_bits(value), "{bits:#x}");
        assert_eq!(f32_to_f16(value), bits);
    }
    assert!(f16_to_f32(0x7e00).is_nan());
    assert_eq!(bf16_to_f32(0x3f80).to_bits(), 1.0f32.to_bits());
    assert_eq!(bf16_to_f32(0xc049).to_bits(), (-3.140_625_f32).to_bits());
}

#[test]
fn the_wide_instructions_give_every_half_float_the_same_bits() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    // An odd length: the last few go through the plain loop.
    let all = &all[..all.len() - 3];
    let mut wide = vec![0.0; all.len()];
    f16(all, &mut wide);
    for (bits, found) in all.iter().zip(&wide) {
        let plain = f16_to_f32(*bits);
        assert!(found.to_bits() == plain.to_bits() || found.is_nan() && plain.is_nan(), "{bits:#x}: {found} {plain}");
    }
    bf16(all, &mut wide);
    assert!(all.iter().zip(&wide).all(|(bits, found)| found.to_bits() == u32::from(*bits) << 16));
}

#[test]
fn rounding_to_half_is_undone_by_widening_and_ties_go_to_even() {
    for bits in 0..=u16::MAX {
        let half = f16_to_f32(bits);
        if half.is_nan() {
            assert!(f16_to_f32(f32_to_f16(half)).is_nan() && bf16_to_f32(f32_to_bf16(half)).is_nan());
            continue;
        }
        assert_eq!(f32_to_f16(half), bits);
        let brain = bf16_to_f32(bits);
        assert!(brain.is_nan() || f32_to_bf16(brain) == bits);
    }
    let f16_of = |x: f32| f16_to_f32(f32_to_f16(x));
    let ties =
        [(1.0 + 1.0 / 2048.0, 1.0), (1.0 + 3.0 / 2048.0, 1.0 + 2.0 / 1024.0), (1.0 + 1.1 / 2048.0, 1.0 + 1.0 / 1024.0)];
    for (from, to) in ties {
        assert!(same(f16_of(from), to), "{from}");
    }
    assert!(same(f16_of(1.5 * 2f32.powi(-24)), 2.0 * 2f32.powi(-24)));
    assert!(same(f16_of(2.5 * 2f32.powi(-24)), 2.0 * 2f32.powi(-24)));
    assert_eq!((f32_to_f16(65519.9), f32_to_f16(65520.0), f32_to_f16(1e30)), (0x7bff, 0x7c00, 0x7c00));
    assert!(same(bf16_to_f32(f32_to_bf16(1.0 + 1.0 / 256.0)), 1.0));
    assert!(same(bf16_to_f32(f32_to_bf16(1.0 + 3.0 / 256.0)), 1.0 + 4.0 / 256.0));
    assert_eq!(f32_to_bf16(f32::MAX), 0x7f80);
}

/// Five blocks whose bytes look random. No half float among them is infinite, wherever a type has its scales: of the
/// top five bits of a half one is always off, in the first part another than in the last.
fn block_bytes(kind: BlockType) -> Vec<u8> {
    let (mut state, count) = (12345u32, 5 * kind.bytes());
    (0..count)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 & if i < count / 2 { 0xbf } else { 0xfb }
        })
        .collect()
}

/// Made with `gguf.quants.dequantize` of the Python package gguf 0.19 from the same bytes: FNV-1a over the bytes of
/// the floats.
#[test]
fn blocks_are_the_numbers_of_ggml_bit_for_bit() {
    let expected: [(BlockType, u64); 10] = [
        (BlockType::Q4_0, 0x0faa_4f63_e9d5_6666),
        (BlockType::Q4_1, 0x56ac_c75b_983c_2d39),
        (BlockType::Q5_0, 0x8b12_5001_0f5c_0d53),
        (BlockType::Q5_1, 0x37d4_c2f1_1478_1a54),
        (BlockType::Q8_0, 0xdd13_691e_8e7a_b17e),
        (BlockType::Q2K, 0xb815_9889_e667_4ef4),
        (BlockType::Q3K, 0xa65a_eb09_6e9e_6950),
        (BlockType::Q4K, 0x6b52_624d_3a43_5416),
        (BlockType::Q5K, 0xdf88_03de_b957_38e3),
        (BlockType::Q6K, 0x1d5f_fa1b_ee2f_bbb1),
    ];
    for (kind, hash) in expected {
        let mut wide = vec![f32::NAN; 5 * kind.numbers()];
        blocks(kind, &block_bytes(kind), &mut wide);
        let bytes = wide.iter().flat_map(|v| v.to_le_bytes());
        let found = bytes.fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        assert_eq!(found, hash, "{}", kind.name());
    }
}

#[test]
fn the_wide_copies_of_every_block_type_give_the_plain_bits() {
    for kind in BlockType::ALL {
        let bytes = block_bytes(kind);
        let (mut wide, mut plain) = (vec![f32::NAN; 5 * kind.numbers()], vec![f32::NAN; 5 * kind.numbers()]);
        blocks(kind, &bytes, &mut wide);
        blocks::widen(kind, &bytes, &mut plain);
        assert!(wide.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits() && a.is_finite()), "{}", kind.name());
        assert!(wide.iter().any(|a| a.abs() > 0.0));
    }
}

#[test]
fn q8_0_keeps_numbers_to_half_a_step() {
    let floats: Vec<f32> = (0..96).map(|i| ((i * 37) % 61) as f32 / 7.0 - 4.0).collect();
    let mut bytes = Vec::new();
    assert!(blocks::quantise_q8_0(&floats, &mut bytes));
    let mut back = vec![0.0; 96];
    blocks(BlockType::Q8_0, &bytes, &mut back);
    for (block, (from, to)) in floats.chunks(32).zip(back.chunks(32)).enumerate() {
        let largest = from.iter().fold(0.0f32, |a, x| a.max(x.abs()));
        for (a, b) in from.iter().zip(to) {
            assert!((a - b).abs() <= largest / 127.0 * 0.51 + largest * 5e-4, "block {block}: {a} became {b}");
        }
    }
    let mut zeros = Vec::new();
    assert!(blocks::quantise_q8_0(&[0.0; 32], &mut zeros) && zeros == [0; 34]);
    assert!(!blocks::quantise_q8_0(&[f32::NAN; 32], &mut zeros) && !blocks::quantise_q8_0(&[1e8; 32], &mut zeros));
}
