//! State and the pure `update(state, message) -> effects`. No I/O, no clock, no terminal.
