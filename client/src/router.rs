//! The members a client talks to, with the choice among them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use holdfast_proto::v1;

use crate::core::{Advice, Routes};
use crate::dial::{Connecting, Dial};
use crate::peer::Peer;

/// Shared by every call of a client. The lock is held for a few instructions, never across an await.
#[derive(Debug)]
pub(crate) struct Router {
    connecting: Connecting,
    state: Mutex<State>,
    /// Itself, for the peers that report what they learn.
    own: Weak<Router>,
}

/// A member that was picked for a call.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) peer: Arc<Peer>,
    /// Whether it was thought to lead.
    pub(crate) leads: bool,
}

#[derive(Debug)]
struct State {
    routes: Routes,
    peers: HashMap<String, Arc<Peer>>,
    /// The peer of the present choice, so that the usual call looks nothing up.
    chosen: Option<Arc<Peer>>,
}

impl Router {
    pub(crate) fn new(configured: Vec<String>, connecting: Connecting) -> Arc<Self> {
        let routes = Routes::new(configured, rand::random());
        let state = Mutex::new(State { routes, peers: HashMap::new(), chosen: None });
        Arc::new_cyclic(|own| Router { connecting, state, own: own.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connecting(&self) -> &Connecting {
        &self.connecting
    }

    /// The member to ask next.
    pub(crate) fn pick(&self) -> Picked {
        let mut state = self.lock();
        let leads = state.routes.has_leader();
        if let Some(chosen) = &state.chosen {
            return Picked { peer: Arc::clone(chosen), leads };
        }
        let address = state.routes.pick().to_owned();
        let peer = self.peer_in(&mut state, &address);
        state.chosen = Some(Arc::clone(&peer));
        Picked { peer, leads }
    }

    /// The member at an address.
    pub(crate) fn peer(&self, address: &str) -> Arc<Peer> {
        self.peer_in(&mut self.lock(), address)
    }

    fn peer_in(&self, state: &mut State, address: &str) -> Arc<Peer> {
        if let Some(peer) = state.peers.get(address) {
            return Arc::clone(peer);
        }
        let own = self.own.clone();
        let on_members = Box::new(move |list| {
            if let Some(router) = own.upgrade() {
                router.learn(list);
            }
        });
        let dial = Dial::new(address.to_owned(), self.connecting.clone(), on_members);
        let peer = Peer::new(dial);
        state.peers.insert(address.to_owned(), Arc::clone(&peer));
        peer
    }

    /// What a call saw of the member that it asked.
    pub(crate) fn advise(&self, asked: &Peer, advice: Advice) {
        let mut state = self.lock();
        match advice {
            Advice::Keep => {
                if state.routes.has_leader() {
                    return;
                }
                state.routes.keep(asked.address());
            }
            Advice::Leader(leader) => state.routes.follow(asked.address(), &leader.address),
            Advice::Leave => state.routes.leave(asked.address()),
        }
        state.chosen = None;
    }

    /// A list of members, from one of them.
    pub(crate) fn learn(&self, list: v1::ListMembersResponse) {
        let addresses = list.members.into_iter().map(|member| member.client_address);
        let mut state = self.lock();
        state.routes.learn(addresses.filter(|address| !address.is_empty()));
        if !state.routes.has_leader()
            && let Some(leader) = list.leader
            && !leader.address.is_empty()
        {
            let asked = state.routes.pick().to_owned();
            state.routes.follow(&asked, &leader.address);
        }
        state.chosen = None;
    }

    /// Every member that is known.
    pub(crate) fn members(&self) -> Vec<String> {
        self.lock().routes.members().to_vec()
    }

    /// Ends every connection, once what is queued has ended.
    pub(crate) async fn close(&self) {
        let peers: Vec<Arc<Peer>> = {
            let mut state = self.lock();
            state.chosen = None;
            state.peers.drain().map(|(_, peer)| peer).collect()
        };
        for peer in peers {
            peer.close().await;
        }
    }
}
