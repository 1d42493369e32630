//! Which of a source's fetcher threads a partition goes to.

use std::collections::BTreeMap;

/// The thread with the fewest partitions, the first of several.
pub(crate) fn fewest(threads: usize, counts: &BTreeMap<usize, usize>) -> usize {
    (0..threads).min_by_key(|index| counts.get(index).copied().unwrap_or(0)).unwrap_or(0)
}

/// Kafka's choice: 31 times the topic's hash (Java's, over UTF-16 units) plus the partition, modulo the number of threads. Where leaders
/// alternate it leaves threads empty.
pub(crate) fn kafka(topic: &str, partition: i32, threads: usize) -> usize {
    let hash =
        topic.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let mixed = hash.wrapping_mul(31).wrapping_add(partition);
    // Kafka's `abs` maps the one number without a positive counterpart to 0.
    let positive = mixed.checked_abs().unwrap_or(0);
    usize::try_from(positive).unwrap_or(0) % threads.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_spread_leaves_no_thread_empty() {
        let mut counts = BTreeMap::new();
        for _ in 0..8 {
            *counts.entry(fewest(3, &counts)).or_default() += 1;
        }
        assert_eq!(counts, BTreeMap::from([(0, 3), (1, 3), (2, 2)]));
    }

    #[test]
    fn kafkas_hash_can_leave_threads_empty() {
        // "test" hashes to 3556498 in Java.
        assert_eq!(kafka("test", 0, 1_000_000), 3_556_498usize * 31 % 1_000_000);
        let of_one_leader: std::collections::BTreeSet<usize> =
            (0..96).filter(|p| p % 2 == 0).map(|p| kafka("test", p, 4)).collect();
        assert_eq!(of_one_leader.len(), 2, "every second thread of four");
        assert!(kafka("\u{10ffff}x", i32::MIN, 3) < 3);
    }
}
