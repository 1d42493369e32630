//! The network: delays, loss, doubling, cut links in one direction or both. Streams keep their order, and a lost message of a
//! stream is the loss of the stream.

use std::collections::{BTreeMap, BTreeSet};

use minikafka_model::Mono;
use minikafka_replication::StreamId;

use crate::dice::Dice;
use crate::message::{Message, Node};

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives at these moments: once, twice, or never.
    Arrives(Vec<Mono>),
    /// Its stream is lost; both ends hear of it at these moments.
    StreamLost(StreamId, Mono, Mono),
}

/// The links between all nodes.
#[derive(Debug, Default)]
pub(crate) struct Net {
    /// Links that carry nothing, from one node to another.
    cut: BTreeSet<(Node, Node)>,
    /// Extra delay, in microseconds.
    pub(crate) slow: u64,
    /// How many messages in a thousand are lost.
    pub(crate) loss: u64,
    last: BTreeMap<(Node, Node), Mono>,
    /// Streams that lost a message: nothing more arrives on them.
    dead: BTreeSet<StreamId>,
}

impl Net {
    /// Cuts the link from one node to another, in this direction.
    pub(crate) fn cut(&mut self, from: Node, to: Node) {
        self.cut.insert((from, to));
    }

    /// Heals every link.
    pub(crate) fn heal(&mut self) {
        self.cut.clear();
        self.slow = 0;
        self.loss = 0;
    }

    /// Decides what becomes of a message sent now.
    pub(crate) fn fate(
        &mut self,
        now: Mono,
        from: Node,
        to: Node,
        message: &Message,
        dice: &mut Dice,
    ) -> Fate {
        let delay = dice.range(50, 500) + if self.slow > 0 { dice.range(0, self.slow) } else { 0 };
        let lost = self.cut.contains(&(from, to)) || dice.permille(self.loss);
        let arrival = Mono(now.0 + delay);
        if let Some(stream) = message.stream() {
            let closes = matches!(message, Message::StreamClosed { .. });
            if self.dead.contains(&stream) && !closes {
                return Fate::Arrives(Vec::new());
            }
            if lost && !closes {
                self.dead.insert(stream);
                // Noticed by keep-alive, at either end after a while.
                let notice = |dice: &mut Dice| Mono(now.0 + dice.range(1_000, 1_500_000));
                return Fate::StreamLost(stream, notice(dice), notice(dice));
            }
            let last = self.last.entry((from, to)).or_default();
            *last = arrival.max(Mono(last.0 + 1));
            return Fate::Arrives(vec![*last]);
        }
        if lost {
            return Fate::Arrives(Vec::new());
        }
        // Only what is safe to receive twice is doubled by a network: clients' requests are not, their retries are.
        let doubled = self.loss > 0
            && matches!(
                message,
                Message::AlterIsr { .. } | Message::Heartbeat { .. } | Message::IsrAltered { .. }
            )
            && dice.permille(100);
        if doubled {
            Fate::Arrives(vec![arrival, Mono(arrival.0 + dice.range(1, 50_000))])
        } else {
            Fate::Arrives(vec![arrival])
        }
    }
}
