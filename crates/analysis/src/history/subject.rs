//! What a case measures, apart from its run.

use std::sync::Arc;

use railgauge_model::{
    journal::event::Case,
    plan::model::Victim,
    schedule::{Cell, Flow},
};
use railgauge_wire::{Datatype, Metric, Op, Reduction, TestMetric, WriteLatency};

use super::Run;
use crate::words::{count, lane, link_name, neighbour_words, size, step, value_words};

/// Distinguishes writes that complete a receive from polled ones, and both from runs that do not say.
const IMMEDIATE: &str = "with immediate data";
const POLLED: &str = "polled";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    pub test: Arc<str>,
    pub bidirectional: bool,
    pub at_once: bool,
    pub flow: Flow,
    /// Method of the write latency, without which times are not comparable. `None` for everything else, and in runs of older versions.
    pub write_latency: Option<WriteLatency>,
    pub cell: Arc<Cell>,
}

impl Subject {
    pub fn take(run: &mut Run) -> Vec<Self> {
        let of_test = |name: &str| {
            let test = run.plan.tests.iter().find(|test| test.name == name);
            test.map_or((false, false, false, None), |test| {
                (test.bidirectional, test.at_once(), test.has_victim(), test.knobs.write_latency)
            })
        };
        let subject = |Case { test, flow, cell, round, .. }: Case| {
            let (bidirectional, at_once, has_victim, write_latency) = of_test(&test);
            // A flow alone is another subject than the same flow alongside an incast.
            let at_once = at_once && !(has_victim && Victim::is_alone_in(round));
            Self { test, bidirectional, at_once, flow, write_latency, cell }
        };
        std::mem::take(&mut run.cases).into_iter().map(subject).collect()
    }

    #[must_use]
    pub fn in_any_way(&self) -> Self {
        Self { write_latency: None, ..self.clone() }
    }

    /// For any operation: bytes that one run writes and another sends.
    #[must_use]
    pub fn in_any_op(&self) -> Self {
        let cell = Cell { op: Op::Write, ..Cell::clone(&self.cell) };
        Self { cell: cell.into(), ..self.in_any_way() }
    }

    pub fn times_writes(&self) -> bool {
        (self.cell.op, self.cell.metric) == (Op::Write, TestMetric::Latency)
    }

    pub fn headline(&self) -> Metric {
        railgauge_model::plan::headline(self.cell.metric, self.cell.op)
    }

    /// Distinguishes it from others of the same test, link, size and metric: `4 queue pairs`, `bf16, NCCL_ALGO=Ring`; mostly empty.
    pub fn variant(&self) -> String {
        let way = match self.write_latency {
            Some(WriteLatency::Immediate) => IMMEDIATE,
            Some(WriteLatency::Poll) => POLLED,
            None => "",
        };
        let words = [cell_words(&self.cell), way.to_owned()];
        words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Test, metric, size and variant: `write-bw bandwidth, 64 KiB, 4 queue pairs`.
    pub fn kind(&self, metric: Metric) -> String {
        let variant = self.variant();
        let variant = if variant.is_empty() { variant } else { format!(", {variant}") };
        format!("{} {}, {}{variant}", self.test, metric.word().replace('_', " "), size(self.cell.size))
    }

    /// With the link: `write-bw bandwidth, 64 KiB, gpu01:0 → gpu02:0`; within hosts `copy memory bandwidth, 512 MiB, gpu01 GPU 0`.
    pub fn name(&self, metric: Metric) -> String {
        format!("{}, {}", self.kind(metric), link_name(&self.flow, self.cell.transport))
    }
}

pub fn cell_words(cell: &Cell) -> String {
    let mut words = Vec::new();
    if cell.qps > 1 {
        words.push(count(cell.qps as usize, lane(cell.transport)));
    }
    words.extend(cell.neighbours.map(|flows| neighbour_words(Some(flows))));
    words.extend(cell.applied.as_deref().map(value_words));
    if let Some(manner) = &cell.manner {
        words.extend((manner.datatype != Datatype::F32).then(|| manner.datatype.to_string()));
        words.extend(manner.reduction.filter(|r| *r != Reduction::Sum).map(|reduction| reduction.to_string()));
        words.extend(manner.training.as_ref().map(step));
        words.extend(manner.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    words.join(", ")
}
