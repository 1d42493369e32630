//! The thin binary `minikafka-controller` over its library.
fn main() {}
