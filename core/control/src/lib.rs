//! The controller's mind: registration, leases, topics, placement, elections, ISR changes.
