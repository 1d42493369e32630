//! Deterministic simulation of a whole cluster over the quiet rooms.
