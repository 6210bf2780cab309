//! Which loopback ports the parts of a development cluster listen on.

use std::net::{Ipv4Addr, TcpListener};

use crate::failure::{Failure, Outcome};

/// With `--port-base P`: node i has client port P+i, peer port P+20+i and HTTP port P+40+i.
/// P itself is the gateway's and P+60 the stand-in upstream's.
const PEER_OFFSET: u16 = 20;
const HTTP_OFFSET: u16 = 40;
const HIGHEST_OFFSET: u16 = 60;

/// The ports of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodePorts {
    /// Where clients call.
    pub client: u16,
    /// Where the other members call.
    pub peer: u16,
    /// Probes, metrics, console.
    pub http: u16,
}

impl NodePorts {
    fn all(self) -> [u16; 3] {
        [self.client, self.peer, self.http]
    }
}

/// The ports that follow from `--port-base`.
pub fn from_base(base: u16, nodes: u16) -> Outcome<Vec<NodePorts>> {
    if base.checked_add(HIGHEST_OFFSET).is_none() {
        return Err(Failure::usage(format!(
            "--port-base {base} leaves no room: the highest port would be {base}+{HIGHEST_OFFSET}, past 65535"
        )));
    }
    Ok((1..=nodes)
        .map(|i| NodePorts { client: base + i, peer: base + PEER_OFFSET + i, http: base + HTTP_OFFSET + i })
        .collect())
}

/// Ports that were free when asked. All are held open until the last is drawn, so that none is drawn twice.
pub fn free(nodes: u16) -> Outcome<Vec<NodePorts>> {
    let mut held = Vec::new();
    let mut draw = || -> std::io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        held.push(listener);
        Ok(port)
    };
    (0..nodes)
        .map(|_| Ok(NodePorts { client: draw()?, peer: draw()?, http: draw()? }))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| Failure::failed(format!("cannot find free loopback ports: {e}")))
}

/// Refuses at once, and by name, if something listens there already.
pub fn check_free(ports: &[NodePorts], advice: &str) -> Outcome {
    for port in ports.iter().flat_map(|node| node.all()) {
        if let Err(e) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Err(
                Failure::failed(format!("port {port} on 127.0.0.1 cannot be used: {e}")).advise(advice)
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_base_gives_the_documented_ports() {
        let ports = from_base(7400, 3).unwrap();
        assert_eq!(ports[0], NodePorts { client: 7401, peer: 7421, http: 7441 });
        assert_eq!(ports[2], NodePorts { client: 7403, peer: 7423, http: 7443 });
        assert!(from_base(65_500, 3).unwrap_err().problem.contains("65500"));
    }

    #[test]
    fn free_ports_are_all_different() {
        let ports = free(5).unwrap();
        let distinct: BTreeSet<u16> = ports.iter().flat_map(|node| node.all()).collect();
        assert_eq!(distinct.len(), 15);
    }

    #[test]
    fn a_port_in_use_is_named() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let node = NodePorts { client: port, peer: port, http: port };
        let failure = check_free(&[node], "advice").unwrap_err();
        assert!(failure.problem.contains(&port.to_string()), "{failure}");
    }
}
