//! Threads and queues between the screen and the slow things: reading files, the critic, syntax classes. Everything
//! here talks by messages; nothing waits for a screen.

mod critic_thread;
mod event;
pub mod highlight;
mod latest;
mod loader;
mod nice;
mod queue;
mod watch;

pub use critic_thread::CriticThread;
pub use event::WorkEvent;
pub use latest::LatestThread;
pub use loader::spawn_loader;
pub use queue::{InspectRequest, Priority, ScoreRequest};

/// The message of a caught panic.
fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
