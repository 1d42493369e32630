//! What brokers ask and are answered, to and from its contract. Here, because `proto` must not know `core/control`.

use bytes::Bytes;
use minikafka_control::{
    AlterPartition, AlteredPartition, Assignment, BrokerIdentity, Command, ConfigEntry, CreateTopics,
    CreatedTopic, DeleteTopics, DeletedTopic, Heartbeat, IsrMember, NewIsr, NewTopic, Refusal,
    RegisterBroker, TopicSelector,
};
use minikafka_metadata::{Listener, Recovery};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, DirectoryId, IncarnationId, LeaderEpoch, MetadataOffset,
    PartitionEpoch, PartitionIndex, TopicId, TopicPartition, Uuid,
};
use minikafka_proto::cluster as wire;

/// An id that is not sixteen bytes.
pub(crate) fn uuid(bytes: &[u8], what: &str) -> Result<Uuid, String> {
    let bytes: [u8; 16] =
        bytes.try_into().map_err(|_| format!("{what} has {} bytes, 16 are wanted", bytes.len()))?;
    Ok(Uuid::from_bytes(bytes))
}

fn id(uuid: Uuid) -> Bytes {
    Bytes::copy_from_slice(&uuid.to_bytes())
}

fn who(caller: &wire::Caller, epoch: i64) -> BrokerIdentity {
    BrokerIdentity { broker: BrokerId(caller.node_id), epoch: BrokerEpoch(epoch) }
}

fn directories(ids: &[Bytes]) -> Result<Vec<DirectoryId>, String> {
    ids.iter().map(|bytes| uuid(bytes, "a log directory's id").map(DirectoryId)).collect()
}

pub(crate) fn register(caller: &wire::Caller, m: wire::RegisterBrokerRequest) -> Result<Command, String> {
    let listener = |l: wire::Listener| {
        let port =
            u16::try_from(l.port).map_err(|_| format!("listener {}: {} is no port", l.name, l.port))?;
        Ok(Listener { name: l.name, host: l.host, port, security_protocol: l.security_protocol })
    };
    Ok(Command::RegisterBroker(RegisterBroker {
        broker: BrokerId(caller.node_id),
        cluster: ClusterId(caller.cluster_id.clone()),
        incarnation: IncarnationId(uuid(&m.incarnation_id, "the incarnation id")?),
        listeners: m.listeners.into_iter().map(listener).collect::<Result<_, String>>()?,
        rack: m.rack,
        log_dirs: directories(&m.log_dirs)?,
        previous_epoch: m.previous_broker_epoch.map(BrokerEpoch),
    }))
}

pub(crate) fn heartbeat(caller: &wire::Caller, m: &wire::HeartbeatRequest) -> Result<Command, String> {
    Ok(Command::Heartbeat(Heartbeat {
        from: who(caller, m.broker_epoch),
        metadata_offset: (m.metadata_offset >= 0).then_some(MetadataOffset(m.metadata_offset)),
        want_fence: m.want_fence,
        want_shut_down: m.want_shutdown,
        offline_log_dirs: directories(&m.offline_log_dirs)?,
    }))
}

pub(crate) fn producer_ids(caller: &wire::Caller, m: &wire::AllocateProducerIdsRequest) -> Command {
    Command::AllocateProducerIds(who(caller, m.broker_epoch))
}

pub(crate) fn alter_partition(
    caller: &wire::Caller,
    m: &wire::AlterPartitionRequest,
) -> Result<Command, String> {
    let member = |m: &wire::IsrMember| IsrMember {
        broker: BrokerId(m.broker_id),
        epoch: m.broker_epoch.map(BrokerEpoch),
    };
    let item = |item: &wire::AlterPartitionItem| {
        Ok(NewIsr {
            at: TopicPartition {
                topic: TopicId(uuid(&item.topic_id, "a topic id")?),
                partition: PartitionIndex(item.partition),
            },
            leader_epoch: LeaderEpoch(item.leader_epoch),
            partition_epoch: PartitionEpoch(item.partition_epoch),
            isr: item.new_isr.iter().map(member).collect(),
            recovering: item.recovering,
        })
    };
    let items = m.items.iter().map(item).collect::<Result<_, String>>()?;
    Ok(Command::AlterPartition(AlterPartition { from: who(caller, m.broker_epoch), items }))
}

pub(crate) fn altered(result: AlteredPartition) -> wire::AlterPartitionResult {
    let at = result.at;
    let mut out = wire::AlterPartitionResult {
        topic_id: id(at.topic.0),
        partition: at.partition.0,
        ..wire::AlterPartitionResult::default()
    };
    match result.outcome {
        Ok(state) => {
            out.leader = state.leader.map(|leader| leader.0);
            out.leader_epoch = state.leader_epoch.0;
            out.partition_epoch = state.partition_epoch.0;
            out.isr = state.isr.iter().map(|member| member.0).collect();
            out.recovering = state.recovery == Recovery::Recovering;
        }
        Err(code) => out.error_code = i32::from(code.code()),
    }
    out
}

pub(crate) fn create_topics(m: wire::CreateTopicsRequest) -> Command {
    let topic = |t: wire::CreateTopic| NewTopic {
        name: t.name,
        partitions: (t.partitions != -1).then_some(t.partitions),
        replication_factor: (t.replication_factor != -1).then_some(t.replication_factor),
        assignments: t
            .assignments
            .into_iter()
            .map(|a| Assignment {
                partition: PartitionIndex(a.partition),
                brokers: a.brokers.into_iter().map(BrokerId).collect(),
            })
            .collect(),
        configs: t.configs.into_iter().map(|c| (c.name, c.value)).collect(),
    };
    let topics = m.topics.into_iter().map(topic).collect();
    Command::CreateTopics(CreateTopics { topics, validate_only: m.validate_only })
}

fn refused(refusal: Refusal) -> (i32, Option<String>) {
    (i32::from(refusal.code.code()), refusal.message)
}

fn config(entry: ConfigEntry) -> wire::ConfigEntry {
    wire::ConfigEntry {
        name: entry.name,
        value: entry.value,
        read_only: entry.read_only,
        source: entry.source as i32,
        sensitive: entry.sensitive,
    }
}

pub(crate) fn created(topic: CreatedTopic) -> wire::CreatedTopic {
    let mut out = wire::CreatedTopic { name: topic.name, ..wire::CreatedTopic::default() };
    match topic.outcome {
        Ok(facts) => {
            out.topic_id = id(facts.id.0);
            out.partitions = facts.partitions;
            out.replication_factor = facts.replication_factor;
            out.configs = facts.configs.into_iter().map(config).collect();
        }
        Err(refusal) => (out.error_code, out.message) = refused(refusal),
    }
    out
}

pub(crate) fn delete_topics(m: wire::DeleteTopicsRequest) -> Result<Command, String> {
    let topic = |t: wire::DeleteTopic| {
        let id = t.topic_id.map(|bytes| uuid(&bytes, "a topic id").map(TopicId)).transpose()?;
        Ok(TopicSelector { name: t.name, id })
    };
    let topics = m.topics.into_iter().map(topic).collect::<Result<_, String>>()?;
    Ok(Command::DeleteTopics(DeleteTopics { topics }))
}

pub(crate) fn deleted(topic: DeletedTopic) -> wire::DeletedTopic {
    let (error_code, message) = topic.outcome.err().map_or((0, None), refused);
    let topic_id = topic.id.map(|topic| id(topic.0)).unwrap_or_default();
    wire::DeletedTopic { name: topic.name, topic_id, error_code, message }
}
