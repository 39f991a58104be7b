//! A rank over host memory: opened, joined with its group, measured, on a thread of the agent. After a failure its connections stay open
//! until it is closed: the others then wait for it, instead of blaming the first to notice.

use railgauge_wire::{
    Answer, Carried, CollectiveMeasurement, CollectiveSpec, Failure, Footprint, GpuPath, Kind, LinkLayer, MemberOpened,
    MemberSpec, Opened, Stage, Ticket, Transport,
};
use serde::{Deserialize, Serialize};

use super::{
    bench::Bench,
    engine::{Neighbour, RankPort},
    memory::Memory,
    tcp::TcpRankPort,
    verbs::VerbsRankPort,
};
use crate::bench::control::Control;

pub struct Rank {
    spec: MemberSpec,
    state: State,
}

enum State {
    Nothing,
    Open { port: Box<dyn RankPort>, memory: Memory },
    Joined { bench: Box<Bench>, opened: Box<Opened>, broken: Option<Failure> },
}

impl Rank {
    pub fn new(spec: MemberSpec) -> Self {
        Self { spec, state: State::Nothing }
    }

    pub fn ask(&mut self, ask: RankAsk, control: &Control) -> Result<Answer, Failure> {
        let said = match ask {
            RankAsk::Open(_) => self.open().map(|opened| Answer::MemberOpened(Box::new(opened))),
            RankAsk::Join(tickets) => self.join(tickets, control).map(|()| Answer::Done),
            RankAsk::Measure(collective) => {
                self.measure(&collective, control).map(|done| Answer::MemberMeasured(Box::new(done)))
            }
        };
        said.map_err(|failure| failure.about(format_args!("rank {}", self.spec.rank)))
    }

    fn open(&mut self) -> Result<MemberOpened, Failure> {
        let refused = |kind, cause: &str| Failure::new(Stage::Open, kind, cause);
        let Some(place) = self.spec.endpoint.clone() else {
            return Err(refused(Kind::Internal, "nothing says what it sends and receives by"));
        };
        let huge = place.link.knobs.huge_pages == Some(true);
        let port: Box<dyn RankPort> = match self.spec.transport {
            Transport::Tcp => Box::new(TcpRankPort::open(&place.link, self.spec.ranks, self.spec.siblings)?),
            Transport::Verbs => Box::new(VerbsRankPort::open(&place.link, self.spec.rank, self.spec.ranks)?),
            Transport::Nccl => return Err(refused(Kind::Internal, "a rank of NCCL is not a thread")),
            Transport::Cpu | Transport::Gpu | Transport::Nic => {
                return Err(refused(Kind::Internal, "what stays within a host has no ranks"));
            }
        };
        // After the port, which moves the thread: pages must be near the port.
        let memory = Memory::new(self.spec.max_size.0, self.spec.siblings, huge)?;
        let opened = port.opened().clone();
        self.state = State::Open { port, memory };
        Ok(MemberOpened {
            ticket: Ticket::Host { host: place.host, endpoint: Box::new(opened.endpoint) },
            device: opened.device,
            settings: opened.settings,
            rate_gbps: opened.rate_gbps,
            mtu: opened.mtu,
            software: opened.software,
        })
    }

    fn join(&mut self, tickets: Vec<Ticket>, control: &Control) -> Result<(), Failure> {
        let State::Open { port, memory } = std::mem::replace(&mut self.state, State::Nothing) else {
            return Err(Failure::new(Stage::Join, Kind::Internal, "it is not ready to join"));
        };
        let neighbour = |(number, ticket)| match ticket {
            Ticket::Host { host, endpoint } => {
                Ok(Neighbour { name: format!("rank {number} ({host})"), endpoint: *endpoint })
            }
            Ticket::Nccl { .. } => Err(Failure::new(Stage::Join, Kind::Internal, "another rank is one of NCCL")),
        };
        let group = tickets.into_iter().enumerate().map(neighbour).collect::<Result<Vec<_>, _>>()?;
        let (rank, ranks) = (self.spec.rank, self.spec.ranks);
        if group.len() != ranks as usize {
            let cause = format!("{} tickets for {ranks} ranks", group.len());
            return Err(Failure::new(Stage::Join, Kind::Internal, cause));
        }
        let (wire, opened) = port.join(rank as usize, &group, control)?;
        let footprint = self.spec.endpoint.as_ref().and_then(|endpoint| endpoint.link.knobs.footprint);
        let bench = Bench::new(rank, ranks, wire, memory, footprint.unwrap_or(Footprint::Cache));
        self.state = State::Joined { bench: Box::new(bench), opened: Box::new(opened), broken: None };
        Ok(())
    }

    fn measure(&mut self, collective: &CollectiveSpec, control: &Control) -> Result<CollectiveMeasurement, Failure> {
        let State::Joined { bench, opened, broken } = &mut self.state else {
            return Err(Failure::new(Stage::Measure, Kind::Internal, "it has not joined its group"));
        };
        if let Some(failure) = broken {
            // Bytes of an unfinished operation are still on their way.
            return Err(failure.clone().about("its group broke earlier"));
        }
        let measured = bench.run(collective, control).inspect_err(|failure| {
            // An impossible request is refused before a byte moves.
            *broken = (failure.kind != Kind::Configuration).then(|| failure.clone());
        })?;
        Ok(CollectiveMeasurement {
            carried: Some(Carried {
                transport: opened.transport,
                link_layer: Some(opened.link_layer),
                gpu_path: GpuPath::None,
                networked: opened.link_layer != LinkLayer::Loopback,
                collnet: false,
                evidence: [].into(),
                channels: [].into(),
                nics: Vec::new(),
            }),
            ..measured
        })
    }
}

/// Requests to a rank, answered in order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RankRequest {
    pub ask: RankAsk,
    pub limit_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum RankAsk {
    Open(Box<MemberSpec>),
    Join(Vec<Ticket>),
    Measure(Box<CollectiveSpec>),
}

impl RankAsk {
    pub(crate) const fn stage(&self) -> Stage {
        match self {
            Self::Open(_) => Stage::Open,
            Self::Join(_) => Stage::Join,
            Self::Measure(_) => Stage::Measure,
        }
    }
}

/// Answers of a rank's process, converted to an [`Answer`] here: reading one would include the code for all answers in the agent, a ninth
/// of its size.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RankAnswer {
    Opened(Box<MemberOpened>),
    Joined,
    Measured(Box<CollectiveMeasurement>),
}

impl From<RankAnswer> for Answer {
    fn from(said: RankAnswer) -> Self {
        match said {
            RankAnswer::Opened(opened) => Self::MemberOpened(opened),
            RankAnswer::Joined => Self::Done,
            RankAnswer::Measured(measured) => Self::MemberMeasured(measured),
        }
    }
}

pub(crate) type Reply = Result<RankAnswer, Failure>;
