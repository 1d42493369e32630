//! The tests of the tests: with each guard of the protocol taken out in turn, at least one transcript tells another story.

mod world;

use minikafka_replication::SeededBug;

macro_rules! stories {
    ($($file:literal,)*) => { [$(($file, include_str!(concat!("data/", $file))),)*] };
}

const STORIES: &[(&str, &str)] = &stories! {
    "one-write.txt",
    "min-isr.txt",
    "isr-changes.txt",
    "kafka-7395-fencing.txt",
    "kip-101-no-truncation-to-high-watermark.txt",
    "kip-279-foreign-suffix.txt",
    "kafka-7415-empty-epoch.txt",
    "kafka-7128-epoch-start.txt",
    "kafka-7164-same-leader-new-epoch.txt",
    "kafka-18991-late-answer.txt",
    "kafka-13141-diverging-does-not-count.txt",
    "kip-903-wiped-follower.txt",
    "kafka-15583-high-watermark-frozen.txt",
    "idempotence.txt",
    "consumers.txt",
    "split-brain.txt",
};

#[test]
fn without_a_guard_a_story_changes() {
    let mut missed = Vec::new();
    for bug in SeededBug::ALL {
        let changed: Vec<&str> = STORIES
            .iter()
            .filter(|(_, told)| {
                // A broken invariant is as good as another story.
                std::panic::catch_unwind(|| world::run_with(told, Some(*bug)))
                    .map_or(true, |happened| happened != *told)
            })
            .map(|(file, _)| *file)
            .collect();
        println!("{bug:?}: {changed:?}");
        if changed.is_empty() {
            missed.push(*bug);
        }
    }
    assert!(missed.is_empty(), "no transcript notices {missed:?}");
}
