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
mod guard;
mod keys;
mod log;
mod source;
