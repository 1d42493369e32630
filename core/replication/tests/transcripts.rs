//! Narrated transcripts: `tests/data/*.txt`, each a story of a few replicas, step by step. Indented lines are what happened;
//! the test runs the commands and compares. The files named after a KAFKA or KIP number are bugs that Kafka once had.

mod world;

macro_rules! transcripts {
    ($($name:ident: $file:literal,)*) => { $(
        #[test]
        fn $name() {
            let told = include_str!(concat!("data/", $file));
            let happened = world::run(told);
            assert!(told == happened, "{} tells another story. What happened:\n{happened}", $file);
        }
    )* };
}

transcripts! {
    one_write: "one-write.txt",
    min_isr: "min-isr.txt",
    isr_changes: "isr-changes.txt",
    fencing: "kafka-7395-fencing.txt",
    kip_101_restart: "kip-101-no-truncation-to-high-watermark.txt",
    kip_279_foreign_suffix: "kip-279-foreign-suffix.txt",
    kafka_7415_empty_epoch: "kafka-7415-empty-epoch.txt",
    kafka_7128_epoch_start: "kafka-7128-epoch-start.txt",
    kafka_7164_same_leader: "kafka-7164-same-leader-new-epoch.txt",
    kafka_18991_late_answer: "kafka-18991-late-answer.txt",
    kafka_14704_high_watermark: "kafka-14704-high-watermark-after-truncation.txt",
    kafka_13141_diverging: "kafka-13141-diverging-does-not-count.txt",
    kafka_13091_shrink: "kafka-13091-shrink-completes-writes.txt",
    kafka_14010_retry: "kafka-14010-isr-change-tried-again.txt",
    kip_841_fenced: "kip-841-fenced-follower.txt",
    kip_903_wiped: "kip-903-wiped-follower.txt",
    kafka_15583_min_isr: "kafka-15583-high-watermark-frozen.txt",
    kip_207_latest: "kip-207-latest-offset.txt",
    kafka_7414_out_of_range: "kafka-7414-out-of-range.txt",
    kafka_10778_offline: "kafka-10778-offline.txt",
    kafka_7152_idle: "kafka-7152-idle.txt",
    kafka_18723_newer_epoch: "kafka-18723-newer-epoch.txt",
    kafka_13837_not_assigned: "kafka-13837-not-assigned.txt",
    idempotence: "idempotence.txt",
    held_epochs: "held-epochs.txt",
    log_start: "kafka-5634-log-start.txt",
    consumers: "consumers.txt",
    split_brain: "split-brain.txt",
}
