use std::time::{Duration, Instant};

use railgauge_wire::{Failure, Kind, NanosecondsI64, Stage};
use tokio::task::JoinHandle;

use super::super::super::clocks;
use crate::cluster::Agent;

/// Age after which the clocks of two hosts are compared again: they drift apart by some microseconds a second.
const CLOCKS_HOLD: Duration = Duration::from_secs(5);

pub(super) struct Offset {
    known: Option<NanosecondsI64>,
    read: Instant,
    reading: Option<JoinHandle<Result<NanosecondsI64, Failure>>>,
}

impl Offset {
    fn read(ends: &(Agent, Agent)) -> JoinHandle<Result<NanosecondsI64, Failure>> {
        let (from, to) = ends.clone();
        tokio::spawn(async move { clocks::apart(&from, &to).await })
    }

    pub(super) fn new(ends: &(Agent, Agent)) -> Self {
        Self { known: None, read: Instant::now(), reading: Some(Self::read(ends)) }
    }

    /// The difference, read again if outdated. Fails only if nothing was known before.
    pub(super) async fn now(&mut self, ends: &(Agent, Agent)) -> Result<NanosecondsI64, Failure> {
        if self.reading.is_none() && self.read.elapsed() > CLOCKS_HOLD {
            (self.read, self.reading) = (Instant::now(), Some(Self::read(ends)));
        }
        if let Some(reading) = self.reading.take() {
            match reading.await {
                // An earlier value is better than none: a lost host shows itself elsewhere.
                Ok(Err(_)) if self.known.is_some() => {}
                Ok(known) => self.known = Some(known?),
                Err(error) => {
                    let cause = format!("comparing the clocks was given up: {error}");
                    return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
                }
            }
        }
        self.known.ok_or_else(|| Failure::new(Stage::Measure, Kind::Internal, "the clocks were not compared"))
    }
}
