//! Both ends of the followers' streams, as a broker's shell handles them.

use std::time::Duration;

use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, TopicPartition};
use minikafka_replication::{
    Bounds, FetchLimits, Fetched, FetchedAnswer, FollowerAnswer, FollowerSession, LeaderSession, Next,
    Served, StreamId,
};

use crate::broker::Process;
use crate::message::{Message, Node};
use crate::outbox::{Outbox, Timer};

/// Before a lost stream is opened anew.
const RECONNECT: Duration = Duration::from_millis(100);
/// A stream without an answer for so long is given up.
const STREAM_TIMEOUT: Duration = Duration::from_millis(1500);

/// What one follower fetches from one leader.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) session: FollowerSession,
    stream: Option<StreamId>,
    /// When the stream was last heard of.
    heard: minikafka_model::Mono,
}

fn limits(credit: usize) -> FetchLimits {
    FetchLimits {
        max_wait: Duration::from_millis(500),
        max_bytes: 400,
        max_partition_bytes: 200,
        max_outstanding: credit,
    }
}

impl Process {
    /// A replica asks for something else now.
    pub(crate) fn ask_changed(&mut self, at: TopicPartition, cx: &mut Outbox<'_>) {
        for fetcher in self.fetchers.values_mut() {
            fetcher.session.remove(at);
        }
        let Some(replica) = self.replicas.get_mut(&at) else { return };
        if let Some(ask) = replica.ask() {
            let credit = self.credit;
            let fetcher = self.fetchers.entry(ask.leader).or_insert_with(|| Fetcher {
                session: FollowerSession::new(limits(credit)),
                stream: None,
                heard: cx.now,
            });
            fetcher.session.add(at, ask);
        }
        let sources: Vec<BrokerId> = self.fetchers.keys().copied().collect();
        for source in sources {
            self.pump(source, cx);
        }
    }

    /// The streams to and from a peer.
    pub(crate) fn streams_with(&self, peer: BrokerId) -> Vec<StreamId> {
        let serving =
            self.streams.values().filter(|session| session.follower() == peer).map(LeaderSession::stream);
        serving.chain(self.fetchers.get(&peer).and_then(|fetcher| fetcher.stream)).collect()
    }

    /// Sends what may be sent to one source.
    pub(crate) fn pump(&mut self, source: BrokerId, cx: &mut Outbox<'_>) {
        let Some(fetcher) = self.fetchers.get_mut(&source) else { return };
        let Some(stream) = fetcher.stream else {
            if !fetcher.session.is_empty() {
                self.connect(source, cx);
            }
            return;
        };
        while let Some(request) = fetcher.session.next_request(cx.now) {
            cx.send(Node::Broker(source), Message::Fetch { stream, request });
        }
        if let Some(wake) = fetcher.session.next_wake(cx.now) {
            self.arm(wake, Timer::Fetcher(source), cx);
        }
    }

    fn connect(&mut self, source: BrokerId, cx: &mut Outbox<'_>) {
        let Some(broker_epoch) = self.lifecycle.broker_epoch() else { return };
        let stream = StreamId(cx.dice.bits());
        let credit = self.credit;
        let Some(fetcher) = self.fetchers.get_mut(&source) else { return };
        let partitions: Vec<TopicPartition> = fetcher.session.partitions().collect();
        fetcher.session = FollowerSession::new(limits(credit));
        fetcher.stream = Some(stream);
        fetcher.heard = cx.now;
        for at in partitions {
            // A new stream: everything is asked for in a new generation.
            if let Some(ask) = self.replicas.get_mut(&at).and_then(minikafka_replication::Replica::ask)
                && ask.leader == source
            {
                fetcher.session.add(at, ask);
            }
        }
        cx.send(Node::Broker(source), Message::OpenStream { stream, broker_epoch });
        self.arm(cx.now.after(STREAM_TIMEOUT), Timer::Fetcher(source), cx);
        self.pump(source, cx);
    }

    pub(crate) fn fetcher_timer(&mut self, _id: BrokerId, source: BrokerId, cx: &mut Outbox<'_>) {
        let Some(fetcher) = self.fetchers.get_mut(&source) else { return };
        if let Some(stream) = fetcher.stream
            && cx.now.since(fetcher.heard) >= STREAM_TIMEOUT
        {
            fetcher.stream = None;
            cx.send(Node::Broker(source), Message::StreamClosed { stream });
        } else if fetcher.stream.is_some() {
            let at = fetcher.heard.after(STREAM_TIMEOUT);
            self.arm(at, Timer::Fetcher(source), cx);
        }
        self.pump(source, cx);
    }

    pub(crate) fn handle_peer(
        &mut self,
        id: BrokerId,
        peer: BrokerId,
        message: Message,
        cx: &mut Outbox<'_>,
    ) {
        match message {
            Message::OpenStream { stream, broker_epoch } => {
                self.streams.insert(stream, LeaderSession::new(stream, peer, broker_epoch, 2));
            }
            Message::StreamClosed { stream } => {
                self.streams.remove(&stream);
                if let Some(fetcher) = self.fetchers.get_mut(&peer)
                    && fetcher.stream == Some(stream)
                {
                    fetcher.stream = None;
                    fetcher.heard = cx.now;
                    cx.after(RECONNECT, Timer::Fetcher(peer));
                }
            }
            Message::Fetch { stream, request } => {
                let Some(session) = self.streams.get_mut(&stream) else {
                    cx.send(Node::Broker(peer), Message::StreamClosed { stream });
                    return;
                };
                if session.request(cx.now, request).is_err() {
                    self.streams.remove(&stream);
                    cx.send(Node::Broker(peer), Message::StreamClosed { stream });
                    return;
                }
                self.serve(id, stream, cx);
            }
            Message::Fetched { stream, partitions } => self.fetched(id, peer, stream, partitions, cx),
            Message::AskBounds { partition, leader_epoch, generation } => {
                let bounds = self.bounds_of(partition, leader_epoch);
                cx.send(Node::Broker(peer), Message::Bounds { partition, generation, bounds });
            }
            Message::Bounds { partition, generation, bounds } => {
                let Some(replica) = self.replicas.get_mut(&partition) else { return };
                let mut out = Vec::new();
                let next = replica.leader_bounds(cx.clocks(), generation, bounds, &mut out);
                self.perform(id, partition, out, cx);
                self.follow(partition, next, cx);
            }
            other => unreachable!("{other:?} from a broker"),
        }
    }

    fn bounds_of(
        &self,
        at: TopicPartition,
        epoch: LeaderEpoch,
    ) -> Result<minikafka_replication::LeaderBounds, ErrorCode> {
        let replica = self.replicas.get(&at).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        replica.bounds_for_follower(epoch).map_err(|refused| refused.code())
    }

    /// Lets a stream's session take its turns, and answers the request that is due if there is something to say.
    pub(crate) fn serve(&mut self, id: BrokerId, stream: StreamId, cx: &mut Outbox<'_>) {
        loop {
            let mut answers = Vec::new();
            while let Some((at, ask)) = self.streams.get_mut(&stream).and_then(LeaderSession::next_turn) {
                let generation =
                    self.streams.get(&stream).and_then(|session| session.generation(at)).unwrap_or(0);
                let mut out = Vec::new();
                let answer = match self.replicas.get_mut(&at) {
                    Some(replica) => replica.follower_fetch(cx.now, &ask, &mut out),
                    None => FollowerAnswer::Refused(minikafka_replication::NotServed::NotLeader),
                };
                let (served, said) = answer_of(answer);
                let Some(session) = self.streams.get_mut(&stream) else { return };
                if session.answered(at, served)
                    && let Some(said) = said
                {
                    answers.push((at, generation, said));
                }
                self.perform_without_serving(id, at, out, cx);
            }
            let Some(session) = self.streams.get_mut(&stream) else { return };
            let follower = session.follower();
            match session.finish(cx.now) {
                Some(_) => {
                    cx.send(Node::Broker(follower), Message::Fetched { stream, partitions: answers });
                    if !session.has_turns() && session.deadline().is_none() {
                        return;
                    }
                }
                None => {
                    assert!(answers.is_empty(), "answers without a request");
                    if let Some(deadline) = session.deadline() {
                        self.arm(deadline, Timer::Serve(stream), cx);
                    }
                    return;
                }
            }
        }
    }

    fn perform_without_serving(
        &mut self,
        id: BrokerId,
        at: TopicPartition,
        out: Vec<minikafka_replication::Effect>,
        cx: &mut Outbox<'_>,
    ) {
        let (wakes, rest): (Vec<_>, Vec<_>) = out
            .into_iter()
            .partition(|effect| matches!(effect, minikafka_replication::Effect::WakeStream { .. }));
        for wake in wakes {
            if let minikafka_replication::Effect::WakeStream { stream } = wake
                && let Some(session) = self.streams.get_mut(&stream)
            {
                session.wake(at);
                cx.after(Duration::from_micros(1), Timer::Serve(stream));
            }
        }
        self.perform(id, at, rest, cx);
    }

    fn fetched(
        &mut self,
        id: BrokerId,
        peer: BrokerId,
        stream: StreamId,
        partitions: Vec<(TopicPartition, u64, FetchedAnswer)>,
        cx: &mut Outbox<'_>,
    ) {
        let Some(fetcher) = self.fetchers.get_mut(&peer) else { return };
        if fetcher.stream != Some(stream) {
            return;
        }
        fetcher.heard = cx.now;
        fetcher.session.answered();
        for (at, generation, answer) in partitions {
            let expected =
                self.fetchers.get(&peer).is_some_and(|fetcher| fetcher.session.expects(at, generation));
            if !expected {
                continue;
            }
            let Some(replica) = self.replicas.get_mut(&at) else { continue };
            let mut out = Vec::new();
            let next = replica.fetched(cx.clocks(), Fetched { generation, answer }, &mut out);
            self.perform(id, at, out, cx);
            if let Some(fetcher) = self.fetchers.get_mut(&peer) {
                fetcher.session.next(at, next);
            }
            if let Next::AskBounds { leader, leader_epoch, generation } = next {
                cx.send(Node::Broker(leader), Message::AskBounds { partition: at, leader_epoch, generation });
            }
        }
        self.pump(peer, cx);
    }
}

/// Runs a read plan, and gives what the session has to know and what goes to the follower.
fn answer_of(answer: FollowerAnswer) -> (Served, Option<FetchedAnswer>) {
    let marks = |batches, bounds: Bounds| FetchedAnswer::Data {
        batches,
        high_watermark: bounds.high_watermark,
        log_start: bounds.log_start,
    };
    match answer {
        FollowerAnswer::Read { plan, bounds } => {
            let read = plan.run().expect("in memory");
            (Served::read(&read, bounds), Some(marks(read.batches, bounds)))
        }
        other => {
            let said = match &other {
                FollowerAnswer::News { bounds } => Some(marks(Vec::new(), *bounds)),
                FollowerAnswer::Diverging(divergence) => Some(FetchedAnswer::Diverging(*divergence)),
                FollowerAnswer::OutOfRange => Some(FetchedAnswer::Error(ErrorCode::OffsetOutOfRange)),
                FollowerAnswer::Refused(refused) => Some(FetchedAnswer::Error(refused.code())),
                FollowerAnswer::Read { .. } | FollowerAnswer::Later | FollowerAnswer::Parked => None,
            };
            (Served::other(&other), said)
        }
    }
}
