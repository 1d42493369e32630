//! A sans-io Raft for the metadata log: static voters, pre-vote, check-quorum, leadership transfer, snapshots.
