//! Where a pass begins when some of its text is known already.

use std::ops::Range;

use super::super::cpu::Part;
use super::super::network::Network;
use super::super::prefix::{BLOCK, Start};
use super::{CHUNK, Chunks, Model, PassError, Reading};

/// A handful of rows is multiplied by other kernels than many, which round otherwise.
const FEW_ROWS: usize = 16;

/// The rows of a chunk whose states are wanted, for reads of the whole text. So that a value does not depend on how
/// many others are read with it, on the CPU there are some more of the last one where there are few.
pub(super) fn rows(network: &Network, reads: &[usize], chunk: Range<usize>) -> Vec<usize> {
    let mut rows: Vec<usize> = reads.iter().map(|r| r - chunk.start).collect();
    if let (Network::Cpu(_), Some(last)) = (network, rows.last().copied()) {
        rows.resize(rows.len().max(FEW_ROWS.min(chunk.len())), last);
    }
    rows
}

/// The chunks of a text of `len` tokens with the rows that are read in each.
pub(super) fn parts(network: &Network, chunks: Chunks, reads: &[usize], len: usize) -> Vec<Part> {
    let (mut parts, mut start, mut next) = (Vec::new(), 0, 0);
    while start < len {
        let end = chunks.end(start, len);
        let wanted = reads[next..].partition_point(|r| *r < end);
        parts.push(Part { end, rows: rows(network, &reads[next..next + wanted], start..end), wanted });
        (start, next) = (end, next + wanted);
    }
    parts
}

impl Model {
    /// Brings the cache to what is known of the beginning of `ids`, makes room for the rest, and gives the beginning's
    /// length. What is lost of the text before is kept aside.
    pub(super) fn resume(&mut self, ids: &[u32], reads: &[usize], what: Reading) -> Result<usize, PassError> {
        let (chunks, network) = (self.chunks, &self.network);
        let place = |at| floor(network, chunks, at, ids.len());
        let start = self.prefixes.start(ids, reads, matches!(what, Reading::Logits), place);
        self.prefixes.set_aside(start.live, |from, to| network.save(from, to));
        self.cut(start.live);
        self.network.reserve(ids.len())?;
        self.restore(&start);
        Ok(start.keep)
    }

    fn restore(&mut self, start: &Start<Vec<f32>>) {
        for block in start.blocks.iter().filter(|b| b.start >= start.live) {
            self.network.restore(BLOCK, &block.saved);
        }
        self.prefixes.adopt(start);
        self.network.truncate(start.keep);
    }
}

/// The last place at or before `at` where a text of `len` tokens may be taken up again. On the CPU each row of a chunk
/// is computed by itself, whatever the others are, so that any block will do. A device's chunks are so long that few
/// texts would be taken up at their ends, and its products depend on how many rows they have in any case.
pub(super) fn floor(network: &Network, chunks: Chunks, at: usize, len: usize) -> usize {
    if let Network::Device(_) = network {
        return (at / CHUNK * CHUNK).max(chunks.floor(at));
    }
    if !matches!((network, chunks), (Network::Cpu(_), Chunks::Growing)) {
        return chunks.floor(at);
    }
    let end = at / BLOCK * BLOCK;
    if !end.is_multiple_of(CHUNK) && end < len && len - end < FEW_ROWS { end - BLOCK } else { end }
}
