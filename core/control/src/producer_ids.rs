//! Blocks of producer ids (Kafka semantics 9.1).

use minikafka_metadata::Record;
use minikafka_model::{ErrorCode, ProducerId};

use crate::answer::{Answer, Refusal};
use crate::command::BrokerIdentity;
use crate::draft::Draft;
use crate::event::ControlEvent;

/// How many ids a broker gets at once.
pub const PRODUCER_ID_BLOCK: u32 = 1000;

impl Draft<'_> {
    pub(crate) fn allocate_producer_ids(&mut self, from: BrokerIdentity) -> Answer {
        if let Err(refusal) = self.check_identity(from) {
            return Answer::Refused(refusal);
        }
        let first = self.image.next_producer_id();
        let Some(next) = first.0.checked_add(i64::from(PRODUCER_ID_BLOCK)) else {
            return Answer::Refused(Refusal::new(
                ErrorCode::UnknownServerError,
                "all producer ids have been given out",
            ));
        };
        self.put(Record::ProducerIds { broker: from.broker, epoch: from.epoch, next: ProducerId(next) });
        self.tell(ControlEvent::ProducerIds { broker: from.broker, first, count: PRODUCER_ID_BLOCK });
        Answer::ProducerIds { first, count: PRODUCER_ID_BLOCK }
    }
}
