//! What the two ends of a link tell one another beside the payload: JSON frames on a connection of their own, so that
//! payload streams carry payload only.

use std::{
    io,
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    frame,
    measure::Measurement,
    remedy,
    terms::{Op, TestMetric},
    unit::{BitsPerSecond, Bytes},
};
use serde::{Deserialize, Serialize};

/// One pass: what the streams are used for until both ends have counted every byte.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Pass {
    pub op: Op,
    pub metric: TestMetric,
    pub size: Bytes,
    /// Both directions at once.
    pub bidirectional: bool,
    /// The only stream that carries payload; all of them if `None`.
    pub only: Option<u32>,
    /// Most that each source sends on a stream; as fast as it goes if `None`.
    pub pace: Option<BitsPerSecond>,
    /// Messages per stream; until `Halt` if `None`.
    pub quota: Option<u64>,
    pub purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// One message per stream, kept where the check looks for it.
    Verify,
    /// Not counted.
    WarmUp,
    /// Counted.
    Measure,
}

/// What is said. I is the initiator, R the responder, a source sends payload, a sink receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Signal {
    /// I → R: a pass begins.
    Go(Pass),
    /// R → I: its threads stand.
    Ready,
    /// R → I: it cannot, and why.
    Refused(String),
    /// I → R: its sources may begin.
    Start,
    /// I → R: its sources shall end.
    Halt,
    /// Source → sink: payload sent, by stream. Nothing more but one final byte will come.
    Sent(Vec<Bytes>),
    /// Sink → source: the totals are known; a final byte on every stream wakes the sink's threads.
    Counted,
    /// Sink → source: every byte has arrived; the sink's account.
    Got(Measurement),
    /// Between passes: who says it has done its part of a case.
    Turn,
    /// Who says it has failed: nothing more will come from it, and its own failure says why.
    GivenUp,
}

#[derive(Debug)]
pub(super) struct Channel {
    stream: TcpStream,
    peer: String,
}

impl Channel {
    /// Over a connection that nothing else uses.
    pub(super) fn new(stream: TcpStream, peer: String) -> Self {
        Self { stream, peer }
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    pub(super) fn say(&mut self, signal: &Signal) -> Result<(), Failure> {
        frame::write(&mut self.stream, signal).map_err(|error| self.broke(&error))
    }

    /// Hears one signal. To be called when the connection is readable: signals are short and come in one piece, so
    /// one that does not follow its first byte within the socket's time limit means a broken peer.
    pub(super) fn hear(&mut self) -> Result<Signal, Failure> {
        match frame::read(&mut self.stream) {
            Ok(Some(Signal::GivenUp)) => {
                Err(Failure::new(Stage::Measure, Kind::Aborted, "the other end of the link failed"))
            }
            Ok(Some(signal)) => Ok(signal),
            Ok(None) => Err(self.broke(&io::Error::other("the peer closed it"))),
            Err(error) => Err(self.broke(&error)),
        }
    }

    /// Makes both directions of the connection end at once.
    pub(super) fn cut(&self) {
        // Fails only if it is cut already.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn broke(&self, error: &io::Error) -> Failure {
        let cause = format!("the connection to {} broke: {error}", self.peer);
        Failure::new(Stage::Measure, Kind::Fabric, cause).remedy(remedy::CHECK_PEER_AND_LINK)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
