use super::*;
use crate::testing::header;

fn states(batches: &[(i16, i32, i32)]) -> ProducerStates {
    let mut states = ProducerStates::default();
    let mut base = 100;
    for (epoch, first, count) in batches {
        let batch = header(base, *count, Some((7, *epoch, *first)));
        states.appended(&batch, &Bytes::new());
        base += i64::from(*count);
    }
    states
}

fn verdict(states: &ProducerStates, epoch: i16, first: i32, count: i32) -> ProducerVerdict {
    states.validate(&header(0, count, Some((7, epoch, first))))
}

fn expects(verdict: ProducerVerdict) -> Option<i32> {
    match verdict {
        ProducerVerdict::Refuse(ProducerRefusal::OutOfOrder { expected, .. }) => Some(expected.0),
        _ => None,
    }
}

#[test]
fn sequences_must_follow_each_other_within_an_epoch() {
    let states = states(&[(0, 0, 4), (0, 4, 4)]);
    assert_eq!(verdict(&states, 0, 8, 3), ProducerVerdict::Accept);
    assert_eq!(expects(verdict(&states, 0, 9, 3)), Some(8), "a gap");
    assert_eq!(expects(verdict(&states, 0, 6, 3)), Some(8), "an overlap");
    assert_eq!(states.validate(&header(0, 3, None)), ProducerVerdict::Accept, "no producer id, no check");
    assert_eq!(
        states.validate(&header(0, 3, Some((8, 0, 55)))),
        ProducerVerdict::Accept,
        "nothing known, any sequence"
    );
}

#[test]
fn a_duplicate_is_an_exact_match_within_five_batches() {
    let states = states(&[(0, 0, 2), (0, 2, 2), (0, 4, 2), (0, 6, 2), (0, 8, 2), (0, 10, 2)]);
    for (first, base) in [(2, 102), (4, 104), (10, 110)] {
        let ProducerVerdict::Duplicate(known) = verdict(&states, 0, first, 2) else {
            panic!("{first} is a duplicate")
        };
        assert_eq!((known.base_offset(), known.last_offset), (Offset(base), Offset(base + 1)));
    }
    assert_eq!(expects(verdict(&states, 0, 0, 2)), Some(12), "older than five batches");
    assert_eq!(expects(verdict(&states, 0, 10, 1)), Some(12), "other boundaries");
    assert_eq!(expects(verdict(&states, 0, 8, 4)), Some(12), "two batches as one");
}

#[test]
fn a_raised_epoch_begins_at_zero_and_fences_the_old_one() {
    let mut states = states(&[(3, 0, 2)]);
    assert_eq!(expects(verdict(&states, 4, 2, 1)), Some(0));
    assert_eq!(verdict(&states, 4, 0, 1), ProducerVerdict::Accept);
    states.appended(&header(102, 1, Some((7, 4, 0))), &Bytes::new());
    let ProducerVerdict::Refuse(refusal) = verdict(&states, 3, 2, 1) else {
        panic!("the old epoch is fenced")
    };
    assert_eq!(refusal.code(), ErrorCode::InvalidProducerEpoch);
    let ProducerVerdict::Refuse(refusal) = verdict(&states, 3, 0, 2) else { panic!("even its duplicates") };
    assert_eq!(refusal.code(), ErrorCode::InvalidProducerEpoch);
}

#[test]
fn sequences_wrap_to_zero() {
    let mut states = ProducerStates::default();
    states.appended(&header(0, 2, Some((7, 0, i32::MAX - 1))), &Bytes::new());
    assert_eq!(verdict(&states, 0, 0, 5), ProducerVerdict::Accept);
    states.appended(&header(2, 5, Some((7, 0, 0))), &Bytes::new());
    // A batch across the wrap.
    states.appended(&header(7, 4, Some((7, 0, i32::MAX))), &Bytes::new());
    assert!(matches!(verdict(&states, 0, i32::MAX, 4), ProducerVerdict::Duplicate(_)));
    assert_eq!(verdict(&states, 0, 3, 1), ProducerVerdict::Accept);
}

#[test]
fn producers_expire_by_the_timestamps_of_their_records() {
    let mut states = states(&[(0, 0, 1)]);
    let stamped = states.entries[&ProducerId(7)].last_timestamp;
    assert_eq!(states.expire(WallMs(stamped + 999), 1000), 0);
    states.entries.get_mut(&ProducerId(7)).unwrap().transaction_start = Some(Offset(1));
    assert_eq!(states.expire(WallMs(stamped + 1000), 1000), 0, "never with an open transaction");
    states.entries.get_mut(&ProducerId(7)).unwrap().transaction_start = None;
    assert_eq!(states.expire(WallMs(stamped + 1000), 1000), 1);
    assert_eq!(verdict(&states, 0, 77, 1), ProducerVerdict::Accept);
}

#[test]
fn a_snapshot_keeps_the_newest_batch_and_refuses_damage() {
    let states = states(&[(0, 0, 2), (0, 2, 2)]);
    let bytes = snapshot_to_bytes(&states.to_snapshot());
    assert_eq!(bytes.len(), 56);
    let loaded = ProducerStates::from_snapshot(snapshot_from_bytes(&bytes).unwrap());
    assert!(matches!(verdict(&loaded, 0, 2, 2), ProducerVerdict::Duplicate(_)));
    assert_eq!(expects(verdict(&loaded, 0, 0, 2)), Some(4), "only the newest batch survives");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(snapshot_from_bytes(&damaged).is_err(), "bit {bit} of byte {at}");
        }
        assert!(snapshot_from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
    let empty = snapshot_to_bytes(&[]);
    assert_eq!(empty, [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0], "as Kafka writes it");
}
