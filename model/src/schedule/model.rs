use std::sync::Arc;

use railgauge_wire::{Bytes, CollectiveOptions, Memory, Op, Service, TestMetric, Transport};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::skip_serializing_none;
use thin_vec::ThinVec;

use crate::plan::{Collective, PerEnd, Test};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Port {
    /// Shared: a host is in thousands of cases.
    #[serde(serialize_with = "write_name", deserialize_with = "read_name")]
    pub host: Arc<str>,
    /// From 0.
    pub rail: u32,
}

impl Port {
    pub fn new(host: impl Into<Arc<str>>, rail: u32) -> Self {
        Self { host: host.into(), rail }
    }
}

fn write_name<S: Serializer>(name: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

fn read_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Arc::from)
}

/// Ends that share a link through all their cases: queue pairs, or a group's communicator, stay up between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flow {
    /// The source of a write; the initiator.
    pub from: Port,
    pub to: Port,
    /// All ranks of a collective, by rank: `from` is the first and `to` the last. Empty for a pair.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub members: ThinVec<Port>,
}

impl Flow {
    pub fn pair(from: Port, to: Port) -> Self {
        Self { from, to, members: ThinVec::new() }
    }

    /// A group: ranks of one host are adjacent, hosts in the given order, and a port's rail is the rank's number on its host. `None` for a
    /// single rank, which would exchange nothing.
    pub fn group(hosts: &[Arc<str>], ranks_per_host: u32) -> Option<Self> {
        let ports = |host: &Arc<str>| {
            let host = Arc::clone(host);
            (0..ranks_per_host).map(move |rail| Port { host: Arc::clone(&host), rail })
        };
        let members: ThinVec<Port> = hosts.iter().flat_map(ports).collect();
        let (from, to) = (members.first()?.clone(), members.last()?.clone());
        (members.len() > 1).then_some(Self { from, to, members })
    }

    /// Ends or ranks: 2 for a pair.
    pub fn ranks(&self) -> u32 {
        u32::try_from(self.members.len().max(2)).unwrap_or(u32::MAX)
    }

    /// Unique, in the order of the ranks.
    pub fn hosts(&self) -> Vec<&Arc<str>> {
        let mut hosts: Vec<&Arc<str>> = Vec::new();
        for port in [&self.from].into_iter().chain(&self.members).chain([&self.to]) {
            if !hosts.contains(&&port.host) {
                hosts.push(&port.host);
            }
        }
        hosts
    }

    pub fn is_of_two_hosts(&self) -> bool {
        match self.members.is_empty() {
            true => self.from.host != self.to.host,
            false => self.hosts().len() == 2,
        }
    }

    /// `gpu01:0 → gpu02:0`; `gpu01:0` for one that stays there; `16 ranks on gpu01, gpu02` for a group.
    pub fn name(&self) -> String {
        if self.members.is_empty() && self.from == self.to {
            return format!("{}:{}", self.from.host, self.from.rail);
        }
        if self.members.is_empty() {
            return format!("{}:{} → {}:{}", self.from.host, self.from.rail, self.to.host, self.to.rail);
        }
        let hosts = self.hosts();
        let hosts = match hosts.as_slice() {
            [first, _, .., last] if hosts.len() > 3 => format!("{first} … {last} ({} hosts)", hosts.len()),
            hosts => hosts.iter().map(|host| &***host).collect::<Vec<_>>().join(", "),
        };
        format!("{} ranks on {hosts}", self.members.len())
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    pub op: Op,
    pub metric: TestMetric,
    pub transport: Transport,
    pub service: Service,
    pub memory: PerEnd<Memory>,
    pub size: Bytes,
    pub qps: u32,
    /// Index of the only queue pair or stream in use; all of them if `None`.
    pub only: Option<u32>,
    /// Simultaneous connections per direction between its two hosts, zero for a command; `None` without other traffic.
    pub neighbours: Option<u32>,
    /// Value of the test's `configure` in effect; `None` where the test has no values.
    pub applied: Option<Box<str>>,
    /// How a collective works on its data; `None` for pairs.
    pub manner: Option<Box<CollectiveOptions>>,
}

impl Cell {
    /// Whether the cluster is as the first value of the test makes it, or the test has no values: only such cells judge links and hosts by
    /// themselves.
    pub fn is_reference(&self, test: &Test) -> bool {
        self.applied.as_deref() == test.values().first().map(String::as_str)
    }
}

/// Simultaneous flows: no two share a [`Port`], unless the pattern of the test says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    pub test: usize,
    /// Number in its test, from 0.
    pub number: u32,
    pub flows: Vec<Flow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub test: usize,
    pub text: String,
}

/// Everything a run will do, in order. Every flow of a round runs every cell of its test, in order, and the whole list of a test's rounds
/// is run `repeats` times.
///
/// Cases are not stored: [`Schedule::cases`] counts them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// By the test's index in the plan.
    pub cells: Vec<Vec<Cell>>,
    pub rounds: Vec<Round>,
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// The cells of a test: all sizes for the first number of queue pairs, then for the next, so that queue pairs stay up between sizes.
/// Atomics have one size. A cell with other traffic directly follows the same cell alone. All of these for the first value of the test's
/// `configure`, then for the next.
pub(super) fn cells(test: &Test) -> Vec<Cell> {
    let of_one_value = at_one_value(test);
    if test.values().is_empty() {
        return of_one_value;
    }
    let at = |value: &String| {
        let applied: Box<str> = value.as_str().into();
        of_one_value.iter().map(move |cell| Cell { applied: Some(applied.clone()), ..cell.clone() }).collect::<Vec<_>>()
    };
    test.values().iter().flat_map(at).collect()
}

fn at_one_value(test: &Test) -> Vec<Cell> {
    if let Some(collective) = &test.collective {
        return of_collective(test, collective);
    }
    const ATOMIC: &[Bytes] = &[Bytes(8)];
    let sizes = if test.op.is_atomic() { ATOMIC } else { &test.sizes };
    let neighbours = test.neighbours();
    let alongside =
        |qps, size| neighbours.iter().map(move |&neighbours| Cell { qps, neighbours, ..of_size(test, size) });
    test.qps.iter().flat_map(|&qps| sizes.iter().flat_map(move |&size| alongside(qps, size))).collect()
}

/// With one queue pair and nothing alongside.
fn of_size(test: &Test, size: Bytes) -> Cell {
    Cell {
        op: test.op,
        metric: test.metric,
        transport: test.transport,
        service: test.service,
        memory: test.memory,
        size,
        qps: 1,
        only: None,
        neighbours: None,
        applied: None,
        manner: None,
    }
}

/// The cells of a collective: an environment's cells are adjacent, so that its processes stay up between them.
fn of_collective(test: &Test, collective: &Collective) -> Vec<Cell> {
    let reductions: Vec<_> = match collective.reductions.as_slice() {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let mut cells = Vec::new();
    for env in &collective.env {
        for &datatype in &collective.datatypes {
            for (&reduction, &algorithm) in
                reductions.iter().flat_map(|r| collective.algorithms.iter().map(move |a| (r, a)))
            {
                cells.extend(test.sizes.iter().map(|&size| Cell {
                    manner: Some(Box::new(CollectiveOptions {
                        datatype,
                        reduction,
                        in_place: collective.in_place,
                        graph: collective.graph,
                        ranks_per_host: collective.ranks_per_host,
                        algorithm,
                        env: env.clone(),
                        training: collective.training.clone(),
                    })),
                    ..of_size(test, size)
                }));
            }
        }
    }
    cells
}
