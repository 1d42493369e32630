//! Simulated clients: producers that wait for each write and try again until they know, and consumers that read everything.

use std::time::Duration;

use minikafka_model::{BrokerId, ErrorCode, Offset, TopicPartition};

use crate::message::{Message, Node, Write};
use crate::outbox::{Note, Outbox, Timer};

const REQUEST_TIMEOUT: Duration = Duration::from_millis(2000);
const RETRY: Duration = Duration::from_millis(100);

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Idempotent, acks=all, one write at a time, retried until acknowledged.
    Careful,
    /// acks=1, never retried: makes tails that may be lost.
    Careless,
    /// Reads from the start to the end, and goes on.
    Reader,
}

/// One client of one partition.
#[derive(Debug)]
pub(crate) struct Client {
    id: u32,
    /// What it does.
    pub(crate) job: Job,
    partition: TopicPartition,
    brokers: Vec<BrokerId>,
    leader: Option<BrokerId>,
    request: u64,
    /// Raised with each timer that is set: older ones are ignored.
    alarm: u64,
    /// The next value to write.
    next: i32,
    waits: bool,
    /// Whether an attempt of the present write may have been appended.
    unsure: bool,
    /// Reader: where it reads.
    pub(crate) position: Offset,
    /// No new writes.
    pub(crate) quiet: bool,
}

impl Client {
    /// A client.
    pub(crate) fn new(id: u32, job: Job, partition: TopicPartition, brokers: Vec<BrokerId>) -> Client {
        Client {
            id,
            job,
            partition,
            brokers,
            leader: None,
            request: 0,
            alarm: 0,
            next: 0,
            waits: false,
            unsure: false,
            position: Offset(0),
            quiet: false,
        }
    }

    /// Whether a write is without an answer.
    pub(crate) fn pending(&self) -> bool {
        self.waits && self.job == Job::Careful
    }

    /// The partition.
    pub(crate) fn partition(&self) -> TopicPartition {
        self.partition
    }

    fn alarm(&mut self, span: Duration, cx: &mut Outbox<'_>) {
        self.alarm += 1;
        cx.after(span, Timer::Client(self.alarm));
    }

    /// Begins.
    pub(crate) fn start(&mut self, cx: &mut Outbox<'_>) {
        let span = Duration::from_millis(cx.dice.range(1, 300));
        self.alarm(span, cx);
    }

    /// A timer rings: the next thing to do, or no answer came.
    pub(crate) fn timer(&mut self, alarm: u64, cx: &mut Outbox<'_>) {
        if alarm != self.alarm {
            return;
        }
        if self.waits {
            // No answer: the outcome is unknown.
            self.unsure = true;
            self.leader = None;
            if self.job == Job::Careless {
                self.waits = false;
                self.next += 1;
            }
        }
        self.act(cx);
    }

    fn act(&mut self, cx: &mut Outbox<'_>) {
        let Some(leader) = self.leader else {
            if let Some(broker) = cx.dice.pick(&self.brokers).copied() {
                cx.send(Node::Broker(broker), Message::WhoLeads { partition: self.partition });
            }
            self.alarm(RETRY * 3, cx);
            return;
        };
        if self.quiet && !self.waits && self.job != Job::Reader {
            return;
        }
        self.request += 1;
        self.waits = true;
        let message = match self.job {
            Job::Reader => {
                // Now and then from a follower.
                let from =
                    if cx.dice.permille(200) { *cx.dice.pick(&self.brokers).expect("some") } else { leader };
                let ask = Message::Consume {
                    partition: self.partition,
                    request: self.request,
                    position: self.position,
                };
                cx.send(Node::Broker(from), ask);
                self.alarm(REQUEST_TIMEOUT / 2, cx);
                return;
            }
            Job::Careful | Job::Careless => Message::Produce(self.write()),
        };
        cx.send(Node::Broker(leader), message);
        self.alarm(REQUEST_TIMEOUT, cx);
    }

    fn write(&self) -> Write {
        let kind = if self.job == Job::Careful { 'c' } else { 'x' };
        Write {
            partition: self.partition,
            request: self.request,
            value: format!("{kind}{}-{}", self.id, self.next),
            sequence: (self.job == Job::Careful).then_some(self.next),
        }
    }

    /// A message arrives.
    pub(crate) fn handle(&mut self, message: Message, cx: &mut Outbox<'_>) {
        match message {
            Message::Leads { leader } if self.leader.is_none() && leader.is_some() => {
                self.leader = leader;
                self.act(cx);
            }
            Message::Produced { request, answer } if request == self.request && self.waits => {
                self.produced(answer, cx);
            }
            Message::Consumed { request, answer } if request == self.request && self.waits => {
                self.waits = false;
                match answer {
                    Ok(seen) => {
                        if let Some(last) = seen.last() {
                            self.position = last.offset.next();
                        }
                        cx.notes.push(Note::Read(self.id, self.partition, seen));
                        self.alarm(Duration::from_millis(cx.dice.range(5, 60)), cx);
                    }
                    Err(_) => {
                        self.leader = None;
                        self.alarm(RETRY, cx);
                    }
                }
            }
            _ => {}
        }
    }

    fn produced(&mut self, answer: Result<Offset, ErrorCode>, cx: &mut Outbox<'_>) {
        let write = self.write();
        if self.job == Job::Careless {
            self.waits = false;
            self.next += 1;
            if answer.is_err() {
                self.leader = None;
            }
            self.alarm(Duration::from_millis(cx.dice.range(20, 200)), cx);
            return;
        }
        match answer {
            Ok(offset) => {
                cx.notes.push(Note::Acknowledged(self.id, write, offset));
                self.waits = false;
                self.unsure = false;
                self.next += 1;
                self.alarm(Duration::from_millis(cx.dice.range(5, 80)), cx);
            }
            Err(code @ (ErrorCode::OutOfOrderSequenceNumber | ErrorCode::InvalidProducerEpoch)) => {
                if let Some(broker) = self.leader.take() {
                    let what = format!("{} with {code}", write.value);
                    cx.notes.push(Note::SequenceRefused {
                        client: self.id,
                        partition: self.partition,
                        broker,
                        what,
                    });
                }
                self.alarm(RETRY, cx);
            }
            Err(code) => {
                if code != ErrorCode::NotEnoughReplicas {
                    self.unsure = true;
                }
                if code == ErrorCode::NotEnoughReplicas && !self.unsure {
                    // Every attempt so far was refused for certain: the value must be nowhere.
                    cx.notes.push(Note::Refused(self.partition, write.value));
                }
                if code == ErrorCode::NotLeaderOrFollower || code == ErrorCode::KafkaStorageError {
                    self.leader = None;
                }
                self.alarm(RETRY, cx);
            }
        }
    }
}
