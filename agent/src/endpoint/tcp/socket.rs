//! Listening, and the settings of connected sockets.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use railgauge_wire::failure::{Failure, Kind, Stage};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::congestion;

/// Time after which a silent peer is an error: unacknowledged bytes, or unanswered probes on an idle connection.
const SILENCE: Duration = Duration::from_secs(5);
/// The same for streams that outlive breaks of the link: the deadline of a step ends them.
const LONG_SILENCE: Duration = Duration::from_secs(900);

/// How long a call may block before the controller's flags are looked at.
const NAP: Duration = Duration::from_millis(200);

/// Listens for `streams` connections at a port of the kernel's choice; they have the congestion control `congestion`,
/// or the system's.
pub(crate) fn listen(address: IpAddr, streams: u32, congestion: Option<&str>) -> Result<TcpListener, Failure> {
    let to = SocketAddr::new(address, 0);
    let listen = || {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&to.into())?;
        socket.listen(i32::try_from(streams).unwrap_or(i32::MAX).saturating_add(64))?;
        Ok::<_, io::Error>(socket.into())
    };
    let listener: TcpListener = listen().map_err(|error| {
        Failure::new(Stage::Open, Kind::Configuration, format!("cannot listen at {address}: {error}"))
    })?;
    congestion::choose(SockRef::from(&listener), congestion)?;
    Ok(listener)
}

/// Prepares a connected socket. `traffic_class` is the byte that holds the DSCP; one that `rides_out` outlives minutes of silence.
pub(crate) fn prepare(stream: &TcpStream, traffic_class: Option<u8>, rides_out: bool) -> Result<(), Failure> {
    set(stream, traffic_class, if rides_out { LONG_SILENCE } else { SILENCE })
        .map_err(|error| Failure::new(Stage::Join, Kind::Configuration, format!("a socket cannot be set up: {error}")))
}

fn set(stream: &TcpStream, traffic_class: Option<u8>, silence: Duration) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(Duration::from_secs(1)).with_interval(Duration::from_secs(1));
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(silence))?;
    socket.set_read_timeout(Some(NAP))?;
    socket.set_write_timeout(Some(NAP))?;
    match (traffic_class, stream.peer_addr()?) {
        (None, _) => Ok(()),
        (Some(class), peer) if peer.is_ipv4() => socket.set_tos_v4(class.into()),
        (Some(class), _) => socket.set_tclass_v6(class.into()),
    }
}
