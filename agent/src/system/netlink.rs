//! Questions to the kernel over a netlink socket (netlink(7)): one request, one answer, and the attributes in both.

use std::{
    io,
    mem::size_of,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct nlattr`.
const ATTRIBUTE: usize = 4;
/// Type of a message that carries an error number.
const ERROR: u16 = 2;
/// The bits of an attribute's type that are flags (nested, network byte order).
const FLAGS: u16 = 0xc000;
/// Room for an answer: the largest this program asks for is some kilobytes.
const ROOM: usize = 64 << 10;

/// Asks the routing family a question and returns what stands behind the answer's header.
pub(crate) fn ask(kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    ask_of(libc::NETLINK_ROUTE, kind, body)
}

/// As [`ask`], of the generic family: `kind` is the number that the kernel gave to one of its families.
pub(crate) fn ask_generic(kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    ask_of(libc::NETLINK_GENERIC, kind, body)
}

fn ask_of(protocol: libc::c_int, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    let request = message(kind, body);
    let socket = socket(protocol)?;
    // SAFETY: `request` is valid for reads of its length. Without an address the kernel is meant.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = vec![0u8; ROOM];
    // SAFETY: `answer` is valid for writes of its length.
    let length = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
    answer.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
    body_of(&answer)
}

/// An attribute: length, type, bytes, and zeros up to the next multiple of four.
pub(crate) fn attribute(kind: u16, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ATTRIBUTE + bytes.len()).unwrap_or(u16::MAX);
    let mut text = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    text.extend_from_slice(bytes);
    text.resize(text.len().next_multiple_of(4), 0);
    text
}

/// The attributes in a row of them: type and bytes. Ends where one does not fit.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & !FLAGS;
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The bytes of the first attribute of a type.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let flags = u16::try_from(libc::NLM_F_REQUEST).unwrap_or(1);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    // Sequence and port: one question per socket needs neither.
    bytes.extend([0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

/// What stands behind the header of an answer, or the error it carries.
fn body_of(answer: &[u8]) -> io::Result<Vec<u8>> {
    let torn = || io::Error::other("the kernel's answer is torn");
    let kind = u16_at(answer, size_of::<u32>()).ok_or_else(torn)?;
    let body = answer.get(HEADER..).ok_or_else(torn)?;
    if kind != ERROR {
        return Ok(body.to_vec());
    }
    let number = body.first_chunk().copied().map(i32::from_ne_bytes).ok_or_else(torn)?;
    Err(io::Error::from_raw_os_error(number.saturating_neg()))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A socket of a protocol that gives up after a second.
fn socket(protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let number = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let patience = libc::timeval { tv_sec: 1, tv_usec: 0 };
    // SAFETY: the pointer and the size describe `patience`, which outlives the call.
    let rc = unsafe {
        libc::setsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const patience).cast(),
            libc::socklen_t::try_from(size_of::<libc::timeval>()).unwrap_or_default(),
        )
    };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attributes_read_back() {
        let row = [attribute(1, b"eth0\0"), attribute(13 | FLAGS, &attribute(2, &[7]))].concat();
        assert_eq!(row.len(), 12 + 12);
        assert_eq!(find(&row, 1), Some(b"eth0\0".as_slice()));
        assert_eq!(find(find(&row, 13).unwrap(), 2), Some([7].as_slice()));
        assert_eq!(find(&row, 3), None);
    }

    #[test]
    fn errors_of_the_kernel_are_errors() {
        let refused = message(ERROR, &(-libc::EOPNOTSUPP).to_ne_bytes());
        assert_eq!(body_of(&refused).unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(body_of(&refused[..7]).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (attributes(&bytes).count(), body_of(&bytes));
        }
    }
}
