//! Asks a node over HTTP whether it is ready: as little of HTTP as that takes.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::layout::HOST;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most bytes of an answer that are read.
const MOST_BYTES: u64 = 64 * 1024;

/// What `/health/ready` said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    /// It serves.
    Ready,
    /// It lives, but does not serve yet, and says why.
    NotReady(Vec<String>),
    /// It does not answer (yet).
    Silent,
}

/// Asks the node whose HTTP server has this port.
pub(crate) async fn ask(port: u16) -> Health {
    match tokio::time::timeout(PATIENCE, get(port, "/health/ready")).await {
        Ok(Ok(answer)) => understand(&answer),
        Ok(Err(_)) | Err(_) => Health::Silent,
    }
}

async fn get(port: u16, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((HOST, port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST_BYTES).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn understand(answer: &[u8]) -> Health {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        because: Vec<String>,
    }
    let text = String::from_utf8_lossy(answer);
    match text.split(' ').nth(1) {
        Some("200") => Health::Ready,
        Some("503") => {
            let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            Health::NotReady(serde_json::from_str::<Body>(body).map(|body| body.because).unwrap_or_default())
        }
        _ => Health::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        assert_eq!(understand(b"HTTP/1.1 200 OK\r\n\r\n{}"), Health::Ready);
        let waiting = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\n{\"ready\":false,\"because\":[\"fenced\"]}";
        assert_eq!(understand(waiting), Health::NotReady(vec!["fenced".to_owned()]));
        assert_eq!(understand(b"SSH-2.0"), Health::Silent);
        assert_eq!(understand(b""), Health::Silent);
    }
}
