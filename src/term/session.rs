//! What the event loop drives: the application's state, the terminal it is drawn to, the workers behind it.

use std::io;

use crossterm::event::Event;
use ratatui::Terminal;
use ratatui::backend::Backend;
use ratatui::layout::{Position, Rect};

use crate::app::{Msg, State, update};
use crate::ui;

use super::driver::{Driver, Outcome};
use super::guard::TerminalGuard;
use super::keys;
use super::workers::Workers;

/// Everything on the screen's thread.
pub(super) struct Session<B: Backend> {
    pub(super) app: State,
    pub(super) terminal: Terminal<B>,
    pub(super) workers: Workers,
    /// The terminal's settings; `None` in tests, which have no terminal.
    pub(super) guard: Option<TerminalGuard>,
    /// Panic after the first frame: what the test of the way back from a panic asks for.
    pub(super) debug_panic: bool,
}

impl<B> Session<B>
where
    B: Backend,
    B::Error: Send + Sync + 'static,
{
    /// The loop around this session.
    pub(super) fn driver(self) -> Driver<Self, Msg> {
        Driver { state: self, on_event: Self::on_event, on_message: Self::on_message, draw: Self::draw }
    }

    pub(super) fn on_event(&mut self, event: Event) -> Outcome {
        if keys::is_suspend(&event) {
            return self.suspend();
        }
        keys::message(event).map_or(Outcome::Ignored, |message| self.on_message(message))
    }

    pub(super) fn on_message(&mut self, message: Msg) -> Outcome {
        let mut outcome = Outcome::Changed;
        for effect in update(&mut self.app, message) {
            if self.workers.run(effect) {
                outcome = Outcome::Quit;
            }
        }
        outcome
    }

    pub(super) fn draw(&mut self) -> io::Result<()> {
        self.terminal.draw(|frame| ui::draw(frame, &self.app)).map_err(io::Error::other)?;
        assert!(!self.debug_panic, "asked for by --debug-panic");
        Ok(())
    }

    /// Gives the terminal to the shell until the job is continued.
    fn suspend(&mut self) -> Outcome {
        let Some(guard) = &mut self.guard else { return Outcome::Ignored };
        if let Err(error) = guard.lend(stop_this_job) {
            tracing::error!("the terminal cannot be taken again: {error}");
            return Outcome::Quit;
        }
        // Whatever the shell wrote is still there, and the size may have changed. Not `Terminal::clear`: it asks the
        // terminal where the cursor is, and the event stream would take the answer.
        let redrawn = self.terminal.size().and_then(|size| self.terminal.resize(Rect::from((Position::ORIGIN, size))));
        match redrawn {
            Ok(()) => Outcome::Changed,
            Err(error) => {
                tracing::error!("the terminal cannot be drawn to: {error}");
                Outcome::Quit
            }
        }
    }
}

/// Stops the process as control-Z would; comes back when it is continued.
#[cfg(unix)]
fn stop_this_job() {
    #[expect(unsafe_code, reason = "raise has no safe wrapper in std; it takes one integer and no memory")]
    // SAFETY: SIGTSTP has its default action here, which only stops the process.
    let result = unsafe { libc::raise(libc::SIGTSTP) };
    if result != 0 {
        tracing::warn!("the system does not stop this job");
    }
}

#[cfg(not(unix))]
fn stop_this_job() {}
