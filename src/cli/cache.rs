//! `trajscope cache`: where scores are kept, how many there are, and how to be rid of them.

use anyhow::Context;
use serde_json::json;

use super::Verdict;
use super::args::CacheArgs;
use super::out::Out;
use crate::config::Dirs;
use crate::critic::store;

/// Shows or empties the folder.
pub fn run(args: &CacheArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let dirs = Dirs::find().context("no home folder, so nothing is kept; set TRAJSCOPE_CACHE_DIR to a folder")?;
    let folder = dirs.scores();
    let held = if args.clear {
        store::clear(&folder).map_err(|(path, error)| anyhow::anyhow!("{}: cannot remove: {error}", path.display()))?
    } else {
        store::usage(&folder)
    };
    if args.json {
        let (entries, bytes) = if args.clear { (0, 0) } else { (held.entries, held.bytes) };
        out.json(&json!({
            "folder": folder,
            "entries": entries,
            "bytes": bytes,
            "limit_bytes": store::LIMIT,
            "removed": args.clear.then_some(held.entries),
        }))?;
        return Ok(Verdict::Clean);
    }
    out.line(folder.display())?;
    let size = held.bytes as f64 / f64::from(1 << 20);
    out.line(if args.clear {
        format!("{} results removed ({size:.1} MiB)", held.entries)
    } else {
        format!("{} results, {size:.1} of at most {} MiB", held.entries, store::LIMIT >> 20)
    })?;
    Ok(Verdict::Clean)
}
