//! What the active controller did and why, with its numbers. The shell keeps these in its ring and writes their sentence to its log.

use std::fmt;
use std::sync::Arc;

use minikafka_model::{
    BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, PartitionEpoch, PartitionIndex, ProducerId, TopicId,
};
use serde::Serialize;

/// A decision of the controller. It is told when the decision is made; it counts once its records are committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ControlEvent {
    /// A broker registered.
    Registration {
        /// Who.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
        /// New, or the same process again.
        reason: &'static str,
    },
    /// A registration was refused.
    RegistrationRefused {
        /// Who.
        broker: BrokerId,
        /// The code.
        code: i16,
        /// Why.
        reason: String,
    },
    /// A broker was fenced.
    Fencing {
        /// Who.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
        /// Why.
        reason: &'static str,
        /// How long ago it had last been heard of, in milliseconds.
        silent_ms: Option<u64>,
    },
    /// A broker was unfenced.
    Unfencing {
        /// Who.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
        /// How far it had applied the metadata.
        metadata_offset: Option<MetadataOffset>,
    },
    /// A broker began its controlled shutdown.
    ControlledShutdown {
        /// Who.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
        /// Partitions it led.
        led: usize,
    },
    /// A broker was told that it may end.
    Shutdown {
        /// Who.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
    },
    /// A broker lost log directories.
    LogDirsOffline {
        /// Who.
        broker: BrokerId,
        /// How many failed.
        failed: usize,
        /// How many are left.
        left: usize,
    },
    /// A broker was removed.
    Unregistration {
        /// Who.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
    },
    /// A partition has another leader, or none any more.
    Election {
        /// The topic's name.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// The leader before.
        from: Option<BrokerId>,
        /// The leader now.
        to: Option<BrokerId>,
        /// The leader epoch now.
        leader_epoch: LeaderEpoch,
        /// The partition epoch now.
        partition_epoch: PartitionEpoch,
        /// The ISR now.
        isr: Vec<BrokerId>,
        /// It may have lost records: the leader was not known to hold all that was committed.
        unclean: bool,
        /// Why.
        reason: &'static str,
    },
    /// A partition's ISR got smaller.
    IsrShrink {
        /// The topic's name.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// Before.
        from: Vec<BrokerId>,
        /// Now.
        to: Vec<BrokerId>,
        /// The partition epoch now.
        partition_epoch: PartitionEpoch,
        /// Why.
        reason: &'static str,
    },
    /// A partition's ISR got bigger, or got another member.
    IsrExpand {
        /// The topic's name.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// Before.
        from: Vec<BrokerId>,
        /// Now.
        to: Vec<BrokerId>,
        /// The partition epoch now.
        partition_epoch: PartitionEpoch,
        /// Why.
        reason: &'static str,
    },
    /// An ISR proposal was not taken.
    IsrRefused {
        /// The topic's name or id.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// The leader that proposed it.
        broker: BrokerId,
        /// The code.
        code: i16,
        /// Which rule.
        reason: String,
    },
    /// A topic was created.
    TopicCreated {
        /// Its name.
        topic: Arc<str>,
        /// Its id.
        topic_id: TopicId,
        /// Its number of partitions.
        partitions: usize,
        /// Its replication factor.
        replication_factor: usize,
    },
    /// A topic was deleted.
    TopicDeleted {
        /// Its name.
        topic: Arc<str>,
        /// Its id.
        topic_id: TopicId,
    },
    /// A topic got more partitions.
    PartitionsCreated {
        /// Its name.
        topic: Arc<str>,
        /// How many it had.
        from: usize,
        /// How many it has.
        to: usize,
    },
    /// A reassignment began, ended or was cancelled.
    Reassignment {
        /// The topic's name.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// Begun, completed or cancelled.
        reason: &'static str,
        /// The replicas now.
        replicas: Vec<BrokerId>,
        /// Being added.
        adding: Vec<BrokerId>,
        /// Being removed.
        removing: Vec<BrokerId>,
    },
    /// A broker got a block of producer ids.
    ProducerIds {
        /// Who.
        broker: BrokerId,
        /// The first id.
        first: ProducerId,
        /// How many.
        count: u32,
    },
    /// Dynamic configuration was changed.
    ConfigChange {
        /// Whose.
        resource: String,
        /// The key.
        key: String,
        /// The value; none is deleted.
        value: Option<String>,
    },
    /// A feature has another level.
    FeatureLevel {
        /// Which.
        feature: String,
        /// The level.
        level: u16,
    },
}

/// A list of brokers as Kafka prints it: `1,2,3`.
struct Members<'a>(&'a [BrokerId]);

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nobody");
        }
        for (n, member) in self.0.iter().enumerate() {
            write!(f, "{}{member}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for ControlEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlEvent::Election { .. }
            | ControlEvent::IsrShrink { .. }
            | ControlEvent::IsrExpand { .. }
            | ControlEvent::IsrRefused { .. }
            | ControlEvent::Reassignment { .. } => self.of_partition(f),
            ControlEvent::Registration { broker, broker_epoch, reason } => {
                write!(f, "Registered broker {broker} with broker epoch {broker_epoch} ({reason})")
            }
            ControlEvent::RegistrationRefused { broker, code, reason } => {
                write!(f, "Refused the registration of broker {broker} with error {code}: {reason}")
            }
            ControlEvent::Fencing { broker, broker_epoch, reason, silent_ms } => {
                write!(f, "Fencing broker {broker} with broker epoch {broker_epoch}: {reason}")?;
                silent_ms.map_or(Ok(()), |ms| write!(f, ", last heard of {ms} ms ago"))
            }
            ControlEvent::Unfencing { broker, broker_epoch, metadata_offset } => {
                write!(f, "Unfencing broker {broker} with broker epoch {broker_epoch}")?;
                metadata_offset.map_or(Ok(()), |at| write!(f, ", caught up to metadata offset {at}"))
            }
            ControlEvent::ControlledShutdown { broker, broker_epoch, led } => write!(
                f,
                "Controlled shutdown of broker {broker} with broker epoch {broker_epoch}: moving {led} leaderships away"
            ),
            ControlEvent::Shutdown { broker, broker_epoch } => {
                write!(f, "Broker {broker} with broker epoch {broker_epoch} may shut down now")
            }
            ControlEvent::LogDirsOffline { broker, failed, left } => {
                write!(f, "Broker {broker} lost {failed} log directories; {left} are left")
            }
            ControlEvent::Unregistration { broker, broker_epoch } => {
                write!(f, "Unregistered broker {broker} with broker epoch {broker_epoch}")
            }
            ControlEvent::TopicCreated { topic, topic_id, partitions, replication_factor } => write!(
                f,
                "Created topic {topic} with topic ID {topic_id}: {partitions} partitions, replication factor {replication_factor}"
            ),
            ControlEvent::TopicDeleted { topic, topic_id } => {
                write!(f, "Removed topic {topic} with topic ID {topic_id}")
            }
            ControlEvent::PartitionsCreated { topic, from, to } => {
                write!(f, "Topic {topic} has {to} partitions instead of {from}")
            }
            ControlEvent::ProducerIds { broker, first, count } => {
                write!(f, "Gave broker {broker} the block of {count} producer ids from {first}")
            }
            ControlEvent::ConfigChange { resource, key, value: Some(value) } => {
                write!(f, "Set {key}={value} for {resource}")
            }
            ControlEvent::ConfigChange { resource, key, value: None } => {
                write!(f, "Deleted {key} for {resource}")
            }
            ControlEvent::FeatureLevel { feature, level } => {
                write!(f, "Feature {feature} has level {level}")
            }
        }
    }
}

impl ControlEvent {
    fn of_partition(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlEvent::Election {
                topic,
                partition,
                from,
                to,
                leader_epoch,
                partition_epoch,
                isr,
                unclean,
                reason,
            } => {
                match to {
                    Some(to) if *unclean => write!(
                        f,
                        "UNCLEAN election of broker {to} as leader of {topic}-{partition}, records may be lost,"
                    )?,
                    Some(to) => write!(f, "Elected broker {to} leader of {topic}-{partition}")?,
                    None => write!(f, "No leader for {topic}-{partition}")?,
                }
                let isr = Members(isr);
                write!(
                    f,
                    " in leader epoch {leader_epoch} (partition epoch {partition_epoch}, ISR {isr}) after "
                )?;
                match from {
                    Some(from) => write!(f, "broker {from}: {reason}"),
                    None => write!(f, "no leader: {reason}"),
                }
            }
            ControlEvent::IsrShrink { topic, partition, from, to, partition_epoch, reason } => write!(
                f,
                "Shrinking ISR of {topic}-{partition} from {} to {} in partition epoch {partition_epoch}: {reason}",
                Members(from),
                Members(to)
            ),
            ControlEvent::IsrExpand { topic, partition, from, to, partition_epoch, reason } => write!(
                f,
                "Expanding ISR of {topic}-{partition} from {} to {} in partition epoch {partition_epoch}: {reason}",
                Members(from),
                Members(to)
            ),
            ControlEvent::IsrRefused { topic, partition, broker, code, reason } => write!(
                f,
                "Refused the ISR that broker {broker} proposed for {topic}-{partition} with error {code}: {reason}"
            ),
            ControlEvent::Reassignment { topic, partition, reason, replicas, adding, removing } => {
                write!(f, "Reassignment of {topic}-{partition} {reason}: replicas {}", Members(replicas))?;
                if !adding.is_empty() || !removing.is_empty() {
                    write!(f, ", adding {}, removing {}", Members(adding), Members(removing))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
