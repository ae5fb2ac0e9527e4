//! `trajscope PATH…`: opens the screen.

use anyhow::bail;

use super::args::OpenArgs;
use super::{Verdict, load};
use crate::app::{Keymap, ThemeName};
use crate::config::Dirs;
use crate::term::{self, OpenOptions};

/// Checks what can be checked before the terminal is taken, then runs the application.
pub fn run(args: &OpenArgs) -> anyhow::Result<Verdict> {
    if args.paths.is_empty() {
        bail!("nothing to open: give files or folders, for example `trajscope sample-trajectories` (--help shows all)");
    }
    load::must_exist(&args.paths)?;
    let critic = load::opener(&args.critic)?;
    let dirs = Dirs::find();
    let mut notes = Vec::new();
    let options = OpenOptions {
        paths: args.paths.clone(),
        critic,
        theme: if args.light { ThemeName::Light } else { ThemeName::Dark },
        no_color: std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()),
        keymap: keymap(dirs.as_ref(), &mut notes)?,
        notes,
        log: dirs.as_ref().map(Dirs::log_file),
        debug_panic: args.debug_panic,
    };
    term::run(options)?;
    Ok(Verdict::Clean)
}

/// The keys: the user's file over the built-in ones; a broken file is said on the screen and costs only itself.
fn keymap(dirs: Option<&Dirs>, notes: &mut Vec<String>) -> anyhow::Result<Keymap> {
    let builtin = || Keymap::builtin().map_err(anyhow::Error::msg);
    let Some(path) = dirs.map(Dirs::keys_file).filter(|p| p.is_file()) else {
        return builtin();
    };
    let origin = path.display().to_string();
    let read = std::fs::read_to_string(&path).map_err(|e| format!("{origin}: {e}"));
    match read.and_then(|text| Keymap::with_user(&text, &origin)) {
        Ok(keymap) => Ok(keymap),
        Err(problem) => {
            notes.push(problem);
            builtin()
        }
    }
}
