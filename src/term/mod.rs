//! The driver: terminal guard, event loop, frame pacing, effects.
