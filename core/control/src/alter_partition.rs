//! ISR changes: the leader's judgement, the controller's commit (Kafka semantics 2.6). The order of the checks is Kafka's and decides
//! which code a leader sees.

use std::collections::BTreeSet;

use minikafka_metadata::{PartitionState, Recovery};
use minikafka_model::{BrokerId, ErrorCode};

use crate::answer::{AlteredPartition, Answer, PartitionOutcome};
use crate::command::{AlterPartition, NewIsr};
use crate::draft::{Draft, Exclusion};
use crate::election::Wish;
use crate::event::ControlEvent;
use crate::seeded::{Faults, SeededBug};

/// A code and the rule behind it.
type Objection = (ErrorCode, String);

impl Draft<'_> {
    pub(crate) fn alter_partition(&mut self, it: &AlterPartition) -> Answer {
        if let Err(refusal) = self.check_identity(it.from) {
            return Answer::Refused(refusal);
        }
        let leader = it.from.broker;
        let results = it
            .items
            .iter()
            .map(|item| AlteredPartition { at: item.at, outcome: self.alter_one(leader, item) })
            .collect();
        Answer::AlteredPartitions(results)
    }

    fn alter_one(&mut self, sender: BrokerId, item: &NewIsr) -> Result<PartitionOutcome, ErrorCode> {
        let at = item.at;
        if let Err((code, reason)) = self.check_new_isr(sender, item) {
            let topic = self.name(at.topic);
            let (partition, code_number) = (at.partition, code.code());
            self.tell(ControlEvent::IsrRefused {
                topic,
                partition,
                broker: sender,
                code: code_number,
                reason,
            });
            return Err(code);
        }
        let wish = Wish {
            recovery: Some(if item.recovering { Recovery::Recovering } else { Recovery::Recovered }),
            ..Wish::isr(item.isr.iter().map(|member| member.broker).collect())
        };
        let kind = self.usual_kind(at.topic);
        let change = self.edit(at, wish, kind, Exclusion::default(), "the leader proposed it");
        let after = match change {
            Some(change) if change.after.leader != Some(sender) => return Err(ErrorCode::NewLeaderElected),
            Some(change) => change.after,
            None => self
                .image
                .partition(at)
                .map(|state| PartitionState::clone(state))
                .ok_or(ErrorCode::UnknownServerError)?,
        };
        Ok(PartitionOutcome {
            leader: after.leader,
            leader_epoch: after.leader_epoch,
            partition_epoch: after.partition_epoch,
            isr: after.isr,
            recovery: after.recovery,
        })
    }

    fn check_new_isr(&self, sender: BrokerId, item: &NewIsr) -> Result<(), Objection> {
        let topic = self.image.topic(item.at.topic);
        let topic = topic.ok_or((ErrorCode::UnknownTopicId, "the topic does not exist".to_owned()))?;
        let state = topic.partitions.get(&item.at.partition);
        let state =
            state.ok_or((ErrorCode::UnknownTopicOrPartition, "the partition does not exist".to_owned()))?;
        check_epochs(state, sender, item, self.config.faults)?;
        check_shape(state, item)?;
        self.check_members(item)
    }

    /// Nobody joins an ISR who is not alive in exactly the life that the leader saw (KIP-841, KIP-903).
    fn check_members(&self, item: &NewIsr) -> Result<(), Objection> {
        if self.config.faults.has(SeededBug::IneligibleMemberJoins) {
            return Ok(());
        }
        for member in &item.isr {
            let why = match self.image.broker(member.broker) {
                None => "is not registered".to_owned(),
                Some(known) if known.fenced => "is fenced".to_owned(),
                Some(known) if known.in_controlled_shutdown => "is in controlled shutdown".to_owned(),
                Some(known) => match member.epoch {
                    Some(epoch)
                        if epoch != known.epoch
                            && !self.config.faults.has(SeededBug::MemberEpochNotChecked) =>
                    {
                        format!("has broker epoch {}, not {epoch}", known.epoch)
                    }
                    _ => continue,
                },
            };
            return Err((ErrorCode::IneligibleReplica, format!("broker {} {why}", member.broker)));
        }
        Ok(())
    }
}

fn check_epochs(
    state: &PartitionState,
    sender: BrokerId,
    item: &NewIsr,
    faults: Faults,
) -> Result<(), Objection> {
    let (leader_epoch, partition_epoch) = (state.leader_epoch, state.partition_epoch);
    if item.leader_epoch > leader_epoch || item.partition_epoch > partition_epoch {
        return Err((
            ErrorCode::NotController,
            format!(
                "it is built on leader epoch {} and partition epoch {}, this controller is at {leader_epoch} and {partition_epoch}",
                item.leader_epoch, item.partition_epoch
            ),
        ));
    }
    if item.leader_epoch < leader_epoch && !faults.has(SeededBug::OldLeaderEpochTaken) {
        return Err((
            ErrorCode::FencedLeaderEpoch,
            format!("it is built on leader epoch {}, the partition is at {leader_epoch}", item.leader_epoch),
        ));
    }
    if state.leader != Some(sender) {
        return Err((ErrorCode::InvalidRequest, format!("broker {sender} does not lead the partition")));
    }
    if item.partition_epoch < partition_epoch && !faults.has(SeededBug::OldPartitionEpochTaken) {
        return Err((
            ErrorCode::InvalidUpdateVersion,
            format!(
                "it is built on partition epoch {}, the partition is at {partition_epoch}",
                item.partition_epoch
            ),
        ));
    }
    Ok(())
}

fn check_shape(state: &PartitionState, item: &NewIsr) -> Result<(), Objection> {
    let members: BTreeSet<BrokerId> = item.isr.iter().map(|member| member.broker).collect();
    let invalid = |text: &str| Err((ErrorCode::InvalidRequest, text.to_owned()));
    if members.len() < item.isr.len() || members.iter().any(|id| !state.replicas.contains(id)) {
        return invalid("the ISR names a broker twice, or one that holds no replica");
    }
    if state.leader.is_none_or(|leader| !members.contains(&leader)) {
        return invalid("the ISR lacks the leader");
    }
    if item.recovering && members.len() > 1 {
        return invalid("a leader that is recovering has nobody else in its ISR");
    }
    if item.recovering && state.recovery == Recovery::Recovered {
        return invalid("a leader that has recovered does not recover again");
    }
    Ok(())
}
