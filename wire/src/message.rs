//! Requests, replies and what is inside them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    case::{CaseAccount, CaseSpec},
    copies::Copies,
    errand::Errand,
    facts::HostFacts,
    failure::Failure,
    gpu_state::GpuSeen,
    group::{CollectiveMeasurement, CollectiveSpec, MemberOpened, MemberSpec, Ticket},
    link::{Endpoint, LinkId, LinkSpec, Opened},
    node::{NodeAccount, NodeSpec},
    raw::RawPage,
    step::{Step, Stepped},
    tool::{Tool, ToolPage},
    unit::Nanoseconds,
    watch::{Watched, WatchedPort},
};

/// One thing the controller wants. Every request is answered by exactly one reply with the same number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub id: u64,
    pub ask: Ask,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// Always first: which protocol the controller speaks, and who it is.
    Hello {
        /// [`crate::PROTOCOL`].
        protocol: u32,
        run_id: String,
        host: String,
    },
    /// The facts of this host: hardware, software and configuration.
    Facts,
    Clock,
    /// Counters of one device and its network interface, now.
    Counters {
        device: String,
        port: u8,
    },
    /// Files of sysfs and procfs as they are read, page by page; answered by [`Answer::Raw`].
    Raw {
        /// Number of the first entry of the page. 0 reads the files anew; later pages are of that reading.
        from: u64,
    },
    /// What a program of the host writes, page by page; answered by [`Answer::Tool`].
    Tool {
        tool: Tool,
        /// Offset of the page in bytes. 0 runs the program; later pages are of that output.
        from: u64,
    },
    /// Watches these ports from now on, in place of those watched so far; none ends the watch.
    Watch {
        ports: Vec<WatchedPort>,
        /// Time between two readings of all counters, drivers' statistics among them, where short times matter more than little work; `None`
        /// for the usual times.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Nanoseconds>,
    },
    /// What was seen of the watched ports since this was asked last; answered by [`Answer::Watched`].
    Watched,
    /// Copies between host and GPU; answered by [`Answer::Copies`].
    Copies {
        /// CUDA device index.
        gpu: u32,
        peers: Vec<u32>,
    },
    /// One cell of tests within this host, on all parts of it that run at the same time; answered by [`Answer::Node`].
    Node(Box<NodeSpec>),
    /// Opens one end of a link; answered by [`Answer::Opened`].
    Open {
        link: LinkId,
        spec: Box<LinkSpec>,
    },
    /// Joins an opened end with its peer; answered by [`Answer::Joined`].
    Join {
        link: LinkId,
        peer: Endpoint,
    },
    /// One step on a joined link; answered when the step is over. `Serve` is the exception: it is answered with
    /// `Done` as soon as the responder is armed, so that the initiator never runs ahead of it.
    Step {
        link: LinkId,
        step: Step,
        /// Milliseconds after which the agent gives up by itself.
        limit_ms: u64,
    },
    /// A whole case on a joined link, asked of both ends; answered by [`Answer::Case`] when it is over. Requests for further cases
    /// may follow at once.
    Case {
        link: LinkId,
        case: Box<CaseSpec>,
    },
    /// Ends a `Serve` step; answered with what serving came to: its `Stepped`, or its failure.
    Stop {
        link: LinkId,
    },
    /// Opens one rank of a collective; answered by [`Answer::MemberOpened`]. Its link is closed like any other.
    OpenMember {
        link: LinkId,
        spec: Box<MemberSpec>,
    },
    /// Joins an opened rank with its group; answered when the group stands.
    JoinMember {
        link: LinkId,
        tickets: Vec<Ticket>,
        /// Milliseconds after which the agent gives up by itself.
        limit_ms: u64,
    },
    /// One collective on a joined rank; answered by [`Answer::MemberMeasured`] when it is over.
    MeasureMember {
        link: LinkId,
        collective: Box<CollectiveSpec>,
        /// Milliseconds after which the agent gives up by itself.
        limit_ms: u64,
    },
    /// Starts a command of the plan on this host; at most one runs. Answered once it runs. It is ended by `EndErrand`, and when
    /// the agent ends, however it does.
    BeginErrand {
        words: Vec<String>,
    },
    /// Ends it with all its processes; answered by [`Answer::Errand`] when they are gone.
    EndErrand,
    Close {
        link: LinkId,
    },
    Bye,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FromAgent {
    Reply { id: u64, outcome: Result<Answer, Failure> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Reply to `Hello`.
    Hello {
        protocol: u32,
        version: String,
        pid: u32,
    },
    /// Reply to `Facts`.
    Facts(Box<HostFacts>),
    /// Reply to `Clock`.
    Clock {
        monotonic: Nanoseconds,
        /// CLOCK_REALTIME since 1970.
        realtime: Nanoseconds,
    },
    /// Reply to `Counters`: full sysfs-like names (`counters/port_xmit_data`, `ethtool/rx_discards_phy`) and values.
    Counters(BTreeMap<String, u64>),
    /// Reply to `Raw`.
    Raw(RawPage),
    /// Reply to `Tool`.
    Tool(ToolPage),
    /// Reply to `Watched`.
    Watched(Box<Watched>),
    /// Reply to `Copies`.
    Copies(Copies),
    /// Reply to `Node`: one account for each flow, in their order.
    Node(Vec<NodeAccount>),
    /// Reply to `Open`.
    Opened(Box<Opened>),
    /// To `Join`: the same document as `Opened`, now that both ends are known. What is in the record comes from
    /// here: whether the peer is the same host (`loopback`), the path MTU in use, settings that depend on the peer.
    Joined(Box<Opened>),
    /// Reply to `Step`.
    Stepped(Stepped),
    /// Reply to a timed `Step`, and to the `Stop` of one that serves, of an end whose bytes lie on a GPU.
    SteppedOnGpu {
        stepped: Stepped,
        gpus: Vec<GpuSeen>,
    },
    /// Reply to `Case`: how far it came.
    Case(Box<CaseAccount>),
    /// Reply to `OpenMember`.
    MemberOpened(Box<MemberOpened>),
    /// To `MeasureMember`.
    MemberMeasured(Box<CollectiveMeasurement>),
    /// Reply to `EndErrand`.
    Errand(Box<Errand>),
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back() {
        let request = Request { id: 7, ask: Ask::Close { link: 3 } };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"id":7,"ask":{"Close":{"link":3}}}"#);
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }
}
