//! One measurement of all flows of a round in one cell, and the part of a case in it.

use std::{collections::BTreeMap, sync::Arc};

use railgauge_model::schedule::Port;
use railgauge_wire::{Bytes, NanosecondsI64};

use super::Scattered;

/// Traffic of one NIC between two readings of its counters, by the accounts of all flows that share it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub sent: Bytes,
    pub received: Bytes,
    /// Payload of the test's own other traffic that left. RDMA counters may not include it.
    pub beside_sent: Bytes,
    pub beside_received: Bytes,
    pub packets: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// After the planned start; `None` if unknown or too short.
    pub overlap: Option<(NanosecondsI64, NanosecondsI64)>,
    pub flows: Vec<FlowShare>,
    pub doubts: Vec<Scattered>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FlowShare {
    pub case: u64,
    pub source: Port,
    pub sink: Port,
    pub moved: Bytes,
    /// Payload of other traffic between its hosts on the same way, including before and after the window.
    pub beside: Bytes,
    pub against: Bytes,
    pub packets: f64,
    pub gbps: Option<f64>,
    /// Gb/s in each whole 100 ms of the common time, by the initiator's account.
    pub slices: Vec<f64>,
}

impl Pass {
    pub fn load(&self, nic: &Port) -> Load {
        let mut load = Load::default();
        for flow in &self.flows {
            let (sends, receives) = (flow.source == *nic, flow.sink == *nic);
            // An agent may claim any number, which must not overflow.
            load.sent = load.sent.saturating_add(if sends { flow.moved } else { Bytes::ZERO });
            load.received = load.received.saturating_add(if receives { flow.moved } else { Bytes::ZERO });
            let (out, into) = match (sends, receives) {
                (true, true) => (flow.beside, flow.beside),
                (true, false) => (flow.beside, flow.against),
                (false, true) => (flow.against, flow.beside),
                (false, false) => (Bytes::ZERO, Bytes::ZERO),
            };
            load.beside_sent = load.beside_sent.saturating_add(out);
            load.beside_received = load.beside_received.saturating_add(into);
            load.packets += if sends || receives { flow.packets } else { 0.0 };
        }
        load
    }

    /// In each whole 100 ms in which all ran.
    pub fn slices(&self) -> Vec<f64> {
        let whole = self.flows.iter().map(|flow| flow.slices.len()).min().unwrap_or(0);
        (0..whole).map(|slice| self.flows.iter().map(|flow| flow.slices[slice]).sum()).collect()
    }

    /// Fairness index: 1 for equal shares, 1/n if one of n has everything.
    ///
    /// Jain, Chiu and Hawe, "A quantitative measure of fairness", DEC TR-301 (1984): (Σx)² / (n Σx²).
    pub fn fairness(&self) -> Option<f64> {
        let rates: Vec<f64> = self.flows.iter().map(|flow| flow.gbps).collect::<Option<_>>()?;
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
    }

    /// `None` if one of the counted flows has no number.
    pub(crate) fn sum(&self, counts: impl Fn(&FlowShare) -> bool) -> Option<f64> {
        self.flows.iter().filter(|flow| counts(flow)).map(|flow| flow.gbps).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Part {
    pub passes: BTreeMap<u32, Arc<Pass>>,
    pub alone: Option<Alone>,
    /// The first of its round and cell has the row of the round's sum.
    pub(crate) first: bool,
    pub(crate) first_out: bool,
    pub(crate) first_in: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Alone {
    pub case: u64,
    pub gbps: BTreeMap<u32, f64>,
    pub distrusted: Option<String>,
    /// Hosts on the same machine as an end of the flow, including that end. What the ports of one machine share is outside the fabric.
    pub one_machine: Vec<String>,
    /// Cases of the test alongside an incast or other traffic, each tested for a loss.
    pub looks: usize,
}
