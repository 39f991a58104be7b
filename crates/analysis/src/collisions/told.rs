//! Findings about collisions, as fields and in words.

use std::collections::BTreeMap;

use railgauge_model::{plan::count::are, schedule::Flow};
use railgauge_stats::collide::{self, Answer, FlowRates, REMAINS, Why};
use railgauge_wire::Bytes;
use serde::Serialize;

use crate::words::{count, short, size, some};

const NAMED: usize = 3;

/// What flows with several numbers of queue pairs show about the paths between them.
///
/// A flow counts once per round and repeat, since it may share a path with another flow each time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Collisions {
    pub test: String,
    pub answer: Answer,
    pub size_bytes: Bytes,
    pub fewest: u32,
    pub most: u32,
    #[serde(skip)]
    pub several: &'static str,
    pub passes: usize,
    pub flows: usize,
    /// Further passes, with the source ports of an earlier one: they do not count.
    pub repeated: usize,
    /// Ports whose flows are low in every pass with the most queue pairs too.
    pub ports: Vec<String>,
    /// Rate of the one slow path, in percent of the others.
    pub slow_path_percent: Option<f64>,
    /// Estimated number of equal paths; `None` where it is unknown.
    pub paths: Option<f64>,
    /// If switches hashed onto up to so many paths, flows would have met with a probability of 95 %.
    pub paths_excluded: f64,
    /// Share of the flows with the fewest queue pairs at which packets arrived out of order; `None` without counters.
    pub reordered_percent: Option<f64>,
    /// Passes whose low flows do not add up to full paths: a slow path, or noise.
    pub odd_passes: usize,
    /// Fewest passes without an odd one that distinguish collisions from slow paths; `None` if hundreds are not enough,
    /// or too little is known.
    pub needed_passes: Option<usize>,
    /// Flows with lost or repeated packets: their rates count, but they have a fault, or their ports are full.
    pub lossy: usize,
    pub normal: usize,
    pub colliding: usize,
    pub suspects: Vec<LowFlow>,
    pub not_told: BTreeMap<Why, usize>,
    pub open: Vec<LowFlow>,
    /// Mean loss of all flows with the fewest and the most queue pairs, in percent of a flow alone on its path; `None` with too few flows.
    pub loss_percent: Option<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LowFlow {
    /// `gpu01:0 → gpu02:0`.
    pub flow: String,
    /// In percent of a flow alone on its path.
    pub fewest_percent: Option<f64>,
    /// In percent of a flow alone on its path.
    pub most_percent: Option<f64>,
    pub passes: usize,
}

impl Collisions {
    pub(super) fn low(&mut self, flow: &Flow, rates: FlowRates, found: &collide::Collisions, why: Option<Why>) {
        if let Some(why) = why {
            *self.not_told.entry(why).or_default() += 1;
        }
        if why == Some(Why::Missing) {
            return;
        }
        let list = if why.is_some() { &mut self.open } else { &mut self.suspects };
        let name = flow.name();
        let percent = |rate: Option<f64>| rate.map(|rate| 100.0 * rate / found.undisturbed);
        match list.iter_mut().find(|low| low.flow == name) {
            Some(low) => low.passes += 1,
            None => list.push(LowFlow {
                flow: name,
                fewest_percent: percent(rates.fewest),
                most_percent: percent(rates.most),
                passes: 1,
            }),
        }
    }

    fn undecided(&self) -> usize {
        self.not_told.values().sum()
    }

    /// Whether collisions explain all that is low: more queue pairs end the loss, and no flow is a suspect, undecided or lost packets.
    pub fn explains_all(&self) -> bool {
        self.answer == Answer::Collisions
            && !self.is_short_of_paths()
            && self.suspects.is_empty()
            && self.undecided() == 0
            && self.lossy == 0
    }

    fn is_short_of_paths(&self) -> bool {
        self.loss_percent.is_some_and(|(_, with_most)| with_most > 100.0 * REMAINS)
    }

    /// The answer first.
    pub fn words(&self) -> String {
        let Self { most, passes, .. } = self;
        let open = self.undecided();
        let mut told = vec![self.answered()];
        if !self.suspects.is_empty() {
            let names = named(&self.suspects);
            let n = self.suspects.len();
            let stay = if n == 1 { "stays a suspect" } else { "stay suspects" };
            told.push(format!("{} low with {most} {}s too and {stay}: {names}.", are(n, "flow"), self.several));
        }
        if open > 0 {
            let why: Vec<String> = self.not_told.iter().map(|(why, n)| format!("{n}: {why}")).collect();
            told.push(format!("{} undecided ({}).", are(open, "flow"), why.join("; ")));
        }
        if let Some(needed) = self.needed_passes.filter(|needed| needed > passes) {
            told.push(format!(
                "{} or more show whether flows collide: set `rounds` or `repeats` higher.",
                count(needed, "pass")
            ));
        }
        if self.repeated > 0 {
            told.push(format!(
                "{} had the source ports of an earlier one, which decide the path, and did not count: use other `rounds`.",
                count(self.repeated, "further pass")
            ));
        }
        if self.lossy > 0 {
            told.push(format!("{} lost packets or sent them again.", count(self.lossy, "flow")));
        }
        told.join(" ")
    }

    fn answered(&self) -> String {
        let Self { fewest, most, several, flows, colliding, passes, .. } = self;
        let few = count(*fewest as usize, several);
        let all = count(*passes, "pass");
        let loss = self.loss_percent.map_or_else(String::new, |(with_few, with_many)| {
            format!("on average {} % with {few}, {} % with {most}", short(with_few), short(with_many))
        });
        let about = self.paths.map_or_else(String::new, |paths| format!(" of about {paths:.0}"));
        match self.answer {
            Answer::Collisions => {
                let share = short(100.0 * *colliding as f64 / *flows as f64);
                let cause = if self.is_short_of_paths() {
                    format!("hash collisions, and fewer paths than flows ({loss})")
                } else {
                    let clear = if self.explains_all() { ", no faulty cable" } else { "" };
                    format!("with {most} {several}s the loss is gone ({loss}): hash collisions{clear}")
                };
                format!("{share} % of flows share a path ({colliding} of {flows} in {all}); {cause}.")
            }
            Answer::SlowPath => format!(
                "One path{about} is slow, at about {} % of the others: the flows on it do not fill it in {} of {all} (loss {loss}).",
                short(self.slow_path_percent.unwrap_or_default()),
                self.odd_passes
            ),
            Answer::SlowPort => format!(
                "Flows of {} are low in every pass, with {most} {several}s too: the cause is at the port or its cable, not on a path.",
                some(&self.ports, NAMED)
            ),
            Answer::Sprayed => format!(
                "Packets are sprayed over the paths: with {few} no flow is low in {all}, and packets arrive out of order at {} % of \
                 flows. A source port then names no path.",
                short(self.reordered_percent.unwrap_or_default())
            ),
            Answer::Even => {
                let counters = match self.reordered_percent {
                    Some(_) => "arrive in order",
                    None => "have no counter for their order",
                };
                format!(
                    "No flow shares a path: no flow of {flows} in {all} is low, and packets {counters}. With a hash over up to {:.0} \
                     paths some would be: flows meet on no link, or switches move them between paths.",
                    self.paths_excluded
                )
            }
            Answer::Open => format!("Whether paths collide, or one is slow, is not decided by {flows} flows in {all}."),
        }
    }

    /// `at 64 KiB, 1 against 16 queue pairs`.
    pub fn compared(&self) -> String {
        format!("at {}, {} against {} {}s", size(self.size_bytes), self.fewest, self.most, self.several)
    }
}

fn named(flows: &[LowFlow]) -> String {
    some(&flows.iter().map(|low| low.flow.as_str()).collect::<Vec<_>>(), NAMED)
}
