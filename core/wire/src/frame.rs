//! A frame ready for a socket: the parts of one message in order.

use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// One encoded request or response with its four length bytes, as a list of parts. It is a [`Buf`], so that a vectored write
/// sends header parts and record slices together.
#[derive(Debug, Clone)]
pub struct Frame {
    chunks: Vec<Bytes>,
    /// The first part not fully consumed.
    next: usize,
    len: usize,
}

impl Frame {
    pub(crate) fn new(chunks: Vec<Bytes>) -> Frame {
        let len = chunks.iter().map(Bytes::len).sum();
        Frame { chunks, next: 0, len }
    }

    /// Bytes not consumed yet, the four length bytes included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all of it was consumed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts not consumed yet.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks[self.next..]
    }

    /// The parts not consumed yet.
    pub fn into_chunks(mut self) -> Vec<Bytes> {
        self.chunks.drain(..self.next);
        self.chunks
    }

    /// Everything in one piece (copies if there is more than one part).
    pub fn to_bytes(&self) -> Bytes {
        match self.chunks() {
            [only] => only.clone(),
            chunks => {
                let mut whole = BytesMut::with_capacity(self.len);
                chunks.iter().for_each(|chunk| whole.put_slice(chunk));
                whole.freeze()
            }
        }
    }
}

impl Buf for Frame {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.chunks().first().map_or(&[], |chunk| chunk.as_ref())
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "advance beyond the end of a frame");
        self.len -= count;
        while let Some(chunk) = self.chunks.get_mut(self.next) {
            if count < chunk.len() {
                chunk.advance(count);
                return;
            }
            count -= chunk.len();
            *chunk = Bytes::new();
            self.next += 1;
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let chunks = self.chunks();
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
        }
        chunks.len().min(slices.len())
    }
}
