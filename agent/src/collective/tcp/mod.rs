//! Ranks joined by TCP: one connection between any two. Each rank connects to the ranks above it and accepts those below it; the secret
//! of the group keeps strangers out, as for pairs. The kernel buffers bytes: what a send call took may be overwritten.

use std::{io, net::TcpStream, os::fd::AsFd, time::Duration};

use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::engine::{Wire, unconnected};
use crate::{
    bench::control::Control,
    system::{
        socket::{receive_now, send_now},
        wait::{self, READABLE, WRITABLE},
    },
};

mod port;

pub(crate) use port::TcpRankPort;

/// Bytes per reduction: small enough for a core's cache.
const GULP: usize = 128 << 10;
/// Yields before a sleep: many for small data, since a wake-up would take longer; few for large data, to leave the cores to copying
/// threads.
const YIELDS: (u32, u32) = (200, 2);
/// Bytes per call that count as large.
const MUCH: usize = 32 << 10;
/// Vain tries between two checks of the controller's flags, for a rank that never sleeps.
const LOOK: u32 = 4096;
const NAP: Duration = Duration::from_millis(100);

pub(crate) struct Tcp {
    /// `None` for this rank.
    streams: Vec<Option<TcpStream>>,
    names: Vec<String>,
    gulp: Vec<u8>,
    /// Bytes of an incomplete element at the front of `gulp`.
    odd: usize,
    patience: Patience,
    /// Bytes of the last call that moved any.
    last: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Mixed,
    Poll,
    Sleep,
}

impl Tcp {
    fn new(streams: Vec<Option<TcpStream>>, names: Vec<String>, patience: Patience) -> Self {
        Self { streams, names, gulp: vec![0; GULP], odd: 0, patience, last: 0 }
    }

    fn stream(&self, rank: usize) -> Result<&TcpStream, Failure> {
        self.streams.get(rank).and_then(Option::as_ref).ok_or_else(|| unconnected(rank))
    }

    /// Bytes that a call moved; zero if it would block.
    #[inline]
    fn moved(&mut self, rank: usize, outcome: io::Result<usize>) -> Result<usize, Failure> {
        match outcome {
            Ok(bytes) => {
                self.last = bytes;
                Ok(bytes)
            }
            Err(error) => self.nothing(rank, &error),
        }
    }

    #[cold]
    fn nothing(&self, rank: usize, error: &io::Error) -> Result<usize, Failure> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(self.broke(rank, &error.to_string())),
        }
    }

    fn broke(&self, rank: usize, why: &str) -> Failure {
        Failure::new(Stage::Measure, Kind::Fabric, format!("the connection to {} broke: {why}", self.name(rank)))
            .remedy(remedy::CHECK_PEER_AND_LINK)
    }
}

impl Wire for Tcp {
    fn name(&self, rank: usize) -> &str {
        self.names.get(rank).map_or("another rank", String::as_str)
    }

    #[inline]
    fn offer(&mut self, to: usize, bytes: &[u8]) -> Result<usize, Failure> {
        let outcome = send_now(self.stream(to)?.as_fd(), bytes);
        self.moved(to, outcome)
    }

    #[inline]
    fn take(&mut self, from: usize, into: &mut [u8]) -> Result<usize, Failure> {
        match receive_now(self.stream(from)?.as_fd(), into) {
            Ok(0) => Err(self.broke(from, "it was closed there")),
            outcome => self.moved(from, outcome),
        }
    }

    fn lend(
        &mut self,
        from: usize,
        most: usize,
        width: usize,
        reader: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let mut gulp = std::mem::take(&mut self.gulp);
        let end = most.min(gulp.len());
        let outcome = self.take(from, &mut gulp[self.odd..end]);
        let shown = outcome.map(|bytes| {
            let held = self.odd + bytes;
            self.odd = held % width;
            let whole = held - self.odd;
            if whole > 0 {
                reader(&gulp[..whole]);
                gulp.copy_within(whole..held, 0);
            }
            whole
        });
        self.gulp = gulp;
        shown
    }

    fn rest(&mut self, from: Option<usize>, to: Option<usize>, tries: u32, control: &Control) -> Result<(), Failure> {
        let awake = match self.patience {
            Patience::Mixed => tries < if self.last < MUCH { YIELDS.0 } else { YIELDS.1 },
            Patience::Poll => tries % LOOK != LOOK - 1,
            Patience::Sleep => false,
        };
        if awake {
            std::thread::yield_now();
            return Ok(());
        }
        control.check(Stage::Measure).map_err(|failure| self.waiting(failure, from, to))?;
        if self.patience == Patience::Poll {
            return Ok(());
        }
        let from = from.map(|rank| self.stream(rank)).transpose()?;
        let to = to.map(|rank| self.stream(rank)).transpose()?;
        let on = from.map(|stream| (stream.as_fd(), READABLE)).into_iter();
        let on = on.chain(to.map(|stream| (stream.as_fd(), WRITABLE)));
        let on = on.chain(control.bell().map(|bell| (bell.as_fd(), READABLE)));
        wait::wait_any(on, Some(NAP))
            .map_err(|error| Failure::new(Stage::Measure, Kind::Internal, format!("waiting failed: {error}")))
    }
}
