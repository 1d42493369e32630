//! From the flags of a command to a client that is connected.

use std::future::Future;
use std::time::Duration;

use minikafka_client::{Client, ClientBuilder, ConfigError};

use crate::args::Connection;
use crate::failure::{Failure, Kind, Outcome};

/// How long a command tries where `--timeout` does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for the delivery of a record.
const DEFAULT_DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs a command on a runtime of its own; Ctrl-C breaks it off.
pub(crate) fn run<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::error)?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = work => outcome,
            _ = tokio::signal::ctrl_c() => Err(Failure::of(Kind::Interrupted, "interrupted")),
        }
    });
    // A thread that still reads standard input must not hold the process.
    runtime.shutdown_background();
    outcome
}

fn bad_config(error: ConfigError) -> Failure {
    Failure::usage(error)
}

/// The settings of the flags: what stands on the command line is stronger than the file, which is stronger than our defaults.
pub(crate) fn builder(flags: &Connection, extra: &[(&str, &str)]) -> Outcome<ClientBuilder> {
    let millis = |time: Duration| time.as_millis().to_string();
    let timeout = flags.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let delivery = flags.timeout.unwrap_or(DEFAULT_DELIVERY_TIMEOUT);
    let ours = [
        ("client.id", "minikafka-cli".to_owned()),
        ("default.api.timeout.ms", millis(timeout)),
        ("max.block.ms", millis(timeout)),
        ("delivery.timeout.ms", millis(delivery)),
        ("socket.connection.setup.timeout.ms", millis(timeout.min(DEFAULT_TIMEOUT))),
    ];
    let mut builder = Client::builder();
    for (key, value) in &ours {
        builder = builder.set(key, value).map_err(bad_config)?;
    }
    if let Some(file) = &flags.command_config {
        builder = builder.from_properties(file).map_err(bad_config)?;
    }
    builder = builder.set("bootstrap.servers", &flags.bootstrap).map_err(bad_config)?;
    for (key, value) in extra {
        builder = builder.set(key, value).map_err(bad_config)?;
    }
    for (key, value) in &flags.set {
        builder = builder.set(key, value).map_err(bad_config)?;
    }
    Ok(builder)
}

/// A client, with a first connection made: a cluster that is not there is told at once, whatever the command would wait for.
pub(crate) async fn connect(flags: &Connection, extra: &[(&str, &str)]) -> Outcome<Client> {
    let client = builder(flags, extra)?.build().map_err(bad_config)?;
    client.connect().await?;
    Ok(client)
}
