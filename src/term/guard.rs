//! The terminal while it is ours, and its way back: at the end, on an error, and after a panic.

use std::io::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};

/// Is the screen ours at this moment? One terminal, one program: a global is what it is.
static OURS: AtomicBool = AtomicBool::new(false);

/// Holds the terminal in raw mode on the alternate screen; gives it back when dropped.
pub(super) struct TerminalGuard {
    _private: (),
}

impl TerminalGuard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// There is no terminal, or it does not take the settings; what was set is undone.
    pub(super) fn take() -> io::Result<Self> {
        enter().inspect_err(|_| restore())?;
        Ok(Self { _private: () })
    }

    /// Gives the terminal back for a while (another program, a stopped job) and takes it again.
    ///
    /// # Errors
    /// The terminal cannot be taken again.
    #[expect(clippy::unused_self, reason = "only who holds the terminal can lend it")]
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let result = to();
        enter()?;
        Ok(result)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Puts everything back that can be put back. Safe to call twice, and from a panic hook.
fn restore() {
    if !OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // A write can fail because the terminal is gone; then there is nobody to put it back for.
    let shown = queue!(out, DisableBracketedPaste, LeaveAlternateScreen, Show).and_then(|()| out.flush());
    let cooked = disable_raw_mode();
    if let Err(error) = shown.and(cooked) {
        tracing::warn!("the terminal was not put back: {error}");
    }
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

/// Until dropped: a panic on this thread puts the terminal back before it is reported; a panic on another thread goes
/// to the log, because the screen is ours and the thread's owner reports it there.
pub(super) struct PanicHook {
    previous: std::sync::Arc<Hook>,
}

impl PanicHook {
    /// Sets the hook.
    pub(super) fn set() -> Self {
        let previous = std::sync::Arc::new(std::panic::take_hook());
        let screen = std::thread::current().id();
        let report = std::sync::Arc::clone(&previous);
        std::panic::set_hook(Box::new(move |info| {
            let trace = std::backtrace::Backtrace::force_capture();
            tracing::error!("{info}\n{trace}");
            if std::thread::current().id() == screen {
                restore();
            }
            if !OURS.load(Ordering::SeqCst) {
                report(info);
            }
        }));
        Self { previous }
    }
}

impl Drop for PanicHook {
    fn drop(&mut self) {
        // While unwinding, the hook cannot be changed; the process is on its way out anyway.
        if !std::thread::panicking() {
            let previous = std::sync::Arc::clone(&self.previous);
            std::panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}
