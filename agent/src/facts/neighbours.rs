//! What this host hears of the switches next to it. lldpd is a program that may hang: it is asked beside all else.

use std::time::Duration;

use railgauge_wire::{
    facts::{HostFacts, NEIGHBOURS, Neighbour},
    tool::Tool,
};

use crate::{
    system::workers::{self, Asked},
    tools::{self, Unheard},
};

/// What lldpcli may take beyond its own limit: to be started and to be killed on a busy host.
const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Question(Asked<Result<Vec<Neighbour>, Unheard>>);

pub(super) fn ask() -> Question {
    Question(workers::ask("lldp", tools::heard))
}

impl Question {
    /// Waits for the answer, and adds it to the facts.
    pub(super) fn into(self, facts: &mut HostFacts) {
        let why = match self.0.within(Tool::Neighbours.limit() + GRACE) {
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
