//! The node's three ports, bound before anything else, so that a node that cannot be reached
//! touches neither its data nor the cluster.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use super::Fatal;
use crate::config::{Listen, NodeConfig};

/// The bound ports and the addresses that others are told.
#[derive(Debug)]
pub struct Ports {
    pub(super) client: TcpListener,
    pub(super) peer: TcpListener,
    pub(super) http: TcpListener,
    addresses: Addresses,
}

/// Where others reach the node: `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Clients.
    pub client: String,
    /// The other members.
    pub peer: String,
    /// Probes, Prometheus, browsers.
    pub http: String,
}

impl Ports {
    /// Binds what the configuration says.
    ///
    /// # Errors
    /// The first port that cannot be had, with its key and address.
    pub fn bind(config: &NodeConfig) -> Result<Ports, Fatal> {
        let client = bind("client.listen", &config.client)?;
        let peer = bind("peer.listen", &config.peer)?;
        let http = bind("http.listen", &config.http)?;
        let addresses = Addresses {
            client: advertised("client.listen", &config.client, &client)?,
            peer: advertised("peer.listen", &config.peer, &peer)?,
            http: advertised("http.listen", &config.http, &http)?,
        };
        Ok(Ports { client, peer, http, addresses })
    }

    /// What others are told, with the ports that were really bound.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }
}

fn bind(key: &'static str, listen: &Listen) -> Result<TcpListener, Fatal> {
    let fail = |error| Fatal::port(key, &listen.listen, &error);
    let candidates: Vec<SocketAddr> = listen.listen.to_socket_addrs().map_err(fail)?.collect();
    let listener = TcpListener::bind(candidates.as_slice()).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

fn advertised(key: &'static str, listen: &Listen, bound: &TcpListener) -> Result<String, Fatal> {
    if !listen.advertise.is_empty() {
        return Ok(listen.advertise.clone());
    }
    let port = bound.local_addr().map_err(|error| Fatal::port(key, &listen.listen, &error))?.port();
    // The host as it was written: a name is worth more to others than the address it stands for here.
    let host = listen.listen.rsplit_once(':').map_or("", |(host, _)| host);
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn config() -> NodeConfig {
        let mut config = NodeConfig::default();
        for port in [&mut config.client, &mut config.peer, &mut config.http] {
            port.listen = "127.0.0.1:0".into();
        }
        config
    }

    #[test]
    fn free_ports_are_told_with_the_host_as_it_was_written() {
        let ports = Ports::bind(&config()).unwrap();
        let bound = ports.client.local_addr().unwrap().port();
        assert_eq!(ports.addresses().client, format!("127.0.0.1:{bound}"));
        let mut told = config();
        told.client.advertise = "node-1:9".into();
        assert_eq!(Ports::bind(&told).unwrap().addresses().client, "node-1:9");
    }

    #[test]
    fn a_port_in_use_is_named_with_its_key() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let mut config = config();
        config.peer.listen.clone_from(&address);
        let said = Ports::bind(&config).unwrap_err().to_string();
        assert_eq!(
            said,
            format!("peer.listen: cannot listen on {address}: the port is in use by another process")
        );
    }

    #[test]
    fn a_foreign_address_is_named_too() {
        let mut config = config();
        config.http.listen = "192.0.2.1:0".into();
        let said = Ports::bind(&config).unwrap_err().to_string();
        assert!(said.starts_with("http.listen: cannot listen on 192.0.2.1:0: the address is not"), "{said}");
    }
}
