//! Scores, labels and a person's moves to an order of attempts. Pure.
