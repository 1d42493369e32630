//! Prints `docs/configuration.md`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(minikafka_model::config::reference().as_bytes())
}
