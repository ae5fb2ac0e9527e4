//! The event loop: wait, drain everything that waits, draw once.

use std::future::Future;
use std::io;
use std::time::Duration;

use crossterm::event::Event;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::source::{EventSource, next_event, waiting_event};

/// At least this long from one frame to the next: 60 frames a second are all a terminal shows.
const FRAME: Duration = Duration::from_millis(16);
/// A flood of messages may hold back the frame for so many of them,
const MAX_DRAINED: usize = 256;
/// or for so long.
const MAX_DRAINING: Duration = Duration::from_millis(4);

/// What came of an event or message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing that is to be seen.
    Ignored,
    /// The screen is to be drawn.
    Changed,
    /// The program is to be left.
    Quit,
}

/// The loop around a state `S` that is changed by terminal events and by messages `M` from other threads.
pub(super) struct Driver<S, M> {
    /// What is shown.
    pub(super) state: S,
    /// Applies a terminal event.
    pub(super) on_event: fn(&mut S, Event) -> Outcome,
    /// Applies a message.
    pub(super) on_message: fn(&mut S, M) -> Outcome,
    /// Draws a frame.
    pub(super) draw: fn(&mut S) -> io::Result<()>,
}

/// When the next frame may and must be drawn.
#[derive(Debug, Default)]
struct Pacer {
    dirty: bool,
    last: Option<Instant>,
}

impl Pacer {
    /// When the frame is due; `None` while there is nothing new to see.
    fn due(&self) -> Option<Instant> {
        self.dirty.then(|| self.last.map_or_else(Instant::now, |last| last + FRAME))
    }

    fn is_due(&self) -> bool {
        self.due().is_some_and(|due| due <= Instant::now())
    }

    fn drawn(&mut self) {
        self.dirty = false;
        self.last = Some(Instant::now());
    }
}

/// What woke the loop.
enum Wake<M> {
    Stop,
    Event(Option<io::Result<Event>>),
    Message(M),
    Frame,
}

impl<S, M> Driver<S, M> {
    /// Runs until the state wants to quit, `stop` is ready, or there are no more terminal events.
    ///
    /// # Errors
    /// The terminal cannot be read or drawn to.
    pub(super) async fn run(
        &mut self,
        events: &mut impl EventSource,
        messages: &mut Receiver<M>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        tokio::pin!(stop);
        let mut pacer = Pacer { dirty: true, last: None };
        loop {
            let due = pacer.due();
            let wake = tokio::select! {
                biased;
                () = &mut stop => Wake::Stop,
                event = next_event(events) => Wake::Event(event),
                Some(message) = messages.recv() => Wake::Message(message),
                () = sleep_until(due) => Wake::Frame,
            };
            let outcome = match wake {
                Wake::Stop | Wake::Event(None) => Outcome::Quit,
                Wake::Event(Some(event)) => self.drain(Wake::Event(Some(event)), events, messages, &mut pacer).await?,
                Wake::Message(message) => self.drain(Wake::Message(message), events, messages, &mut pacer).await?,
                Wake::Frame => Outcome::Ignored,
            };
            if outcome == Outcome::Quit {
                return Ok(());
            }
            if pacer.is_due() {
                (self.draw)(&mut self.state)?;
                pacer.drawn();
            }
        }
    }

    /// Applies `first` and everything else that is already there, keys before messages.
    async fn drain(
        &mut self,
        first: Wake<M>,
        events: &mut impl EventSource,
        messages: &mut Receiver<M>,
        pacer: &mut Pacer,
    ) -> io::Result<Outcome> {
        let until = Instant::now() + MAX_DRAINING;
        let mut next = Some(first);
        let mut drained = 0;
        while let Some(wake) = next {
            let outcome = match wake {
                Wake::Event(None) => Outcome::Quit,
                Wake::Event(Some(event)) => (self.on_event)(&mut self.state, event?),
                Wake::Message(message) => (self.on_message)(&mut self.state, message),
                Wake::Stop | Wake::Frame => Outcome::Ignored,
            };
            drained += 1;
            match outcome {
                Outcome::Quit => return Ok(Outcome::Quit),
                Outcome::Changed => pacer.dirty = true,
                Outcome::Ignored => {}
            }
            // Before the next is taken: what was taken must be applied.
            if drained == MAX_DRAINED || Instant::now() > until {
                break;
            }
            let event = waiting_event(events).await.map(Wake::Event);
            next = event.or_else(|| messages.try_recv().ok().map(Wake::Message));
        }
        Ok(Outcome::Ignored)
    }
}

/// Sleeps until a moment; forever if there is none: an idle program is never woken.
async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use tokio::sync::mpsc::{self, Sender, UnboundedSender};
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::term::source::ScriptedEvents;

    /// What the tests see of the loop: the messages applied, and at which one each frame was drawn.
    #[derive(Default)]
    struct Seen {
        applied: Vec<u32>,
        frames: Vec<(usize, Instant)>,
    }

    type Shared = Arc<Mutex<Seen>>;

    struct Loop {
        seen: Shared,
        events: UnboundedSender<io::Result<Event>>,
        messages: Sender<u32>,
        stop: oneshot::Sender<()>,
        task: JoinHandle<io::Result<()>>,
    }

    const QUIT: u32 = 999;
    const IGNORED: u32 = 888;

    fn apply(seen: &mut Shared, message: u32) -> Outcome {
        seen.lock().unwrap().applied.push(message);
        match message {
            QUIT => Outcome::Quit,
            IGNORED => Outcome::Ignored,
            _ => Outcome::Changed,
        }
    }

    fn key(c: char) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    fn start() -> Loop {
        let seen = Shared::default();
        let mut driver = Driver {
            state: Arc::clone(&seen),
            on_event: |seen, event| match event {
                Event::Key(KeyEvent { code: KeyCode::Char(c), .. }) => apply(seen, u32::from(c)),
                _ => Outcome::Ignored,
            },
            on_message: apply,
            draw: |seen| {
                let mut seen = seen.lock().unwrap();
                let applied = seen.applied.len();
                seen.frames.push((applied, Instant::now()));
                Ok(())
            },
        };
        let (events, scripted) = mpsc::unbounded_channel();
        let (messages, mut received) = mpsc::channel(1024);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stop = async {
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            driver.run(&mut ScriptedEvents(scripted), &mut received, stop).await
        });
        Loop { seen, events, messages, stop, task }
    }

    impl Loop {
        fn frames(&self) -> Vec<usize> {
            self.seen.lock().unwrap().frames.iter().map(|(applied, _)| *applied).collect()
        }

        fn applied(&self) -> Vec<u32> {
            self.seen.lock().unwrap().applied.clone()
        }
    }

    /// Lets the paused clock run on; every timer due in between fires.
    async fn pass(milliseconds: u64) {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_ticks_when_idle() {
        let program = start();
        pass(1).await;
        assert_eq!(program.frames(), [0], "the first frame is drawn at once");
        pass(3_600_000).await;
        assert_eq!(program.frames(), [0], "an hour without a message draws nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_one_frame() {
        let program = start();
        pass(100).await;
        for message in 0..200 {
            program.messages.try_send(message).unwrap();
        }
        pass(1).await;
        assert_eq!(program.frames(), [0, 200]);
    }

    #[tokio::test(start_paused = true)]
    async fn frames_keep_their_distance_and_the_last_state_is_drawn() {
        let program = start();
        for message in 0..100 {
            program.messages.send(message).await.unwrap();
            pass(1).await;
        }
        pass(20).await;
        let seen = program.seen.lock().unwrap();
        let gaps = seen.frames.windows(2).map(|pair| pair[1].1 - pair[0].1).collect::<Vec<_>>();
        assert!(gaps.iter().all(|gap| *gap >= FRAME), "{gaps:?}");
        assert!(seen.frames.len() <= 9, "{}", seen.frames.len());
        assert_eq!(seen.frames.last().unwrap().0, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_go_before_messages_and_both_are_drained_in_order() {
        let program = start();
        pass(100).await;
        for message in 1..=3 {
            program.messages.try_send(message).unwrap();
        }
        for c in ['a', 'b'] {
            program.events.send(Ok(key(c))).unwrap();
        }
        pass(1).await;
        assert_eq!(program.applied(), [97, 98, 1, 2, 3]);
        assert_eq!(program.frames(), [0, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_nothing_draws_nothing() {
        let program = start();
        pass(100).await;
        program.messages.send(IGNORED).await.unwrap();
        program.events.send(Ok(Event::FocusGained)).unwrap();
        pass(100).await;
        assert_eq!(program.frames(), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_does_not_starve_the_screen() {
        let program = start();
        pass(100).await;
        for message in 0..600 {
            program.messages.try_send(message).unwrap();
        }
        pass(1).await;
        assert_eq!(program.frames(), [0, MAX_DRAINED], "a frame after the first part");
        pass(40).await;
        assert_eq!(program.applied().len(), 600);
        assert_eq!(program.frames().last(), Some(&600));
        assert!(program.frames().len() <= 4, "{:?}", program.frames());
    }

    #[tokio::test(start_paused = true)]
    async fn quitting_while_busy_does_not_wait_for_the_rest() {
        let program = start();
        for message in [1, QUIT, 2] {
            program.messages.try_send(message).unwrap();
        }
        let seen = Arc::clone(&program.seen);
        program.task.await.unwrap().unwrap();
        assert_eq!(seen.lock().unwrap().applied, [1, QUIT]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_ends_it() {
        let program = start();
        pass(1).await;
        program.stop.send(()).unwrap();
        program.task.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_terminal_that_is_gone_ends_it() {
        let program = start();
        drop(program.events);
        program.task.await.unwrap().unwrap();
        let program = start();
        program.events.send(Err(io::Error::other("unplugged"))).unwrap();
        assert_eq!(program.task.await.unwrap().unwrap_err().to_string(), "unplugged");
    }

    #[tokio::test(start_paused = true)]
    async fn senders_that_are_gone_do_not_keep_it_awake() {
        let program = start();
        drop(program.messages);
        pass(1000).await;
        program.events.send(Ok(key('q'))).unwrap();
        pass(100).await;
        assert_eq!(program.seen.lock().unwrap().frames.len(), 2);
    }

    /// Remembers the first waker it is asked with until it has woken it, as crossterm's stream does.
    #[derive(Default, Clone)]
    struct OneWaker(Arc<Mutex<(Vec<Event>, Option<std::task::Waker>)>>);

    impl EventSource for OneWaker {
        fn poll_event(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<io::Result<Event>>> {
            let mut inner = self.0.lock().unwrap();
            if let Some(event) = inner.0.pop() {
                return std::task::Poll::Ready(Some(Ok(event)));
            }
            inner.1.get_or_insert_with(|| cx.waker().clone());
            std::task::Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_after_a_drain_still_wake_the_loop() {
        let source = OneWaker::default();
        let (_messages, mut received) = mpsc::channel::<u32>(8);
        let mut driver = Driver {
            state: Shared::default(),
            on_event: |_, event| if event == key('q') { Outcome::Quit } else { Outcome::Changed },
            on_message: apply,
            draw: |_| Ok(()),
        };
        let mut events = source.clone();
        let stop = std::future::pending();
        let task = tokio::spawn(async move { driver.run(&mut events, &mut received, stop).await });
        // The first key is followed by a drain, which must leave a waker that wakes the loop for the second.
        for c in ['a', 'q'] {
            pass(100).await;
            let waker = {
                let mut inner = source.0.lock().unwrap();
                inner.0.push(key(c));
                inner.1.take()
            };
            waker.expect("the loop waits for a key").wake();
        }
        tokio::time::timeout(Duration::from_secs(1), task).await.expect("the key is seen").unwrap().unwrap();
    }
}
