//! `trajscope critics` and `trajscope formats`: the two tables everything else is driven by.

use serde_json::json;

use super::Verdict;
use super::args::ListArgs;
use super::out::Out;
use crate::critic::{Listing, Profile};
use crate::formats;

/// Lists the profiles.
pub fn critics(args: &ListArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    for profile in Profile::builtin() {
        let listing = Listing::of(profile);
        let embedded = cfg!(feature = "embedded-critic") && profile.id == "mini";
        if args.json {
            out.json(&json!({
                "id": listing.id,
                "name": listing.name,
                "description": listing.description,
                "reads": listing.reads,
                "positions": listing.positions,
                "scale": listing.scale,
                "range": profile.scale.range,
                "gamma": profile.scale.gamma,
                "aggregate": listing.aggregate,
                "wording": listing.wording,
                "max_tokens": listing.max_tokens,
                "cut": listing.cut,
                "drop_threshold": profile.drop_threshold,
                "embedded": embedded,
            }))?;
            continue;
        }
        out.line(format!("{}{}", listing.id, if embedded { "  (built in: --critic mini)" } else { "" }))?;
        out.line(format!("  {}", listing.name))?;
        for (label, text) in listing.rows() {
            out.line(format!("  {label:<12} {text}"))?;
        }
        out.line("")?;
    }
    Ok(Verdict::Clean)
}

/// Lists the formats.
pub fn formats(args: &ListArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    if !args.json {
        out.line(format!("{:<24} {:<12} {:<34} recognised by", "id", "holds", "written by"))?;
    }
    for format in formats::formats() {
        let holds = format.kind.name();
        if args.json {
            out.json(&json!({
                "id": format.id,
                "name": format.name,
                "kind": holds,
                "writer": format.writer,
                "recognised_by": format.recognised,
            }))?;
        } else {
            out.line(format!("{:<24} {holds:<12} {:<34} {}", format.id, format.writer, format.recognised))?;
        }
    }
    Ok(Verdict::Clean)
}
