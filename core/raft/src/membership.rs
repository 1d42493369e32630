//! Which voters count.
//!
//! The voter set (ids with directory ids) is the first entry of every log. Until a log holds one, an election needs every configured voter,
//! each with an empty log; so a cluster is founded once, and a wiped majority cannot found another beside a voter that remembers.
//!
//! The *trusted* set is the newest one known to be committed, or, before any is known to be, the first one in the log. A voter whose
//! directory is not the trusted one was wiped: it neither votes nor campaigns, and its acknowledgements do not count, until a set with its
//! new directory is committed by a majority without it.

use minikafka_model::{ControllerId, DirectoryId};

use crate::{Effect, HardState, RaftEvent, VoterSet, VotersAt};

use super::raft::Raft;

impl Raft {
    pub(crate) fn trusted(&self) -> Option<&VotersAt> {
        self.hard.voters.as_ref().or_else(|| self.view.first_voters())
    }

    pub(crate) fn majority(&self) -> usize {
        self.config.voters.len() / 2 + 1
    }

    /// Whether this node may vote and campaign.
    pub(crate) fn admitted(&self) -> bool {
        self.trusted().is_none_or(|set| set.voters.directory(self.config.id) == Some(self.config.directory))
    }

    /// Whether what this voter says counts.
    pub(crate) fn counts(&self, voter: ControllerId, directory: DirectoryId) -> bool {
        self.trusted().is_none_or(|set| set.voters.directory(voter) == Some(directory))
    }

    /// The directory that this node trusts the voter to have.
    pub(crate) fn expected(&self, voter: ControllerId) -> Option<DirectoryId> {
        self.trusted().and_then(|set| set.voters.directory(voter))
    }

    /// A newer voter set may have been committed.
    pub(crate) fn learn_committed_voters(&mut self, out: &mut Vec<Effect>) {
        let Some(set) = self.view.voters_below(self.committed) else { return };
        if self.hard.voters.as_ref().is_some_and(|known| known.offset >= set.offset) {
            return;
        }
        let set = set.clone();
        out.push(Effect::Event(RaftEvent::VotersCommitted {
            offset: set.offset,
            voters: set.voters.clone(),
        }));
        self.hard = HardState { voters: Some(set), ..self.hard.clone() };
        out.push(Effect::SaveVote(self.hard.clone()));
    }

    /// The set with this voter's new directory, if the leader should propose it now: one change at a time.
    pub(crate) fn set_to_admit(
        &self,
        voter: ControllerId,
        directory: DirectoryId,
    ) -> Option<(VoterSet, DirectoryId)> {
        let last = self.view.last_voters()?;
        let old = last.voters.directory(voter)?;
        if old == directory || last.offset >= self.committed {
            return None;
        }
        let mut set = last.voters.clone();
        set.0.insert(voter, directory);
        Some((set, old))
    }
}
