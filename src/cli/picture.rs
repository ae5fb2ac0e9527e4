//! `trajscope picture`: a screen of the application as SVG on stdout.

use super::args::{CriticArgs, PictureArgs};
use super::out::Out;
use super::{Verdict, load};
use crate::app::{Keymap, ThemeName};
use crate::term::{self, OpenOptions};

/// Reads and scores everything, presses the keys, draws.
pub fn run(args: &PictureArgs, out: &mut Out) -> anyhow::Result<Verdict> {
    load::must_exist(&args.paths)?;
    // The same command draws the same picture, whatever was scored before.
    let critic = load::opener(&CriticArgs { no_cache: true, ..args.critic.clone() })?;
    let options = OpenOptions {
        paths: args.paths.clone(),
        critic,
        theme: if args.light { ThemeName::Light } else { ThemeName::Dark },
        no_color: false,
        // A person's own keys would make the same command draw another picture.
        keymap: Keymap::builtin().map_err(anyhow::Error::msg)?,
        notes: Vec::new(),
        log: None,
        debug_panic: false,
    };
    let svg = term::picture(options, &args.keys, args.size)?;
    out.bytes(svg.as_bytes())?;
    Ok(Verdict::Clean)
}
