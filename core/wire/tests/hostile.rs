//! No bytes panic, hang or take more memory than a small multiple of their length. One test function: the allocator counts for the whole
//! process.

mod support;

use bytes::Bytes;
use minikafka_wire::seed::{UnknownTags, sample};
use minikafka_wire::{APIS, Api, Direction, MEMORY_FLOOR, MEMORY_PER_BYTE, RequestFrame, RequestHeader, api};
use peak_alloc::PeakAlloc;
use support::response_body_at;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes of a panic-free run that are not the message's: the error, the second encoding and its buffers.
const OVERHEAD: usize = 2048;

/// Reading and writing again: the decoded value, and twice the bytes for the writer's growing buffer and the joined copy.
fn allowance(len: usize) -> usize {
    MEMORY_FLOOR + OVERHEAD + len * (MEMORY_PER_BYTE + 6)
}

#[test]
fn nothing_panics_or_takes_much_memory() {
    let mut dice = Dice(7);
    for api in APIS {
        for version in api.versions.iter() {
            for direction in [Direction::Request, Direction::Response] {
                mutated_samples(api, version, direction, &mut dice);
                huge_counts(api, version, direction);
                noise(api, version, direction, &mut dice);
            }
        }
    }
    recorded_frames(&mut dice);
    dense_messages();
}

fn read(api: &Api, version: i16, direction: Direction, bytes: &Bytes) -> bool {
    let len = bytes.len();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = api::rewrite(api.key, direction, version, bytes);
    let used = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(
        used <= allowance(len),
        "{} {version} {direction:?}: {used} bytes of memory for {len} bytes: {:?}",
        api.name,
        bytes
    );
    if let Err(error) = &result {
        assert!(error.position() <= len, "{error}");
        assert!(error.to_string().contains(api.name), "{error}");
    }
    result.is_ok()
}

fn mutated_samples(api: &Api, version: i16, direction: Direction, dice: &mut Dice) {
    for seed in 0..12 {
        let whole =
            sample(api.table(direction), version, api.is_flexible(version), seed, UnknownTags::Present);
        let mut refused = 0;
        for cut in 0..whole.len() {
            refused += usize::from(!read(api, version, direction, &Bytes::copy_from_slice(&whole[..cut])));
        }
        assert_eq!(refused, whole.len(), "{} {version} {direction:?}: a cut body is never a body", api.name);
        for _ in 0..20 {
            let mut changed = whole.clone();
            if !changed.is_empty() {
                for _ in 0..=dice.below(3) {
                    let at = dice.below(changed.len());
                    changed[at] = dice.byte();
                }
            }
            read(api, version, direction, &Bytes::from(changed));
        }
    }
}

/// A frame that is nothing but the largest possible counts.
fn huge_counts(api: &Api, version: i16, direction: Direction) {
    for pattern in [
        &[0x7f, 0xff, 0xff, 0xff][..],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff; 8],
        &[0x01],
        &[0x00, 0x00, 0x7f],
    ] {
        for len in [1, 7, 18, 200, 3000] {
            let bytes: Vec<u8> = pattern.iter().copied().cycle().take(len).collect();
            read(api, version, direction, &Bytes::from(bytes));
        }
    }
}

fn noise(api: &Api, version: i16, direction: Direction, dice: &mut Dice) {
    for _ in 0..40 {
        let len = dice.below(300);
        // Small bytes pass for counts and lengths more often than any bytes do.
        let most = [2, 5, 255][dice.below(3)];
        let bytes: Vec<u8> = (0..len).map(|_| dice.byte() % most).collect();
        read(api, version, direction, &Bytes::from(bytes));
    }
}

fn recorded_frames(dice: &mut Dice) {
    for exchange in support::exchanges() {
        for _ in 0..60 {
            if let Some(response) = &exchange.response {
                let body = mutated(&response[response_body_at(exchange.key, exchange.version)..], dice);
                read(exchange.key.api(), exchange.version, Direction::Response, &body);
            }
            let frame = mutated(&exchange.request, dice);
            let before = ALLOCATOR.current_usage();
            ALLOCATOR.reset_peak_usage();
            let _ = RequestHeader::read(&frame);
            if let Ok(request) = RequestFrame::parse(frame.clone()) {
                let _ = api::rewrite(request.key, Direction::Request, request.version, &request.body());
            }
            let used = ALLOCATOR.peak_usage().saturating_sub(before);
            assert!(used <= allowance(frame.len()) * 2, "{used} bytes for a frame of {}", frame.len());
        }
    }
}

fn mutated(bytes: &[u8], dice: &mut Dice) -> Bytes {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        bytes[at] = dice.byte();
    }
    bytes.truncate(bytes.len() - dice.below(2) * dice.below(bytes.len()));
    Bytes::from(bytes)
}

/// The densest honest message passes, the densest possible one does not.
fn dense_messages() {
    let api = minikafka_wire::ApiKey::Metadata.api();
    let request = |name: &[u8]| {
        let mut bytes = 20_000i32.to_be_bytes().to_vec();
        for _ in 0..20_000 {
            bytes.extend((name.len() as u16).to_be_bytes());
            bytes.extend(name);
        }
        Bytes::from(bytes)
    };
    assert!(read(api, 0, Direction::Request, &request(b"t")), "names of one letter");
    assert!(!read(api, 0, Direction::Request, &request(b"")), "no names at all");
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
