//! Draws `&State`. Knows ratatui, changes nothing.
