//! `trajscope export`: the chosen patch of every issue as a predictions file.

use super::args::ExportArgs;
use super::out::Out;
use super::{Verdict, load, out, rank};
use crate::export::{Shape, chosen, to_bytes, write_new};

/// Runs the command. Findings: an issue got no prediction, or something could not be read or scored.
pub fn run(args: &ExportArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let loaded = load::load(&args.paths)?;
    let mut opened = load::open_critic(&args.critic)?;
    let (scores, unscored) = load::score_all(&loaded.issues, opened.critic.as_deref_mut());
    opened.remark();
    let rankings: Vec<_> = loaded.issues.iter().map(|issue| rank::ranking(issue, &scores)).collect();
    let (predictions, left) = chosen(loaded.issues.iter().zip(&rankings));
    for l in &left {
        out::remark(&format!("{}: no prediction: {}", l.issue, l.why));
    }
    if predictions.is_empty() {
        anyhow::bail!("nothing to export: none of {} issue(s) has an attempt that can be chosen", loaded.issues.len());
    }
    let bytes = to_bytes(&predictions, Shape::of(&args.output), args.model_name.as_deref());
    write_new(&args.output, &bytes, args.force)?;
    out.line(format!("{} predictions written to {}", predictions.len(), args.output.display()))?;
    Ok(Verdict::findings_if(loaded.findings || unscored || !left.is_empty()))
}
