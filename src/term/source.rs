//! Where terminal events come from.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use crossterm::event::{Event, EventStream};
use futures_util::Stream as _;

/// A source of terminal events: the terminal, or a script in tests.
pub(super) trait EventSource {
    /// As `Stream::poll_next`: the next event, `None` when there will be no more.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Event>>>;
}

/// Waits for the next event. Dropping the future loses nothing.
pub(super) async fn next_event(source: &mut impl EventSource) -> Option<io::Result<Event>> {
    poll_fn(|cx| source.poll_event(cx)).await
}

/// The event that is already there, if there is one. It is asked for with the waker of the running task: the terminal
/// remembers only one waker, and must not be left with one that wakes nobody.
pub(super) async fn waiting_event(source: &mut impl EventSource) -> Option<Option<io::Result<Event>>> {
    poll_fn(|cx| match source.poll_event(cx) {
        Poll::Ready(event) => Poll::Ready(Some(event)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// The terminal.
#[derive(Default)]
pub(super) struct TerminalEvents(EventStream);

impl EventSource for TerminalEvents {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Event>>> {
        Pin::new(&mut self.0).poll_next(cx)
    }
}

/// Events from a channel, for tests.
#[cfg(test)]
pub(super) struct ScriptedEvents(pub(super) tokio::sync::mpsc::UnboundedReceiver<io::Result<Event>>);

#[cfg(test)]
impl EventSource for ScriptedEvents {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Event>>> {
        self.0.poll_recv(cx)
    }
}
