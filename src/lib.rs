//! `trajscope` opens agent trajectories, lets a critic (a reward model) predict the reward of every action, shows
//! where the reward drops and why, and helps to choose one of N candidate patches.
//!
//! The modules in reading order; data flows from the top to the bottom (see ARCHITECTURE.md):

pub mod text;
pub mod trajectory;

pub mod formats;
pub mod patch;

pub mod critic;
pub mod engine;
pub mod rank;

pub mod config;
pub mod export;
pub mod work;

pub mod app;
pub mod ui;

pub mod cli;
pub mod term;

#[doc(hidden)]
pub mod testing;
