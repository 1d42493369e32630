//! One replica of one partition: roles, follower progress, high watermark, ISR rules, waiters, fetch sessions.
