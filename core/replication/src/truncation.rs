//! Where a follower cuts its log: divergence (Kafka semantics 4.5) and out of range (5.5).

use minikafka_model::{ErrorCode, Mono, Now, Offset};

use crate::follower::{Fetching, LeaderBounds, Next};
use crate::log::LogError;
use crate::replica::{Online, Role};
use crate::{Divergence, Effect, ReplicaEvent, SeededBug};

impl Online {
    /// One round of the KIP-279 loop: cut at the end of what is surely common as far as this answer shows, then ask again. Each
    /// round takes away the newest epoch or the part of it that the leader does not have, so the rounds end.
    pub(crate) fn truncate_to_common(
        &mut self,
        now: Mono,
        leaders: Divergence,
        out: &mut Vec<Effect>,
    ) -> Result<Next, LogError> {
        let (end, newest) = (self.log.end(), self.log.last_epoch());
        let own = self.log.end_offset_for(leaders.epoch);
        let target = match own {
            Some(own) if own.epoch == leaders.epoch => leaders.end_offset.min(own.end_offset),
            // The leader's epoch is unknown here: what came after the epoch below it cannot be the leader's.
            Some(own) => own.end_offset,
            None => leaders.end_offset,
        };
        self.truncate(target.min(end), "the leader's epoch history parts from ours", out)?;
        if (self.log.end(), self.log.last_epoch()) == (end, newest) {
            // Nothing was left to cut: not a round of the loop, so it must not become a busy one.
            return Ok(self.back_off(now));
        }
        Ok(self.ask_anew().map_or(Next::Stop, Next::Ask))
    }

    /// Cuts the log, the epoch history with it, also where no record goes (KAFKA-10706), and takes the high watermark along.
    fn truncate(&mut self, to: Offset, reason: &'static str, out: &mut Vec<Effect>) -> Result<(), LogError> {
        let from = self.log.end();
        let high_watermark = self.high_watermark;
        if to < self.log.start() {
            // Nothing of it is left: it starts anew there, below its own log start.
            self.log.truncate_fully_at(to)?;
        } else {
            self.log.truncate_to(to)?;
        }
        self.high_watermark = high_watermark.min(to);
        if to < from {
            out.push(Effect::Emit(ReplicaEvent::Truncation {
                reason,
                from,
                to,
                high_watermark,
                below_high_watermark: to < high_watermark,
                leader_epoch: self.leader_epoch(),
            }));
        }
        Ok(())
    }

    /// The leader's bounds, after it said OFFSET_OUT_OF_RANGE. Never fatal (KAFKA-7414).
    pub(crate) fn leader_bounds(
        &mut self,
        now: Now,
        generation: u64,
        bounds: Result<LeaderBounds, ErrorCode>,
        out: &mut Vec<Effect>,
    ) -> Result<Next, LogError> {
        let Role::Follower(follower) = &self.role else { return Ok(Next::Ignore) };
        let current = generation == self.generation || self.context.config.has(SeededBug::StaleAnswerApplied);
        if !current || !matches!(follower.state, Fetching::AskingBounds) {
            return Ok(Next::Ignore);
        }
        let bounds = match bounds {
            Ok(bounds) => bounds,
            Err(code) => {
                let (leader, leader_epoch) = (follower.leader, follower.epoch);
                let reason = "the leader did not tell its bounds: asked again after replica.fetch.backoff.ms";
                out.push(Effect::Emit(ReplicaEvent::fetch_error(code, reason, leader, leader_epoch)));
                return Ok(self.back_off(now.mono));
            }
        };
        let end = self.log.end();
        if bounds.log_end < end {
            self.truncate(bounds.log_end, "the leader's log ends before ours", out)?;
        } else if bounds.log_start > end {
            self.log.truncate_fully_at(bounds.log_start)?;
            self.high_watermark = bounds.log_start;
            out.push(Effect::Emit(ReplicaEvent::StartedAnew { from: end, at: bounds.log_start }));
        } else {
            // In range after all, or the epoch is unknown to the leader: paced, as the same answer may come again.
            return Ok(self.back_off(now.mono));
        }
        Ok(self.ask_anew().map_or(Next::Stop, Next::Ask))
    }
}
