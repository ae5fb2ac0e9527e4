//! Threads and queues between the screen and the slow things: the critic and small latest-wins jobs. Everything here
//! talks by messages; nothing waits for a screen.

mod critic_thread;
mod event;
mod latest;
mod nice;
mod queue;

pub use critic_thread::CriticThread;
pub use event::WorkEvent;
pub use latest::LatestThread;
pub use queue::{InspectRequest, Priority, ScoreRequest};
