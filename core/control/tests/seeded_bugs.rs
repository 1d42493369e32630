//! The tests of the tests: with each guard taken out in turn, at least one transcript tells another story.

mod world;

use minikafka_control::SeededBug;

macro_rules! stories {
    ($($file:literal,)*) => { [$(($file, include_str!(concat!("data/", $file))),)*] };
}

const STORIES: &[(&str, &str)] = &stories! {
    "registration.txt",
    "heartbeats.txt",
    "fencing.txt",
    "controlled-shutdown.txt",
    "alter-partition.txt",
    "topics.txt",
    "elections.txt",
    "elr.txt",
    "reassignment.txt",
    "configs.txt",
    "producer-ids.txt",
    "log-dirs.txt",
};

#[test]
fn without_a_guard_a_story_changes() {
    let mut missed = Vec::new();
    for bug in SeededBug::ALL {
        let changed: Vec<&str> = STORIES
            .iter()
            .filter(|(_, told)| {
                // A broken invariant is as good as another story.
                std::panic::catch_unwind(|| world::run_with(told, *bug)).map_or(true, |now| now != *told)
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
