//! `host:port`, as it is written in a configuration.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A host (name or IP address) and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Name or IP address, an IPv6 address without its brackets.
    pub host: String,
    /// The port; 0 = a free one, where listening allows it.
    pub port: u16,
}

impl Address {
    /// Whether the host means "every address of this machine", which nobody can connect to from elsewhere.
    pub fn is_wildcard(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified())
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(Address { host: socket.ip().to_string(), port: socket.port() });
        }
        let (host, port) = text.rsplit_once(':').ok_or("must be host:port")?;
        let port = port.parse().map_err(|_| "must end with a port from 0 to 65535")?;
        let is_name = !host.is_empty()
            && host.len() <= 253
            && host.split('.').all(|label| {
                !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            });
        if !is_name {
            return Err("must begin with a host name or an IP address (IPv6 in brackets)");
        }
        Ok(Address { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_alike_or_refused() {
        for good in ["127.0.0.1:7401", "[::1]:7401", "node-1.example.org:0", "localhost:65535"] {
            assert_eq!(good.parse::<Address>().map(|address| address.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "localhost", "localhost:", "localhost:65536", ":7401", "a b:1", "::1:7401", "x..y:1"]
        {
            assert!(bad.parse::<Address>().is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn wildcards_are_known() {
        for (text, wildcard) in
            [("0.0.0.0:1", true), ("[::]:1", true), ("127.0.0.1:1", false), ("host:1", false)]
        {
            assert_eq!(text.parse::<Address>().map(|address| address.is_wildcard()), Ok(wildcard));
        }
    }
}
