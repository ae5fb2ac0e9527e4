//! The whole application without a terminal: scripted keys, real files, a scripted critic.

use std::path::Path;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::TestBackend;
use tokio::sync::mpsc::UnboundedSender;

use super::*;
use crate::critic::Profile;
use crate::critic::fake::FakeCritic;
use crate::term::source::ScriptedEvents;

const RUN: &str = r#"[{"role":"user","content":"fix the lid"},
    {"role":"assistant","content":"looking"},{"role":"user","content":"ok"},
    {"role":"assistant","content":"done"}]"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jar__jar-1.json"), RUN).unwrap();
    std::fs::write(folder.path().join("broken.json"), "{").unwrap();
    folder
}

type Keys = UnboundedSender<io::Result<Event>>;
type Person = Box<dyn FnMut(&str, &Keys)>;

fn session(paths: &Path, critic: Option<OpenCritic>, send: mpsc::Sender<Msg>) -> Session<TestBackend> {
    let mut app = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    if critic.is_none() {
        app.critic = CriticState::None;
    }
    let workers = Workers::start(vec![paths.to_owned()], critic, send).unwrap();
    let terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    Session { app, terminal, workers, guard: None, debug_panic: false }
}

fn screen(session: &Session<TestBackend>) -> String {
    session.terminal.backend().to_string()
}

/// A session and somebody who looks at every frame and may press keys.
struct Played {
    session: Session<TestBackend>,
    person: Person,
    keys: Keys,
}

/// Runs the application until it quits; gives the last screen.
fn play(paths: &Path, critic: Option<OpenCritic>, person: impl FnMut(&str, &Keys) + 'static) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (send, mut messages) = mpsc::channel(QUEUE);
        let (keys, events) = mpsc::unbounded_channel();
        let mut session = session(paths, critic, send);
        session.on_message(Msg::Resize(100, 30));
        let mut driver = driver::Driver {
            state: Played { session, person: Box::new(person), keys },
            on_event: |played: &mut Played, event| played.session.on_event(event),
            on_message: |played: &mut Played, message| played.session.on_message(message),
            draw: |played: &mut Played| {
                played.session.draw()?;
                let shown = screen(&played.session);
                (played.person)(&shown, &played.keys);
                Ok(())
            },
        };
        let mut events = ScriptedEvents(events);
        let run = driver.run(&mut events, &mut messages, std::future::pending());
        tokio::time::timeout(std::time::Duration::from_mins(1), run).await.expect("it quits").unwrap();
        screen(&driver.state.session)
    })
}

fn press(keys: &Keys, code: KeyCode) {
    keys.send(Ok(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))).unwrap();
}

#[test]
fn files_are_read_and_q_leaves() {
    let folder = folder();
    let last = play(folder.path(), None, |screen, keys| {
        if screen.contains("jar__jar-1") && screen.contains("not understood") {
            press(keys, KeyCode::Char('q'));
        }
    });
    assert!(last.contains("jar__jar-1"), "{last}");
}

#[test]
fn scores_fill_in_while_one_looks() {
    let folder = folder();
    let critic: OpenCritic = Box::new(|| {
        let critic = FakeCritic::new(Profile::by_id("openhands-32b").unwrap(), [Some(0.75), Some(0.25)]);
        Ok(Box::new(critic))
    });
    let mut opened = false;
    play(folder.path(), Some(critic), move |screen, keys| {
        if !opened && screen.contains("0.25") {
            opened = true;
            press(keys, KeyCode::Enter);
        }
        if opened && screen.contains("0.75") && screen.contains("looking") {
            press(keys, KeyCode::Char('q'));
            press(keys, KeyCode::Char('q'));
        }
    });
}

#[test]
fn a_critic_that_does_not_open_is_said_and_the_rest_works() {
    let folder = folder();
    let critic: OpenCritic = Box::new(|| Err("model: config.json: no such file".to_owned()));
    play(folder.path(), Some(critic), |screen, keys| {
        if screen.contains("config.json: no such file") && screen.contains("jar__jar-1") {
            press(keys, KeyCode::Char('q'));
        }
    });
}

#[test]
fn many_sizes_are_drawn_without_a_panic() {
    let folder = folder();
    let (send, _messages) = mpsc::channel(QUEUE);
    let mut session = session(folder.path(), None, send);
    for (columns, rows) in [(0, 0), (1, 1), (2, 50), (40, 10), (200, 60), (65535, 1)] {
        session.terminal.backend_mut().resize(columns, rows);
        session.on_event(Event::Resize(columns, rows));
        session.draw().unwrap();
    }
}
