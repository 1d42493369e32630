//! `minikafka health`: is the node beside us alive, is it ready, and if not, why. What a container's health check calls.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::args::Health;
use crate::failure::{Failure, Kind, Outcome};
use crate::up::health::{self, Health as Answer};

/// Pace of asking again while waiting.
const PACE: Duration = Duration::from_millis(100);

/// Asks over loopback, never through a name that others resolve.
///
/// # Errors
/// Not ready, with the node's own reasons; no answer.
pub(crate) fn health(asked: &Health) -> Outcome {
    let (_, port) = asked.at.rsplit_once(':').unwrap_or(("", asked.at.as_str()));
    let port: u16 = port
        .parse()
        .map_err(|_| Failure::usage(format!("--at {}: HOST:PORT or a port is wanted", asked.at)))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::error)?;
    let end = Instant::now() + asked.wait.unwrap_or_default();
    loop {
        let answer = runtime.block_on(health::ask(port));
        let failure = match (answer, asked.live) {
            (Answer::Ready, _) => return say("ready"),
            (Answer::NotReady(_), true) => return say("alive"),
            (Answer::NotReady(because), false) if because.is_empty() => {
                Failure::of(Kind::Unhealthy, "not ready")
            }
            (Answer::NotReady(because), false) => {
                Failure::of(Kind::Unhealthy, format!("not ready: {}", because.join("; ")))
            }
            (Answer::Silent, _) => {
                Failure::of(Kind::Unhealthy, format!("nobody answers on 127.0.0.1:{port}"))
            }
        };
        if Instant::now() >= end {
            return Err(failure);
        }
        std::thread::sleep(PACE);
    }
}

fn say(word: &str) -> Outcome {
    writeln!(io::stdout(), "{word}").map_err(Failure::error)
}
