//! The log on disk: segments, indexes, epoch history, checkpoints, producer state, recovery.
