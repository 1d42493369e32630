//! Invariants that must hold whatever comes in from outside. A broken one is a fault of ours: it panics with its number, and a
//! process runs with a panic hook that aborts. The list is docs/invariants.md.

/// Ends in a panic that names the invariant unless the condition holds.
macro_rules! invariant {
    ($id:literal, $condition:expr, $($why:tt)+) => {
        if !$condition {
            panic!("invariant {} is broken: {}", $id, format_args!($($why)+));
        }
    };
}
pub(crate) use invariant;
