//! Beginnings that are not computed again: of the text in the network's cache, and of texts before it.
//!
//! The network holds the keys and values of one text, the live one. What falls out of it when another text comes is
//! kept aside in blocks of 128 tokens, found again by the hash of all tokens up to the block's end. Attempts of one
//! issue share the blocks of what they have in common; a file that has grown, a run that was interrupted for another
//! and a second look at an attempt go on where they were. With the blocks go the values that were read in them, so
//! that a beginning may be reused although values are wanted in it.
//!
//! Reusing changes no bit: on the CPU every row of a chunk is computed by itself, so a block is the same whichever
//! chunk it was computed in. Where that does not hold a beginning ends at the fixed ends of chunks (see `Chunks`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Tokens of a block.
pub(super) const BLOCK: usize = 128;
/// Shorter texts are computed again sooner than kept.
const WORTH: usize = 512;

/// Hash of all tokens up to the end of a block.
type Path = blake3::Hash;

/// Keys and values of some tokens, as the network gives them.
pub(super) trait Saved {
    /// Bytes in memory.
    fn bytes(&self) -> usize;
}

impl Saved for Vec<f32> {
    fn bytes(&self) -> usize {
        self.len() * 4
    }
}

/// Values by the token they were read at.
type Values = BTreeMap<usize, Box<[f32]>>;

/// Tokens kept aside.
#[derive(Debug)]
pub(super) struct Block<S> {
    /// First token.
    pub(super) start: usize,
    /// Their keys and values.
    pub(super) saved: S,
    ids: Box<[u32]>,
    values: Values,
}

#[derive(Debug)]
struct Slot<S> {
    block: Arc<Block<S>>,
    /// When it was last wanted.
    used: u64,
}

/// How a text is begun.
#[derive(Debug)]
pub(super) struct Start<S> {
    /// Tokens that need not be computed.
    pub(super) keep: usize,
    /// Tokens of these that the network holds already.
    pub(super) live: usize,
    /// The others, in order, without a gap.
    pub(super) blocks: Vec<Arc<Block<S>>>,
}

/// What is known of the live text, and the blocks.
#[derive(Debug)]
pub(super) struct Prefixes<S> {
    live: Vec<u32>,
    /// As many of the live tokens were computed in chunks that end where a plain pass ends them.
    regular: usize,
    values: Values,
    blocks: HashMap<Path, Slot<S>>,
    bytes: usize,
    budget: usize,
    clock: u64,
}

impl<S: Saved> Prefixes<S> {
    /// Keeps at most `budget` bytes of keys and values aside.
    pub(super) fn new(budget: usize) -> Self {
        let (live, values, blocks) = Default::default();
        Self { live, regular: 0, values, blocks, bytes: 0, budget, clock: 0 }
    }

    /// Tokens the network holds.
    #[cfg(test)]
    pub(super) fn live(&self) -> &[u32] {
        &self.live
    }

    /// Bytes kept aside.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many live tokens `ids` begins with.
    pub(super) fn common(&self, ids: &[u32]) -> usize {
        self.live.iter().zip(ids).take_while(|(a, b)| a == b).count()
    }

    /// As many of the live tokens were computed as a plain pass does it; the rest token by token.
    pub(super) fn regular(&self) -> usize {
        self.regular
    }

    /// The network has computed these tokens behind the live ones, as a plain pass does it if `regular`.
    pub(super) fn extend(&mut self, ids: &[u32], regular: bool) {
        self.live.extend_from_slice(ids);
        if regular {
            self.regular = self.live.len();
        }
    }

    /// A value was read at a token of the live text.
    pub(super) fn note(&mut self, token: usize, value: &[f32]) {
        self.values.insert(token, value.into());
    }

    /// The value read at a token of the live text.
    pub(super) fn value(&self, token: usize) -> Option<&[f32]> {
        self.values.get(&token).map(AsRef::as_ref)
    }

    /// The network forgets the live text from `len` on.
    pub(super) fn cut(&mut self, len: usize) {
        self.live.truncate(len);
        self.regular = self.regular.min(len);
        self.values.split_off(&len);
    }

    /// What values mean has changed: keys and values stay good, values do not.
    pub(super) fn forget_values(&mut self) {
        self.values.clear();
        self.blocks.clear();
        self.bytes = 0;
    }

    /// How much of `ids` need not be computed when values are wanted at `reads` (ascending). A beginning ends where
    /// `floor` allows: it gives the last allowed place at or before one. With `fresh`, no value is taken from before.
    pub(super) fn start(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        fresh: bool,
        floor: impl Fn(usize) -> usize,
    ) -> Start<S> {
        let common = floor(self.common(ids).min(self.regular));
        // Up to the first value that is wanted and not known.
        let until = |known: &dyn Fn(usize) -> bool, end: usize| {
            let missing = reads.iter().take_while(|r| **r < end).find(|r| fresh || !known(**r));
            missing.map_or(end, |r| floor(*r))
        };
        let live = until(&|token| self.values.contains_key(&token), common);
        let chain = self.chain(ids);
        let end = floor(chain.last().map_or(0, |b| b.start + b.ids.len()));
        let in_block = |token: usize| chain.get(token / BLOCK).is_some_and(|b| b.values.contains_key(&token));
        let kept = until(&|token| in_block(token) || (token < common && self.values.contains_key(&token)), end);
        if kept <= live {
            return Start { keep: live, live, blocks: Vec::new() };
        }
        let blocks = chain.into_iter().filter(|b| b.start < kept).collect();
        // Blocks begin at their own places.
        Start { keep: kept, live: common.min(kept) / BLOCK * BLOCK, blocks }
    }

    /// The blocks that `ids` begins with, from the first on; they are noted as used.
    fn chain(&mut self, ids: &[u32]) -> Vec<Arc<Block<S>>> {
        self.clock += 1;
        let mut path = None;
        let mut chain = Vec::new();
        for ids in ids.chunks_exact(BLOCK) {
            let here = below(path, ids);
            let Some(slot) = self.blocks.get_mut(&here).filter(|s| *s.block.ids == *ids) else { break };
            slot.used = self.clock;
            chain.push(Arc::clone(&slot.block));
            path = Some(here);
        }
        chain
    }

    /// Takes over the values of the blocks of a start; their keys and values are in the network again.
    pub(super) fn adopt(&mut self, start: &Start<S>) {
        for block in &start.blocks {
            if block.start >= self.live.len() {
                self.extend(&block.ids, true);
            }
            self.values.extend(block.values.iter().map(|(token, value)| (*token, value.clone())));
        }
        self.cut(start.keep);
    }

    /// Keeps aside what of the live text is about to be lost: all from `keep` on, and what that needs before it.
    /// `save` takes the keys and values of some tokens out of the network.
    pub(super) fn set_aside(&mut self, keep: usize, save: impl Fn(usize, usize) -> Option<S>) {
        let end = self.regular / BLOCK * BLOCK;
        if self.budget == 0 || end < WORTH || end <= keep {
            return;
        }
        self.clock += 1;
        let mut path = None;
        for start in (0..end).step_by(BLOCK) {
            let ids = &self.live[start..start + BLOCK];
            let here = below(path, ids);
            path = Some(here);
            let values: Values =
                self.values.range(start..start + BLOCK).map(|(token, value)| (*token, value.clone())).collect();
            let used = self.clock;
            if let Some(slot) = self.blocks.get_mut(&here) {
                slot.used = used;
                if values.keys().all(|token| slot.block.values.contains_key(token)) {
                    continue;
                }
            }
            let Some(saved) = save(start, start + BLOCK) else { return };
            let bytes = size(&saved, &values);
            // What would push out its own beginning is of no use.
            if (start / BLOCK + 1) * bytes > self.budget {
                break;
            }
            let block = Arc::new(Block { start, saved, ids: ids.into(), values });
            self.bytes += bytes;
            if let Some(old) = self.blocks.insert(here, Slot { block, used }) {
                self.bytes -= size(&old.block.saved, &old.block.values);
            }
        }
        self.evict();
    }

    /// Lets go of the longest unused blocks, the end of a text before its beginning, until the budget is kept.
    fn evict(&mut self) {
        if self.bytes <= self.budget {
            return;
        }
        let mut order: Vec<(u64, std::cmp::Reverse<usize>, Path)> =
            self.blocks.iter().map(|(path, slot)| (slot.used, std::cmp::Reverse(slot.block.start), *path)).collect();
        order.sort_by_key(|(used, start, _)| (*used, *start));
        for (_, _, path) in order {
            if self.bytes <= self.budget {
                break;
            }
            if let Some(slot) = self.blocks.remove(&path) {
                self.bytes -= size(&slot.block.saved, &slot.block.values);
            }
        }
    }
}

/// Bytes a block is counted as.
fn size(saved: &impl Saved, values: &Values) -> usize {
    saved.bytes() + BLOCK * 4 + values.values().map(|v| 64 + v.len() * 4).sum::<usize>()
}

/// The hash of a beginning and one block more.
fn below(path: Option<Path>, ids: &[u32]) -> Path {
    let mut hasher = blake3::Hasher::new();
    if let Some(path) = path {
        hasher.update(path.as_bytes());
    }
    for id in ids {
        hasher.update(&id.to_le_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
