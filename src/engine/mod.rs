//! The only module that knows candle and tokenizers: loads a checkpoint, runs it, reads values.
