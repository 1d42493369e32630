//! The `minikafka` command.
fn main() {}
