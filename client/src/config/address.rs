//! `host:port`, also with an IPv6 address in brackets.

use std::fmt;
use std::str::FromStr;

/// A host (name or IP address) and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
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

impl FromStr for Address {
    type Err = String;

    /// Reads `host:port` or `[IPv6]:port`.
    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = || format!("'{text}' is not host:port");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(wrong)?,
            None if host.contains(':') => {
                return Err(format!(
                    "'{text}' is not host:port; an IPv6 address needs brackets: [{host}]:{port}"
                ));
            }
            None => host,
        };
        let port = port.parse().map_err(|_| wrong())?;
        if host.is_empty() || port == 0 { Err(wrong()) } else { Ok(Address { host: host.to_owned(), port }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for text in ["kafka1:9092", "127.0.0.1:1", "[::1]:9092"] {
            assert_eq!(text.parse::<Address>().map(|a| a.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "host", ":9092", "host:", "host:0", "host:99999", "::1:9092", "[::1:9092"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
