//! Equality with the `kafka-protocol` crate, both directions, for every API and version it has. Values come from walking our tables.

mod support;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use minikafka_wire::seed::{UnknownTags, sample};
use minikafka_wire::{ApiKey, Direction, api};
use support::hex;

/// Samples per API, version and direction.
const SAMPLES: u64 = 60;

/// Their bytes are ours: sample -> theirs -> bytes, and sample -> ours -> bytes.
fn same_bytes<T: Decodable + Encodable + Message>(key: ApiKey, direction: Direction) -> usize {
    let api = key.api();
    let mut compared = 0;
    for version in api.versions.iter() {
        if version < T::VERSIONS.min || version > T::VERSIONS.max {
            continue;
        }
        compared += 1;
        for seed in 0..SAMPLES {
            let flexible = api.is_flexible(version);
            let bytes =
                Bytes::from(sample(api.table(direction), version, flexible, seed, UnknownTags::Absent));
            let name = format!("{key} {version} {direction:?} seed {seed}");
            let mut rest = bytes.clone();
            let decoded = T::decode(&mut rest, version).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(rest.is_empty(), "{name}: {} bytes left over", rest.len());
            let mut again = BytesMut::new();
            decoded.encode(&mut again, version).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(hex(&again), hex(&bytes), "{name}, theirs");
            let again = api::rewrite(key, direction, version, &bytes)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(hex(&again), hex(&bytes), "{name}, ours");
        }
    }
    compared
}

#[test]
fn both_codecs_read_and_write_the_same_bytes() {
    let mut compared = 0;
    macro_rules! compare {
        ($($key:ident $module:ident $request:ident $response:ident,)*) => {$(
            compared += same_bytes::<theirs::$request>(ApiKey::$key, Direction::Request);
            compared += same_bytes::<theirs::$response>(ApiKey::$key, Direction::Response);
        )*};
    }
    each_api!(compare);
    assert!(compared > 150, "only {compared} versions compared");
}

#[test]
fn unknown_tagged_fields_are_skipped_everywhere() {
    for api in minikafka_wire::APIS {
        for version in api.versions.iter().filter(|version| api.is_flexible(*version)) {
            for direction in [Direction::Request, Direction::Response] {
                for seed in 0..SAMPLES {
                    let plain = sample(api.table(direction), version, true, seed, UnknownTags::Absent);
                    let newer = sample(api.table(direction), version, true, seed, UnknownTags::Present);
                    assert_ne!(plain, newer);
                    let read = api::rewrite(api.key, direction, version, &Bytes::from(newer));
                    assert_eq!(
                        read.expect("newer bytes are read"),
                        plain,
                        "{} {version} {direction:?}",
                        api.name
                    );
                }
            }
        }
    }
}
