//! Which partition a record goes to: by its key as the Java client does it, or by sticking to one partition for a batch.

use std::collections::BTreeMap;

use minikafka_model::PartitionIndex;

use crate::metadata::TopicView;

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;
const R: u32 = 24;

/// The 32-bit murmur2 hash with Kafka's seed, so that every client sends a key to the same partition.
pub fn murmur2(data: &[u8]) -> i32 {
    // Lengths beyond 4 GiB do not fit a record.
    let mut hash = SEED ^ (data.len() as u32);
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    hash.cast_signed()
}

/// The partition of a key among this many.
pub fn partition_of_key(key: &[u8], partitions: i32) -> PartitionIndex {
    PartitionIndex((murmur2(key) & i32::MAX) % partitions.max(1))
}

/// For records without a key: one partition of each topic is kept until about a batch of bytes has gone there (KIP-794).
#[derive(Debug, Default)]
pub(crate) struct Sticky {
    chosen: BTreeMap<String, Chosen>,
}

#[derive(Debug)]
struct Chosen {
    partition: PartitionIndex,
    bytes: usize,
}

impl Sticky {
    /// The partition for a record of this size. `draw` gives a number below its argument.
    pub(crate) fn choose(
        &mut self,
        topic: &TopicView,
        size: usize,
        batch_size: usize,
        draw: impl FnOnce(usize) -> usize,
    ) -> PartitionIndex {
        let kept = self.chosen.get_mut(&topic.name);
        if let Some(kept) = kept
            && kept.bytes < batch_size
            && topic.partitions.get(&kept.partition).is_some_and(|partition| partition.leader.is_some())
        {
            kept.bytes += size;
            return kept.partition;
        }
        let led: Vec<PartitionIndex> = topic
            .partitions
            .values()
            .filter(|partition| partition.leader.is_some())
            .map(|partition| partition.index)
            .collect();
        let all = || topic.partitions.keys().copied().collect();
        let candidates = if led.is_empty() { all() } else { led };
        let partition =
            candidates.get(draw(candidates.len().max(1))).copied().unwrap_or(PartitionIndex::ZERO);
        self.chosen.insert(topic.name.clone(), Chosen { partition, bytes: size });
        partition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::ClusterView;
    use crate::metadata::test_view;

    /// The vectors of the Java client's own test of murmur2.
    #[test]
    fn the_java_clients_hash() {
        for (text, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(text.as_bytes()), hash, "{text}");
        }
        assert_eq!(murmur2(b"abc"), 479_470_107);
    }

    #[test]
    fn negative_hashes_still_name_a_partition() {
        for key in ["21", "foobar", "", "x"] {
            assert!((0..6).contains(&partition_of_key(key.as_bytes(), 6).0));
        }
    }

    fn topic(view: &ClusterView) -> &TopicView {
        view.topic("t").expect("there")
    }

    #[test]
    fn a_partition_is_kept_for_a_batch() {
        let view = test_view(&[(1, 0), (2, 0), (3, 0)]);
        let mut sticky = Sticky::default();
        let first = sticky.choose(topic(&view), 60, 100, |_| 1);
        assert_eq!(first, PartitionIndex(1));
        assert_eq!(sticky.choose(topic(&view), 60, 100, |_| 2), first, "60 bytes are not a batch yet");
        assert_eq!(sticky.choose(topic(&view), 60, 100, |_| 2), PartitionIndex(2));
    }

    #[test]
    fn partitions_without_a_leader_are_left_out() {
        let view = test_view(&[(-1, 0), (2, 0), (-1, 0)]);
        let mut sticky = Sticky::default();
        assert_eq!(sticky.choose(topic(&view), 1, 100, |n| n - 1), PartitionIndex(1));
        let lost = test_view(&[(1, 0), (-1, 1), (-1, 0)]);
        assert_eq!(sticky.choose(topic(&lost), 1, 100, |_| 0), PartitionIndex(0), "its leader is gone");
    }
}
