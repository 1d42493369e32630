//! The broker process: the door for Kafka clients, the door for followers, fetcher threads, the link to the controllers.
