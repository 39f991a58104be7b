//! Ports watched while traffic runs ([`railgauge_wire::watch`]), and GPUs while cases use them ([`gpus`]).
//!
//! ```text
//! conversation ─ Watch ──▶ a thread of its own ─ looks, readings ─▶ mailbox
//!              ─ Watched ─────────────────────────── takes ────────────┘
//! ```
//!
//! The conversation never waits for a file: it starts the thread, and takes what is in the mailbox. A read that hangs, as of a NIC that
//! is dying, stops the thread and nothing else; the answer then has few looks and a long gap, and says which port's files hang.
//! A thread that is replaced meanwhile ends when its read is over.
//!
//! | file | holds |
//! | --- | --- |
//! | `watcher` | the thread: what is done when |
//! | `pace` | the budget of CPU time |
//! | `state` | whether traffic can pass a port |
//! | `counters` | rows of what a port has counted |
//! | `module` | what optics tell |
//! | `recorded` | what drivers of another host said, for trees of it |
//! | `mailbox` | what nobody asked for yet, in bounded memory |
//! | [`gpus`] | the state of GPUs while cases use them, on a thread of its own: a GPU that hangs keeps no port from being looked at |

mod counters;
pub(crate) mod gpus;
mod mailbox;
mod module;
mod pace;
mod recorded;
mod state;
mod watcher;

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use parking_lot::Mutex;
use railgauge_wire::{
    unit::Nanoseconds,
    watch::{Watched, WatchedPort},
};

use crate::{
    bench::clock,
    system::{
        panics::{self, Panicked},
        tree::Tree,
        workers,
    },
};
use mailbox::Mailbox;
use recorded::Recorded;
use watcher::{Here, Watcher};

/// Most ports of one watch: more than any host has, and few enough that each has room for its rows.
pub(crate) const MOST: usize = 64;

/// Why no watch was begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0} ports are to be watched; at most {MOST} can be")]
    TooMany(usize),
    #[error("no thread could be started: {0}")]
    NoThread(io::Error),
}

#[derive(Default)]
pub(crate) struct Watch(Mutex<Option<Running>>);

struct Running {
    mailbox: Arc<Mailbox>,
    _end: Sender<()>,
}

impl Watch {
    /// Watches these ports from now on, in place of those watched so far; none ends the watch. Counters are read every so often, or at the
    /// usual times.
    pub(crate) fn begin(&self, ports: Vec<WatchedPort>, every: Option<Nanoseconds>) -> Result<(), Refused> {
        if ports.len() > MOST {
            return Err(Refused::TooMany(ports.len()));
        }
        let next = if ports.is_empty() { None } else { Some(Running::start(ports, every).map_err(Refused::NoThread)?) };
        *self.0.lock() = next;
        Ok(())
    }

    /// Takes what was seen; `None` if nothing is watched.
    pub(crate) fn take(&self) -> Option<Watched> {
        self.0.lock().as_ref().map(|running| running.mailbox.take(clock::now()))
    }
}

impl Running {
    fn start(ports: Vec<WatchedPort>, every: Option<Nanoseconds>) -> io::Result<Self> {
        let mailbox = Arc::new(Mailbox::new(ports.clone(), clock::now(), every.is_some()));
        let (_end, end) = channel();
        let to = mailbox.clone();
        workers::start("watch", move || watch((ports, every), to, &end))?;
        Ok(Self { mailbox, _end })
    }
}

fn watch((ports, every): (Vec<WatchedPort>, Option<Nanoseconds>), mailbox: Arc<Mailbox>, end: &Receiver<()>) {
    let to = mailbox.clone();
    let watching = move || {
        let tree = Tree::host();
        match tree.is_here() {
            true => Watcher::new(tree, Here, ports, to).at_pace(every).run(end),
            false => Watcher::new(tree, Recorded(Tree::host()), ports, to).at_pace(every).run(end),
        }
    };
    if let Err(Panicked(words)) = panics::caught(watching) {
        mailbox.ended(format!("the watch has ended, as the agent panicked: {words}"));
    }
}
