use bytes::Bytes;
use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};

use crate::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, WallMs};

use super::header::set_crc;
use super::{
    Batch, BatchBuilder, BatchHeader, BatchRefusal, CheckRules, Checked, Compression, CompressionType,
    Header, ProducerStamp, RecordFault, Records, TimestampType,
};

const NOW: WallMs = WallMs(1_700_000_000_000);
const CODECS: [CompressionType; 5] = [
    CompressionType::None,
    CompressionType::Gzip,
    CompressionType::Snappy,
    CompressionType::Lz4,
    CompressionType::Zstd,
];

fn built(records: i32, codec: CompressionType) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for index in 0..records {
        builder.push(NOW.0 + i64::from(index), Some(b"k"), Some(b"value"), &[]);
    }
    builder.build(codec, None).expect("built").to_vec()
}

/// A batch with some header bytes changed and the checksum put right again.
fn with(mut bytes: Vec<u8>, at: usize, field: &[u8]) -> Vec<u8> {
    bytes[at..at + field.len()].copy_from_slice(field);
    set_crc(&mut bytes);
    bytes
}

fn check(bytes: Vec<u8>, rules: &CheckRules) -> Result<Batch<Checked>, BatchRefusal> {
    Batch::from_client(bytes.into())?.check(rules, NOW)
}

fn code(bytes: Vec<u8>, rules: &CheckRules) -> ErrorCode {
    check(bytes, rules).err().map_or(ErrorCode::None, |refusal| refusal.code())
}

#[test]
fn every_codec_is_accepted_as_it_came() {
    for codec in CODECS {
        let bytes = built(3, codec);
        let checked = check(bytes.clone(), &CheckRules::default()).expect("accepted");
        assert_eq!(checked.bytes(), &bytes, "{codec}");
    }
}

#[test]
fn refusals_have_the_codes_that_kafka_answered() {
    let rules = CheckRules::default();
    let good = || built(2, CompressionType::None);
    let mut crc = good();
    crc[17] ^= 1;
    let cases = [
        ("magic 0", with(good(), 16, &[0]), 87, false),
        ("magic 1", with(good(), 16, &[1]), 87, false),
        ("magic 3", with(good(), 16, &[3]), 2, false),
        ("magic -1", with(good(), 16, &[255]), 2, false),
        ("two batches", [good(), good()].concat(), 87, false),
        ("cut short", good()[..good().len() - 5].to_vec(), 87, false),
        ("ten bytes", vec![0; 10], 87, false),
        ("nothing", vec![], 87, false),
        ("base offset", with(good(), 7, &[5]), 87, true),
        ("checksum", crc, 2, false),
        ("codec 5", with(good(), 22, &[5]), -1, true),
        ("last delta", with(good(), 26, &[4]), 87, true),
        ("no records", built(0, CompressionType::None), 87, true),
        ("count 3 of 2", with(with(good(), 60, &[3]), 26, &[2]), 87, true),
        ("count 1 of 2", with(with(good(), 60, &[1]), 26, &[0]), 87, true),
        ("control", with(good(), 22, &[0x20]), 87, true),
        ("a producer with sequence -1", with(good(), 43, &9_i64.to_be_bytes()), 87, true),
        ("gzip that is none", with(good(), 22, &[1]), -1, true),
        ("snappy that is none", with(good(), 22, &[2]), -1, true),
        ("lz4 that is none", with(good(), 22, &[3]), -1, true),
        ("zstd that is none", with(good(), 22, &[4]), -1, true),
    ];
    for (name, bytes, wanted, log_start) in cases {
        let refusal = check(bytes, &rules).expect_err(name);
        assert_eq!(refusal.code().code(), wanted, "{name}: {refusal}");
        assert_eq!(refusal.shows_log_start(), log_start, "{name}");
        assert_eq!(refusal.record_errors(&"t-0"), [], "{name}");
        let message = (wanted == 2 && name.starts_with("magic")).then(|| refusal.to_string());
        assert_eq!(refusal.error_message(&"t-0"), message, "{name}");
    }
}

#[test]
fn what_kafka_accepts_is_accepted() {
    let good = || built(2, CompressionType::None);
    let fine = |name: &str, bytes: Vec<u8>| {
        let checked = check(bytes.clone(), &CheckRules::default()).expect(name);
        assert_eq!(checked.bytes(), &bytes, "{name}");
    };
    fine("unknown attribute bits", with(good(), 21, &[0x40]));
    fine("a leader epoch", with(good(), 12, &99_i32.to_be_bytes()));
    fine(
        "epoch -1 with a producer id",
        with(with(good(), 43, &9_i64.to_be_bytes()), 53, &0_i32.to_be_bytes()),
    );
}

#[test]
fn the_first_failing_check_decides() {
    // Base offset before size before checksum before count.
    let mut bytes = with(built(2, CompressionType::None), 26, &[4]);
    let small = CheckRules { max_message_bytes: 70, ..CheckRules::default() };
    bytes[7] = 5;
    bytes[17] ^= 1;
    assert!(matches!(check(bytes.clone(), &small), Err(BatchRefusal::BaseOffset { .. })));
    bytes[7] = 0;
    assert!(matches!(check(bytes.clone(), &small), Err(BatchRefusal::TooLarge { recompressed: false, .. })));
    assert_eq!(check(bytes.clone(), &CheckRules::default()), Err(BatchRefusal::BadChecksum));
    bytes[17] ^= 1;
    assert!(matches!(check(bytes, &CheckRules::default()), Err(BatchRefusal::Count { .. })));
}

#[test]
fn the_size_limit_is_inclusive() {
    let bytes = built(3, CompressionType::None);
    let rules = |max_message_bytes| CheckRules { max_message_bytes, ..CheckRules::default() };
    assert_eq!(code(bytes.clone(), &rules(bytes.len())), ErrorCode::None);
    assert_eq!(code(bytes.clone(), &rules(bytes.len() - 1)), ErrorCode::MessageTooLarge);
}

#[test]
fn inner_offsets_must_count_up() {
    let bytes = built(2, CompressionType::None);
    // The second record begins with its length, attributes, timestamp delta and offset delta.
    let second = bytes.len() - 13;
    assert_eq!(bytes[second..second + 4], [24, 0, 2, 2]);
    let wrong = with(bytes, second + 3, &[4]);
    assert_eq!(
        check(wrong.clone(), &CheckRules::default()),
        Err(BatchRefusal::InnerOffset { index: 1, found: 2 })
    );
    assert_eq!(code(wrong, &CheckRules::default()), ErrorCode::InvalidRecord);
}

#[test]
fn keys_are_wanted_on_a_compacted_topic() {
    let mut builder = BatchBuilder::new();
    for key in [None, Some(&b"k"[..]), None] {
        builder.push(NOW.0, key, Some(b"v"), &[]);
    }
    let bytes = builder.build(CompressionType::Lz4, None).expect("built").to_vec();
    let rules = CheckRules { compacted: true, ..CheckRules::default() };
    let refusal = check(bytes.clone(), &rules).expect_err("no key");
    assert_eq!((refusal.code(), refusal.shows_log_start()), (ErrorCode::InvalidRecord, true));
    let words = "Compacted topic cannot accept message without key in topic partition t-1";
    assert_eq!(refusal.record_errors(&"t-1"), [(0, words.to_owned()), (2, words.to_owned())]);
    let message = "One or more records have been rejected due to 2 record errors in total, and only showing the first three errors \
                   at most: [RecordError(batchIndex=0, message='Compacted topic cannot accept message without key in topic \
                   partition t-1'), RecordError(batchIndex=2, message='Compacted topic cannot accept message without key in \
                   topic partition t-1')]";
    assert_eq!(refusal.error_message(&"t-1").as_deref(), Some(message));
    assert_eq!(code(bytes, &CheckRules::default()), ErrorCode::None);
}

#[test]
fn producers_timestamps_are_bounded() {
    let stamped = |timestamp| {
        let mut builder = BatchBuilder::new();
        builder.push(timestamp, None, None, &[]);
        builder.build(CompressionType::None, None).expect("built").to_vec()
    };
    let rules =
        CheckRules { timestamp_before_max_ms: 1000, timestamp_after_max_ms: 500, ..CheckRules::default() };
    for (timestamp, fine) in [
        (NOW.0 - 1000, true),
        (NOW.0 - 1001, false),
        (NOW.0 + 500, true),
        (NOW.0 + 501, false),
        (-1, true),
        (i64::MIN, false),
    ] {
        let verdict = check(stamped(timestamp), &rules);
        assert_eq!(verdict.is_ok(), fine, "{timestamp}: {verdict:?}");
    }
    let refusal = check(stamped(NOW.0 + 501), &rules).expect_err("too far ahead");
    assert_eq!(refusal.code(), ErrorCode::InvalidTimestamp);
    assert_eq!(
        refusal.record_errors(&"t-0"),
        [(
            0,
            "Timestamp 1700000000501 of message with offset 0 is out of range. The timestamp should be within \
             [1699999999000, 1700000000500]"
                .to_owned()
        )]
    );
    assert_eq!(
        refusal.error_message(&"t-0").as_deref(),
        Some("One or more records have been rejected due to invalid timestamp")
    );
    assert_eq!(code(stamped(0), &CheckRules::default()), ErrorCode::None, "1970 is fine by default");
    let append = CheckRules { timestamp_type: TimestampType::LogAppendTime, ..rules };
    assert_eq!(code(stamped(0), &append), ErrorCode::None, "the broker will stamp it");
    let claims = with(stamped(-1), 22, &[8]);
    let refusal = check(claims, &append).expect_err("claims the broker's stamp");
    assert_eq!(refusal.code(), ErrorCode::InvalidTimestamp);
    assert!(
        matches!(&refusal, BatchRefusal::Records(faults) if matches!(faults.first[..], [(0, RecordFault::StampedAsBroker { .. })]))
    );
}

#[test]
fn the_largest_timestamp_is_put_right() {
    let bytes = with(built(2, CompressionType::None), 35, &5_i64.to_be_bytes());
    let checked = check(bytes, &CheckRules::default()).expect("accepted");
    assert_eq!(checked.bytes(), &built(2, CompressionType::None));
    assert_eq!(checked.header().max_timestamp, NOW.0 + 1);
}

#[test]
fn a_topics_codec_replaces_the_producers() {
    for target in CODECS {
        let rules = CheckRules {
            compression: Some(Compression { codec: target, level: None }),
            ..CheckRules::default()
        };
        for source in CODECS {
            let before = built(3, source);
            let checked = check(before.clone(), &rules).expect("accepted");
            assert_eq!(checked.header().compression(), Ok(target));
            checked.header().verify(checked.bytes()).expect("the checksum fits");
            let records = |bytes: &Bytes| {
                Records::of(bytes).expect("records").collect::<Result<Vec<_>, _>>().expect("whole")
            };
            assert_eq!(records(checked.bytes()), records(&before.into()), "{source} to {target}");
        }
    }
    let grown = CheckRules {
        max_message_bytes: 100,
        compression: Some(Compression { codec: CompressionType::None, level: None }),
        ..CheckRules::default()
    };
    let mut builder = BatchBuilder::new();
    builder.push(NOW.0, None, Some(&[7; 1000]), &[]);
    let bytes = builder.build(CompressionType::Zstd, None).expect("built").to_vec();
    assert!(matches!(check(bytes, &grown), Err(BatchRefusal::TooLarge { recompressed: true, .. })));
}

#[test]
fn offset_epoch_and_the_brokers_time_are_assigned() {
    let checked = check(built(2, CompressionType::Gzip), &CheckRules::default()).expect("accepted");
    let plain = checked.clone().assign(Offset(40), LeaderEpoch(7), None);
    assert_eq!(
        (plain.header().base_offset, plain.header().last_offset(), plain.header().leader_epoch),
        (Offset(40), Offset(41), Some(LeaderEpoch(7)))
    );
    plain.header().verify(plain.bytes()).expect("the checksum does not cover them");
    let stamped = checked.assign(Offset(40), LeaderEpoch(7), Some(WallMs(99)));
    let header = *stamped.header();
    header.verify(stamped.bytes()).expect("the checksum was put right");
    assert_eq!(
        (header.timestamp_type(), header.max_timestamp, header.base_timestamp),
        (TimestampType::LogAppendTime, 99, NOW.0)
    );
    let records = Records::of(stamped.bytes()).expect("records");
    assert!(records.map(|record| record.expect("whole").timestamp).eq([99, 99]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_get_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(check(bytes, &CheckRules::default()).is_err());
    }

    #[test]
    fn any_records_in_a_sound_frame_get_a_verdict(
        payload in prop::collection::vec(any::<u8>(), 0..120), codec in 0..8_u8, count in 1..5_i32,
    ) {
        let mut bytes = built(count, CompressionType::None);
        bytes.truncate(61);
        bytes.extend(&payload);
        bytes[8..12].copy_from_slice(&((49 + payload.len()) as i32).to_be_bytes());
        let bytes: Bytes = with(bytes, 22, &[codec]).into();
        let verdict = check(bytes.to_vec(), &CheckRules { timestamp_after_max_ms: i64::MAX, ..CheckRules::default() });
        // The walk that hands out records agrees with the one that checks them.
        if verdict.is_ok() {
            prop_assert_eq!(Records::of(&bytes).expect("decompressed").filter(Result::is_ok).count(), count as usize);
        }
    }

    #[test]
    fn what_a_producer_builds_is_accepted_and_a_flipped_bit_is_seen(
        values in prop::collection::vec((prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..2000_i64), 1..20),
        codec in 0..5_usize, bit in any::<usize>(),
    ) {
        let mut builder = BatchBuilder::new();
        let header = Header { key: "h".into(), value: None };
        for (value, age) in &values {
            builder.push(NOW.0 - age, Some(b"key"), value.as_deref(), std::slice::from_ref(&header));
        }
        let stamp = ProducerStamp { id: ProducerId(1), epoch: ProducerEpoch(0), sequence: Sequence(0) };
        let bytes = builder.build(CODECS[codec], Some(stamp)).expect("built").to_vec();
        let checked = check(bytes.clone(), &CheckRules::default()).expect("accepted");
        prop_assert_eq!(checked.bytes(), &bytes);
        let mut flipped = bytes.clone();
        // From the checksum on, every bit is covered.
        let at = 17 * 8 + bit % ((bytes.len() - 17) * 8);
        flipped[at / 8] ^= 1 << (at % 8);
        prop_assert_eq!(check(flipped, &CheckRules::default()), Err(BatchRefusal::BadChecksum));
        let header = BatchHeader::parse(&bytes).expect("a header");
        prop_assert_eq!(header.count as usize, values.len());
    }
}
