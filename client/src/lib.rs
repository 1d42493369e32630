//! A Kafka client: producer, consumer of assigned partitions, and admin calls, over the Kafka wire protocol. It works against minikafka
//! and against Apache Kafka.
//!
//! [`Client`] holds configuration, connections and metadata; [`Producer`], [`Consumer`] and [`Admin`] are made from it. Configuration
//! keys are Kafka's, with the Java client's defaults ([`KEYS`] lists them). A producer tells the truth about each record: a
//! [`ProduceError`] carries every attempt, the last thing a broker said (also where a deadline came after it), and whether the record may
//! have been stored all the same.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use minikafka_client::{Client, NewTopic, Record};
//!
//! let client = Client::builder().bootstrap("127.0.0.1:9092").build()?;
//! let topic = NewTopic::new("orders").partitions(3).replication_factor(3).config("min.insync.replicas", "2");
//! client.admin().create_topics(&[topic], false).await?;
//!
//! let producer = client.producer();
//! match producer.send(Record::to("orders").value("hello")).await?.await {
//!     Ok(stored) => println!("stored at {:?}", stored.offset),
//!     Err(error) => println!("{error} (may be stored: {:?})", error.persisted()),
//! }
//! # Ok(())
//! # }
//! ```

mod admin;
mod backoff;
mod client;
mod config;
mod connection;
mod consumer;
mod error;
mod metadata;
mod producer;

#[cfg(test)]
mod scripted;

pub use admin::{
    Admin, ClusterDescription, ClusterNode, ConfigEntry, ConfigResource, ConfigSource, ConfigSynonym,
    CreatedTopic, EpochEnd, FoundOffset, NewTopic, OffsetSpec,
};
pub use client::{Client, ClientBuilder};
pub use config::{
    Acks, Address, ClientConfig, Compression, ConfigError, ConfigKey, IsolationLevel, KEYS, OffsetReset,
};
pub use connection::OfferedVersions;
pub use consumer::{Consumer, ConsumerBuilder, ConsumerRecord, Positions, Start};
pub use error::{BrokerError, Error};
pub use metadata::{Broker, ClusterView, PartitionView, TopicView};
pub use minikafka_model::batch::Header;
pub use producer::{
    Attempt, AttemptOutcome, CloseReport, Delivery, EnqueueError, GaveUp, PartitionState, Persisted,
    ProduceError, Producer, Record, Stored, murmur2, partition_of_key,
};
