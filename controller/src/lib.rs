//! The controller process: raft thread, metadata log, the desk of the active controller, the feed to brokers.
