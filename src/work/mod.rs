//! Threads and bounded queues: the loader and the thread that owns the model.
