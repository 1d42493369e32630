//! Raft's messages to and from their contract. Here, not in `proto`, because `proto` must not know `core/raft`.

use minikafka_model::{DirectoryId, MetadataOffset, Mono, Term, Uuid};
use minikafka_proto::raft as wire;
use minikafka_proto::raft::envelope::Body;
use minikafka_raft::{
    AppendRequest, AppendResponse, Conflict, Entry, LogEnd, Message, Payload, PayloadError, SnapshotInfo,
    SnapshotRequest, SnapshotResponse, VoteRefusal, VoteRequest, VoteResponse, VoterSet, VotersAt,
};

/// What a peer sent is not a Raft message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CodecError {
    /// A field that must be there is not.
    #[error("a Raft message lacks its field {0}")]
    Missing(&'static str),
    /// An id that is not sixteen bytes.
    #[error("a Raft message carries an id of {0} bytes, 16 are wanted")]
    BadId(usize),
    /// A word that this version does not know.
    #[error("a Raft message refuses a vote for the unknown reason '{0}'")]
    UnknownRefusal(String),
    /// An entry that does not decode.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

fn id(directory: DirectoryId) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(&directory.0.to_bytes())
}

fn directory(bytes: &[u8]) -> Result<DirectoryId, CodecError> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| CodecError::BadId(bytes.len()))?;
    Ok(DirectoryId(Uuid::from_bytes(bytes)))
}

/// The envelope of a message.
pub(crate) fn encode(message: &Message) -> wire::Envelope {
    let body = match message {
        Message::VoteRequest(m) => Body::VoteRequest(wire::VoteRequest {
            term: m.term.0,
            pre_vote: m.pre_vote,
            log: Some(wire::LogEnd { last_term: m.log.last_term.0, end: m.log.end.0 }),
            directory_id: id(m.directory),
            expected_directory_id: m.expected.map(id).unwrap_or_default(),
            transfer: m.transfer,
        }),
        Message::VoteResponse(m) => Body::VoteResponse(wire::VoteResponse {
            term: m.term.0,
            pre_vote: m.pre_vote,
            refusal: m.refusal.map(|refusal| refusal.word().to_owned()).unwrap_or_default(),
            directory_id: id(m.directory),
            log_is_empty: m.log_is_empty,
            committed: m.committed.0,
        }),
        Message::AppendRequest(m) => Body::AppendRequest(wire::AppendRequest {
            term: m.term.0,
            start: m.start.0,
            start_term: m.start_term.0,
            entries: m.entries.iter().map(encode_entry).collect(),
            committed: m.committed.0,
            sequence: m.sequence,
            sent_at: m.sent_at.0,
        }),
        Message::AppendResponse(m) => Body::AppendResponse(wire::AppendResponse {
            term: m.term.0,
            durable: m.durable.0,
            received: m.received.0,
            conflict: m.conflict.map(|c| wire::Conflict { term: c.term.map(|t| t.0), offset: c.offset.0 }),
            directory_id: id(m.directory),
            sequence: m.sequence,
            sent_at: m.sent_at.0,
        }),
        Message::SnapshotRequest(m) => Body::SnapshotRequest(wire::SnapshotRequest {
            term: m.term.0,
            info: Some(encode_info(&m.info)),
            position: m.position,
            chunk: m.chunk.clone(),
            sequence: m.sequence,
            sent_at: m.sent_at.0,
        }),
        Message::SnapshotResponse(m) => Body::SnapshotResponse(wire::SnapshotResponse {
            term: m.term.0,
            end: m.end.0,
            next_position: m.next_position,
            done: m.done,
            directory_id: id(m.directory),
            sequence: m.sequence,
            sent_at: m.sent_at.0,
        }),
        Message::TimeoutNow { term } => Body::TimeoutNow(wire::TimeoutNow { term: term.0 }),
    };
    wire::Envelope { trace_parent: String::new(), body: Some(body) }
}

fn encode_entry(entry: &Entry) -> wire::Entry {
    wire::Entry {
        offset: entry.offset.0,
        term: entry.term.0,
        kind: entry.payload.kind().into(),
        content: entry.payload.content(),
    }
}

fn encode_info(info: &SnapshotInfo) -> wire::SnapshotInfo {
    wire::SnapshotInfo {
        end: info.end.0,
        last_term: info.last_term.0,
        size: info.size,
        voters_offset: info.voters.offset.0,
        voters: info.voters.voters.encode(),
    }
}

/// The message in an envelope; `None` for a handshake.
pub(crate) fn decode(envelope: wire::Envelope) -> Result<Option<Message>, CodecError> {
    let message = match envelope.body.ok_or(CodecError::Missing("body"))? {
        Body::Hello(_) => return Ok(None),
        Body::VoteRequest(m) => decode_vote_request(&m)?,
        Body::VoteResponse(m) => decode_vote_response(m)?,
        Body::AppendRequest(m) => decode_append_request(m)?,
        Body::AppendResponse(m) => Message::AppendResponse(AppendResponse {
            term: Term(m.term),
            durable: MetadataOffset(m.durable),
            received: MetadataOffset(m.received),
            conflict: m
                .conflict
                .map(|c| Conflict { term: c.term.map(Term), offset: MetadataOffset(c.offset) }),
            directory: directory(&m.directory_id)?,
            sequence: m.sequence,
            sent_at: Mono(m.sent_at),
        }),
        Body::SnapshotRequest(m) => Message::SnapshotRequest(SnapshotRequest {
            term: Term(m.term),
            info: decode_info(&m.info.ok_or(CodecError::Missing("info"))?)?,
            position: m.position,
            chunk: m.chunk,
            sequence: m.sequence,
            sent_at: Mono(m.sent_at),
        }),
        Body::SnapshotResponse(m) => Message::SnapshotResponse(SnapshotResponse {
            term: Term(m.term),
            end: MetadataOffset(m.end),
            next_position: m.next_position,
            done: m.done,
            directory: directory(&m.directory_id)?,
            sequence: m.sequence,
            sent_at: Mono(m.sent_at),
        }),
        Body::TimeoutNow(m) => Message::TimeoutNow { term: Term(m.term) },
    };
    Ok(Some(message))
}

fn decode_vote_request(m: &wire::VoteRequest) -> Result<Message, CodecError> {
    let log = m.log.as_ref().ok_or(CodecError::Missing("log"))?;
    Ok(Message::VoteRequest(VoteRequest {
        term: Term(m.term),
        pre_vote: m.pre_vote,
        log: LogEnd { last_term: Term(log.last_term), end: MetadataOffset(log.end) },
        directory: directory(&m.directory_id)?,
        expected: if m.expected_directory_id.is_empty() {
            None
        } else {
            Some(directory(&m.expected_directory_id)?)
        },
        transfer: m.transfer,
    }))
}

fn decode_vote_response(m: wire::VoteResponse) -> Result<Message, CodecError> {
    let refusal = if m.refusal.is_empty() {
        None
    } else {
        Some(VoteRefusal::from_word(&m.refusal).ok_or(CodecError::UnknownRefusal(m.refusal))?)
    };
    Ok(Message::VoteResponse(VoteResponse {
        term: Term(m.term),
        pre_vote: m.pre_vote,
        refusal,
        directory: directory(&m.directory_id)?,
        log_is_empty: m.log_is_empty,
        committed: MetadataOffset(m.committed),
    }))
}

fn decode_append_request(m: wire::AppendRequest) -> Result<Message, CodecError> {
    let entries = m.entries.into_iter().map(decode_entry).collect::<Result<_, _>>()?;
    Ok(Message::AppendRequest(AppendRequest {
        term: Term(m.term),
        start: MetadataOffset(m.start),
        start_term: Term(m.start_term),
        entries,
        committed: MetadataOffset(m.committed),
        sequence: m.sequence,
        sent_at: Mono(m.sent_at),
    }))
}

fn decode_entry(entry: wire::Entry) -> Result<Entry, CodecError> {
    let kind = u8::try_from(entry.kind).unwrap_or(u8::MAX);
    Ok(Entry {
        offset: MetadataOffset(entry.offset),
        term: Term(entry.term),
        payload: Payload::from_parts(kind, entry.content)?,
    })
}

fn decode_info(info: &wire::SnapshotInfo) -> Result<SnapshotInfo, CodecError> {
    let voters =
        VotersAt { offset: MetadataOffset(info.voters_offset), voters: VoterSet::decode(&info.voters)? };
    Ok(SnapshotInfo {
        end: MetadataOffset(info.end),
        last_term: Term(info.last_term),
        size: info.size,
        voters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use minikafka_model::ControllerId;

    fn directory_id(n: u128) -> DirectoryId {
        DirectoryId(Uuid(n))
    }

    #[test]
    fn every_message_comes_back_as_it_went() {
        let voters =
            VoterSet([(ControllerId(101), directory_id(7)), (ControllerId(102), directory_id(8))].into());
        let info = SnapshotInfo {
            end: MetadataOffset(40),
            last_term: Term(3),
            size: 99,
            voters: VotersAt { offset: MetadataOffset(0), voters: voters.clone() },
        };
        let entry = |offset, payload| Entry { offset: MetadataOffset(offset), term: Term(3), payload };
        let messages = [
            Message::VoteRequest(VoteRequest {
                term: Term(4),
                pre_vote: true,
                log: LogEnd { last_term: Term(3), end: MetadataOffset(41) },
                directory: directory_id(7),
                expected: Some(directory_id(8)),
                transfer: false,
            }),
            Message::VoteResponse(VoteResponse {
                term: Term(4),
                pre_vote: false,
                refusal: Some(VoteRefusal::LogBehind),
                directory: directory_id(8),
                log_is_empty: true,
                committed: MetadataOffset(2),
            }),
            Message::AppendRequest(AppendRequest {
                term: Term(4),
                start: MetadataOffset(38),
                start_term: Term(2),
                entries: vec![
                    entry(38, Payload::NoOp),
                    entry(39, Payload::Voters(voters)),
                    entry(40, Payload::Command(Bytes::from_static(b"records"))),
                ],
                committed: MetadataOffset(37),
                sequence: 12,
                sent_at: Mono(34),
            }),
            Message::AppendResponse(AppendResponse {
                term: Term(4),
                durable: MetadataOffset(36),
                received: MetadataOffset(38),
                conflict: Some(Conflict { term: Some(Term(1)), offset: MetadataOffset(30) }),
                directory: directory_id(8),
                sequence: 12,
                sent_at: Mono(34),
            }),
            Message::SnapshotRequest(SnapshotRequest {
                term: Term(4),
                info,
                position: 10,
                chunk: Bytes::from_static(b"piece"),
                sequence: 13,
                sent_at: Mono(35),
            }),
            Message::SnapshotResponse(SnapshotResponse {
                term: Term(4),
                end: MetadataOffset(40),
                next_position: 15,
                done: false,
                directory: directory_id(8),
                sequence: 13,
                sent_at: Mono(35),
            }),
            Message::TimeoutNow { term: Term(4) },
        ];
        for message in messages {
            assert_eq!(decode(encode(&message)), Ok(Some(message)));
        }
    }

    #[test]
    fn nonsense_is_named() {
        let empty = wire::Envelope { trace_parent: String::new(), body: None };
        assert_eq!(decode(empty), Err(CodecError::Missing("body")));
        let mut bad = encode(&Message::TimeoutNow { term: Term(1) });
        bad.body = Some(Body::SnapshotResponse(wire::SnapshotResponse::default()));
        assert_eq!(decode(bad), Err(CodecError::BadId(0)));
    }
}
