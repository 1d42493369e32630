//! The link's thread: everything that talks to the controllers runs on it, one task each.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use minikafka_node::block_on_thread;
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};

use super::controllers::Controllers;
use super::feed::Feed;
use super::forwarder::{ForwardQueue, forward_all};
use super::heartbeats::{BrokerEpochCell, Life, LifeEnd, Registration};
use super::isr_changes;
use super::producer_ids::{ProducerIds, keep_supplied};
use crate::fetcher::FetcherPool;
use crate::service::Service;

/// What the link is built from.
pub(crate) struct LinkParts {
    pub(crate) controllers: Controllers,
    pub(crate) service: Arc<Service>,
    pub(crate) registration: Registration,
    pub(crate) epoch: Arc<BrokerEpochCell>,
    pub(crate) producer_ids: Arc<ProducerIds>,
    pub(crate) forwards: ForwardQueue,
    pub(crate) fetchers: Arc<FetcherPool>,
}

/// What the rest of the broker tells the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    /// Hand over leadership and ISR membership.
    ShutDown,
    /// End the thread.
    Stop,
}

/// The running link.
#[derive(Debug)]
pub(crate) struct Link {
    commands: mpsc::Sender<Command>,
    /// Whether the controllers have this broker unfenced.
    pub(crate) unfenced: watch::Receiver<bool>,
    /// How the broker's life ended, once it has.
    pub(crate) end: watch::Receiver<Option<LifeEnd>>,
    /// Why the metadata can no longer be followed, if it cannot.
    pub(crate) broken: watch::Receiver<Option<String>>,
    thread: JoinHandle<()>,
}

impl Link {
    /// Starts the thread, which registers the broker and follows the metadata.
    ///
    /// # Errors
    /// The operating system's, where it can start no more threads.
    pub(crate) fn start(parts: LinkParts) -> io::Result<Link> {
        let (commands, receiver) = mpsc::channel(2);
        let (unfenced_sender, unfenced) = watch::channel(false);
        let (end_sender, end) = watch::channel(None);
        let (broken_sender, broken) = watch::channel(None);
        let thread = block_on_thread("controller-link", move || async move {
            let tasks = LocalSet::new();
            tasks.run_until(run(parts, receiver, unfenced_sender, end_sender, broken_sender)).await;
        })?;
        Ok(Link { commands, unfenced, end, broken, thread })
    }

    /// Asks the controllers to move everything away from this broker. The end shows in [`Link::end`].
    pub(crate) fn shut_down(&self) {
        // Only a link that is stopping already takes no command.
        let _stopping = self.commands.try_send(Command::ShutDown);
    }

    /// Ends the thread.
    pub(crate) fn stop(self) {
        let _ended_already = self.commands.try_send(Command::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the link to the controllers has panicked");
        }
    }
}

async fn run(
    parts: LinkParts,
    mut commands: mpsc::Receiver<Command>,
    unfenced: watch::Sender<bool>,
    end: watch::Sender<Option<LifeEnd>>,
    broken: watch::Sender<Option<String>>,
) {
    let LinkParts { controllers, service, registration, epoch, producer_ids, forwards, fetchers } = parts;
    let controllers = Arc::new(controllers);
    let life = Life::new(
        registration,
        Arc::clone(&controllers),
        Arc::clone(&service),
        Arc::clone(&epoch),
        unfenced,
        end,
    );
    spawn_local({
        let life = std::rc::Rc::clone(&life);
        async move { life.live().await }
    });
    spawn_local(forward_all(forwards, Arc::clone(&controllers), Arc::clone(&service)));
    spawn_local(keep_supplied(producer_ids, Arc::clone(&controllers), Arc::clone(&epoch)));
    spawn_local(isr_changes::send_all(Arc::clone(&service), Arc::clone(&controllers), epoch));
    spawn_local({
        let service = Arc::clone(&service);
        async move {
            loop {
                service.ask_changes.news().await;
                service.ask_changes.take().into_iter().for_each(|at| fetchers.route(at));
            }
        }
    });
    let feed = Feed::new(Arc::clone(&service), controllers, std::rc::Rc::clone(&life));
    let feed = spawn_local(async move {
        let why = feed.follow().await.to_string();
        tracing::error!("the metadata can no longer be followed: {why}");
        broken.send_replace(Some(why));
    });
    while let Some(command) = commands.recv().await {
        match command {
            Command::ShutDown => life.shut_down(),
            Command::Stop => break,
        }
    }
    feed.abort();
}
