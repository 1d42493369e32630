//! Opens a TCP connection to a name or address: every address of a name is tried, in the resolver's order.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use crate::config::Address;

/// A peer that was paused or cut off is noticed by the kernel within about this time, also where nothing is under way.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Connects within `limit`; the error tells the reason for every address of the name.
pub(super) async fn open(address: &Address, limit: Duration) -> Result<TcpStream, String> {
    match tokio::time::timeout(limit, connect(address)).await {
        Ok(Ok(stream)) => prepare(&stream).map(|()| stream).map_err(|error| error.to_string()),
        Ok(Err(reason)) => Err(reason),
        Err(_) => Err(format!("no connection within {} ms", limit.as_millis())),
    }
}

async fn connect(address: &Address) -> Result<TcpStream, String> {
    let resolved = tokio::net::lookup_host((address.host.as_str(), address.port))
        .await
        .map_err(|error| format!("the name is not known: {error}"))?;
    let mut reasons: Vec<String> = Vec::new();
    for ip in resolved {
        match TcpStream::connect(ip).await {
            Ok(stream) => return Ok(stream),
            Err(error) if ip.ip().to_string() == address.host => reasons.push(error_text(&error)),
            Err(error) => reasons.push(format!("{ip}: {}", error_text(&error))),
        }
    }
    Err(if reasons.is_empty() { "the name has no address".to_owned() } else { reasons.join(", ") })
}

fn error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        _ => error.to_string(),
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
