//! `trajscope inspect`: exactly what a critic reads of one trajectory.

use anyhow::{Context, bail};
use serde::Serialize;

use super::args::InspectArgs;
use super::out::{Out, reward};
use super::{Verdict, load};
use crate::critic::{Critic, CriticInput};
use crate::formats;
use crate::patch;
use crate::trajectory::SharedTrajectory;

#[derive(Debug, Serialize)]
struct InputLine<'a> {
    profile: &'a str,
    texts: &'a str,
    text_sha256: String,
    chars: usize,
    tokens: usize,
    positions: Vec<PositionLine>,
    cut: Option<&'a str>,
    warnings: &'a [String],
}

#[derive(Debug, Serialize)]
struct PositionLine {
    action: usize,
    token_index: usize,
    byte: usize,
}

/// Runs the command.
pub fn run(args: &InspectArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    let loaded = load::load(std::slice::from_ref(&args.path))?;
    let trajectory = &formats::open(pick(args, &loaded.dataset.trajectories)?).map_err(anyhow::Error::msg)?;
    let Some(critic) = load::open_critic(&args.critic)?.critic else {
        bail!("--critic none reads nothing; name a critic");
    };
    let input = critic.inspect(trajectory)?;
    let end = match args.action {
        None => input.text.len(),
        Some(action) => end_of(action, &input, trajectory.n_actions())?,
    };
    let text = input.text.get(..end).context("the position of the action is not in the text; please report this")?;
    if args.json {
        out.json(&line(critic.as_ref(), &input, text))?;
    } else if args.critic_text {
        out.bytes(text.as_bytes())?;
    } else {
        summary(critic.as_ref(), &input, out)?;
    }
    Ok(Verdict::Clean)
}

fn pick<'a>(args: &InspectArgs, all: &'a [SharedTrajectory]) -> anyhow::Result<&'a SharedTrajectory> {
    match (args.record, all) {
        (None, [one]) => Ok(one),
        (None, []) => bail!("{}: no trajectory in it", args.path.display()),
        (None, many) => {
            bail!("{}: {} trajectories; say which with --record 0…", args.path.display(), many.len())
        }
        (Some(record), _) => all
            .iter()
            .find(|t| t.source.record == record)
            .with_context(|| format!("{}: no trajectory in record {record}", args.path.display())),
    }
}

fn end_of(action: usize, input: &CriticInput, n_actions: usize) -> anyhow::Result<usize> {
    let found = input.positions.iter().find(|(a, _, _)| *a == action);
    found.map(|&(_, _, byte)| byte).with_context(|| {
        if action < n_actions {
            format!("--action {action}: the critic reads no value for it in this window")
        } else {
            format!("--action {action}: the trajectory has {n_actions} actions, counted from 0")
        }
    })
}

fn line<'a>(critic: &'a dyn Critic, input: &'a CriticInput, text: &str) -> InputLine<'a> {
    let info = critic.info();
    let position = |&(action, token_index, byte): &(usize, usize, usize)| PositionLine { action, token_index, byte };
    InputLine {
        profile: &info.profile,
        texts: info.wording.describe(),
        text_sha256: patch::sha256(text),
        chars: text.chars().count(),
        tokens: input.tokens,
        positions: input.positions.iter().filter(|p| p.2 <= text.len()).map(position).collect(),
        cut: input.cut.as_ref().map(|c| c.note.as_str()),
        warnings: &input.warnings,
    }
}

fn summary(critic: &dyn Critic, input: &CriticInput, out: &mut Out) -> anyhow::Result<()> {
    let info = critic.info();
    out.line(format!("critic    {} (profile {})", info.id, info.profile))?;
    out.line(format!("number    {}", info.scale.meaning))?;
    out.line(format!("texts     {}", info.wording.describe()))?;
    out.line(format!("tokens    {} (at most {} in one pass)", input.tokens, info.max_tokens))?;
    out.line(format!("values    {}", input.positions.len()))?;
    if let Some(cut) = &input.cut {
        out.line(format!("cut       {}", cut.note))?;
    }
    for warning in &input.warnings {
        out.line(format!("warning   {warning}"))?;
    }
    out.line(format!("\n{:>7} {:>8} {:>10}", "action", "token", "byte"))?;
    for (action, token, byte) in &input.positions {
        out.line(format!("{action:>7} {token:>8} {byte:>10}"))?;
    }
    out.line(format!("\n--critic-text prints the text itself; unscored actions show as {}", reward(None)))?;
    Ok(())
}
