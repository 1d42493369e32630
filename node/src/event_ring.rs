//! The bounded ring of a node's typed events: what `/v1/events` shows and the log prints.

use std::collections::VecDeque;
use std::fmt::Display;

use minikafka_model::WallMs;
use parking_lot::Mutex;
use serde::Serialize;

/// One event as it is kept: when, in which order, and what.
#[derive(Debug, Clone, Serialize)]
pub struct Told<E> {
    /// Rises by one with each event of this process.
    pub seq: u64,
    /// Wall-clock time in milliseconds.
    pub time_ms: i64,
    /// One sentence with the numbers behind it.
    pub text: String,
    /// The event's own fields, `kind` among them.
    #[serde(flatten)]
    pub event: E,
}

/// The newest events of a node. The oldest ones fall out; `seq` shows the gap.
#[derive(Debug)]
pub struct EventRing<E> {
    kept: Mutex<Kept<E>>,
    capacity: usize,
}

#[derive(Debug)]
struct Kept<E> {
    events: VecDeque<Told<E>>,
    next_seq: u64,
}

impl<E: Clone + Display + Serialize> EventRing<E> {
    /// Events that a node keeps by default.
    pub const CAPACITY: usize = 4096;

    /// A ring that keeps the newest `capacity` events (at least one).
    pub fn new(capacity: usize) -> EventRing<E> {
        EventRing {
            kept: Mutex::new(Kept { events: VecDeque::new(), next_seq: 1 }),
            capacity: capacity.max(1),
        }
    }

    /// Keeps the event and writes its sentence to the log.
    pub fn tell(&self, time: WallMs, event: E) {
        let text = event.to_string();
        tracing::info!("{text}");
        let mut kept = self.kept.lock();
        if kept.events.len() == self.capacity {
            kept.events.pop_front();
        }
        let seq = kept.next_seq;
        kept.next_seq += 1;
        kept.events.push_back(Told { seq, time_ms: time.0, text, event });
    }

    /// Events after `seq` (0 for all that are kept), oldest first, at most `most`.
    pub fn after(&self, seq: u64, most: usize) -> Vec<Told<E>> {
        self.kept.lock().events.iter().filter(|told| told.seq > seq).take(most).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Serialize)]
    struct Note {
        kind: &'static str,
    }

    impl Display for Note {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a {}", self.kind)
        }
    }

    #[test]
    fn the_oldest_fall_out_and_the_sequence_shows_it() {
        let ring = EventRing::new(2);
        for kind in ["first", "second", "third"] {
            ring.tell(WallMs(5), Note { kind });
        }
        let all = ring.after(0, 10);
        assert_eq!(
            all.iter().map(|t| (t.seq, t.event.kind)).collect::<Vec<_>>(),
            [(2, "second"), (3, "third")]
        );
        assert_eq!(ring.after(2, 10).len(), 1);
        let json = serde_json::to_value(&all[0]).expect("an event is JSON");
        assert_eq!(json, serde_json::json!({"seq": 2, "time_ms": 5, "text": "a second", "kind": "second"}));
    }
}
