use super::*;

impl Saved for Vec<u32> {
    fn bytes(&self) -> usize {
        self.len() * 100
    }
}

/// A network that keeps the tokens themselves; values are sums of all tokens up to theirs.
struct Toy {
    prefixes: Prefixes<Vec<u32>>,
    cache: Vec<u32>,
    computed: usize,
}

impl Toy {
    fn new(budget: usize) -> Self {
        Self { prefixes: Prefixes::new(budget), cache: Vec::new(), computed: 0 }
    }

    /// Values at `reads`, and how many tokens were computed.
    fn run(&mut self, ids: &[u32], reads: &[usize]) -> (Vec<f32>, usize) {
        let before = self.computed;
        let start = self.prefixes.start(ids, reads, false, |at| at / BLOCK * BLOCK);
        let cache = &self.cache;
        self.prefixes.set_aside(start.live, |from, to| Some(cache[from..to].to_vec()));
        self.cache.truncate(start.live);
        self.prefixes.cut(start.live);
        for block in start.blocks.iter().filter(|b| b.start >= start.live) {
            assert_eq!(self.cache.len(), block.start);
            self.cache.extend_from_slice(&block.saved);
        }
        self.prefixes.adopt(&start);
        self.cache.truncate(start.keep);
        assert_eq!(self.cache, self.prefixes.live());
        let rest = &ids[start.keep..];
        self.computed += rest.len();
        self.cache.extend_from_slice(rest);
        self.prefixes.extend(rest, true);
        assert_eq!(self.cache, ids, "what was reused is what would have been computed");
        let values = reads.iter().map(|read| {
            let value = self.cache[..=*read].iter().sum::<u32>() as f32;
            if *read < start.keep {
                assert_eq!(self.prefixes.value(*read), Some([value].as_slice()));
            } else {
                self.prefixes.note(*read, &[value]);
            }
            value
        });
        (values.collect(), self.computed - before)
    }
}

fn text(seed: u32, shared: usize, len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| if (i as usize) < shared { i % 97 } else { i * seed % 101 + 100 }).collect()
}

fn reads(len: usize) -> Vec<usize> {
    (100..len).step_by(150).chain([len - 1]).collect()
}

#[test]
fn attempts_share_their_beginning_in_any_order_and_each_is_computed_once() {
    let mut toy = Toy::new(1 << 20);
    let fresh = |ids: &[u32]| Toy::new(0).run(ids, &reads(ids.len())).0;
    let (a, b, c) = (text(3, 700, 1500), text(5, 700, 1300), text(7, 700, 1000));
    let other = text(11, 0, 900);
    for (ids, computed) in [
        (&a, 1500),
        // 640 are whole blocks of what is shared.
        (&b, 1300 - 640),
        (&other, 900),
        (&c, 1000 - 640),
        // Only what is behind the last whole block.
        (&a, 1500 - 1408),
        (&b, 1300 - 1280),
        (&other, 900 - 896),
    ] {
        let (values, count) = toy.run(ids, &reads(ids.len()));
        assert_eq!(count, computed);
        assert_eq!(values, fresh(ids));
    }
}

#[test]
fn a_growing_text_goes_on_and_a_new_value_in_the_beginning_is_computed() {
    let mut toy = Toy::new(1 << 20);
    let long = text(3, 0, 2000);
    toy.run(&long[..1000], &[200, 999]);
    assert_eq!(toy.run(&long, &[200, 999, 1500, 1999]).1, 2000 - 896, "999 is not in a whole block");
    assert_eq!(toy.run(&long, &[200, 700, 1999]).1, 2000 - 640, "nobody has read a value at 700 yet");
    assert_eq!(toy.run(&long, &[200, 700, 1999]).1, 2000 - 1920);
}

#[test]
fn what_was_interrupted_is_kept() {
    let mut toy = Toy::new(1 << 20);
    let (a, b) = (text(3, 0, 2000), text(5, 0, 800));
    // Stopped after 1,200 tokens.
    toy.run(&a[..1200], &[150, 1100]);
    toy.run(&b, &[799]);
    assert_eq!(toy.run(&a, &[150, 1100, 1999]).1, 2000 - 1152);
}

#[test]
fn the_budget_is_kept_and_the_longest_unused_goes_from_its_end() {
    let one = size(&vec![0u32; BLOCK], &Values::new()) + 68;
    let mut toy = Toy::new(12 * one);
    let (a, b, c) = (text(3, 0, 8 * BLOCK), text(5, 0, 8 * BLOCK), text(7, 0, 8 * BLOCK));
    for ids in [&a, &b, &c] {
        toy.run(ids, &[ids.len() - 1]);
        assert!(toy.prefixes.bytes() <= 12 * one);
    }
    // All eight blocks of b and the first four of a are there; c is live.
    assert_eq!(toy.run(&b, &[b.len() - 1]).1, 0);
    let counted: usize = toy.prefixes.blocks.values().map(|s| size(&s.block.saved, &s.block.values)).sum();
    assert_eq!(toy.prefixes.bytes(), counted);
    let mut none = Toy::new(0);
    none.run(&a, &[a.len() - 1]);
    none.run(&b, &[b.len() - 1]);
    assert_eq!((none.run(&a, &[a.len() - 1]).1, none.prefixes.bytes()), (a.len(), 0));
}

#[test]
fn a_text_too_long_for_the_budget_keeps_its_beginning() {
    let one = size(&vec![0u32; BLOCK], &Values::new()) + 68;
    let mut toy = Toy::new(6 * one);
    let (long, other) = (text(3, 0, 20 * BLOCK), text(5, 0, 300));
    toy.run(&long, &[long.len() - 1]);
    toy.run(&other, &[299]);
    assert_eq!(toy.run(&long, &[long.len() - 1]).1, 14 * BLOCK);
}

#[test]
fn short_texts_are_not_kept_and_other_values_are_not_believed() {
    let mut toy = Toy::new(1 << 20);
    toy.run(&text(3, 0, 400), &[399]);
    toy.run(&text(5, 0, 600), &[599]);
    assert_eq!(toy.prefixes.bytes(), 0, "400 tokens are computed again sooner than kept");
    toy.run(&text(3, 0, 400), &[399]);
    assert!(toy.prefixes.bytes() > 0);
    toy.prefixes.forget_values();
    assert_eq!((toy.prefixes.bytes(), toy.prefixes.value(399)), (0, None));
    assert_eq!(toy.run(&text(3, 0, 400), &[390]).1, 400 - 384, "the keys and values are as good as before");
}
