//! The `trajscope` binary: a thin shell over the library.

fn main() {}
