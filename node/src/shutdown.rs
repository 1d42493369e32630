//! SIGTERM and SIGINT: the first asks for an orderly stop, the second ends the process at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A request to stop that every part of a process can wait for.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// Not asked yet.
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// Asks for an orderly stop.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Has a stop been asked for?
    pub fn requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Completes once a stop was asked for.
    pub async fn wait(&self) {
        self.token.cancelled().await;
    }

    /// Listens for SIGTERM and SIGINT for ever: the first requests the stop, the second exits with 128 + the signal's number.
    ///
    /// # Errors
    /// The operating system's, where the signals cannot be watched.
    pub async fn watch_signals(self) -> std::io::Result<()> {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        loop {
            let (name, code) =
                tokio::select! { _ = term.recv() => ("SIGTERM", 143), _ = int.recv() => ("SIGINT", 130) };
            if self.requested() {
                tracing::warn!("second {name}: ending at once");
                std::process::exit(code);
            }
            tracing::info!("{name}: stopping in order (a second one ends at once)");
            self.request();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_asks_for_an_orderly_stop() {
        let shutdown = Shutdown::new();
        let watching = tokio::spawn(shutdown.clone().watch_signals());
        // The handlers are in place once the task has run up to its first wait.
        tokio::task::yield_now().await;
        assert!(!shutdown.requested());
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
            .expect("sent to itself");
        shutdown.wait().await;
        assert!(!watching.is_finished(), "it waits for a second signal");
        watching.abort();
    }
}
