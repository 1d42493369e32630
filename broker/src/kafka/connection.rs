//! One client connection. Requests are begun in the order in which they came, and the synchronous part of one is finished before the
//! next is begun; only waits overlap, and answers leave in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Buf;
use minikafka_wire::Frame;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::answer::{Answer, CloseReason};
use super::frame_reader::{FrameEnd, FrameLimits, FrameReader};

/// Requests of one connection that were begun and not answered yet. Beyond it nothing more is read: TCP holds the client back.
pub(crate) const MOST_IN_FLIGHT: usize = 256;

/// What the broker knows of a client, for log lines and events.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Where it connects from.
    pub(crate) address: SocketAddr,
    /// The listener it came in by: what it is told of other brokers is their address on that listener.
    pub(crate) listener: Arc<str>,
    /// Name and version of its software, once ApiVersions (3+) has told them.
    pub(crate) software: Option<(String, String)>,
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.software {
            Some((name, version)) => write!(f, "{name} {version} at {}", self.address),
            None => write!(f, "client at {}", self.address),
        }
    }
}

/// Begins requests: the whole of the broker, as a connection sees it.
pub(crate) trait Begin {
    /// Does the synchronous part of the request in `frame`.
    fn begin(&self, client: &mut Client, frame: bytes::Bytes) -> Result<Answer, CloseReason>;
}

enum Next {
    Frame(Frame),
    Later(std::pin::Pin<Box<dyn Future<Output = Result<Frame, CloseReason>> + Send>>),
    Close(CloseReason),
}

/// How a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionEnd {
    #[error(transparent)]
    Frame(#[from] FrameEnd),
    #[error(transparent)]
    Closed(#[from] CloseReason),
    #[error("writing to the client: {0}")]
    Write(#[from] io::Error),
}

/// Serves one connection until it ends.
pub(crate) async fn serve<S, B>(
    stream: S,
    already: &[u8],
    limits: FrameLimits,
    client: &mut Client,
    door: &B,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Send,
    B: Begin,
{
    let (read, write) = tokio::io::split(stream);
    let (answers, queue) = mpsc::channel(MOST_IN_FLIGHT);
    let reading = read_requests(FrameReader::new(read, already, limits), answers, client, door);
    let writing = write_answers(write, queue);
    tokio::pin!(reading, writing);
    // Whichever ends first ends the connection, except that a close decided by a handler lets earlier answers out.
    tokio::select! {
        end = &mut reading => match end {
            Some(end) => ConnectionEnd::Frame(end),
            None => writing.await,
        },
        end = &mut writing => end,
    }
}

/// `None` when a handler closed the connection: the writer says why once it has written what came before.
async fn read_requests<R: AsyncRead + Unpin, B: Begin>(
    mut frames: FrameReader<R>,
    answers: mpsc::Sender<Next>,
    client: &mut Client,
    door: &B,
) -> Option<FrameEnd> {
    loop {
        // The room for the answer first: without it no further request is read.
        let Ok(room) = answers.reserve().await else { return Some(FrameEnd::Closed) };
        let frame = match frames.next().await {
            Ok(frame) => frame,
            Err(end) => return Some(end),
        };
        match door.begin(client, frame) {
            Ok(Answer::Now(frame)) => room.send(Next::Frame(frame)),
            Ok(Answer::Later(wait)) => room.send(Next::Later(wait)),
            Ok(Answer::Nothing) => {}
            Err(reason) => {
                room.send(Next::Close(reason));
                return None;
            }
        }
    }
}

async fn write_answers<W: AsyncWrite + Unpin>(mut to: W, mut queue: mpsc::Receiver<Next>) -> ConnectionEnd {
    loop {
        let frame = match queue.recv().await {
            Some(Next::Frame(frame)) => Ok(frame),
            Some(Next::Later(wait)) => wait.await,
            Some(Next::Close(reason)) => Err(reason),
            None => return ConnectionEnd::Frame(FrameEnd::Closed),
        };
        let written = match frame {
            Ok(frame) => write_frame(&mut to, frame).await,
            Err(reason) => {
                // The client may not listen any more; the reason is what counts.
                let _half_closed = to.shutdown().await;
                return reason.into();
            }
        };
        if let Err(error) = written {
            return error.into();
        }
    }
}

/// Header parts and record slices go out together, without being joined.
async fn write_frame<W: AsyncWrite + Unpin>(to: &mut W, mut frame: Frame) -> io::Result<()> {
    while frame.has_remaining() {
        if to.write_buf(&mut frame).await? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use minikafka_wire::{api_versions::ApiVersionsResponse, encode_response};
    use parking_lot::Mutex;
    use tokio::io::AsyncReadExt;
    use tokio::sync::oneshot;

    use super::*;

    /// Bodies: `w` waits for the next release, `n` answers at once, `0` wants no answer, `x` closes.
    #[derive(Default)]
    struct Door {
        waits: Mutex<Vec<oneshot::Sender<()>>>,
        begun: Mutex<Vec<u8>>,
    }

    fn frame(id: u8) -> Frame {
        encode_response(i32::from(id), 0, &ApiVersionsResponse::default()).expect("fits")
    }

    impl Begin for Door {
        fn begin(&self, _: &mut Client, body: Bytes) -> Result<Answer, CloseReason> {
            let (kind, id) = (body[0], body[1]);
            self.begun.lock().push(id);
            match kind {
                b'w' => {
                    let (release, released) = oneshot::channel();
                    self.waits.lock().push(release);
                    Ok(Answer::Later(Box::pin(async move {
                        released.await.map_err(|_| CloseReason::Unwritable("test".to_owned()))?;
                        Ok(frame(id))
                    })))
                }
                b'n' => Ok(Answer::Now(frame(id))),
                b'0' => Ok(Answer::Nothing),
                _ => Err(CloseReason::AcksZero("test".to_owned())),
            }
        }
    }

    const LIMITS: FrameLimits = FrameLimits {
        max_bytes: 1000,
        idle: Duration::from_secs(600),
        slowest_frame: Duration::from_secs(30),
    };

    fn client() -> Client {
        Client { address: ([127, 0, 0, 1], 9).into(), listener: "PLAINTEXT".into(), software: None }
    }

    fn ask(kind: u8, id: u8) -> Vec<u8> {
        vec![0, 0, 0, 2, kind, id]
    }

    async fn answer(from: &mut (impl AsyncRead + Unpin)) -> u8 {
        let length = from.read_u32().await.expect("an answer");
        let mut body = vec![0; length as usize];
        from.read_exact(&mut body).await.expect("whole");
        body[3]
    }

    #[tokio::test]
    async fn waits_overlap_and_answers_keep_the_order() {
        let (mut here, there) = tokio::io::duplex(1 << 16);
        let door = Arc::new(Door::default());
        let serving = tokio::spawn({
            let door = Arc::clone(&door);
            async move { serve(there, b"", LIMITS, &mut client(), &*door).await }
        });
        here.write_all(&[ask(b'w', 1), ask(b'0', 2), ask(b'w', 3), ask(b'n', 4)].concat())
            .await
            .expect("open");
        while door.begun.lock().len() < 4 {
            tokio::task::yield_now().await;
        }
        let [first, second] = <[_; 2]>::try_from(std::mem::take(&mut *door.waits.lock())).expect("two wait");
        second.send(()).expect("it waits");
        tokio::task::yield_now().await;
        assert!(
            tokio::time::timeout(Duration::from_millis(20), here.read_u8()).await.is_err(),
            "the first still waits"
        );
        first.send(()).expect("it waits");
        assert_eq!([answer(&mut here).await, answer(&mut here).await, answer(&mut here).await], [1, 3, 4]);
        drop(here);
        assert!(matches!(serving.await.expect("served"), ConnectionEnd::Frame(FrameEnd::Closed)));
    }

    #[tokio::test]
    async fn a_close_lets_earlier_answers_out_and_in_flight_requests_are_bounded() {
        let (mut here, there) = tokio::io::duplex(1 << 16);
        let door = Arc::new(Door::default());
        let serving = tokio::spawn({
            let door = Arc::clone(&door);
            async move { serve(there, b"", LIMITS, &mut client(), &*door).await }
        });
        for id in 0..=u8::MAX {
            here.write_all(&ask(b'w', id)).await.expect("open");
        }
        here.write_all(&[ask(b'n', 7), ask(b'x', 8)].concat()).await.expect("open");
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        // One is held by the writer, so the queue has room for one more than its bound.
        assert!(door.begun.lock().len() <= MOST_IN_FLIGHT + 1);
        while door.begun.lock().len() < 258 {
            let waits = std::mem::take(&mut *door.waits.lock());
            waits.into_iter().for_each(|release| release.send(()).expect("it waits"));
            tokio::task::yield_now().await;
        }
        for id in 0..=u8::MAX {
            assert_eq!(answer(&mut here).await, id);
        }
        assert_eq!(answer(&mut here).await, 7);
        assert_eq!(here.read(&mut [0; 8]).await.expect("closed in order"), 0);
        assert!(matches!(serving.await.expect("served"), ConnectionEnd::Closed(CloseReason::AcksZero(_))));
    }
}
