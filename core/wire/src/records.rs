//! The record set of a Fetch response: one or several slices that are sent one after the other.

use bytes::{BufMut, Bytes, BytesMut};

/// Records of one partition in a Fetch response, as slices of the log. No records are zero bytes, never null: some librdkafka
/// versions refuse null. Two sets are equal if their bytes are, however they are cut.
#[derive(Debug, Clone, Default)]
pub struct Records {
    parts: Parts,
}

#[derive(Debug, Clone, Default)]
enum Parts {
    #[default]
    None,
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Records {
    /// No records.
    pub const fn new() -> Records {
        Records { parts: Parts::None }
    }

    /// The slices in order.
    pub fn slices(&self) -> &[Bytes] {
        match &self.parts {
            Parts::None => &[],
            Parts::One(slice) => std::slice::from_ref(slice),
            Parts::Many(slices) => slices,
        }
    }

    /// Bytes in all slices together.
    pub fn len(&self) -> usize {
        self.slices().iter().map(Bytes::len).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.slices().iter().all(Bytes::is_empty)
    }

    /// Everything in one piece; copies only if there are several slices.
    pub fn into_bytes(self) -> Bytes {
        match self.parts {
            Parts::None => Bytes::new(),
            Parts::One(slice) => slice,
            Parts::Many(slices) => {
                let mut whole = BytesMut::with_capacity(slices.iter().map(Bytes::len).sum());
                slices.iter().for_each(|slice| whole.put_slice(slice));
                whole.freeze()
            }
        }
    }
}

impl From<Bytes> for Records {
    fn from(slice: Bytes) -> Records {
        Records { parts: Parts::One(slice) }
    }
}

impl From<Vec<Bytes>> for Records {
    fn from(slices: Vec<Bytes>) -> Records {
        Records { parts: Parts::Many(slices) }
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Records) -> bool {
        let flat = |records: &Records| records.slices().iter().flatten().copied().collect::<Vec<u8>>();
        self.len() == other.len() && flat(self) == flat(other)
    }
}

impl Eq for Records {}
