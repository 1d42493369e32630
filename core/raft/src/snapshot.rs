//! Snapshots between voters, in pieces: for a log that begins after what a voter holds.

use minikafka_model::{ControllerId, Mono};

use crate::progress::SnapshotSend;
use crate::raft::{Raft, Role};
use crate::{
    Broken, Effect, HardState, LogReadError, Message, RaftEvent, RaftLog, SnapshotInfo, SnapshotRequest,
    SnapshotResponse,
};

/// A piece that was not answered is sent again after so many heartbeats.
const RESEND_HEARTBEATS: u32 = 2;

impl Raft {
    /// Sends the next piece of the newest snapshot.
    pub(crate) fn speak_snapshot(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        to: ControllerId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        let (term, chunk_bytes) = (self.hard.term, self.config.limits.snapshot_chunk_bytes);
        let resend = self.config.timers.heartbeat * RESEND_HEARTBEATS;
        let Role::Leader(leader) = &mut self.role else { return Ok(()) };
        let Some(progress) = leader.progress.get_mut(&to) else { return Ok(()) };
        progress.last_sent = now;
        if let Some(sending) = &progress.snapshot
            && sending.sent != Mono(0)
            && now.since(sending.sent) < resend
        {
            return Ok(());
        }
        let newest = log
            .snapshot()
            .ok_or_else(|| LogReadError(format!("the log starts at {} without a snapshot", log.start())))?;
        let sending = match &mut progress.snapshot {
            Some(sending) if sending.info == newest => sending,
            other => {
                out.push(Effect::Event(RaftEvent::SendingSnapshot {
                    to,
                    end: newest.end,
                    size: newest.size,
                }));
                other.insert(SnapshotSend { info: newest, position: 0, sent: Mono(0) })
            }
        };
        let chunk = log.snapshot_chunk(sending.info.end, sending.position, chunk_bytes)?;
        sending.sent = now;
        leader.sequence += 1;
        let request = SnapshotRequest {
            term,
            info: sending.info.clone(),
            position: sending.position,
            chunk,
            sequence: leader.sequence,
            sent_at: now,
        };
        out.push(Effect::Send { to, message: Message::SnapshotRequest(request) });
        Ok(())
    }

    pub(crate) fn snapshot_request(
        &mut self,
        now: Mono,
        from: ControllerId,
        request: SnapshotRequest,
        out: &mut Vec<Effect>,
    ) {
        if matches!(self.role, Role::Leader(_)) && request.term <= self.hard.term {
            return;
        }
        let heard = self.hear_leader(now, from, request.term, out);
        let size = request.info.size;
        let (next_position, done) = if !heard {
            (0, false)
        } else if request.info.end <= self.committed {
            (size, true)
        } else {
            let position = match &self.receiving {
                Some((info, position)) if *info == request.info => *position,
                _ => 0,
            };
            let mut next = position;
            if request.position == position && position < size {
                next = position + request.chunk.len() as u64;
                out.push(Effect::WriteSnapshot {
                    info: request.info.clone(),
                    position,
                    chunk: request.chunk,
                });
                if next >= size {
                    out.push(Effect::InstallSnapshot(request.info.clone()));
                }
            }
            self.receiving = Some((request.info.clone(), next));
            (next, false)
        };
        let answer = SnapshotResponse {
            term: self.hard.term,
            end: request.info.end,
            next_position,
            done,
            directory: self.config.directory,
            sequence: request.sequence,
            sent_at: request.sent_at,
        };
        out.push(Effect::Send { to: from, message: Message::SnapshotResponse(answer) });
    }

    /// The snapshot replaced log and state.
    pub(crate) fn snapshot_installed(&mut self, info: &SnapshotInfo, out: &mut Vec<Effect>) {
        if info.end <= self.committed {
            return;
        }
        self.receiving = None;
        self.view.install(info);
        self.committed = info.end;
        self.durable = info.end;
        self.hard = HardState { voters: Some(info.voters.clone()), ..self.hard.clone() };
        out.push(Effect::SaveVote(self.hard.clone()));
        out.push(Effect::Event(RaftEvent::InstalledSnapshot { end: info.end, last_term: info.last_term }));
        if let Some(following) = &mut self.following {
            following.verified = following.verified.max(info.end);
        }
    }

    pub(crate) fn snapshot_response(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        from: ControllerId,
        response: &SnapshotResponse,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        self.adopt_term(now, response.term, from, out);
        let end = self.view.end();
        let Role::Leader(leader) = &mut self.role else { return Ok(()) };
        if response.term < self.hard.term {
            return Ok(());
        }
        let Some(progress) = leader.progress.get_mut(&from) else { return Ok(()) };
        progress.directory = Some(response.directory);
        progress.answered(response.sequence, response.sent_at);
        let Some(sending) = &mut progress.snapshot else { return Ok(()) };
        if sending.info.end != response.end {
            return Ok(());
        }
        if response.done {
            progress.snapshot = None;
            progress.probe(response.end.min(end));
            return self.speak(now, log, from, true, out);
        }
        let complete = response.next_position >= sending.info.size;
        sending.position = if complete { 0 } else { response.next_position };
        if complete {
            // It installs it now; the next piece, sent after a while, is answered with `done`.
            sending.sent = now;
            return Ok(());
        }
        sending.sent = Mono(0);
        self.speak_snapshot(now, log, from, out)
    }
}
