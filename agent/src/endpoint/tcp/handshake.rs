//! Handshake of a link's streams: the initiator connects one socket per stream and one for signals, and shows the token on each.
//! Connections without it are dropped. A hello is the magic, the stream's number, the token's length and the token; the answer is one
//! byte.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use railgauge_wire::{Failure, Kind, Stage, remedy};
use socket2::{Domain, Protocol, Socket, Type};

use super::place::{self, Place};
use crate::{
    bench::control::Control,
    system::wait::{self, READABLE},
};

const MAGIC: &[u8; 8] = b"rg-tcp 1";
const ACCEPTED: u8 = b'+';

const STRANGER: Duration = Duration::from_secs(2);

const STRANGERS: usize = 64;

const CONNECT: Duration = Duration::from_secs(5);

fn hello(number: u32, token: &str) -> Vec<u8> {
    let length = u32::try_from(token.len()).unwrap_or(u32::MAX);
    [MAGIC.as_slice(), &number.to_be_bytes(), &length.to_be_bytes(), token.as_bytes()].concat()
}

fn failure(kind: Kind, cause: String) -> Failure {
    Failure::new(Stage::Join, kind, cause)
}

/// Accepts `count` connections with the token, in the order of their numbers.
pub(crate) fn accept(
    listener: &TcpListener,
    count: usize,
    token: &str,
    control: &Control,
) -> Result<Vec<TcpStream>, Failure> {
    let refused = |error: io::Error| {
        let failure = failure(Kind::Configuration, format!("listening failed: {error}"));
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => failure.remedy(remedy::RAISE_OPEN_FILES),
            _ => failure,
        }
    };
    listener.set_nonblocking(true).map_err(refused)?;
    let mut strangers: Vec<Unauthenticated> = Vec::new();
    let mut streams: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    while streams.iter().any(Option::is_none) {
        if let Err(failure) = control.check(Stage::Join) {
            let here = streams.iter().flatten().count();
            let cause = format!("{} ({here} of {count} connections of the initiator came)", failure.cause);
            return Err(Failure { cause, ..failure }.remedy(remedy::CHECK_FIREWALL));
        }
        wait_for_any(listener, &strangers).map_err(refused)?;
        match listener.accept() {
            Ok((stream, from)) => {
                strangers.truncate(STRANGERS - 1);
                strangers.extend(Unauthenticated::new(stream, from));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The peer gave up before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(refused(error)),
        }
        let mut still = Vec::new();
        for mut stranger in strangers {
            match stranger.hear(token) {
                Heard::Waiting => still.push(stranger),
                Heard::Number(number) if streams.get(number as usize).is_some_and(Option::is_none) => {
                    streams[number as usize] = Some(stranger.stream);
                }
                Heard::Number(_) | Heard::Unauthenticated => {
                    crate::system::log!("a connection from {} that did not show the token was dropped", stranger.from);
                }
            }
        }
        strangers = still;
    }
    let mut streams: Vec<TcpStream> = streams.into_iter().flatten().collect();
    for stream in &mut streams {
        let answered = stream.set_nonblocking(false).and_then(|()| stream.write_all(&[ACCEPTED]));
        answered.map_err(|error| failure(Kind::Fabric, format!("the initiator went away while joining: {error}")))?;
    }
    Ok(streams)
}

/// Sleeps for a connection or data, at most 50 ms.
fn wait_for_any(listener: &TcpListener, strangers: &[Unauthenticated]) -> io::Result<()> {
    let all = std::iter::once(listener.as_fd()).chain(strangers.iter().map(|stranger| stranger.stream.as_fd()));
    wait::wait_any(all.map(|fd| (fd, READABLE)), Some(Duration::from_millis(50)))
}

struct Unauthenticated {
    stream: TcpStream,
    from: SocketAddr,
    until: Instant,
    said: Vec<u8>,
}

enum Heard {
    Waiting,
    Number(u32),
    Unauthenticated,
}

impl Unauthenticated {
    fn new(stream: TcpStream, from: SocketAddr) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, from, until: Instant::now() + STRANGER, said: Vec::new() })
    }

    fn hear(&mut self, token: &str) -> Heard {
        let wanted = hello(0, token);
        let mut bytes = vec![0; wanted.len() - self.said.len()];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Heard::Unauthenticated,
            Ok(n) => self.said.extend_from_slice(&bytes[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Heard::Unauthenticated,
        }
        if self.said.len() < wanted.len() {
            return if Instant::now() < self.until { Heard::Waiting } else { Heard::Unauthenticated };
        }
        let mut number = [0; 4];
        number.copy_from_slice(&self.said[8..12]);
        self.said[8..12].fill(0);
        if same(&self.said, &wanted) { Heard::Number(u32::from_be_bytes(number)) } else { Heard::Unauthenticated }
    }
}

/// In constant time, to hide the first difference.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && std::hint::black_box(one.iter().zip(other).fold(0, |acc, (a, b)| acc | (a ^ b))) == 0
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The kernel's choice if `None`.
    pub address: Option<IpAddr>,
    /// The kernel's choice if `None`.
    pub device: Option<String>,
    /// The system's if `None`.
    pub congestion: Option<String>,
}

impl Origin {
    /// The kernel chooses what the plan does not name. No interface is set where the bytes stay on the host.
    pub(crate) fn new(place: &Place, peer: IpAddr, congestion: Option<String>) -> Self {
        let device = (place.named_device && !place::is_own(peer)).then(|| place.device.clone());
        let named = place.named_address || place.named_device;
        Self { address: named.then_some(place.address), device, congestion }
    }
}

pub(crate) fn connect(
    origin: &Origin,
    to: SocketAddr,
    count: usize,
    token: &str,
    control: &Control,
) -> Result<Vec<TcpStream>, Failure> {
    let numbers = 0..u32::try_from(count).unwrap_or(u32::MAX);
    let mut streams =
        numbers.map(|number| request(origin, to, number, token, control)).collect::<Result<Vec<_>, Failure>>()?;
    for stream in &mut streams {
        accepted(stream, to, control)?;
    }
    Ok(streams)
}

/// It is joined once [`accepted`].
pub(crate) fn request(
    origin: &Origin,
    to: SocketAddr,
    number: u32,
    token: &str,
    control: &Control,
) -> Result<TcpStream, Failure> {
    control.check(Stage::Join)?;
    let mut stream = one(origin, to, control).map_err(|error| unreachable(origin, to, &error))?;
    stream.write_all(&hello(number, token)).map_err(|error| unreachable(origin, to, &error))?;
    Ok(stream)
}

fn one(origin: &Origin, to: SocketAddr, control: &Control) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(device) = &origin.device {
        match socket.bind_device(Some(device.as_bytes())) {
            // Kernels before 5.7 let only root bind to an interface; the source address must do there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                crate::system::log!(
                    "not permitted to bind to {device}: routing decides by which interface traffic leaves"
                );
            }
            done => done?,
        }
    }
    if let Some(address) = origin.address {
        socket.bind(&SocketAddr::new(address, 0).into())?;
    }
    if let Some(congestion) = &origin.congestion {
        socket.set_tcp_congestion(congestion.as_bytes())?;
    }
    let left = control.deadline.saturating_duration_since(Instant::now());
    socket.connect_timeout(&to.into(), left.clamp(Duration::from_millis(1), CONNECT))?;
    Ok(socket.into())
}

fn unreachable(origin: &Origin, to: SocketAddr, error: &io::Error) -> Failure {
    let from = match origin {
        Origin { device: Some(device), address: Some(address), .. } => format!(" from {address} ({device})"),
        Origin { address: Some(address), .. } => format!(" from {address}"),
        _ => String::new(),
    };
    failure(Kind::Fabric, format!("no TCP connection{from} to {to}: {error}"))
        .remedy(remedy::CHECK_ROUTE.with([("peer", to.ip().to_string())]))
}

pub(crate) fn accepted(stream: &mut TcpStream, to: SocketAddr, control: &Control) -> Result<(), Failure> {
    let lost = |error: io::Error| failure(Kind::Fabric, format!("the responder at {to} went away: {error}"));
    loop {
        control.check(Stage::Join)?;
        let [events] = wait::wait([(stream.as_fd(), READABLE)], Some(Duration::from_millis(50))).map_err(lost)?;
        if events == 0 {
            continue;
        }
        let mut answer = [0];
        return match stream.read(&mut answer) {
            Ok(1) if answer[0] == ACCEPTED => Ok(()),
            Ok(0) => Err(failure(
                Kind::Configuration,
                format!(
                    "the responder at {to} closed the connection instead of accepting it: its own join failed, the two \
                     ends have different tokens, or something else listens there"
                ),
            )
            .remedy(remedy::LOOK_AT_PEER_ERROR)),
            Ok(_) => Err(failure(Kind::Configuration, format!("what listens at {to} is not a railgauge agent"))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(failure(
                Kind::Configuration,
                format!("the responder at {to} closed the connection instead of accepting it"),
            )),
            Err(error) => Err(lost(error)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_equality() {
        assert!(same(b"token", b"token"));
        assert!(!same(b"token", b"tokem") && !same(b"token", b"toke") && !same(b"", b"x"));
    }
}
