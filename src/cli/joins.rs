//! `trajscope joins`: which prediction and which report went to which attempt, by which rule, and what went nowhere.

use serde_json::json;

use super::args::JoinsArgs;
use super::out::{self, Out};
use super::{Verdict, load};
use crate::formats;
use crate::trajectory::{JoinLine, Rule, account, summary};

/// Runs the command.
pub fn run(args: &JoinsArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    load::must_exist(&args.paths)?;
    let dataset = formats::load(&args.paths, &|_| {});
    let mut lines = account(&dataset);
    lines.retain(|line| !args.missing || !line.rule.is_joined());
    if args.json {
        for line in &lines {
            out.json(&object(line))?;
        }
    } else {
        table(&lines, out)?;
    }
    Ok(Verdict::findings_if(lines.iter().any(|l| !l.rule.is_joined())))
}

fn object(line: &JoinLine) -> serde_json::Value {
    json!({
        "path": line.path,
        "record": line.record,
        "what": line.what.name(),
        "instance_id": line.instance,
        "issue": line.attempt.as_ref().map(|(issue, _)| issue),
        "attempt": line.attempt.as_ref().map(|(_, attempt)| attempt),
        "joined": line.rule.is_joined(),
        "rule": line.rule.text(),
    })
}

/// First every file in one line, then every statement; but for those on instances that are not there at all, of which
/// a report on a whole benchmark has hundreds: they are counted.
fn table(lines: &[JoinLine], out: &mut Out) -> anyhow::Result<()> {
    for (path, text) in summary(lines) {
        out.line(format!("{}: {text}", out::safe(&path.display().to_string())))?;
    }
    if lines.is_empty() {
        out.line("nothing to join: every trajectory carries its own label, and there is no prediction and no report")?;
        return Ok(());
    }
    out.line(format!("\n{:<11} {:<32} {:<32} rule, file", "what", "instance", "attempt"))?;
    for line in lines.iter().filter(|l| l.rule != Rule::NoAttempt) {
        let instance = line.instance.as_deref().map_or("-".into(), out::safe);
        let attempt = match &line.attempt {
            // An issue is usually named as the instance; where it is not, the other spelling matters.
            Some((issue, name)) if Some(issue) == line.instance.as_ref() => out::safe(name),
            Some((issue, name)) => out::safe(&format!("{issue} {name}")),
            None => "-".to_owned(),
        };
        let (what, rule) = (line.what.name(), line.rule.text());
        let path = out::safe(&line.path.display().to_string());
        out.line(format!("{what:<11} {instance:<32} {attempt:<32} {rule}: {path}"))?;
    }
    Ok(())
}
