//! Bytes to trajectories: one table of formats, detection by content, tolerant decoders.
