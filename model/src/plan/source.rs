//! `source` of an expectation: where its limit was published, and for what. A limit of another scale, size or statistic does not apply.

use std::fmt;

use railgauge_wire::{Bytes, Memory, Metric};
use serde::{Deserialize, Serialize};

use super::{
    count::{count, size},
    per_end::PerEnd,
};

railgauge_wire::words! {
    /// What a published figure is of the measured times or rates.
    Statistic {
        Mean = "mean",
        Median = "median",
        P99 = "p99",
        /// Of the values of all sizes: what nccl-tests prints as "Avg bus bandwidth".
        MeanOfSizes = "mean-of-sizes",
    }
}

impl Statistic {
    /// Those of a value of this metric. A bandwidth is the median of windows, and each window a mean over its operations: tools that print
    /// either mean the same.
    const fn of(metric: Metric) -> &'static [Self] {
        match metric {
            Metric::LatencyP50 => &[Self::Median],
            Metric::LatencyP99 => &[Self::P99],
            Metric::LatencyMean => &[Self::Mean],
            Metric::LatencyMin
            | Metric::LatencyP90
            | Metric::LatencyP999
            | Metric::LatencyMax
            | Metric::LatencyStdev => &[],
            _ => &[Self::Mean, Self::Median, Self::MeanOfSizes],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub system: String,
    pub url: String,
    pub hosts: u32,
    /// All of a group; `None` where the figure is not of GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Ascending, unique.
    pub sizes: Vec<Bytes>,
    pub statistic: Statistic,
}

/// Hosts and GPUs of a value, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scale {
    pub hosts: Option<u32>,
    /// 0 in host memory.
    pub gpus: Option<u32>,
}

impl Scale {
    /// `ranks` is `None` within a host: its operations have one GPU or two.
    pub fn of(hosts: Option<u32>, memory: &PerEnd<Memory>, ranks: Option<u32>) -> Self {
        let ends: u32 = [memory.from, memory.to].iter().map(|memory| u32::from(*memory == Memory::Cuda)).sum();
        let gpus = if ends == 0 { Some(0) } else { ranks.map(|ranks| ranks.saturating_mul(ends) / 2) };
        Self { hosts, gpus }
    }
}

/// What a limit was published for, and what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    pub published: String,
    pub here: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "published for {}, and this is {}", self.published, self.here)
    }
}

impl Source {
    pub fn is_mean_of_sizes(&self) -> bool {
        self.statistic == Statistic::MeanOfSizes
    }

    /// Why the limit does not apply to a value of this metric at these sizes; `None` if it does, as far as known.
    pub fn misfit(&self, metric: Metric, scale: Scale, sizes: &[Bytes]) -> Option<Misfit> {
        let misfit = |published: String, here: String| Some(Misfit { published, here });
        let differs = |here: Option<u32>, of: Option<u32>| here.zip(of).filter(|(here, of)| here != of);
        if !Statistic::of(metric).contains(&self.statistic) {
            return misfit(format!("the {} of it", self.statistic), metric.to_string());
        }
        if let Some((here, of)) = differs(scale.hosts, Some(self.hosts)) {
            return misfit(count(of as usize, "host"), count(here as usize, "host"));
        }
        if let Some((here, of)) = differs(scale.gpus, self.gpus) {
            return misfit(count(of as usize, "GPU"), count(here as usize, "GPU"));
        }
        let other = sizes.iter().find(|size| !self.sizes.contains(size))?;
        misfit(list(&self.sizes), size(*other))
    }

    /// Why the limit of a mean over sizes does not apply to one of these sizes: one is missing.
    pub fn incomplete(&self, sizes: &[Bytes]) -> Option<Misfit> {
        let lacks = self.is_mean_of_sizes() && self.sizes.iter().any(|size| !sizes.contains(size));
        lacks.then(|| Misfit { published: list(&self.sizes), here: list(sizes) })
    }
}

fn list(sizes: &[Bytes]) -> String {
    sizes.iter().map(|one| size(*one)).collect::<Vec<_>>().join(", ")
}
