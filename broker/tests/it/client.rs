//! A raw client: one socket, requests in any order, answers as they come.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use minikafka_wire::{Request, decode_response, encode_request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    next: i32,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(to: SocketAddr) -> Client {
        Client { stream: TcpStream::connect(to).await.expect("the broker listens"), next: 1 }
    }

    /// Sends a request; gives back its correlation id.
    pub(crate) async fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next;
        self.next += 1;
        let frame = encode_request(id, Some("test"), version, request).expect("it fits");
        self.raw(&frame.to_bytes()).await;
        id
    }

    /// Sends bytes.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the connection is open");
    }

    /// The next answer, whoever it is for; none once the broker has closed the connection.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        timeout(PATIENCE, async {
            let length = self.stream.read_u32().await.ok()?;
            let mut body = vec![0; length as usize];
            self.stream.read_exact(&mut body).await.ok()?;
            Some(Bytes::from(body))
        })
        .await
        .expect("an answer in time")
    }

    /// The answer to this request, which must be the next one.
    pub(crate) async fn answer<R: Request>(&mut self, id: i32, version: i16) -> R::Response {
        let frame = self.frame().await.expect("an answer, not the end");
        decode_response::<R>(&frame, id, version).expect("a right answer")
    }

    /// Asks and waits.
    pub(crate) async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request).await;
        self.answer::<R>(id, version).await
    }
}
