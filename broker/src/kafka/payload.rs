//! The shape of a Produce payload: exactly one whole batch of format 2 (Kafka semantics 1.2, row 5). Read as Kafka's own iterator
//! reads it: bytes after the last whole batch are ignored.

use bytes::Bytes;

/// Base offset and length field.
const OVERHEAD: usize = 12;
/// Up to and with the magic byte.
const UP_TO_MAGIC: usize = 17;
/// No record of any format is shorter (without the overhead).
const SHORTEST: i32 = 14;
/// Header of a batch of format 2.
const HEADER: usize = 61;

/// A payload at first sight.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// One batch of format 2, and what its header says.
    Batch(Bytes, Attributes),
    /// INVALID_RECORD (87): no batch, several, or an old format.
    Invalid,
    /// CORRUPT_MESSAGE (2), with Kafka's words.
    Corrupt(String),
}

/// The attribute bits of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes(i16);

impl Attributes {
    /// Part of a transaction.
    pub(crate) fn is_transactional(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Compressed with zstd.
    pub(crate) fn is_zstd(self) -> bool {
        self.0 & 7 == 4
    }
}

enum Step {
    Batch { size: usize, magic: u8 },
    End,
}

fn step(bytes: &[u8]) -> Result<Step, String> {
    let Some(length) = bytes.get(8..OVERHEAD).and_then(|field| field.try_into().ok()).map(i32::from_be_bytes)
    else {
        return Ok(Step::End);
    };
    if length < SHORTEST {
        return Err(format!("Record size {length} is less than the minimum record overhead ({SHORTEST})"));
    }
    let Some(magic) = bytes.get(UP_TO_MAGIC - 1).copied() else { return Ok(Step::End) };
    if magic > 2 {
        return Err(format!("Invalid magic found in record: {}", magic.cast_signed()));
    }
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(OVERHEAD);
    Ok(if size > bytes.len() { Step::End } else { Step::Batch { size, magic } })
}

/// Looks at a payload.
pub(crate) fn payload(records: Option<Bytes>) -> Payload {
    // Null records leave Kafka's connection without an answer for ever; here they are refused like empty ones.
    let Some(mut records) = records else { return Payload::Invalid };
    match step(&records) {
        Err(words) => Payload::Corrupt(words),
        Ok(Step::End) => Payload::Invalid,
        Ok(Step::Batch { size, magic }) => match step(&records[size..]) {
            Err(words) => Payload::Corrupt(words),
            Ok(Step::End) if magic == 2 && size >= HEADER => {
                records.truncate(size);
                let attributes = Attributes(i16::from_be_bytes([records[21], records[22]]));
                Payload::Batch(records, attributes)
            }
            Ok(Step::Batch { .. } | Step::End) => Payload::Invalid,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(magic: u8) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + 9];
        let length = i32::try_from(bytes.len() - OVERHEAD).expect("small");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[16] = magic;
        bytes[22] = 0x14;
        bytes
    }

    #[test]
    fn exactly_one_batch_of_format_two() {
        let one = batch(2);
        let Payload::Batch(bytes, attributes) = payload(Some(one.clone().into())) else { panic!("a batch") };
        assert_eq!(bytes, one);
        assert!(attributes.is_transactional() && attributes.is_zstd());
        let trailing = [&one[..], b"0123456789"].concat();
        assert!(matches!(payload(Some(trailing.into())), Payload::Batch(bytes, _) if bytes == one));
        for bad in [
            None,
            Some(vec![]),
            Some(one[..one.len() - 1].to_vec()),
            Some([&one[..], &one[..]].concat()),
            Some(batch(1)),
            Some(batch(0)),
            Some(vec![0; 10]),
        ] {
            assert_eq!(payload(bad.clone().map(Bytes::from)), Payload::Invalid, "{bad:?}");
        }
        assert_eq!(
            payload(Some(batch(255).into())),
            Payload::Corrupt("Invalid magic found in record: -1".to_owned())
        );
        let garbage: Vec<u8> = (0..40).collect();
        assert_eq!(
            payload(Some(garbage.into())),
            Payload::Corrupt("Invalid magic found in record: 16".to_owned())
        );
    }
}
