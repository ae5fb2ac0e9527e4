//! The terminal application's driver: the terminal itself, the event loop, the effects.
//!
//! ```text
//! keys, resizes ─┐                                    ┌─▶ effects ─▶ critic, files, syntax (threads)
//! signals ───────┼─▶ driver: drain ─▶ app::update ────┤                      │
//! results ◀──────┘          (then one frame)          └─▶ ui::draw           │
//!    ▲───────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Everything here runs on one thread with a current-thread runtime; nothing it calls may block. What may, runs on
//! the threads of `work` and comes back as a message.

mod driver;
mod frame;
mod guard;
mod keys;
mod log;
mod picture;
mod reader;
mod session;
mod source;
mod syntax;
#[cfg(test)]
mod tests;
mod workers;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::Context as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio::sync::mpsc;

use crate::app::{CriticState, Keymap, Msg, State, ThemeName};
use crate::critic::Critic;

pub use picture::picture;

use frame::Framed;
use guard::{PanicHook, TerminalGuard};
use session::Session;
use source::TerminalEvents;
use workers::Workers;

/// Opens the critic, on the critic's own thread. The error is one line for a person.
pub type OpenCritic = Box<dyn FnOnce() -> Result<Box<dyn Critic>, String> + Send>;

/// What to open, and how it is to look.
pub struct OpenOptions {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// How to open the critic; `None` = look without scores.
    pub critic: Option<OpenCritic>,
    /// Colours to start with.
    pub theme: ThemeName,
    /// No colours at all (`NO_COLOR`).
    pub no_color: bool,
    /// The keys.
    pub keymap: Keymap,
    /// Said to the person at the start (a configuration that was not understood).
    pub notes: Vec<String>,
    /// Where the log goes; `None` = nowhere.
    pub log: Option<PathBuf>,
    /// Panic after the first frame, for a test.
    pub debug_panic: bool,
}

/// Messages that may wait for the screen; whoever sends more waits.
const QUEUE: usize = 256;

/// Opens the terminal application and runs it until the person quits or the process is told to end. The terminal is
/// given back in every case, also after an error or a panic.
///
/// # Errors
/// There is no terminal, or it cannot be read or drawn to.
pub fn run(mut options: OpenOptions) -> anyhow::Result<()> {
    anyhow::ensure!(
        io::stdin().is_terminal() && io::stdout().is_terminal(),
        "the screen needs a terminal for input and output; in a pipe use `trajscope score`, `rank` or `export`"
    );
    if let Some(path) = &options.log
        && let Err(error) = log::start(path)
    {
        options.notes.push(format!("no log: {}: {error}", path.display()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _hook = PanicHook::set();
    let guard = TerminalGuard::take().context("the terminal cannot be taken")?;
    let terminal = Terminal::new(CrosstermBackend::new(Framed::new(io::stdout())))?;
    let result = runtime.block_on(serve(options, terminal, guard));
    // A worker that does not stop must not hold up the shell.
    runtime.shutdown_background();
    result
}

async fn serve(
    options: OpenOptions,
    terminal: Terminal<CrosstermBackend<Framed<io::Stdout>>>,
    guard: TerminalGuard,
) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let (send, mut messages) = mpsc::channel(QUEUE);
    let app = state(&options);
    let workers = Workers::start(options.paths, options.critic, send.clone())?;
    let session = Session { app, terminal, workers, guard: Some(guard), debug_panic: options.debug_panic };
    let mut driver = session.driver();
    let size = driver.state.terminal.size()?;
    (driver.on_message)(&mut driver.state, Msg::Resize(size.width, size.height));
    for note in options.notes {
        (driver.on_message)(&mut driver.state, Msg::Note(note));
    }
    let result = driver.run(&mut TerminalEvents::default(), &mut messages, stop).await;
    let Session { terminal, workers, guard, .. } = driver.state;
    // The terminal first: ending the workers may take a second.
    drop(terminal);
    drop(guard);
    // Threads that wait for room in the queue must learn that nobody reads it.
    drop(messages);
    drop(workers);
    result.context("the terminal")
}

fn state(options: &OpenOptions) -> State {
    let mut app = State::new(options.keymap.clone(), options.theme, options.no_color);
    if options.critic.is_none() {
        app.critic = CriticState::None;
    }
    // What terminals that know true colour have agreed to say.
    app.true_color = std::env::var("COLORTERM").is_ok_and(|c| c == "truecolor" || c == "24bit");
    app
}

/// Ready when the process is told to end: the terminal hung up, or somebody asked politely.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
