//! Cuts frames from a socket. The four length bytes are never trusted: memory grows with the bytes that have arrived.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// What a connection reads ahead: small requests that came in one packet cost one system call.
const READ_AHEAD: usize = 8 << 10;
/// Memory a frame gets before its bytes are there, on a connection that has not shown a larger one yet.
const FIRST_PIECE: usize = 64 << 10;

/// Limits of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameLimits {
    /// `socket.request.max.bytes`: a longer frame closes the connection.
    pub(crate) max_bytes: usize,
    /// How long a connection may stay without a request (`connections.max.idle.ms`).
    pub(crate) idle: Duration,
    /// How long the bytes of one frame may take, once its first byte is there.
    pub(crate) slowest_frame: Duration,
}

/// Why no further frame will come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameEnd {
    #[error("the client closed the connection")]
    Closed,
    #[error("the client closed the connection within a frame ({got} of {length} bytes)")]
    Torn { got: usize, length: usize },
    #[error(
        "a frame of {length} bytes was announced, 0 to {most} are allowed (socket.request.max.bytes): \
         a client of another protocol?"
    )]
    Length { length: i32, most: usize },
    #[error("nothing was asked for {0:?} (connections.max.idle.ms)")]
    Idle(Duration),
    #[error("a frame of {length} bytes was not complete after {after:?} ({got} bytes)")]
    Slow { length: usize, got: usize, after: Duration },
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Reads frames one after the other.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    from: R,
    ahead: BytesMut,
    limits: FrameLimits,
    /// The largest frame this connection has completed: it may have that much memory at once.
    shown: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// `already` are bytes that were read while the protocol was told.
    pub(crate) fn new(from: R, already: &[u8], limits: FrameLimits) -> FrameReader<R> {
        FrameReader { from, ahead: BytesMut::from(already), limits, shown: 0 }
    }

    /// The next frame without its length bytes. It does not share memory with other frames, so that a record batch in it can be
    /// completed in place.
    pub(crate) async fn next(&mut self) -> Result<Bytes, FrameEnd> {
        if self.ahead.is_empty() {
            let idle = self.limits.idle;
            match timeout(idle, self.fill()).await {
                Ok(got) => got?,
                Err(_) => return Err(FrameEnd::Idle(idle)),
            };
        }
        let deadline = self.limits.slowest_frame;
        let mut progress = (0, 0);
        match timeout(deadline, self.frame(&mut progress)).await {
            Ok(frame) => frame,
            Err(_) => Err(FrameEnd::Slow { length: progress.0, got: progress.1, after: deadline }),
        }
    }

    /// `progress` = (announced, arrived), for the sentence about a slow one.
    async fn frame(&mut self, progress: &mut (usize, usize)) -> Result<Bytes, FrameEnd> {
        while self.ahead.len() < 4 {
            self.fill().await?;
        }
        let length = self.ahead.get_i32();
        let wanted = usize::try_from(length)
            .ok()
            .filter(|wanted| *wanted <= self.limits.max_bytes)
            .ok_or(FrameEnd::Length { length, most: self.limits.max_bytes })?;
        progress.0 = wanted;
        if self.ahead.len() >= wanted {
            let frame = Bytes::copy_from_slice(&self.ahead[..wanted]);
            self.ahead.advance(wanted);
            return Ok(frame);
        }
        let mut frame = BytesMut::with_capacity(wanted.min(FIRST_PIECE.max(self.shown)));
        frame.put_slice(&self.ahead);
        self.ahead.clear();
        while frame.len() < wanted {
            progress.1 = frame.len();
            if frame.len() == frame.capacity() {
                // At most twice of what has arrived.
                frame.reserve(frame.len().min(wanted - frame.len()));
            }
            let room = wanted - frame.len();
            if self.from.read_buf(&mut (&mut frame).limit(room)).await? == 0 {
                return Err(FrameEnd::Torn { got: frame.len(), length: wanted });
            }
        }
        self.shown = self.shown.max(wanted);
        Ok(frame.freeze())
    }

    async fn fill(&mut self) -> Result<(), FrameEnd> {
        self.ahead.reserve(READ_AHEAD);
        let before = self.ahead.len();
        match self.from.read_buf(&mut (&mut self.ahead).limit(READ_AHEAD)).await? {
            0 if before == 0 => Err(FrameEnd::Closed),
            0 => Err(FrameEnd::Torn { got: before, length: 4 }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    const LIMITS: FrameLimits = FrameLimits {
        max_bytes: 1 << 20,
        idle: Duration::from_secs(60),
        slowest_frame: Duration::from_secs(30),
    };

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len()).expect("small").to_be_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    #[tokio::test]
    async fn frames_come_out_whole_however_they_arrive() {
        let (mut client, server) = tokio::io::duplex(1000);
        let mut reader = FrameReader::new(server, b"\0\0\0", LIMITS);
        let large = vec![7u8; 300_000];
        let sent = large.clone();
        let writer = tokio::spawn(async move {
            client.write_all(&[3]).await.expect("open");
            for byte in b"abc" {
                client.write_all(&[*byte]).await.expect("open");
            }
            client.write_all(&framed(b"")).await.expect("open");
            client.write_all(&framed(&sent)).await.expect("open");
            client.write_all(&[framed(b"x"), framed(b"yz")].concat()).await.expect("open");
        });
        for wanted in [&b"abc"[..], b"", &large, b"x", b"yz"] {
            assert_eq!(reader.next().await.expect("a frame"), wanted);
        }
        writer.await.expect("written");
        assert!(matches!(reader.next().await, Err(FrameEnd::Closed)));
    }

    #[tokio::test]
    async fn the_length_is_not_trusted() {
        for (length, told) in [(-1i32, -1), (1 + (1 << 20), 1 + (1 << 20)), (i32::MAX, i32::MAX)] {
            let (mut client, server) = tokio::io::duplex(100);
            client.write_all(&length.to_be_bytes()).await.expect("open");
            let end = FrameReader::new(server, b"", LIMITS).next().await;
            assert!(matches!(end, Err(FrameEnd::Length { length, .. }) if length == told), "{end:?}");
        }
        let (mut client, server) = tokio::io::duplex(100);
        client.write_all(&(1i32 << 20).to_be_bytes()).await.expect("open");
        client.write_all(b"only this").await.expect("open");
        drop(client);
        let end = FrameReader::new(server, b"", LIMITS).next().await;
        assert!(matches!(end, Err(FrameEnd::Torn { got: 9, length: 1_048_576 })), "{end:?}");
    }

    #[tokio::test]
    async fn silence_and_slowness_end_a_connection() {
        let (mut client, server) = tokio::io::duplex(100);
        let short = Duration::from_millis(20);
        let mut reader =
            FrameReader::new(server, b"", FrameLimits { idle: short, slowest_frame: short, ..LIMITS });
        assert!(matches!(reader.next().await, Err(FrameEnd::Idle(_))));
        client.write_all(b"\0\0\0\x05ab").await.expect("open");
        assert!(matches!(reader.next().await, Err(FrameEnd::Slow { length: 5, got: 2, .. })));
    }
}
