//! The thin binary `minikafka-broker` over its library.
fn main() {}
