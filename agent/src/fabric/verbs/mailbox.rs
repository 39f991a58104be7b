//! The link's control queue pair: words written straight into the peer's memory, never part of what is measured.
//!
//! Every word has one writer and only grows, so it does not matter when, how often or in which order it is read.
//!
//! The initiator announces its next phase through the mailbox and the responder acknowledges it, so that both ends always run halves of
//! the same loop. In a case that the two ends run by themselves, a word counts the turns that its writer gave. Writes to the mailbox do
//! not wake a thread, so waiting threads poll it.

use std::sync::Arc;

use railgauge_wire::{ControlEndpoint, Failure, Kind, Stage};

use crate::{
    memory::shared::Shared,
    verbs::{
        Access, Capacity, CompletionQueue, Doing, Domain, Poller, QueuePair, Region, Sends, Template, Verb, Walk,
        flag::Words,
        words::{self},
    },
};

const DEPTH: u32 = 64;

pub(crate) const CAPACITY: Capacity = Capacity { sends: DEPTH, receives: 1, inline: Words::SIZE as u32 };

const WORD: u64 = Words::SIZE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Phase,
    /// The last [`Slot::Phase`] that the responder has read.
    Seen,
    /// Steps of the writer that ended with an error of the fabric: nothing more follows.
    Failed,
    /// How often the writer has done its part of a case: see [`super::turns`].
    Turn,
    /// Receives the writer has posted on queue pair `i` since the link was joined.
    Posted(usize),
    /// Receives the writer has consumed on queue pair `i` since the link was joined.
    Consumed(usize),
}

impl Slot {
    const fn place(self) -> u64 {
        match self {
            Self::Phase => 0,
            Self::Seen => 1,
            Self::Failed => 2,
            Self::Turn => 3,
            Self::Posted(i) => 4 + 2 * i as u64,
            Self::Consumed(i) => 5 + 2 * i as u64,
        }
    }

    const fn count(qps: u32) -> u64 {
        4 + 2 * qps as u64
    }
}

/// Words that the peer writes here, and letters that we write there.
pub(crate) struct Mailbox {
    region: Arc<Region>,
    words: Words,
    pub queue: Arc<CompletionQueue>,
    queue_pair: Option<Arc<QueuePair>>,
    poller: Poller,
    /// One ring per word, once joined.
    letters: Vec<Sends>,
    flying: u32,
    failures: u64,
    qps: u32,
}

impl Mailbox {
    /// For a link of `qps` queue pairs, without a queue pair of its own yet.
    pub(crate) fn new(domain: &Arc<Domain>, qps: u32) -> Result<Self, Failure> {
        // The first half is the peer's to write, the second half holds what we write to the peer.
        let page = Arc::new(Shared::new(2 * WORD * Slot::count(qps), false)?);
        let region = Arc::new(Region::register(domain, page, Access::default())?);
        let words = Words::new(&region)
            .ok_or_else(|| Failure::new(Stage::Open, Kind::Internal, "the mailbox is not in host memory"))?;
        let queue = CompletionQueue::new(domain.device(), 2 * DEPTH, false)?;
        let poller = Poller::new(&queue);
        Ok(Self { region, words, queue, queue_pair: None, poller, letters: Vec::new(), flying: 0, failures: 0, qps })
    }

    pub(crate) fn attach(&mut self, queue_pair: Arc<QueuePair>) {
        self.queue_pair = Some(queue_pair);
    }

    pub(crate) fn queue_pair(&self) -> Option<&Arc<QueuePair>> {
        self.queue_pair.as_ref()
    }

    pub(crate) fn endpoint(&self, psn: u32) -> ControlEndpoint {
        let (address, rkey) = (self.region.address(), self.region.remote_key());
        ControlEndpoint { qp_number: self.queue_pair.as_ref().map_or(0, |pair| pair.number()), psn, address, rkey }
    }

    /// Addresses the letters to the peer's mailbox, which must be of as many queue pairs.
    pub(crate) fn address_to(&mut self, peer: &ControlEndpoint) {
        let Some(queue_pair) = &self.queue_pair else { return };
        let half = WORD * Slot::count(self.qps);
        let letter = |place: u64| Template {
            verb: Verb::Write,
            size: WORD as u32,
            local: half + place * WORD,
            remote: peer.address + place * WORD,
            remote_key: peer.rkey,
            walk: Walk::default(),
            inline: queue_pair.inline() >= WORD as u32,
            list: 1,
            signal_every: 1,
            tag: place as u32,
        };
        let rings = (0..Slot::count(self.qps)).map(|place| Sends::new(queue_pair, &self.region, letter(place)));
        self.letters = rings.flatten().collect();
    }

    /// What the peer last wrote. Grows only.
    #[inline]
    pub(crate) fn read(&self, slot: Slot) -> u64 {
        self.words.load(slot.place())
    }

    /// Reports a failed step to the peer, if still possible.
    pub(crate) fn tell_failure(&mut self) {
        self.failures += 1;
        // The failure that led here is reported; another one adds nothing.
        let _ = self.write(Slot::Failed, self.failures);
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader(self.words.clone())
    }

    /// Writes a word to the peer. Waits for the peer's device if the queue is full.
    pub(crate) fn write(&mut self, slot: Slot, value: u64) -> Result<(), Failure> {
        self.reap()?;
        while self.flying + 1 >= DEPTH {
            self.reap()?;
        }
        let place = slot.place();
        self.words.store(Slot::count(self.qps) + place, value);
        if let Some(ring) = self.letters.get_mut(place as usize) {
            ring.post().map_err(|errno| words::verb(Stage::Measure, Doing::Post, self.queue.device().name(), errno))?;
            self.flying += 1;
        }
        Ok(())
    }

    pub(crate) fn reap(&mut self) -> Result<(), Failure> {
        let letters = &mut self.letters;
        let taken = self.poller.poll(|completion| {
            if let Some(ring) = letters.get_mut(completion.tag()) {
                ring.complete(1);
            }
        })?;
        self.flying -= (taken as u32).min(self.flying);
        Ok(())
    }
}

pub(crate) struct Reader(Words);

impl Reader {
    /// `Err` once a step of the peer has failed: the peer's own failure says why.
    pub(crate) fn check(&self, stage: Stage) -> Result<(), Failure> {
        match self.read(Slot::Failed) {
            0 => Ok(()),
            _ => Err(Failure::new(stage, Kind::Aborted, "the other end of the link failed")),
        }
    }

    #[inline]
    pub(crate) fn read(&self, slot: Slot) -> u64 {
        self.0.load(slot.place())
    }
}
