//! Hostile text and terminal columns: the leaf everything that is drawn goes through.
