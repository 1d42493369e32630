//! A Kafka client library: producer, consumer and admin over the Kafka wire protocol.
