//! The memory of a pluggable module (SIOCETHTOOL: what `ethtool -m` prints). The kernel shows it to those who may set up
//! interfaces only (`CAP_NET_ADMIN`).

use std::{io, net::UdpSocket, os::fd::AsRawFd};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GMODULEINFO: u32 = 0x42;
const GMODULEEEPROM: u32 = 0x43;
/// Bytes of `struct ethtool_eeprom` before its data: u32 cmd, u32 magic, u32 offset, u32 len.
const HEADER: usize = 16;

/// The first bytes of a module's memory, at most `most`; `None` where the interface has no module, or its driver does not tell.
///
/// # Errors
/// There is no such interface, the caller may not, or the module does not answer.
pub(crate) fn read(interface: &str, most: u32) -> io::Result<Option<Vec<u8>>> {
    // struct ethtool_modinfo: u32 cmd, u32 type, u32 eeprom_len, u32 reserved[8].
    let mut info = [0_u32; 11];
    info[0] = GMODULEINFO;
    if said(ioctl(interface, &mut info))?.is_none() {
        return Ok(None);
    }
    let length = info[2].min(most);
    if length == 0 {
        return Ok(None);
    }
    let words = HEADER / 4 + (length as usize).div_ceil(4);
    let mut words = vec![0_u32; words];
    (words[0], words[3]) = (GMODULEEEPROM, length);
    if said(ioctl(interface, &mut words))?.is_none() {
        return Ok(None);
    }
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).skip(HEADER).take(length as usize);
    Ok(Some(bytes.collect()))
}

/// `None` where a driver does not know the question, or nothing is plugged in.
fn said(answer: io::Result<()>) -> io::Result<Option<()>> {
    match answer {
        Err(error) => match error.raw_os_error() {
            // Drivers say EINVAL or EIO of an empty cage, ENODEV of one that they do not reach.
            Some(libc::EOPNOTSUPP | libc::EINVAL | libc::EIO | libc::ENODEV) => Ok(None),
            _ => Err(error),
        },
        Ok(()) => Ok(Some(())),
    }
}

fn ioctl(interface: &str, command: &mut [u32]) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0"))?;
    // SAFETY: a zeroed ifreq is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENXIO));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // SAFETY: `request` and the words it points to outlive the call. The kernel writes no more than the structure of the command,
    // which `command` holds: for the memory as many bytes as its fourth word asks for, and these are there.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_module_tells_none_and_long_names_are_refused() {
        // The loopback interface has no driver to ask; without rights the kernel refuses before it asks one.
        match read("lo", 256) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert!(read("a name that is far too long", 256).is_err());
    }
}
