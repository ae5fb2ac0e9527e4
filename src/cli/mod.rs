//! The command line: what was typed, what it means, and the commands.
