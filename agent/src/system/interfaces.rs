//! Addresses of the network interfaces (getifaddrs).

use std::{
    ffi::CStr,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub interface: String,
    pub ip: IpAddr,
    pub prefix: Option<u8>,
    pub up: bool,
}

/// Every IPv4 and IPv6 address of this network namespace, in the kernel's order.
pub(crate) fn addresses() -> io::Result<Vec<Address>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is valid for writes; on success it owns a list that is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: `next` is null or a node of the list, which lives until freeifaddrs.
    while let Some(node) = unsafe { next.as_ref() } {
        if let Some(ip) = ip(node.ifa_addr) {
            // SAFETY: `ifa_name` is a C string of the list.
            let interface = unsafe { CStr::from_ptr(node.ifa_name) }.to_string_lossy().into_owned();
            let up = node.ifa_flags & libc::IFF_UP.cast_unsigned() != 0;
            let prefix = self::ip(node.ifa_netmask).and_then(prefix);
            found.push(Address { interface, ip, prefix, up });
        }
        next = node.ifa_next;
    }
    // SAFETY: `first` came from getifaddrs, and nothing borrowed from it is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null, or a socket address that is at least as long as its family's structure; the list is aligned for
    // any of them.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

fn prefix(mask: IpAddr) -> Option<u8> {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    u8::try_from(ones).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loopback_address_is_found() {
        let found = super::addresses().unwrap();
        assert!(found.iter().any(|a| a.interface == "lo" && a.ip.is_loopback() && a.prefix == Some(8)), "{found:?}");
    }
}
