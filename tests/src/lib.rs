//! End to end tests: real processes, real clients; and tests of the house itself (see `README.md`).
