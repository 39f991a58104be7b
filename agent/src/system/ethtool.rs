//! Queries of a network driver (SIOCETHTOOL): what `ethtool -S`, `-i` and `-a` print, and its module's memory.

use std::{io, os::fd::AsRawFd};

use railgauge_wire::Pause;
use socket2::{Domain, Socket, Type};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GDRVINFO: u32 = 0x03;
const GPAUSEPARAM: u32 = 0x12;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
const GMODULEINFO: u32 = 0x42;
const GMODULEEEPROM: u32 = 0x43;
const SS_STATS: u32 = 1;
const NAME: usize = 32;
/// More statistics than any driver has; a larger number is a driver's error.
const MOST: u32 = 1 << 16;
/// Space for statistics that appear between two calls: the kernel writes all that exist by then.
const SLACK: u32 = 4096;

/// In the driver's order; empty if the driver has none.
pub(crate) fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let socket = socket()?;
    let ask = |command: &mut [u64]| ioctl(&socket, interface, command);

    // struct ethtool_sset_info: u32 cmd, u32 reserved, u64 mask, u32 data[].
    let mut info = [header(GSSET_INFO, 0), 1 << SS_STATS, 0];
    match ask(&mut info) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
        done => done?,
    }
    // The kernel clears the bits of sets the driver does not have.
    let count = if info[1] & (1 << SS_STATS) == 0 { 0 } else { halves(info[2]).0 };
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > MOST {
        return Err(io::Error::other(format!("the driver announces {count} statistics")));
    }
    let room = (count + SLACK) as usize;

    // struct ethtool_gstrings: u32 cmd, u32 string_set, u32 len, u8 data[]: data begins in the middle of a word.
    let mut strings = vec![0; 2 + room * NAME / 8];
    strings[0] = header(GSTRINGS, SS_STATS);
    strings[1] = header(count, 0);
    ask(&mut strings)?;

    // struct ethtool_stats: u32 cmd, u32 n_stats, u64 data[].
    let mut values = vec![0; 1 + room];
    values[0] = header(GSTATS, count);
    ask(&mut values)?;
    if halves(strings[1]).0 != count || halves(values[0]).1 != count {
        return Err(io::Error::other("the driver was reconfigured while its statistics were read"));
    }

    let bytes: Vec<u8> = strings.iter().flat_map(|word| word.to_ne_bytes()).skip(12).collect();
    Ok(bytes.chunks(NAME).map(name).zip(values.into_iter().skip(1)).take(count as usize).collect())
}

/// `None` if the driver does not report them.
pub(crate) fn driver(interface: &str) -> io::Result<Option<(String, String)>> {
    // struct ethtool_drvinfo: u32 cmd, then names of 32 bytes: driver, version, firmware, …; 196 bytes in all.
    let mut info = [0; 25];
    info[0] = header(GDRVINFO, 0);
    let said = supported(ioctl(&socket()?, interface, &mut info))?.is_some();
    let bytes: Vec<u8> = info.iter().flat_map(|word| word.to_ne_bytes()).skip(4).collect();
    Ok(said.then(|| (name(&bytes[..NAME]), name(&bytes[NAME..2 * NAME]))).filter(|(driver, _)| !driver.is_empty()))
}

/// `None` if the driver has none.
pub(crate) fn pause(interface: &str) -> io::Result<Option<Pause>> {
    // struct ethtool_pauseparam: u32 cmd, u32 autoneg, u32 rx_pause, u32 tx_pause.
    let mut words = [header(GPAUSEPARAM, 0), 0];
    let said = supported(ioctl(&socket()?, interface, &mut words))?;
    let (receive, send) = halves(words[1]);
    Ok(said.map(|()| Pause { receive: receive != 0, send: send != 0 }))
}

/// The module's pages are in sequence.
pub(crate) fn module_memory(interface: &str, offset: u32, length: u32) -> io::Result<Vec<u8>> {
    let socket = socket()?;
    // struct ethtool_modinfo: u32 cmd, u32 type, u32 eeprom_len, u32 reserved[8].
    let mut info = [0; 6];
    info[0] = header(GMODULEINFO, 0);
    ioctl(&socket, interface, &mut info)?;
    if offset.saturating_add(length) > halves(info[1]).0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // struct ethtool_eeprom: u32 cmd, u32 magic, u32 offset, u32 len, u8 data[].
    let mut memory = vec![0; 2 + length.div_ceil(8) as usize];
    memory[0] = header(GMODULEEEPROM, 0);
    memory[1] = header(offset, length);
    ioctl(&socket, interface, &mut memory)?;
    Ok(memory[2..].iter().flat_map(|word| word.to_ne_bytes()).take(length as usize).collect())
}

/// `None` where a driver does not support the query.
fn supported(answer: io::Result<()>) -> io::Result<Option<()>> {
    match answer {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Without an address: the loopback interface may be down, as in a new network namespace.
fn socket() -> io::Result<Socket> {
    let open = |domain| Socket::new(domain, Type::DGRAM, None);
    open(Domain::IPV4).or_else(|_| open(Domain::IPV6))
}

/// Up to the first zero.
fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)).into_owned()
}

/// Two u32 fields as the one word they lie in.
fn header(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The two u32 fields of a word.
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

fn ioctl(socket: &Socket, interface: &str, command: &mut [u64]) -> io::Result<()> {
    // SAFETY: a zeroed ifreq is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // SAFETY: `request` and the words it points to outlive the call. `command` is as long as the answer to its first
    // word, with room for a driver that has grown by thousands of statistics since it was asked for their number.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_none_and_a_missing_one_is_an_error() {
        assert_eq!(statistics("lo").unwrap(), []);
        assert_eq!(pause("lo").unwrap(), None);
        assert!(module_memory("lo", 0, 1).is_err() && module_memory("nowhere0", 0, 1).is_err());
        assert!(statistics("nowhere0").is_err() && driver("nowhere0").is_err() && pause("nowhere0").is_err());
        assert!(statistics("a name that is far too long").is_err());
    }
}
