//! What this host hears of the switches next to it. lldpd is a program that may hang: it is asked beside all else.

use std::{
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use railgauge_wire::{
    facts::{HostFacts, NEIGHBOURS, Neighbour},
    tool::Tool,
};

use crate::tools::{self, Unheard};

/// What lldpcli may take beyond its own limit: to be started and to be killed on a busy host.
const GRACE: Duration = Duration::from_secs(1);

/// A question under way.
pub(super) struct Asked(Option<Receiver<Result<Vec<Neighbour>, Unheard>>>);

/// Asks.
pub(super) fn ask() -> Asked {
    let (answer, answered) = channel();
    // Nobody waits any more where it took too long.
    let work = move || _ = answer.send(tools::heard());
    Asked(thread::Builder::new().name("lldp".into()).spawn(work).ok().map(|_| answered))
}

impl Asked {
    /// Waits for the answer, and adds it to the facts.
    pub(super) fn into(self, facts: &mut HostFacts) {
        let answer = self.0.and_then(|answered| answered.recv_timeout(Tool::Neighbours.limit() + GRACE).ok());
        let why = match answer {
            Some(Ok(neighbours)) => {
                facts.neighbours = Some(neighbours);
                return;
            }
            Some(Err(why)) => why.to_string(),
            None => "lldpcli could not be asked".to_owned(),
        };
        facts.unreadable.insert(NEIGHBOURS.into(), why);
    }
}
