//! Listening sockets, settings of connected ones, and congestion control (iperf3 `-C`).

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use railgauge_wire::{Failure, Kind, Stage, remedy};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// Time after which a silent peer is an error: unacknowledged bytes, or unanswered probes on an idle connection.
const SILENCE: Duration = Duration::from_secs(5);
/// For streams that outlive breaks of the link: the deadline of a step ends them.
const LONG_SILENCE: Duration = Duration::from_secs(900);

/// Longest blocking call between checks of the controller's flags.
const NAP: Duration = Duration::from_millis(200);

/// At a port of the kernel's choice; `congestion` is `None` for the system's.
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
    choose(SockRef::from(&listener), congestion)?;
    Ok(listener)
}

/// `traffic_class` is the byte with the DSCP; one that `rides_out` outlives minutes of silence.
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

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Accepted connections inherit it; `None` leaves the system's.
pub(crate) fn choose(socket: SockRef<'_>, wanted: Option<&str>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    socket.set_tcp_congestion(wanted.as_bytes()).map_err(|error| {
        let refused = |cause: String| Failure::new(Stage::Open, Kind::Configuration, cause);
        match error.kind() {
            io::ErrorKind::NotFound => {
                let offered = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
                let offered = offered.trim();
                refused(format!("this host's kernel has no congestion control {wanted:?}; it offers: {offered}"))
                    .remedy(remedy::LOAD_CONGESTION_CONTROL.with([("congestion", wanted)]))
            }
            io::ErrorKind::PermissionDenied => {
                refused(format!("this user may not choose the congestion control {wanted:?}"))
                    .remedy(remedy::ALLOW_CONGESTION_CONTROL.with([("congestion", wanted)]))
            }
            _ => refused(format!("the congestion control {wanted:?} cannot be set: {error}")),
        }
    })
}

/// Checks whether connections from `address` can use `wanted`, before there are any, so that the failure is this host's.
pub(crate) fn probe(address: IpAddr, wanted: Option<&str>) -> Result<(), Failure> {
    if wanted.is_none() {
        return Ok(());
    }
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).map_err(|error| {
        Failure::new(Stage::Open, Kind::Configuration, format!("no socket to be had: {error}"))
            .remedy(remedy::RAISE_OPEN_FILES)
    })?;
    choose(SockRef::from(&socket), wanted)
}

pub(crate) fn of(socket: SockRef<'_>) -> io::Result<String> {
    // The kernel answers with a fixed length, padded with zeros.
    let name = socket.tcp_congestion()?;
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_a_listener_has_its_connections_inherit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Every kernel has it, and every user may choose it.
        choose(SockRef::from(&listener), Some("reno")).unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        assert_eq!(of(SockRef::from(&far)).unwrap(), "reno");
        assert_ne!(of(SockRef::from(&near)).unwrap(), "");
    }

    #[test]
    fn a_name_the_kernel_does_not_know_is_refused_with_those_it_knows() {
        let failure = probe("::1".parse().unwrap(), Some("nonesuch")).unwrap_err();
        assert!(failure.cause.contains("no congestion control \"nonesuch\""), "{failure}");
        assert!(failure.cause.contains("reno"), "{failure}");
        assert_eq!(failure.remedy.unwrap().commands()[0].command, "modprobe tcp_nonesuch");
        probe("127.0.0.1".parse().unwrap(), None).unwrap();
    }
}
