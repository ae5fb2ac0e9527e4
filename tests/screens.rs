//! The application without a terminal: messages in, state and effects out, and every screen as snapshots of its text
//! and its styles. The runs are small ones written for these tests.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod screens {
    pub mod fixture;
    pub mod shot;

    mod corpus;
    mod export;
    mod hostile;
    mod keys;
    mod loading;
    mod ranking;
    mod scoring;
    mod snapshots;
    mod speed;
    mod timeline;
}
