use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    case::{CaseAccount, CaseSpec},
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
        protocol: u32,
        run_id: String,
        host: String,
    },
    /// The facts of this host: hardware, software and configuration.
    Facts,
    Clock,
    Counters {
        device: String,
        port: u8,
    },
    /// Files of sysfs and procfs, page by page; answered by [`Answer::Raw`].
    Raw {
        /// Number of the first entry of the page. 0 reads the files again; later pages are of that reading.
        from: u64,
    },
    /// Output of a program of the host, page by page; answered by [`Answer::Tool`].
    Tool {
        tool: Tool,
        /// Offset of the page in bytes. 0 runs the program; later pages are of that output.
        from: u64,
    },
    /// Watches these ports from now on, in place of those watched so far; none ends the watch.
    Watch {
        ports: Vec<WatchedPort>,
    },
    /// What was seen of the watched ports since the last question; answered by [`Answer::Watched`].
    Watched,
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
    /// One step on a joined link; answered when the step is over. `Serve` is the exception: its answer is `Done` as soon as the responder
    /// is ready, so that the initiator never runs ahead of it.
    Step {
        link: LinkId,
        step: Step,
        limit_ms: u64,
    },
    /// A whole case on a joined link, sent to both ends; answered by [`Answer::Case`] when it is over. Requests for further cases may
    /// follow at once.
    Case {
        link: LinkId,
        case: Box<CaseSpec>,
    },
    /// Ends a `Serve` step; answered with the result of serving: its `Stepped`, or its failure.
    Stop {
        link: LinkId,
    },
    /// Opens one rank of a collective; answered by [`Answer::MemberOpened`]. Its link is closed as any other.
    OpenMember {
        link: LinkId,
        spec: Box<MemberSpec>,
    },
    /// Joins an opened rank with its group; answered when the group is complete.
    JoinMember {
        link: LinkId,
        tickets: Vec<Ticket>,
        limit_ms: u64,
    },
    /// One collective on a joined rank; answered by [`Answer::MemberMeasured`] when it is over.
    MeasureMember {
        link: LinkId,
        collective: Box<CollectiveSpec>,
        limit_ms: u64,
    },
    /// Starts a command of the plan on this host; at most one runs. Answered once it runs. `EndErrand` ends it, and so does the end of
    /// the agent.
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
    Hello {
        protocol: u32,
        version: String,
        pid: u32,
    },
    Facts(Box<HostFacts>),
    Clock {
        monotonic: Nanoseconds,
        /// CLOCK_REALTIME since 1970.
        realtime: Nanoseconds,
    },
    /// Reply to `Counters`: full sysfs-like names (`counters/port_xmit_data`, `ethtool/rx_discards_phy`) and values.
    Counters(BTreeMap<String, u64>),
    Raw(RawPage),
    Tool(ToolPage),
    Watched(Box<Watched>),
    /// Reply to `Node`: one account for each flow, in their order.
    Node(Vec<NodeAccount>),
    Opened(Box<Opened>),
    /// Reply to `Join`: the same document as `Opened`, with both ends known. The record uses this one: whether the peer is the same host
    /// (`loopback`), the path MTU in use, settings that depend on the peer.
    Joined(Box<Opened>),
    Stepped(Stepped),
    /// Reply to a timed `Step`, and to the `Stop` of one that serves, of an end whose bytes are on a GPU.
    SteppedOnGpu {
        stepped: Stepped,
        gpus: Vec<GpuSeen>,
    },
    Case(Box<CaseAccount>),
    MemberOpened(Box<MemberOpened>),
    MemberMeasured(Box<CollectiveMeasurement>),
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
