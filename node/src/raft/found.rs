//! Founding a cluster, once, and joining one: what a node without a log does until it has one.
//!
//! The founding member with the lowest id writes the first membership; the others wait for it. It must
//! know every founder's disk first, so it asks them, and learns on the way whether the cluster exists
//! already: then its own empty disk has lost a member's data, and it must not take part under that id.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_proto::v1;
use openraft::errors::{InitializeError, RaftError};
use openraft_rt::AsyncRuntime;

use super::limits::{FOUND_POLL, PEER_CALL_TIMEOUT};
use super::shared::{RaftNode, Shared};
use super::start::StartMode;
use super::transport::{Lane, PeerError, Transport};
use super::types::{Member, NodeId};
use super::wire;

/// A member that a cluster is founded with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundingMember {
    /// Its node id.
    pub node_id: NodeId,
    /// `host:port` of its peer port.
    pub peer_address: String,
    /// `host:port` of its client port.
    pub client_address: String,
    /// `host:port` of its HTTP port; empty: unknown.
    pub http_address: String,
}

/// The task of a node that has no log yet.
pub(super) struct Founding<R: AsyncRuntime> {
    pub(super) shared: Arc<Shared<R>>,
    pub(super) raft: RaftNode<R>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) me: Member,
}

impl<R: AsyncRuntime> Founding<R> {
    pub(super) async fn run(self, mode: StartMode) {
        match mode {
            StartMode::Normal => {}
            StartMode::Bootstrap(members) => self.found(members).await,
            StartMode::Join(seeds) => self.check_join(seeds).await,
        }
    }

    async fn found(self, founders: Vec<FoundingMember>) {
        let lowest = founders.iter().map(|m| m.node_id).min() == Some(self.shared.me());
        let mut disks = BTreeMap::new();
        loop {
            if self.has_log() {
                return;
            }
            for founder in &founders {
                if founder.node_id == self.shared.me() {
                    disks.insert(founder.node_id, self.me.disk_id);
                    continue;
                }
                match self.identify(founder.node_id, &founder.peer_address).await {
                    Ok(answer) if self.is_taken(&answer) => return,
                    Ok(answer) if answer.members.is_empty() => match wire::decode_identity(answer.identity) {
                        Ok(identity) if identity.node_id == founder.node_id => {
                            disks.insert(founder.node_id, identity.disk_id);
                        }
                        Ok(identity) => tracing::warn!("{} answers as {identity}", founder.peer_address),
                        Err(error) => tracing::warn!("{}: {error}", founder.peer_address),
                    },
                    // It has a log that this node is in: the leader will come.
                    Ok(_) => return,
                    Err(error) => tracing::debug!("waiting for founding member {}: {error}", founder.node_id),
                }
            }
            if lowest && disks.len() == founders.len() && self.initialize(&founders, &disks).await {
                return;
            }
            R::sleep(FOUND_POLL).await;
        }
    }

    fn has_log(&self) -> bool {
        self.shared.membership().is_some_and(|m| m.log_id().is_some())
    }

    async fn initialize(
        &self,
        founders: &[FoundingMember],
        disks: &BTreeMap<NodeId, super::identity::DiskId>,
    ) -> bool {
        let member = |founder: &FoundingMember| {
            let disk_id = *disks.get(&founder.node_id)?;
            let FoundingMember { node_id, peer_address, client_address, http_address } = founder.clone();
            Some((node_id, Member { peer_address, client_address, http_address, disk_id }))
        };
        let members: BTreeMap<NodeId, Member> = founders.iter().filter_map(member).collect();
        match self.raft.initialize(members).await {
            Ok(()) => {
                tracing::info!("the cluster is founded with {} members", founders.len());
                true
            }
            Err(RaftError::APIError(InitializeError::NotAllowed(_))) => true,
            Err(error) => {
                self.shared.fail(format!("the cluster cannot be founded: {error}"));
                true
            }
        }
    }

    /// Asks the seeds whether the id is free, until one that is a member answers or the leader has come.
    async fn check_join(self, seeds: Vec<String>) {
        while !self.has_log() {
            for seed in &seeds {
                match self.identify(0, seed).await {
                    Ok(answer) if self.is_taken(&answer) => return,
                    Ok(answer) if !answer.members.is_empty() => {
                        tracing::info!("ready to be added to the cluster as node {}", self.shared.me());
                        return;
                    }
                    Ok(_) => {}
                    Err(error) => tracing::debug!("waiting for {seed}: {error}"),
                }
            }
            R::sleep(FOUND_POLL).await;
        }
    }

    /// Whether the cluster has this node's id on another disk; the node fails then.
    fn is_taken(&self, answer: &v1::IdentifyResponse) -> bool {
        let mine = answer.members.iter().find(|m| m.id == self.shared.me());
        let taken = mine.is_some_and(|m| m.disk_id[..] != self.me.disk_id.to_bytes());
        if taken {
            self.shared.fail(format!(
                "the cluster has node {} on another disk than this one ({}): this disk is empty and must not take \
                 part under that id. Replace the member under a new id",
                self.shared.me(),
                self.me.disk_id
            ));
        }
        taken
    }

    async fn identify(&self, node: NodeId, address: &str) -> Result<v1::IdentifyResponse, PeerError> {
        identify(&self.shared, self.transport.as_ref(), node, address).await
    }
}

/// Asks who is at `address`.
pub(super) async fn identify<R: AsyncRuntime>(
    shared: &Shared<R>,
    transport: &dyn Transport,
    node: NodeId,
    address: &str,
) -> Result<v1::IdentifyResponse, PeerError> {
    let request = v1::IdentifyRequest {
        cluster_id: shared.identity.cluster_id.clone(),
        from: Some(wire::encode_identity(&shared.identity)),
    };
    transport.peer(node, address, Lane::Control).identify(request, PEER_CALL_TIMEOUT).await
}
