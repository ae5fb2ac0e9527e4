//! The application without a terminal: real files, the real critic, keys from a script, and the screen as a picture.
//! For the pictures of the README, and for showing somebody what one saw.

use std::time::Duration;

use anyhow::Context as _;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::mpsc::{self, Receiver};

use crate::app::{CriticState, KeyInput, Msg, State, update};
use crate::ui;

use super::workers::Workers;
use super::{OpenOptions, QUEUE, state};

/// Syntax colours and the critic's input come without being announced: this long after the last message nothing more
/// is expected.
const SILENCE: Duration = Duration::from_millis(1500);

/// Opens `options`, waits until everything is read and scored, presses `keys` (named as in the key map, parted by
/// blanks) and gives the screen as SVG.
///
/// # Errors
/// A key that is none, a critic that cannot be opened, or a system that gives no threads.
pub fn picture(options: OpenOptions, keys: &str, size: (u16, u16)) -> anyhow::Result<String> {
    let pressed: Result<Vec<KeyInput>, String> = keys.split_whitespace().map(str::parse).collect();
    let pressed = pressed.map_err(anyhow::Error::msg)?;
    let mut app = state(&options);
    app.true_color = true;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (send, mut messages) = mpsc::channel(QUEUE);
    let mut workers = Workers::start(options.paths, options.critic, send).context("the system gives no threads")?;
    let mut take = |app: &mut State, message: Msg| {
        for effect in update(app, message) {
            let _quit: bool = workers.run(effect);
        }
    };
    take(&mut app, Msg::Resize(size.0, size.1));
    runtime.block_on(async {
        while app.busy()
            && let Some(message) = messages.recv().await
        {
            take(&mut app, message);
        }
        if let CriticState::Failed(why) = &app.critic {
            anyhow::bail!("the critic cannot be used: {why}");
        }
        app.message = None;
        for key in pressed {
            take(&mut app, Msg::Key(key));
            settle(&mut app, &mut messages, &mut take).await;
        }
        Ok(())
    })?;
    let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    ui::render(&mut buffer, &app);
    Ok(ui::svg::render(&buffer))
}

/// Takes messages until none comes for a while.
async fn settle(app: &mut State, messages: &mut Receiver<Msg>, take: &mut impl FnMut(&mut State, Msg)) {
    while let Ok(Some(message)) = tokio::time::timeout(SILENCE, messages.recv()).await {
        take(app, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Keymap, ThemeName};
    use crate::critic::Profile;
    use crate::critic::fake::FakeCritic;
    use crate::term::OpenCritic;

    #[test]
    fn the_picture_shows_what_the_keys_lead_to_after_everything_is_scored() {
        let folder = tempfile::tempdir().unwrap();
        let run = r#"[{"role":"user","content":"fix the lid"},{"role":"assistant","content":"looking"},
            {"role":"user","content":"ok"},{"role":"assistant","content":"done"}]"#;
        std::fs::write(folder.path().join("jar__jar-1.json"), run).unwrap();
        let critic: OpenCritic = Box::new(|| {
            Ok(Box::new(FakeCritic::new(Profile::by_id("openhands-32b").unwrap(), [Some(0.75), Some(0.25)])))
        });
        let options = |critic| OpenOptions {
            paths: vec![folder.path().to_owned()],
            critic,
            theme: ThemeName::Light,
            no_color: false,
            keymap: Keymap::builtin().unwrap(),
            notes: Vec::new(),
            log: None,
            debug_panic: false,
        };
        let svg = picture(options(Some(critic)), "enter n", (100, 30)).unwrap();
        assert!(svg.contains("looking") && svg.contains("0.25"), "{svg}");
        let error = picture(options(None), "hyper-x", (80, 24)).unwrap_err().to_string();
        assert!(error.contains("hyper-x"), "{error}");
        let broken: OpenCritic = Box::new(|| Err("config.json: no such file".to_owned()));
        let error = picture(options(Some(broken)), "", (80, 24)).unwrap_err().to_string();
        assert!(error.contains("config.json: no such file"), "{error}");
    }
}
