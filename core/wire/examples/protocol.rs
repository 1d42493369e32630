//! Prints `docs/protocol.md`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(minikafka_wire::doc::protocol().as_bytes())
}
