//! Ports watched while traffic runs ([`railgauge_wire::watch`]), and GPUs while cases use them ([`gpus`]).
//!
//! ```text
//! conversation ─ Watch ──▶ separate thread ─ looks, readings ─▶ mailbox
//!              ─ Watched ──────────────────────── takes ──────────┘
//! ```
//!
//! The conversation never waits for a file: it starts the thread, and takes what is in the mailbox. A read that hangs, as for a failing
//! NIC, stops only the thread; the answer then has few looks and a long gap, and says which port's files hang. A replaced thread ends
//! when its read is over. [`gpus`] has a separate thread, so that a hanging GPU does not stop the looks at ports.
//!
//! A tree of another host may have the answers of its drivers: `ethtool/IF/statistics` is the output of `ethtool -S IF`, and
//! `ethtool/IF/module/ADDRESS.PAGE` is a page of the module's memory from its start, as hexadecimal bytes with spaces between them:
//! `50.00`.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use mailbox::Mailbox;
use parking_lot::Mutex;
use railgauge_wire::{Failure, Kind, Stage, Watched, WatchedPort};
use watcher::{Drivers, Here, Watcher};

use crate::{
    bench::clock,
    system::{netlink::Part, tree::Tree},
    worker::{self, caught},
};

mod counters;
pub(crate) mod gpus;
mod mailbox;
mod module;
mod pace;
mod state;
mod watcher;

/// Most ports of one watch: more than any host has, and few enough that each has room for its rows.
pub(crate) const MOST: usize = 64;

#[derive(Default)]
pub(crate) struct Watch(Mutex<Option<Running>>);

struct Running {
    mailbox: Arc<Mailbox>,
    _end: Sender<()>,
}

impl Watch {
    /// Replaces the current watch by these ports; none ends it.
    pub(crate) fn begin(&self, ports: Vec<WatchedPort>) -> Result<(), Failure> {
        let refused = |cause| Failure::new(Stage::Converse, Kind::Internal, cause);
        if ports.len() > MOST {
            return Err(refused(format!("{} ports are to be watched; at most {MOST} can be", ports.len())));
        }
        let started = (!ports.is_empty()).then(|| Running::start(ports)).transpose();
        *self.0.lock() = started.map_err(|error| refused(format!("no thread could be started: {error}")))?;
        Ok(())
    }

    /// `None` if nothing is watched.
    pub(crate) fn take(&self) -> Option<Watched> {
        self.0.lock().as_ref().map(|running| running.mailbox.take(clock::now()))
    }
}

impl Running {
    fn start(ports: Vec<WatchedPort>) -> io::Result<Self> {
        let mailbox = Arc::new(Mailbox::new(ports.clone(), clock::now()));
        let (_end, end) = channel();
        let to = mailbox.clone();
        worker::start("watch", move || watch(ports, to, &end))?;
        Ok(Self { mailbox, _end })
    }
}

fn watch(ports: Vec<WatchedPort>, mailbox: Arc<Mailbox>, end: &Receiver<()>) {
    let to = mailbox.clone();
    let watching = move || {
        let tree = Tree::host();
        match tree.is_here() {
            true => Watcher::new(tree, Here, ports, to).run(end),
            false => Watcher::new(tree, Recorded(Tree::host()), ports, to).run(end),
        }
    };
    if let Err(failure) = caught(Stage::Measure, watching) {
        mailbox.ended(format!("the watch has ended: {}", failure.cause));
    }
}

pub(super) struct Recorded(pub(super) Tree);

impl Drivers for Recorded {
    fn statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        let text = self.0.text(format!("ethtool/{interface}/statistics")).unwrap_or_default();
        let of = |line: &str| {
            let (name, value) = line.rsplit_once(':')?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        };
        Ok(text.lines().filter_map(of).collect())
    }

    fn module(&self, interface: &str, part: Part) -> io::Result<Vec<u8>> {
        let Part { address, page, offset, length } = part;
        let Some(text) = self.0.text(format!("ethtool/{interface}/module/{address:02x}.{page:02x}")) else {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        };
        let bytes: Result<Vec<u8>, _> = text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect();
        let bytes = bytes.map_err(io::Error::other)?;
        let end = usize::from(offset) + usize::from(length);
        let part =
            bytes.get(usize::from(offset)..end).ok_or_else(|| io::Error::other("the recorded page is too short"))?;
        Ok(part.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::netlink::MODULE;

    #[test]
    fn what_a_tree_has_is_told_and_what_it_lacks_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join("ethtool/rail0/module");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("../statistics"), "NIC statistics:\n     rx_prio3_pause: 17\n     odd: name: 4\n")
            .unwrap();
        std::fs::write(at.join("50.00"), "11 00 0a\nff").unwrap();
        let recorded = Recorded(Tree::new(place.path()));
        let told = recorded.statistics("rail0").unwrap();
        assert_eq!(told, [("rx_prio3_pause".to_owned(), 17), ("odd: name".to_owned(), 4)]);
        let part = |offset, length| recorded.module("rail0", Part { address: MODULE, page: 0, offset, length });
        assert_eq!(part(1, 3).unwrap(), [0, 10, 255]);
        assert!(part(2, 3).is_err() && recorded.statistics("rail1").unwrap().is_empty());
        let missing = recorded.module("rail1", Part { address: MODULE, page: 0, offset: 0, length: 1 }).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
