//! Which asynchronous events end a link: what happens to a device, a port or a queue apart from posted work (`ibv_get_async_event(3)`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use railgauge_wire::{
    Failure, Kind, Stage,
    remedy::{self, Entry},
};

use super::{
    Device, Gid, Pkey, Port, QueuePair,
    happened::{CQ_ERR, GID_CHANGE, LID_CHANGE, On, PKEY_CHANGE, PORT_ERR, QP_ACCESS_ERR, QP_FATAL, QP_REQ_ERR, Seen},
};

/// Maximum delay of an event after the completion that it explains: far longer than between two interrupts, and short for a failed case.
const BEHIND: Duration = Duration::from_millis(100);

const fn remedy(code: u32) -> (Kind, Entry) {
    match code {
        CQ_ERR => (Kind::Internal, remedy::LOOK_AT_DEVICE),
        QP_FATAL => (Kind::Fabric, remedy::LOOK_AT_DEVICE),
        QP_REQ_ERR | QP_ACCESS_ERR => (Kind::Fabric, remedy::LOOK_AT_PEER_ERROR),
        PORT_ERR => (Kind::Fabric, remedy::LINK_WENT_DOWN),
        LID_CHANGE | PKEY_CHANGE => (Kind::Configuration, remedy::SUBNET_CHANGED),
        GID_CHANGE => (Kind::Configuration, remedy::ADDRESS_CHANGED),
        _ => (Kind::Configuration, remedy::RESET_DEVICE),
    }
}

/// The resources of a link that its events concern.
#[derive(Debug)]
pub(crate) struct Watch {
    device: Arc<Device>,
    port: Port,
    gid: Option<Gid>,
    pkey: Option<Pkey>,
    queue_pairs: Vec<u32>,
    queues: Vec<usize>,
    rides_out: bool,
    first: AtomicUsize,
}

impl Watch {
    pub(crate) fn new(device: &Arc<Device>, port: Port, gid: Option<Gid>, pkey: Option<Pkey>) -> Self {
        let first = AtomicUsize::new(device.happened().drain());
        Self {
            device: device.clone(),
            port,
            gid,
            pkey,
            queue_pairs: Vec::new(),
            queues: Vec::new(),
            rides_out: false,
            first,
        }
    }

    /// For a link that outlives breaks of its port: the retries of its queue pairs decide when it ends.
    #[must_use]
    pub(crate) fn riding_out(mut self, rides_out: bool) -> Self {
        self.rides_out = rides_out;
        self
    }

    #[must_use]
    pub(crate) fn of<'p>(mut self, pairs: impl IntoIterator<Item = &'p QueuePair>) -> Self {
        for pair in pairs {
            self.queue_pairs.push(pair.number());
            self.queues.push(pair.queue().raw() as usize);
        }
        self
    }

    /// Finds the event behind a failure, which may arrive a little after the failed completion: a device uses different queues. Call it
    /// only after a failure, since it waits if there is no event.
    pub(crate) fn check_behind(&self, stage: Stage) -> Result<(), Failure> {
        let until = Instant::now() + BEHIND;
        loop {
            self.check(stage)?;
            if Instant::now() >= until {
                return Ok(());
            }
            thread::sleep(BEHIND / 20);
        }
    }

    pub(crate) fn check(&self, stage: Stage) -> Result<(), Failure> {
        let happened = self.device.happened();
        let (first, count) = (self.first.load(Ordering::Relaxed), happened.drain());
        if count <= first {
            return Ok(());
        }
        for seen in happened.since(first) {
            let is_ridden_out = self.rides_out && seen.event.0 == PORT_ERR;
            if !is_ridden_out && self.concerns(seen) && self.still(seen) {
                return Err(failure(stage, self.device.name(), self.port.number, seen));
            }
        }
        self.first.store(count, Ordering::Relaxed);
        Ok(())
    }

    fn concerns(&self, seen: Seen) -> bool {
        match seen.on {
            On::Device => true,
            On::Port(number) => number == self.port.number,
            On::QueuePair(number) => self.queue_pairs.contains(&number),
            On::CompletionQueue(queue) => self.queues.contains(&queue),
        }
    }

    /// Whether a changed table still has what the link uses: an address added elsewhere, or a LID assigned again, does no harm.
    fn still(&self, seen: Seen) -> bool {
        let now = || Port::query(&self.device, self.port.number);
        match seen.event.0 {
            LID_CHANGE => now().is_ok_and(|port| port.lid != self.port.lid),
            PKEY_CHANGE => {
                self.pkey.is_some_and(|pkey| self.port.pkeys(&self.device).is_ok_and(|table| !table.contains(&pkey)))
            }
            GID_CHANGE => {
                self.gid.is_some_and(|gid| self.port.gids(&self.device).is_ok_and(|table| !same(&table, gid)))
            }
            _ => true,
        }
    }
}

fn same(table: &[Gid], gid: Gid) -> bool {
    table.iter().any(|entry| (entry.index, entry.raw) == (gid.index, gid.raw))
}

fn failure(stage: Stage, device: &str, port: u8, seen: Seen) -> Failure {
    let (code, name, meaning) = seen.event;
    let (kind, remedy) = remedy(code);
    let on = match seen.on {
        On::Device => device.to_owned(),
        On::Port(number) => format!("{device}:{number}"),
        On::QueuePair(number) => format!("{device}:{port}, queue pair {number:#x}"),
        On::CompletionQueue(_) => format!("{device}:{port}"),
    };
    Failure::new(stage, kind, format!("{on}: {meaning} while the link was in use (IBV_EVENT_{name})")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::{super::happened::EVENTS, *};

    #[test]
    fn an_event_ends_the_case_with_its_name_its_device_and_its_port() {
        let event = *EVENTS.iter().find(|event| event.0 == PORT_ERR).unwrap();
        let seen = Seen { event, on: On::Port(2) };
        let failure = failure(Stage::Measure, "mlx5_3", 2, seen);
        assert_eq!(failure.kind, Kind::Fabric);
        assert!(failure.cause.contains("mlx5_3:2") && failure.cause.contains("IBV_EVENT_PORT_ERR"), "{failure}");
        assert!(failure.remedy.is_some());
    }

    #[test]
    fn an_address_that_is_added_beside_the_one_in_use_is_no_change_of_it() {
        use super::super::gid::GidKind::RoceV2;
        let gid =
            |index, last| Gid { index, raw: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, last], kind: RoceV2 };
        let own = gid(3, 1);
        assert!(same(&[own, gid(5, 9)], own));
        assert!(!same(&[gid(3, 9)], own), "another address at its index");
        assert!(!same(&[gid(5, 1)], own), "the address at another index");
    }
}
