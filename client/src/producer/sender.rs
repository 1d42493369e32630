//! The task behind a producer: lets the ledger decide, hands requests to one worker per broker, and carries back what became of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use minikafka_model::{BrokerId, ProducerEpoch, ProducerId};
use minikafka_wire::init_producer_id::InitProducerIdRequest;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Core;
use super::ledger::{Identity, Job, Plan};
use super::worker::{self, Report};
use crate::error::{BrokerError, Error};

/// Ended requests that wait to be looked at.
const MAX_REPORTS: usize = 1024;

type Identifying = Pin<Box<dyn Future<Output = Result<Identity, Error>> + Send>>;

/// The task's own state.
pub(super) struct Sender {
    core: Arc<Core>,
    workers: BTreeMap<BrokerId, mpsc::Sender<Job>>,
    reports: mpsc::Receiver<Report>,
    reports_to: mpsc::Sender<Report>,
    identifying: Option<Identifying>,
    identity_failures: u32,
}

impl Sender {
    pub(super) fn new(core: Arc<Core>) -> Sender {
        let (reports_to, reports) = mpsc::channel(MAX_REPORTS);
        Sender {
            core,
            workers: BTreeMap::new(),
            reports,
            reports_to,
            identifying: None,
            identity_failures: 0,
        }
    }

    /// Runs until the producer is closed or dropped; what has no verdict then is failed.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut known = self.core.shared.keeper.subscribe();
        loop {
            let wake_at = self.send();
            let timer = async {
                match wake_at {
                    Some(moment) => sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            let identified = async {
                match &mut self.identifying {
                    Some(identifying) => identifying.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(report) = self.reports.recv() => self.take(report),
                result = identified => self.identified(result),
                () = self.core.wake.notified() => {}
                _ = known.changed() => {}
                () = timer => {}
            }
        }
        self.close();
    }

    /// Sends what can be sent; when to look again.
    fn send(&mut self) -> Option<Instant> {
        let view = self.core.shared.keeper.view();
        let mut needs_leader = false;
        loop {
            let short = self.core.is_short_of_memory();
            let plan = self.core.ledger().plan(&view, Instant::now(), short);
            let Plan { jobs, wake_at, released, .. } = plan;
            needs_leader |= plan.needs_leader;
            self.core.release(released);
            if released > 0 {
                self.core.resolved.notify_waiters();
            }
            if plan.needs_identity && self.identifying.is_none() {
                self.identifying = Some(Box::pin(identify(self.core.clone(), self.identity_failures)));
            }
            if jobs.is_empty() {
                if needs_leader {
                    self.core.shared.keeper.refresh();
                }
                return wake_at;
            }
            for job in jobs {
                self.dispatch(job);
            }
        }
    }

    fn dispatch(&mut self, job: Job) {
        let Core { shared, rules, .. } = &*self.core;
        let worker = self.workers.entry(job.broker).or_insert_with(|| {
            // The ledger never has more than this many requests to one broker under way.
            let (sender, receiver) = mpsc::channel(rules.max_in_flight);
            tokio::spawn(worker::serve(shared.clone(), *rules, receiver, self.reports_to.clone()));
            sender
        });
        if worker.try_send(job).is_err() {
            unreachable!("a worker lives as long as its sender and has room for every request in flight");
        }
    }

    fn take(&mut self, first: Report) {
        let view = self.core.shared.keeper.view();
        let now = Instant::now();
        let mut refresh = false;
        let mut released = 0;
        let mut next = Some(first);
        while let Some((done, hints)) = next {
            self.core.shared.keeper.hint(&hints);
            let settled = self.core.ledger().settle(done, &view, now);
            refresh |= settled.refresh;
            released += settled.released;
            next = self.reports.try_recv().ok();
        }
        self.core.release(released);
        self.core.resolved.notify_waiters();
        if refresh {
            self.core.shared.keeper.refresh();
        }
    }

    fn identified(&mut self, result: Result<Identity, Error>) {
        self.identifying = None;
        self.identity_failures = if result.is_ok() { 0 } else { self.identity_failures.saturating_add(1) };
        if let Err(error) = &result {
            tracing::debug!("no producer id yet: {error}");
        }
        self.core.ledger().identify(result);
    }

    fn close(&mut self) {
        let view = self.core.shared.keeper.view();
        let mut ledger = self.core.ledger();
        let before = ledger.report().unsent;
        ledger.close(&view);
        let unsent = ledger.report().unsent - before;
        drop(ledger);
        if unsent > 0 {
            tracing::warn!("the producer was closed with {unsent} records without a verdict");
        }
        self.core.memory.close();
        self.core.resolved.notify_waiters();
    }
}

/// Asks any broker for a producer id, after a pause that grows with the failures so far.
async fn identify(core: Arc<Core>, failures: u32) -> Result<Identity, Error> {
    if failures > 0 {
        tokio::time::sleep(core.rules.backoff.pause(failures - 1)).await;
    }
    let request = InitProducerIdRequest {
        transactional_id: None,
        // Java's value where there is no transaction.
        transaction_timeout_ms: i32::MAX,
        producer_id: -1,
        producer_epoch: -1,
        ..InitProducerIdRequest::default()
    };
    let connection = core.shared.keeper.any().await?;
    let answer = connection.call(&request, core.rules.request_timeout).await?;
    BrokerError::check(answer.error_code, None)
        .map_err(|error| Error::broker("getting a producer id", error))?;
    Ok((ProducerId(answer.producer_id), ProducerEpoch(answer.producer_epoch)))
}
