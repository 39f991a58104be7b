//! Costs in sentences.

use railgauge_wire::terms::Better;

use super::{Answer, ValueCost};
use crate::analysis::words::{count, short, size};

impl ValueCost {
    /// What is measured, beside test and value: `64 KiB, 4 queue pairs`.
    pub fn place(&self) -> String {
        let place = size(self.size_bytes);
        if self.variant.is_empty() { place } else { format!("{place}, {}", self.variant) }
    }

    /// How many links it is about: `1 link`, `11 of 12 links`.
    pub fn of_links(&self) -> String {
        if self.links == self.of || self.answer == Answer::Reference {
            count(self.of, "link")
        } else {
            format!("{} of {}", self.links, count(self.of, "link"))
        }
    }

    /// What it costs, in a sentence without its full stop.
    pub fn words(&self) -> String {
        let Self { value, reference, .. } = self;
        let metric = self.metric.word().replace('_', " ");
        let place = format!("{} over {}", self.place(), self.of_links());
        let figures = match (self.median, self.reference_median) {
            (Some(own), Some(first)) => {
                let unit = &self.unit;
                format!(": {} {unit}, and {} {unit} at {reference}", short(own), short(first))
            }
            _ => String::new(),
        };
        let interval = self
            .interval_percent
            .map_or_else(String::new, |(low, high)| format!(" ({} to {} %)", short(low), short(high)));
        let higher = self.metric.better() == Better::Higher;
        let packets = self.packets.as_ref().map_or_else(String::new, |packets| format!("; {packets}"));
        match (self.answer, self.cost_percent) {
            (Answer::Costs, Some(cost)) => {
                let more = if higher { "of" } else { "more" };
                format!("{value} costs {} %{interval} {more} {metric} at {place}{figures}{packets}", short(cost))
            }
            (Answer::Gains, Some(cost)) => {
                let gain = if higher { "more" } else { "less" };
                let (low, high) = self.interval_percent.unwrap_or((cost, cost));
                let interval = format!(" ({} to {} %)", short(-high), short(-low));
                format!(
                    "{value} has {} %{interval} {gain} {metric} than {reference} at {place}{figures}{packets}",
                    short(-cost)
                )
            }
            (Answer::NoDifference, Some(cost)) => {
                let most = self.interval_percent.map_or(cost, |(_, high)| high).max(0.0);
                let (most, cost) = (short(most), short(cost));
                format!(
                    "No cost of {value} above {most} % in {metric} at {place}: {cost} %{interval} is within the noise{figures}{packets}"
                )
            }
            (Answer::Reference, _) => format!("{value} is what the others are held against at {place}"),
            _ => format!(
                "What {value} costs in {metric} at {place} is not known: {}{figures}{packets}",
                self.why_unknown
            ),
        }
    }
}
