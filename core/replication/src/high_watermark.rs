//! The high watermark of a leader (Kafka semantics 3.1) and whom its rise wakes.

use minikafka_model::{Mono, Offset};

use crate::invariant::invariant;
use crate::replica::{Online, Role, eligible};
use crate::{Effect, ProduceDone, SeededBug};

impl Online {
    /// Raises the high watermark to the smallest log end over the maximal ISR and over the caught-up replicas that could join
    /// it. It stands still while the committed ISR is below the effective minimum, and a leader never lowers it.
    pub(crate) fn raise_high_watermark(&mut self, now: Mono, out: &mut Vec<Effect>) {
        let Some(candidate) = self.high_watermark_candidate(now) else { return };
        if candidate <= self.high_watermark {
            return;
        }
        self.high_watermark = candidate;
        self.check_order_of_marks();
        let Role::Leader(leader) = &mut self.role else { return };
        let enough = leader.needed(&self.context) <= leader.isr.maximal_len();
        for (ticket, waiter) in leader.waiters.below(self.high_watermark) {
            let done = if waiter.leader_epoch != leader.epoch {
                ProduceDone::LeadershipLost(waiter.written)
            } else if enough {
                ProduceDone::Committed(waiter.written)
            } else {
                ProduceDone::TooFewAfterAppend(waiter.written)
            };
            out.push(Effect::Produced { ticket, done });
        }
        leader.wake_streams(out);
        self.wake_consumers_below_high_watermark(out);
    }

    fn high_watermark_candidate(&mut self, now: Mono) -> Option<Offset> {
        let Role::Leader(leader) = &mut self.role else { return None };
        let context = &self.context;
        if leader.below_min_isr(context) && !context.config.has(SeededBug::HighWatermarkBelowMinIsr) {
            return None;
        }
        let brokers: Vec<_> = leader.progress.keys().copied().collect();
        let mut candidate = self.log.end();
        for broker in brokers {
            leader.refresh_caught_up(broker);
            let progress = leader.progress[&broker];
            let member = if context.config.has(SeededBug::HighWatermarkOverCommittedIsr) {
                leader.isr.committed().contains(&broker)
            } else {
                leader.isr.may_contain(broker)
            };
            // A replica that could join any moment holds it back too, or a busy leader alone in its ISR would run away from
            // every follower. One that is not eligible does not (KAFKA-15021).
            let could_join = progress.caught_up_within(now, context.config.lag_time_max)
                && eligible(&context.brokers, broker)
                && !context.config.has(SeededBug::HighWatermarkOverCommittedIsr);
            if member || could_join {
                candidate = candidate.min(progress.acknowledged?);
            }
        }
        Some(candidate)
    }

    /// Invariants I1 and I2, after every step that moves a mark.
    pub(crate) fn check_order_of_marks(&self) {
        let (start, high_watermark, end) = (self.log.start(), self.high_watermark, self.log.end());
        invariant!(
            "I1",
            start <= high_watermark,
            "log start {start} is above the high watermark {high_watermark}"
        );
        invariant!("I2", high_watermark <= end, "high watermark {high_watermark} is above the log end {end}");
    }

    pub(crate) fn wake_consumers(&mut self, out: &mut Vec<Effect>) {
        let parked = std::mem::take(&mut self.parked_consumers);
        out.extend(parked.into_iter().map(|(_, ticket)| Effect::WakeFetch { ticket }));
    }

    pub(crate) fn wake_consumers_below_high_watermark(&mut self, out: &mut Vec<Effect>) {
        while let Some((from, ticket)) = self.parked_consumers.first().copied()
            && from < self.high_watermark
        {
            self.parked_consumers.remove(&(from, ticket));
            out.push(Effect::WakeFetch { ticket });
        }
    }
}
