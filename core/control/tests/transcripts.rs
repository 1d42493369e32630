//! Narrated transcripts: `tests/data/*.txt`, each a story of a controller and its brokers, step by step. Indented lines are what happened;
//! the test runs the commands and compares.

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
    registration: "registration.txt",
    heartbeats: "heartbeats.txt",
    fencing: "fencing.txt",
    controlled_shutdown: "controlled-shutdown.txt",
    alter_partition: "alter-partition.txt",
    topics: "topics.txt",
    elections: "elections.txt",
    elr: "elr.txt",
    reassignment: "reassignment.txt",
    configs: "configs.txt",
    producer_ids: "producer-ids.txt",
    log_dirs: "log-dirs.txt",
}
