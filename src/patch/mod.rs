//! Candidate patches: parsing, normalising, comparing. Never fails as a whole.
