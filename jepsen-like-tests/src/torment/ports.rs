//! Free loopback ports. Each is bound and let go again, so that another program could take it
//! before the node does; the node then refuses to start and the run says so.

use std::net::{Ipv4Addr, TcpListener};

/// This many different free ports.
pub(super) fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}
