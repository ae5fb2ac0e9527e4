//! Writers of what leaves the program: predictions, JSON lines.
