//! The real program in a real pseudo-terminal: it starts, draws, and gives the terminal back however it ends.
//!
//! Tests wait for named conditions, never for a time. Linux only: elsewhere pseudo-terminals differ too much.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Generous: a debug build on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

const RUN: &str = r#"[{"role":"user","content":"fix the lid"},
    {"role":"assistant","content":"looking at the jar"},{"role":"user","content":"ok"},
    {"role":"assistant","content":"done"}]"#;

struct Seen {
    screen: vt100::Parser,
    /// The program has closed its side.
    closed: bool,
}

/// The program, and a terminal that watches it.
struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    settings_before: String,
    _home: tempfile::TempDir,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn screen(rows: u16, cols: u16) -> vt100::Parser {
    vt100::Parser::new(NonZeroU16::new(rows).unwrap(), NonZeroU16::new(cols).unwrap(), 0)
}

fn data(home: &Path) {
    std::fs::create_dir(home.join("runs")).unwrap();
    std::fs::write(home.join("runs/jar__jar-1.json"), RUN).unwrap();
    std::fs::write(home.join("runs/broken.json"), "{").unwrap();
}

impl Terminal {
    fn start(rows: u16, cols: u16, flags: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        data(home.path());
        let pty = native_pty_system().openpty(size(rows, cols)).unwrap();
        let settings_before = format!("{:?}", pty.master.get_termios());
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_trajscope"));
        command.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("LANG", "C.UTF-8")] {
            command.env(name, value);
        }
        command.env("HOME", home.path());
        command.args(["--critic", "none"]);
        command.args(flags);
        command.arg(home.path().join("runs"));
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let keys = pty.master.take_writer().unwrap();
        let seen = Arc::new((Mutex::new(Seen { screen: screen(rows, cols), closed: false }), Condvar::new()));
        let mut output = pty.master.try_clone_reader().unwrap();
        let theirs = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = output.read(&mut buffer);
                // A failed assertion elsewhere poisons the lock; the reader goes on.
                let mut seen = theirs.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match read {
                    Ok(n) if n > 0 => seen.screen.process(&buffer[..n]),
                    _ => seen.closed = true,
                }
                theirs.1.notify_all();
                if seen.closed {
                    return;
                }
            }
        });
        Self { master: pty.master, keys, child, seen, settings_before, _home: home }
    }

    /// Waits until the screen is as `condition` says.
    fn until(&self, what: &str, condition: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        let mut seen = self.seen.0.lock().unwrap();
        while !condition(seen.screen.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let shown = || seen.screen.screen().contents();
            assert!(!left.is_zero(), "timed out waiting until {what}; the screen:\n{}", shown());
            assert!(!seen.closed, "the program ended before {what}; the screen:\n{}", shown());
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    fn until_shows(&self, text: &str) {
        self.until(&format!("it shows {text:?}"), |screen| screen.contents().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the end of the program; gives its exit status and what it left on the screen.
    fn end(mut self) -> (ExitStatus, String) {
        let mut seen = self.seen.0.lock().unwrap();
        let deadline = Instant::now() + TIMEOUT;
        while !seen.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the program does not end; the screen:\n{}", seen.screen.screen().contents());
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
        let status = self.child.wait().unwrap();
        let screen = seen.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen was left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        assert!(!screen.bracketed_paste(), "bracketed paste is off");
        assert_eq!(format!("{:?}", self.master.get_termios()), self.settings_before, "raw mode is off");
        (status, screen.contents())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Only matters after a failed assertion: nothing may outlive the test.
        drop(self.child.kill());
    }
}

#[test]
fn it_starts_draws_and_q_gives_the_terminal_back() {
    let mut terminal = Terminal::start(30, 100, &[]);
    terminal.until_shows("jar__jar-1");
    terminal.until("the alternate screen is on", vt100::Screen::alternate_screen);
    terminal.press("q");
    let (status, left) = terminal.end();
    assert!(status.success(), "{status:?}");
    assert_eq!(left.trim(), "", "nothing stays on the main screen");
}

#[test]
fn a_run_is_opened_and_left_again() {
    let mut terminal = Terminal::start(30, 100, &[]);
    terminal.until_shows("jar__jar-1");
    terminal.press("\r");
    terminal.until_shows("looking at the jar");
    terminal.press("?");
    terminal.until_shows("to the next attempt");
    terminal.press("?");
    terminal.until("the help is gone", |screen| !screen.contents().contains("to the next attempt"));
    terminal.press("q");
    terminal.until_shows("jar__jar-1");
    terminal.press("q");
    assert!(terminal.end().0.success());
}

#[test]
fn it_fills_a_window_that_grows() {
    let mut terminal = Terminal::start(24, 80, &[]);
    terminal.until_shows("jar__jar-1");
    // Growing only, and this screen first: vt100 cannot shrink over wide characters.
    let larger = (NonZeroU16::new(50).unwrap(), NonZeroU16::new(160).unwrap());
    terminal.seen.0.lock().unwrap().screen.screen_mut().set_size(larger.0, larger.1);
    terminal.master.resize(size(50, 160)).unwrap();
    terminal.until("something is drawn beyond column 100 and below row 30", |screen| {
        let beyond = screen.rows(100, 60).any(|row| !row.trim().is_empty());
        let below = screen.rows(0, 160).skip(30).any(|row| !row.trim().is_empty());
        beyond && below
    });
    terminal.press("q");
    assert!(terminal.end().0.success());
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_told() {
    let terminal = Terminal::start(30, 100, &["--debug-panic"]);
    let (status, left) = terminal.end();
    assert!(!status.success());
    assert!(left.contains("asked for by --debug-panic"), "{left}");
}

#[test]
fn signals_give_the_terminal_back() {
    for signal in ["TERM", "HUP", "INT"] {
        let terminal = Terminal::start(30, 100, &[]);
        terminal.until_shows("jar__jar-1");
        let pid = terminal.child.process_id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success());
        let (status, left) = terminal.end();
        assert!(status.success(), "{signal}: {status:?}");
        assert_eq!(left.trim(), "", "{signal}");
    }
}

#[test]
fn a_stopped_job_comes_back_redrawn() {
    let mut terminal = Terminal::start(30, 100, &[]);
    terminal.until_shows("jar__jar-1");
    // No shell is in charge here, so the system does not stop the job: it goes straight on, through the same way.
    terminal.press("\u{1a}");
    terminal.press("\r");
    terminal.until_shows("looking at the jar");
    terminal.press("q");
    terminal.until_shows("badges");
    terminal.press("q");
    assert!(terminal.end().0.success());
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    let home = tempfile::tempdir().unwrap();
    data(home.path());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_trajscope"))
        .env_clear()
        .env("HOME", home.path())
        .args(["--critic", "none"])
        .arg(home.path().join("runs"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("needs a terminal") && said.contains("trajscope score"), "{said}");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty());
}
