use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use railgauge_wire::{
    Carrier, Checked, Completion, Endpoint, Failure, Footprint, GpuPath, Kind, Lane, LinkLayer, LinkSpec, Measurement,
    Nanoseconds, Op, Opened, Pattern, Role, SourcePort, Stage, Step, Stepped, TcpEndpoint, TestMetric, Timing,
    Transport, Window, remedy, unit,
};
use socket2::SockRef;

use super::super::link::{Link, not_of_pairs};
use super::{
    conduct::{self, Lines, Part, RECEIVE},
    memory::{self, Bytes},
    shared::{Channel, Pass, Purpose, Shared, Signal},
};
use crate::{
    bench::control::Control,
    endpoint::tcp::{
        handshake::{self, Origin},
        place::{self, Place},
        socket,
    },
    facts::machine,
    gpu::Device,
    system::{
        tree::Tree,
        wait::{self, READABLE},
    },
};

const STREAMS: u32 = 4096;

struct Tcp {
    spec: LinkSpec,
    place: Place,
    opened: Opened,
    listener: Option<TcpListener>,
    channel: Option<Channel>,
    streams: Vec<TcpStream>,
    device: Option<Arc<Device>>,
    front: Vec<Bytes>,
    back: Vec<Bytes>,
    spin: bool,
    /// Received turns of the peer that were not consumed yet.
    turns: u32,
    broken: Option<Failure>,
}

fn refused(kind: Kind, cause: impl Into<String>) -> Failure {
    Failure::new(Stage::Open, kind, cause)
}

/// Chooses the address, allocates memory, and listens if it is the responder.
pub(crate) fn open(spec: &LinkSpec) -> Result<Box<dyn Link>, Failure> {
    if spec.qps == 0 || spec.qps > STREAMS || spec.max_size.is_zero() {
        let cause = format!("{} streams of up to {} bytes make no link", spec.qps, spec.max_size);
        let remedy = remedy::STREAMS_IN_RANGE.with([("most", STREAMS.to_string())]);
        return Err(refused(Kind::Configuration, cause).remedy(remedy));
    }
    let place = place::choose(spec)?;
    let settled = place.settle(spec.knobs.core)?;
    let congestion = spec.knobs.congestion_control.as_deref();
    let listener = match spec.role {
        Role::Responder => Some(socket::listen(place.address, spec.qps, congestion)?),
        Role::Initiator => {
            socket::probe(place.address, congestion)?;
            None
        }
    };
    let port = listener.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(0, |address| address.port());
    let spin = spec.knobs.completion == Some(Completion::Poll);
    let device = memory::device(spec)?;
    let front = buffers(spec, device.as_ref())?;
    let of_gpu = device.as_ref().map(|device| device.record()).unwrap_or_default();
    let opened = Opened {
        endpoint: Endpoint::Tcp(TcpEndpoint { address: place.address.to_string(), port }),
        device: place.device.clone(),
        transport: Carrier::Tcp,
        link_layer: if place.address.is_loopback() { LinkLayer::Loopback } else { LinkLayer::Ethernet },
        gpu_path: if device.is_some() { GpuPath::Staged } else { GpuPath::None },
        rate_gbps: place::rate(&place.device),
        mtu: place::mtu(&place.device),
        software: false,
        write_order: None,
        settings: settings(spec, spin).into_iter().chain(settled).chain(of_gpu).collect(),
    };
    let spec = spec.clone();
    let (channel, streams, back, turns) = (None, Vec::new(), Vec::new(), 0);
    let broken = None;
    Ok(Box::new(Tcp { spec, place, opened, listener, channel, streams, device, front, back, spin, turns, broken }))
}

fn buffers(spec: &LinkSpec, device: Option<&Arc<Device>>) -> Result<Vec<Bytes>, Failure> {
    let length = match spec.knobs.footprint.unwrap_or_default() {
        Footprint::Cache => spec.max_size.0.max(RECEIVE as u64),
        Footprint::Dram => {
            let cache = machine::last_level_cache(&Tree::host()).ok_or_else(|| {
                refused(Kind::Unsupported, "footprint = \"dram\": this kernel does not report the size of the cache")
            })?;
            (cache * 4 / u64::from(spec.qps)).max(spec.max_size).0.max(RECEIVE as u64)
        }
    };
    (0..spec.qps).map(|_| Bytes::new(length, spec.knobs.huge_pages == Some(true), device)).collect()
}

fn settings(spec: &LinkSpec, spin: bool) -> std::collections::BTreeMap<String, String> {
    let knobs = &spec.knobs;
    let mut settings = std::collections::BTreeMap::from([
        ("streams".into(), spec.qps.to_string()),
        ("completion".into(), if spin { "poll" } else { "events" }.into()),
        ("footprint".into(), knobs.footprint.unwrap_or_default().to_string()),
        ("huge_pages".into(), (knobs.huge_pages == Some(true)).to_string()),
    ]);
    settings.extend(knobs.traffic_class.map(|class| ("traffic_class".into(), class.to_string())));
    settings
}

/// Waits a while for a signal or the controller; returns whether there is a signal.
fn is_readable(channel: &Channel, control: &Control) -> Result<bool, Failure> {
    let on = [channel.as_fd(), control.bell().map_or(channel.as_fd(), AsFd::as_fd)];
    let waited = wait::wait(on.map(|fd| (fd, READABLE)), Some(Duration::from_millis(100)));
    let [said, _] =
        waited.map_err(|error| Failure::new(Stage::Measure, Kind::Internal, format!("waiting failed: {error}")))?;
    if let Some(bell) = control.bell() {
        bell.quiet();
    }
    Ok(said != 0)
}

impl Link for Tcp {
    fn opened(&self) -> Opened {
        self.opened.clone()
    }

    fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        let refused = |cause: &str| Failure::new(Stage::Join, Kind::Internal, cause);
        let Endpoint::Tcp(peer) = peer else { return Err(refused("the peer of a TCP link is not a TCP endpoint")) };
        if self.channel.is_some() {
            return Err(refused("the link is joined already"));
        }
        let count = self.spec.qps as usize + 1;
        let mut streams = match self.listener.take() {
            Some(listener) => handshake::accept(&listener, count, &self.spec.token, control)?,
            None => {
                let ip = peer.address.parse().map_err(|_| refused("the peer's address is not an IP address"))?;
                let origin = Origin::new(&self.place, ip, self.spec.knobs.congestion_control.clone());
                handshake::connect(&origin, SocketAddr::new(ip, peer.port), count, &self.spec.token, control)?
            }
        };
        for stream in &streams {
            socket::prepare(stream, self.spec.knobs.traffic_class, self.spec.rides_out)?;
        }
        let signals = streams.pop().ok_or_else(|| refused("no connection for signals"))?;
        self.record(&signals)?;
        for stream in &streams {
            stream
                .set_nonblocking(self.spin)
                .map_err(|error| refused(&format!("a socket cannot be set up: {error}")))?;
        }
        let name = signals.peer_addr().map_or_else(|_| peer.address.clone(), |peer| peer.to_string());
        self.channel = Some(Channel::new(signals, name));
        self.streams = streams;
        Ok(())
    }

    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure> {
        match step {
            Step::Fill(pattern) => self.each(pattern, |bytes, qp| bytes.fill(pattern, qp)),
            Step::Poison(pattern) => self.each(pattern, |bytes, qp| bytes.poison(pattern, qp)),
            Step::Check(pattern) => self.check(pattern),
            Step::Transfer { op, pattern } => {
                let pass = self.pass(*op, TestMetric::Bandwidth, pattern.size, Purpose::Verify)?;
                self.conduct(Pass { quota: Some(1), ..pass }, Part::Lead(Window::Iterations(1), None), control)?;
                Ok(Stepped::Done)
            }
            Step::Time(timing) => self.time(timing, control),
            Step::Serve { op, metric, size, window: _ } => self.serve(*op, *metric, *size, control),
        }
    }

    fn give_turn(&mut self) -> Result<(), Failure> {
        self.channel()?.say(&Signal::Turn)
    }

    fn await_turn(&mut self, control: &Control) -> Result<(), Failure> {
        while self.turns == 0 {
            control.check(Stage::Measure)?;
            let channel = self.channel()?;
            if !is_readable(channel, control)? {
                continue;
            }
            match channel.hear()? {
                Signal::Turn => self.turns += 1,
                other => {
                    let cause = format!("the peer said {other:?} where its turn was awaited");
                    return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
                }
            }
        }
        self.turns -= 1;
        Ok(())
    }

    fn give_up(&mut self) {
        if let Some(channel) = &mut self.channel {
            // If it cannot be sent, the closed connection shows it.
            let _ = channel.say(&Signal::GivenUp);
            channel.cut();
        }
    }
}

impl Tcp {
    fn channel(&mut self) -> Result<&mut Channel, Failure> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let unjoined = || Failure::new(Stage::Measure, Kind::Internal, "the link is not joined");
        self.channel.as_mut().ok_or_else(unjoined)
    }

    /// Known only with the peer: whether the bytes leave this host, and by which interface.
    fn record(&mut self, stream: &TcpStream) -> Result<(), Failure> {
        let unknown = |error: std::io::Error| {
            Failure::new(Stage::Join, Kind::Fabric, format!("the connection broke while joining: {error}"))
        };
        let (local, peer) = (stream.local_addr().map_err(unknown)?.ip(), stream.peer_addr().map_err(unknown)?.ip());
        if local != self.place.address
            && let Some(device) = place::interface_of(local)
        {
            self.opened.endpoint = Endpoint::Tcp(TcpEndpoint { address: local.to_string(), port: 0 });
            self.opened.device = device;
        }
        let own = place::is_own(peer);
        if own {
            // Between two addresses of one host the kernel uses this interface.
            "lo".clone_into(&mut self.opened.device);
        }
        (self.opened.mtu, self.opened.rate_gbps) = (place::mtu(&self.opened.device), place::rate(&self.opened.device));
        self.opened.link_layer = if own { LinkLayer::Loopback } else { LinkLayer::Ethernet };
        if let Ok(name) = socket::of(SockRef::from(stream)) {
            self.opened.settings.insert("congestion_control".into(), name);
        }
        Ok(())
    }

    fn each(
        &mut self,
        pattern: &Pattern,
        mut work: impl FnMut(&mut Bytes, u32) -> Result<(), Failure>,
    ) -> Result<Stepped, Failure> {
        self.fits(pattern.size)?;
        (0..).zip(&mut self.front).try_for_each(|(qp, bytes)| work(bytes, qp))?;
        Ok(Stepped::Done)
    }

    fn check(&self, pattern: &Pattern) -> Result<Stepped, Failure> {
        self.fits(pattern.size)?;
        let mut sum = Checked::default();
        for (qp, buffer) in (0..).zip(&self.front) {
            sum += buffer.check(pattern, qp)?;
        }
        Ok(Stepped::Checked(sum))
    }

    fn fits(&self, size: unit::Bytes) -> Result<usize, Failure> {
        let cause = || format!("messages of {size} bytes do not fit a link opened for 1 to {}", self.spec.max_size);
        let fits = (unit::Bytes(1)..=self.spec.max_size).contains(&size).then(|| size.as_usize());
        fits.ok_or_else(|| Failure::new(Stage::Measure, Kind::Internal, cause()))
    }

    fn pass(&self, op: Op, metric: TestMetric, size: unit::Bytes, purpose: Purpose) -> Result<Pass, Failure> {
        self.fits(size)?;
        if !Transport::Tcp.carries(op) {
            let cause = format!("{op} does not run over TCP");
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy::TCP_OPERATION));
        }
        Ok(Pass { op, metric, size, bidirectional: false, only: None, pace: None, quota: None, purpose })
    }

    fn conduct(&mut self, pass: Pass, part: Part, control: &Control) -> Result<Measurement, Failure> {
        if let Some(broken) = &self.broken {
            let cause = format!("the link broke earlier: {}", broken.cause);
            return Err(Failure { cause, ..broken.clone() });
        }
        let Some(channel) = &mut self.channel else {
            return Err(Failure::new(Stage::Measure, Kind::Internal, "the link is not joined"));
        };
        if pass.bidirectional && self.back.is_empty() {
            self.back = buffers(&self.spec, self.device.as_ref())?;
        }
        let mut shared = Shared::new(pass, control, self.spin, &channel.peer, self.streams.len())?;
        if let Part::Lead(rule, _) = part {
            shared.rule = Some(rule);
        }
        let dram = self.spec.knobs.footprint == Some(Footprint::Dram);
        let (sockets, front, back) = (&self.streams, &mut self.front, &mut self.back);
        let lines = Lines { channel, sockets, front, back, dram };
        conduct::conduct(lines, &shared, part).inspect_err(|failure| self.broken = Some(failure.clone()))
    }

    fn time(&mut self, timing: &Timing, control: &Control) -> Result<Stepped, Failure> {
        if matches!(timing.metric, TestMetric::Step | TestMetric::Compute) {
            return Err(not_of_pairs());
        }
        let pass = self.pass(timing.op, timing.metric, timing.size, Purpose::Measure)?;
        if timing.bidirectional && timing.metric == TestMetric::Latency {
            let cause = "latency in both directions at once is not defined";
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause));
        }
        if timing.only.is_some_and(|only| timing.bidirectional || only >= self.spec.qps) {
            let cause = format!("one stream by itself goes in one direction and is one of {}", self.spec.qps);
            return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
        }
        let pass = Pass { bidirectional: timing.bidirectional, only: timing.only, pace: timing.pace, ..pass };
        let mut warmed = unit::Bytes::ZERO;
        if timing.warm_up > Nanoseconds::ZERO {
            let warm = Pass { purpose: Purpose::WarmUp, ..pass };
            warmed = self.conduct(warm, Part::Lead(Window::Duration(timing.warm_up), None), control)?.bytes;
        }
        let quota = match timing.window {
            Window::Iterations(n) => Some(n),
            Window::Duration(_) | Window::Adaptive { .. } => None,
        };
        let measurement = self.conduct(Pass { quota, ..pass }, Part::Lead(timing.window, timing.start_at), control)?;
        let moved = Some(warmed + measurement.bytes);
        let lanes = self.streams.iter().zip(&measurement.lanes).map(|(stream, lane)| {
            let port = stream.local_addr().ok().map(|address| SourcePort::Tcp(address.port()));
            Lane { source_port: port, ..*lane }
        });
        let lanes = lanes.collect();
        Ok(Stepped::Measured(Box::new(Measurement { moved, lanes, ..measurement })))
    }

    fn serve(&mut self, op: Op, metric: TestMetric, size: unit::Bytes, control: &Control) -> Result<Stepped, Failure> {
        self.pass(op, metric, size, Purpose::Measure)?;
        let (mut account, mut moved) = (None, unit::Bytes::ZERO);
        let mut ready = false;
        loop {
            let channel = self.channel()?;
            if !std::mem::replace(&mut ready, true) {
                control.ready();
                if control.led.is_some() {
                    channel.say(&Signal::Turn)?;
                }
            }
            if control.stopped() && !control.aborted() {
                // The requesting end reports what each stream carried.
                let served =
                    |account: Measurement| Measurement { moved: Some(moved), lanes: Vec::new().into(), ..account };
                return Ok(account.map_or(Stepped::Done, |account| Stepped::Measured(Box::new(served(account)))));
            }
            control.check(Stage::Measure)?;
            if !is_readable(channel, control)? {
                continue;
            }
            let pass = match channel.hear() {
                Ok(Signal::Go(pass)) => pass,
                Ok(Signal::Turn) if control.led.is_some() => {
                    self.turns += 1;
                    control.stop();
                    continue;
                }
                Ok(other) => {
                    let cause = format!("the initiator said {other:?} outside of a pass");
                    return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
                }
                Err(failure) => {
                    self.broken = Some(failure.clone());
                    return Err(failure);
                }
            };
            let aim_fits = pass.metric == metric || pass.purpose == Purpose::Verify;
            if (pass.op, pass.size) != (op, size) || !aim_fits {
                channel.say(&Signal::Refused(format!("the responder serves {op} of {size} bytes, not {pass:?}")))?;
                continue;
            }
            let measurement = self.conduct(pass, Part::Follow, control)?;
            moved += measurement.bytes;
            if pass.purpose == Purpose::Measure {
                account = Some(measurement);
            }
        }
    }
}
