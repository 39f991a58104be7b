//! Opens a rank's listener and joins it with the others.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use railgauge_wire::{
    Carrier, Completion, Endpoint, Failure, GpuPath, Kind, LinkLayer, LinkSpec, Opened, Stage, TcpEndpoint,
};
use socket2::SockRef;

use super::super::engine::{Neighbour, RankPort, Wire};
use super::{Patience, Tcp};
use crate::{
    bench::control::Control,
    endpoint::tcp::{
        handshake::{self, Origin},
        place::{self, Place},
        socket,
    },
};

/// Congestion control between ranks of one host, without a shared path: others may pace sends by timers, which on loopback costs more
/// than copying. Every kernel has it, and every user may choose it.
const UNPACED: &str = "reno";

pub(crate) struct TcpRankPort {
    spec: LinkSpec,
    congestion: Option<String>,
    place: Place,
    listener: TcpListener,
    opened: Opened,
}

impl TcpRankPort {
    /// Chooses the address and listens there, on the calling thread, which is moved to the interface's node. Of `ranks` ranks `siblings`
    /// are on this host.
    pub(crate) fn open(spec: &LinkSpec, ranks: u32, siblings: u32) -> Result<Self, Failure> {
        let place = place::choose(spec)?;
        let mut settings = place.settle(spec.knobs.core)?;
        let completion = spec.knobs.completion.map_or("poll, then events", Completion::word);
        settings.insert("completion".into(), completion.into());
        let unpaced = || (siblings >= ranks).then(|| UNPACED.to_owned());
        let congestion = spec.knobs.congestion_control.clone().or_else(unpaced);
        let listener = socket::listen(place.address, ranks, congestion.as_deref())?;
        let name = socket::of(SockRef::from(&listener)).map_err(|error| {
            Failure::new(Stage::Open, Kind::Internal, format!("the congestion control of a socket: {error}"))
        })?;
        settings.insert("congestion_control".into(), name);
        let port = listener.local_addr().map_or(0, |address| address.port());
        let opened = Opened {
            endpoint: Endpoint::Tcp(TcpEndpoint { address: place.address.to_string(), port }),
            device: place.device.clone(),
            transport: Carrier::Tcp,
            link_layer: LinkLayer::Ethernet,
            gpu_path: GpuPath::None,
            rate_gbps: place::rate(&place.device),
            mtu: place::mtu(&place.device),
            software: false,
            write_order: None,
            settings,
        };
        Ok(Self { spec: spec.clone(), congestion, place, listener, opened })
    }

    fn origin(&self, peer: IpAddr) -> Origin {
        Origin::new(&self.place, peer, self.congestion.clone())
    }

    fn connect(
        &self,
        rank: usize,
        addresses: &[SocketAddr],
        names: &[String],
        control: &Control,
    ) -> Result<Vec<Option<TcpStream>>, Failure> {
        let number = u32::try_from(rank).unwrap_or(u32::MAX);
        let above = || addresses.iter().zip(names).skip(rank + 1);
        let connect = |(address, name): (&SocketAddr, &String)| {
            let stream = handshake::request(&self.origin(address.ip()), *address, number, &self.spec.token, control);
            stream.map_err(|failure| failure.about(name))
        };
        // All send their hello before any waits for its answer, which follows the hellos of those below.
        let mut connected = above().map(connect).collect::<Result<Vec<_>, _>>()?;
        // Those below have the numbers 0 to rank - 1.
        let accepted = handshake::accept(&self.listener, rank, &self.spec.token, control)?;
        for (stream, (address, name)) in connected.iter_mut().zip(above()) {
            handshake::accepted(stream, *address, control).map_err(|failure| failure.about(name))?;
        }
        for stream in accepted.iter().chain(&connected) {
            socket::prepare(stream, self.spec.knobs.traffic_class, false)?;
        }
        Ok(accepted.into_iter().map(Some).chain([None]).chain(connected.into_iter().map(Some)).collect())
    }
}

impl RankPort for TcpRankPort {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn join(
        mut self: Box<Self>,
        rank: usize,
        group: &[Neighbour],
        control: &Control,
    ) -> Result<(Box<dyn Wire>, Opened), Failure> {
        let mut addresses = Vec::new();
        for neighbour in group {
            let Endpoint::Tcp(endpoint) = &neighbour.endpoint else {
                let cause = format!("{} has no TCP endpoint", neighbour.name);
                return Err(Failure::new(Stage::Join, Kind::Internal, cause));
            };
            let ip: IpAddr = endpoint.address.parse().map_err(|_| {
                Failure::new(
                    Stage::Join,
                    Kind::Internal,
                    format!("the address of {} is not an address", neighbour.name),
                )
            })?;
            addresses.push(SocketAddr::new(ip, endpoint.port));
        }
        let names: Vec<String> = group.iter().map(|neighbour| neighbour.name.clone()).collect();
        let streams = self.connect(rank, &addresses, &names, control)?;
        let patience = match self.spec.knobs.completion {
            None => Patience::Mixed,
            Some(Completion::Poll) => Patience::Poll,
            Some(Completion::Events) => Patience::Sleep,
        };
        // Between two addresses of one host the kernel uses the loopback interface.
        if addresses.iter().all(|address| place::is_own(address.ip())) {
            self.opened.link_layer = LinkLayer::Loopback;
            self.opened.rate_gbps = None;
        }
        Ok((Box::new(Tcp::new(streams, names, patience)), self.opened))
    }
}
