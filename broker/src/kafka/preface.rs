//! Tells gRPC from Kafka on the inter-broker listener by the first four bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// The start of `PRI * HTTP/2.0`. As the length of a Kafka frame it would be 1.3 GB, above any `socket.request.max.bytes` in use.
const HTTP2: &[u8; 4] = b"PRI ";

/// What a connection begins with.
#[derive(Debug)]
pub(crate) enum Opening {
    /// gRPC; the bytes read are put back.
    Http2(Rewound),
    /// Kafka; the bytes read belong to the first frame.
    Kafka(TcpStream, [u8; 4]),
}

/// Reads the first four bytes.
///
/// # Errors
/// The connection ended before.
pub(crate) async fn tell(mut stream: TcpStream) -> io::Result<Opening> {
    let mut first = [0; 4];
    stream.read_exact(&mut first).await?;
    if &first == HTTP2 {
        Ok(Opening::Http2(Rewound { read_already: Bytes::from_static(HTTP2), stream }))
    } else {
        Ok(Opening::Kafka(stream, first))
    }
}

/// A TCP stream some of whose first bytes were read already.
#[derive(Debug)]
pub(crate) struct Rewound {
    read_already: Bytes,
    stream: TcpStream,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_already.has_remaining() {
            let count = self.read_already.len().min(buffer.remaining());
            buffer.put_slice(&self.read_already.split_to(count));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connected for Rewound {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}
