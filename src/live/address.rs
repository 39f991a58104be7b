use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address of this machine; write 127.0.0.1, 0.0.0.0:8080 or [::1]:8080 (other names than localhost are not looked up)"
)]
pub struct NoAddress(String);

/// Port 0 means any free port.
pub fn address(text: &str) -> Result<SocketAddr, NoAddress> {
    let wrong = || NoAddress(text.to_owned());
    if let Ok(whole) = text.parse() {
        return Ok(whole);
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, 0));
    }
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    match (name, port.parse()) {
        ("localhost", Ok(port)) => Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_any() {
        for (text, read) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("localhost", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("0.0.0.0:9", "0.0.0.0:9"),
            ("::1", "[::1]:0"),
            ("[::1]", "[::1]:0"),
            ("[::]:8080", "[::]:8080"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), read, "{text}");
        }
        for text in ["", "plan.toml", "8080", ":8080", "head01", "head01:80", "127.0.0.1:65536", "localhost:x"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
