//! The Kafka wire protocol: one field table per API, both directions.
