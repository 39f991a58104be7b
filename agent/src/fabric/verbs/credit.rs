//! Messages need receives at the other end. The receiver tells how many it has posted, the sender never sends more:
//! so a receiver is never found unready, and RNR retries never distort a measurement.

use railgauge_wire::{
    failure::{Failure, Stage},
    terms::Service,
    unit::Nanoseconds,
};

use super::{
    layout::HEADER,
    mailbox::{Mailbox, Reader, Slot},
    stage::Stage as Copies,
    stream::{Credits, Incoming},
};
use crate::verbs::{
    poll::{Completion, Poller},
    receive::Receives,
    send::Sends,
    words::{self, Doing},
};

/// How long an unreliable service may make no progress before what is missing is taken for lost.
const LOST_AFTER: Nanoseconds = Nanoseconds::from_millis(2);

pub(crate) struct Granted {
    reader: Reader,
    /// Messages sent before this pass, per flow.
    before: Vec<u64>,
    /// Messages taken for lost: receives they would have taken are still there.
    lost: Vec<u64>,
    stalled: Vec<Option<Nanoseconds>>,
    lossy: bool,
    stage: Option<Copies>,
}

impl Granted {
    /// Credits for a pass over flows that have sent `before` messages so far.
    pub(crate) fn new(reader: Reader, before: &[u64], service: Service) -> Self {
        let flows = before.len();
        let (lost, stalled) = (vec![0; flows], vec![None; flows]);
        let mut granted =
            Self { reader, before: before.to_vec(), lost, stalled, lossy: service != Service::Rc, stage: None };
        for (flow, sent) in before.iter().enumerate() {
            granted.forgive(flow, *sent);
        }
        granted
    }

    /// The same, with messages that are copied before they are sent.
    #[must_use]
    pub(crate) fn staged(self, stage: Option<Copies>) -> Self {
        Self { stage, ..self }
    }

    /// Counts what was sent and has not arrived as lost.
    fn forgive(&mut self, flow: usize, sent: u64) {
        if self.lossy {
            self.lost[flow] = sent.saturating_sub(self.reader.read(Slot::Consumed(flow)));
        }
    }
}

impl Credits for Granted {
    #[inline]
    fn allowed(&self, flow: usize) -> u64 {
        let may = self.reader.read(Slot::Posted(flow)) + self.lost[flow];
        may.saturating_sub(self.before[flow])
    }

    #[inline]
    fn prepare(&mut self, flow: usize, messages: u64) -> Result<(), Failure> {
        self.stage.as_ref().map_or(Ok(()), |stage| stage.fetch(flow, messages))
    }

    fn idle(&mut self, flows: &[Sends], now: Nanoseconds) {
        if !self.lossy {
            return;
        }
        for (i, flow) in flows.iter().enumerate() {
            let stuck = flow.in_flight() == 0 && flow.posted() >= self.allowed(i);
            match (stuck, self.stalled[i]) {
                (false, _) => self.stalled[i] = None,
                (true, None) => self.stalled[i] = Some(now),
                (true, Some(since)) if now - since > LOST_AFTER => {
                    self.forgive(i, self.before[i] + flow.posted());
                    self.stalled[i] = None;
                }
                (true, Some(_)) => {}
            }
        }
    }
}

/// The receiver's side: counts what arrives, replaces receives, grants credits.
pub(crate) struct Sink<'a> {
    receives: &'a mut [Receives],
    mailbox: &'a mut Mailbox,
    ahead: u64,
    header: u64,
    lossy: bool,
    stage: Option<Copies>,
    fresh: Vec<u64>,
    told: Vec<u64>,
    pub operations: u64,
    /// Their payload in bytes.
    pub bytes: u64,
}

impl<'a> Sink<'a> {
    /// A sink over all queue pairs of a link.
    pub(crate) fn new(receives: &'a mut [Receives], mailbox: &'a mut Mailbox, ahead: u32, service: Service) -> Self {
        let (fresh, told) = (vec![0; receives.len()], vec![u64::MAX; receives.len()]);
        let header = if service == Service::Ud { HEADER } else { 0 };
        let (ahead, lossy) = (u64::from(ahead), service != Service::Rc);
        Self { receives, mailbox, ahead, header, lossy, stage: None, fresh, told, operations: 0, bytes: 0 }
    }

    /// The same, for messages that are copied after they have come.
    #[must_use]
    pub(crate) fn staged(self, stage: Option<Copies>) -> Self {
        Self { stage, ..self }
    }

    /// The mailbox it grants credits by.
    pub(crate) fn mailbox(&mut self) -> &mut Mailbox {
        self.mailbox
    }

    pub(crate) fn take_all(&mut self, poller: &mut Poller) -> Result<(), Failure> {
        while poller.poll(|completion| {
            if completion.is_receive() {
                self.arrived(completion);
            }
        })? > 0
        {}
        self.tend(0).map(|_| ())
    }

    /// Tells the sender of an unreliable service how much has arrived.
    pub(crate) fn publish(&mut self) -> Result<(), Failure> {
        for (i, receives) in self.receives.iter().enumerate().filter(|_| self.lossy) {
            if self.told[i] != receives.consumed() {
                self.told[i] = receives.consumed();
                self.mailbox.write(Slot::Consumed(i), self.told[i])?;
            }
        }
        Ok(())
    }
}

impl Incoming for Sink<'_> {
    #[inline]
    fn arrived(&mut self, completion: Completion<'_>) {
        if let Some(fresh) = self.fresh.get_mut(completion.tag()) {
            *fresh += 1;
            self.operations += 1;
            self.bytes += completion.bytes().saturating_sub(self.header);
        }
    }

    #[inline]
    fn tend(&mut self, _sent: u64) -> Result<bool, Failure> {
        let refused = |errno| words::verb(Stage::Measure, Doing::Post, "the receiving queue pair", errno);
        for (i, (receives, fresh)) in self.receives.iter_mut().zip(&mut self.fresh).enumerate() {
            let count = std::mem::take(fresh);
            if let Some(stage) = &self.stage {
                let first = receives.consumed();
                (first..first + count).try_for_each(|n| stage.deliver(i, receives.place(n)))?;
            }
            if count > 0 && receives.consume(count, self.ahead).map_err(refused)? {
                self.mailbox.write(Slot::Posted(i), receives.posted())?;
                if self.lossy {
                    self.mailbox.write(Slot::Consumed(i), receives.consumed())?;
                }
            }
        }
        Ok(true)
    }
}
