//! Incremental fetch sessions of consumers (KIP-227, Kafka semantics 5.4): a request names only what changed, an answer only what is new.
//! The cache is bounded; a client that gets no session asks in full each time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{ErrorCode, Mono, Uuid};
use minikafka_wire::fetch::{FetchPartition, FetchRequest, PartitionResponse, TopicResponse};
use parking_lot::Mutex;
use rand::RngExt;

/// A session that was idle for so long may be replaced by any other (a constant in Kafka too).
const EVICTABLE_AFTER: Duration = Duration::from_secs(120);

/// The topic as the client names it: by name up to version 12, by id from 13 on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TopicKey {
    Name(Arc<str>),
    Id(Uuid),
}

/// One partition that a Fetch asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) topic: TopicKey,
    pub(crate) params: FetchPartition,
}

/// What a Fetch asks for, its session considered.
#[derive(Debug)]
pub(crate) enum Context {
    /// The whole request stands in the frame; no session.
    Sessionless(Vec<Wanted>),
    /// The whole request stands in the frame and may open a session.
    Full(Vec<Wanted>),
    /// The session adds what the frame does not repeat.
    Incremental { id: i32, session: Arc<Mutex<Session>>, wanted: Vec<Wanted> },
    /// 70, 71 or 106 for the whole request.
    Refused(ErrorCode),
}

/// The sessions of this broker.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    slots: usize,
    sessions: Mutex<BTreeMap<i32, Slot>>,
}

#[derive(Debug)]
struct Slot {
    created: Mono,
    used: Mono,
    size: usize,
    session: Arc<Mutex<Session>>,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    epoch: i32,
    by_id: bool,
    partitions: BTreeMap<(TopicKey, i32), Remembered>,
    /// Partitions in the order in which they are read; one that gave data goes to the end.
    order: BTreeMap<u64, (TopicKey, i32)>,
    next_place: u64,
}

#[derive(Debug)]
struct Remembered {
    params: FetchPartition,
    place: u64,
    high_watermark: i64,
    log_start: i64,
}

impl FetchSessions {
    /// At most `slots` sessions (`max.incremental.fetch.session.cache.slots`).
    pub(crate) fn new(slots: usize) -> FetchSessions {
        FetchSessions { slots, sessions: Mutex::default() }
    }

    /// Finds what the request asks for. Epoch 0 asks in full and may open a session, -1 asks in full and closes the one named, any
    /// other continues one.
    pub(crate) fn enter(&self, now: Mono, version: i16, request: &FetchRequest) -> Context {
        let by_id = version >= 13;
        if request.session_epoch == 0 || request.session_epoch == -1 {
            if request.session_id != 0 {
                self.sessions.lock().remove(&request.session_id);
            }
            let wanted = listed(request, by_id);
            return if request.session_epoch == 0 {
                Context::Full(wanted)
            } else {
                Context::Sessionless(wanted)
            };
        }
        let id = request.session_id;
        let mut sessions = self.sessions.lock();
        let Some(slot) = sessions.get_mut(&id) else {
            return Context::Refused(ErrorCode::FetchSessionIdNotFound);
        };
        let shared = Arc::clone(&slot.session);
        let mut session = shared.lock();
        if session.epoch != request.session_epoch {
            return Context::Refused(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != by_id {
            return Context::Refused(ErrorCode::FetchSessionTopicIdError);
        }
        session.update(request);
        if session.partitions.is_empty() {
            drop(session);
            sessions.remove(&id);
            return Context::Sessionless(listed(request, by_id));
        }
        slot.used = now;
        slot.size = session.partitions.len();
        session.epoch = session.epoch.checked_add(1).unwrap_or(1);
        let wanted = session.wanted();
        drop(session);
        Context::Incremental { id, session: shared, wanted }
    }

    /// Opens a session that has just been answered in full; 0 when there is no room.
    pub(crate) fn open(
        &self,
        now: Mono,
        by_id: bool,
        wanted: &[Wanted],
        answered: &[PartitionResponse],
    ) -> i32 {
        let mut session =
            Session { epoch: 1, by_id, partitions: BTreeMap::new(), order: BTreeMap::new(), next_place: 0 };
        for (wanted, answer) in wanted.iter().zip(answered) {
            session.remember(wanted.topic.clone(), wanted.params.clone());
            session.note(&wanted.topic, answer);
        }
        if session.partitions.is_empty() {
            return 0;
        }
        let mut sessions = self.sessions.lock();
        if sessions.len() >= self.slots && !make_room(&mut sessions, now, session.partitions.len()) {
            return 0;
        }
        let mut random = rand::rng();
        let id = loop {
            let id = random.random_range(1..i32::MAX);
            if !sessions.contains_key(&id) {
                break id;
            }
        };
        let size = session.partitions.len();
        sessions.insert(id, Slot { created: now, used: now, size, session: Arc::new(Mutex::new(session)) });
        id
    }

    /// How many sessions there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.sessions.lock().len()
    }
}

/// The longest idle one goes if it was idle for long enough, else a smaller one that is old enough.
fn make_room(sessions: &mut BTreeMap<i32, Slot>, now: Mono, size: usize) -> bool {
    let idle = sessions
        .iter()
        .min_by_key(|(_, slot)| slot.used)
        .filter(|(_, slot)| now.since(slot.used) > EVICTABLE_AFTER);
    let smaller = || {
        sessions
            .iter()
            .filter(|(_, slot)| slot.size < size && now.since(slot.created) > EVICTABLE_AFTER)
            .min_by_key(|(_, slot)| slot.size)
    };
    match idle.or_else(smaller).map(|(id, _)| *id) {
        Some(id) => sessions.remove(&id).is_some(),
        None => false,
    }
}

/// The partitions in the frame, in their order.
fn listed(request: &FetchRequest, by_id: bool) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let key =
            if by_id { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(topic.topic.as_str().into()) };
        for params in &topic.partitions {
            wanted.push(Wanted { topic: key.clone(), params: params.clone() });
        }
    }
    wanted
}

impl Session {
    fn update(&mut self, request: &FetchRequest) {
        for Wanted { topic, params } in listed(request, self.by_id) {
            match self.partitions.get_mut(&(topic.clone(), params.partition)) {
                Some(known) => known.params = params,
                None => self.remember(topic, params),
            }
        }
        for topic in &request.forgotten_topics_data {
            let key = if self.by_id {
                TopicKey::Id(topic.topic_id)
            } else {
                TopicKey::Name(topic.topic.as_str().into())
            };
            for partition in &topic.partitions {
                if let Some(gone) = self.partitions.remove(&(key.clone(), *partition)) {
                    self.order.remove(&gone.place);
                }
            }
        }
    }

    fn remember(&mut self, topic: TopicKey, params: FetchPartition) {
        let place = self.next_place;
        self.next_place += 1;
        let key = (topic, params.partition);
        // -1: nothing was told yet, so that the first answer names the partition in any case.
        let new = Remembered { params, place, high_watermark: -1, log_start: -1 };
        if let Some(known) = self.partitions.insert(key.clone(), new) {
            self.order.remove(&known.place);
        }
        self.order.insert(place, key);
    }

    fn wanted(&self) -> Vec<Wanted> {
        self.order
            .values()
            .filter_map(|key| self.partitions.get(key).map(|known| (key, known)))
            .map(|((topic, _), known)| Wanted { topic: topic.clone(), params: known.params.clone() })
            .collect()
    }

    /// Takes note of what the client is told. True if there is something to tell: records, an error, another high watermark or log
    /// start, a divergence or a preferred replica.
    pub(crate) fn note(&mut self, topic: &TopicKey, answer: &PartitionResponse) -> bool {
        let key = (topic.clone(), answer.partition_index);
        let Some(known) = self.partitions.get_mut(&key) else { return true };
        let data = !answer.records.is_empty();
        let mut tell = data
            || known.high_watermark != answer.high_watermark
            || known.log_start != answer.log_start_offset
            || answer.preferred_read_replica != -1
            || answer.diverging_epoch.end_offset != -1
            || answer.diverging_epoch.epoch != -1;
        known.high_watermark = answer.high_watermark;
        known.log_start = answer.log_start_offset;
        if answer.error_code != ErrorCode::None.code() {
            // So that the partition is named again once the error has gone.
            known.high_watermark = -1;
            tell = true;
        }
        if data {
            self.order.remove(&known.place);
            known.place = self.next_place;
            self.next_place += 1;
            self.order.insert(known.place, key);
        }
        tell
    }
}

/// Partition answers grouped into topics, in their order; neighbours of one topic share an entry.
pub(crate) fn by_topic(
    answers: impl IntoIterator<Item = (TopicKey, PartitionResponse)>,
) -> Vec<TopicResponse> {
    let mut topics: Vec<TopicResponse> = Vec::new();
    for (key, answer) in answers {
        let (name, id) = match &key {
            TopicKey::Name(name) => (&**name, Uuid::ZERO),
            TopicKey::Id(id) => ("", *id),
        };
        match topics.last_mut() {
            Some(last) if last.topic == name && last.topic_id == id => last.partitions.push(answer),
            _ => {
                topics.push(TopicResponse { topic: name.to_owned(), topic_id: id, partitions: vec![answer] });
            }
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use minikafka_wire::fetch::{FetchTopic, ForgottenTopic};

    use super::*;

    const T: Uuid = Uuid(7);

    fn ask(id: i32, epoch: i32, partitions: &[(i32, i64)]) -> FetchRequest {
        let partitions: Vec<_> = partitions
            .iter()
            .map(|(p, offset)| FetchPartition {
                partition: *p,
                fetch_offset: *offset,
                ..FetchPartition::default()
            })
            .collect();
        let topics = if partitions.is_empty() {
            vec![]
        } else {
            vec![FetchTopic { topic_id: T, partitions, ..FetchTopic::default() }]
        };
        FetchRequest { session_id: id, session_epoch: epoch, topics, ..FetchRequest::default() }
    }

    fn answer(partition: i32, high_watermark: i64, records: &'static [u8]) -> PartitionResponse {
        PartitionResponse {
            partition_index: partition,
            high_watermark,
            log_start_offset: 0,
            records: Bytes::from_static(records).into(),
            ..PartitionResponse::default()
        }
    }

    fn opened(sessions: &FetchSessions, partitions: &[(i32, i64)]) -> i32 {
        let Context::Full(wanted) = sessions.enter(Mono(0), 16, &ask(0, 0, partitions)) else {
            panic!("full")
        };
        let answers: Vec<_> = partitions.iter().map(|(p, _)| answer(*p, 3, b"data")).collect();
        sessions.open(Mono(0), true, &wanted, &answers)
    }

    fn refusal(context: &Context) -> Option<ErrorCode> {
        match context {
            Context::Refused(code) => Some(*code),
            _ => None,
        }
    }

    #[test]
    fn only_what_changed_is_told() {
        let sessions = FetchSessions::new(10);
        let id = opened(&sessions, &[(0, 0), (1, 0)]);
        assert_ne!(id, 0);
        let context = sessions.enter(Mono(0), 16, &ask(id, 1, &[(0, 3)]));
        let Context::Incremental { session, wanted, .. } = context else { panic!("{context:?}") };
        assert_eq!(
            wanted.iter().map(|w| (w.params.partition, w.params.fetch_offset)).collect::<Vec<_>>(),
            [(0, 3), (1, 0)]
        );
        let mut session = session.lock();
        let topic = TopicKey::Id(T);
        assert!(!session.note(&topic, &answer(0, 3, b"")), "nothing new");
        assert!(session.note(&topic, &answer(0, 4, b"")), "another high watermark");
        assert!(session.note(&topic, &answer(0, 4, b"more")), "records");
        let failed = PartitionResponse { error_code: 6, high_watermark: -1, ..answer(1, -1, b"") };
        assert!(session.note(&topic, &failed));
        assert!(session.note(&topic, &failed), "an error is told each time");
        assert_eq!(
            session.wanted().iter().map(|w| w.params.partition).collect::<Vec<_>>(),
            [1, 0],
            "who gave data comes last next time"
        );
    }

    #[test]
    fn wrong_steps_are_refused_and_leave_the_session_alone() {
        let sessions = FetchSessions::new(10);
        let id = opened(&sessions, &[(0, 0)]);
        let enter = |version, request: FetchRequest| sessions.enter(Mono(0), version, &request);
        assert_eq!(refusal(&enter(16, ask(id ^ 1, 1, &[]))), Some(ErrorCode::FetchSessionIdNotFound));
        assert_eq!(refusal(&enter(16, ask(id, 5, &[]))), Some(ErrorCode::InvalidFetchSessionEpoch));
        assert_eq!(refusal(&enter(12, ask(id, 1, &[]))), Some(ErrorCode::FetchSessionTopicIdError));
        assert_eq!(refusal(&enter(16, ask(id, 1, &[]))), None);
        assert_eq!(
            refusal(&enter(16, ask(id, 1, &[]))),
            Some(ErrorCode::InvalidFetchSessionEpoch),
            "a step is taken once"
        );
        assert!(matches!(enter(16, ask(id, -1, &[(0, 0)])), Context::Sessionless(w) if w.len() == 1));
        assert_eq!(refusal(&enter(16, ask(id, 2, &[]))), Some(ErrorCode::FetchSessionIdNotFound), "closed");
    }

    #[test]
    fn forgetting_the_last_partition_closes_the_session() {
        let sessions = FetchSessions::new(10);
        let id = opened(&sessions, &[(0, 0)]);
        let mut request = ask(id, 1, &[]);
        request.forgotten_topics_data =
            vec![ForgottenTopic { topic_id: T, partitions: vec![0], ..ForgottenTopic::default() }];
        assert!(matches!(sessions.enter(Mono(0), 16, &request), Context::Sessionless(w) if w.is_empty()));
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn the_cache_is_bounded() {
        let sessions = FetchSessions::new(2);
        let (first, second) = (opened(&sessions, &[(0, 0)]), opened(&sessions, &[(0, 0)]));
        assert!(first != 0 && second != 0);
        assert_eq!(opened(&sessions, &[(0, 0), (1, 0)]), 0, "both are young");
        let late = Mono(0).after(EVICTABLE_AFTER + Duration::from_secs(1));
        assert!(matches!(sessions.enter(late, 16, &ask(first, 1, &[])), Context::Incremental { .. }));
        let Context::Full(wanted) = sessions.enter(late, 16, &ask(0, 0, &[(0, 0)])) else { panic!("full") };
        assert_ne!(sessions.open(late, true, &wanted, &[answer(0, 3, b"")]), 0);
        assert_eq!(sessions.len(), 2);
        assert_eq!(
            refusal(&sessions.enter(late, 16, &ask(second, 1, &[]))),
            Some(ErrorCode::FetchSessionIdNotFound),
            "the idle one made room"
        );
    }
}
