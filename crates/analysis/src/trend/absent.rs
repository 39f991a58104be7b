//! Runs in which a series should have a value and has none: an intermittent failure is one, too.

use std::collections::{HashMap, HashSet};

use super::{Key, Lines, Order, Past, Watch};

pub(super) struct Absent<'a> {
    order: &'a Order<'a>,
    /// Positions in time of the runs of a plan in all its versions. Leaves out a run that ended before planning if
    /// another of the same night did not.
    runs: HashMap<usize, Vec<usize>>,
    measured: HashSet<(usize, usize)>,
    rotating: &'a HashSet<usize>,
}

impl<'a> Absent<'a> {
    pub(super) fn new(order: &'a Order<'a>, lines: &Lines, rotating: &'a HashSet<usize>) -> Self {
        let (mut runs, mut measured): (HashMap<usize, Vec<usize>>, _) = (HashMap::new(), HashSet::new());
        let mut planned_nights: HashSet<(usize, i64)> = HashSet::new();
        for (at, &day) in order.days.iter().enumerate() {
            let Past { plan, planned, .. } = order.at(at);
            runs.entry(lines.of(*plan)).or_default().push(at);
            measured.extend(planned.iter().flatten().map(|&subject| (*plan, subject)));
            if planned.is_some() {
                planned_nights.insert((lines.of(*plan), day));
            }
        }
        for (line, runs) in &mut runs {
            runs.retain(|&at| order.at(at).planned.is_some() || !planned_nights.contains(&(*line, order.days[at])));
        }
        Self { order, runs, measured, rotating }
    }

    /// Positions in time of the runs that each series lacks, from the positions of its values; `lost` are those with an explicit failure,
    /// which alone count for what was never measured before. If other hardware took a place, the series with the last value lacks the run.
    pub(super) fn of(
        &self,
        series: &[(&Key, Vec<usize>)],
        lost: &HashMap<(Watch, usize), HashSet<usize>>,
    ) -> Vec<Vec<usize>> {
        let mut alike: HashMap<(&Watch, usize), Vec<usize>> = HashMap::new();
        for (at, (key, _)) in series.iter().enumerate() {
            alike.entry((&key.watch, key.plan)).or_default().push(at);
        }
        let mut absent: Vec<Vec<usize>> = vec![Vec::new(); series.len()];
        let none = HashSet::new();
        for ((watch, plan), members) in alike {
            let valued: HashSet<usize> = members.iter().flat_map(|&at| series[at].1.iter().copied()).collect();
            let Some(&first) = valued.iter().min() else { continue };
            let lost = lost.get(&(watch.clone(), plan)).unwrap_or(&none);
            for &run in self.runs.get(&plan).into_iter().flatten().filter(|run| !valued.contains(run)) {
                if !(lost.contains(&run) || run > first && self.is_due(watch, run)) {
                    continue;
                }
                let before = |at: &usize| series[*at].1.partition_point(|place| *place < run).checked_sub(1);
                let latest = |at: &usize| before(at).map(|last| series[*at].1[last]);
                let earliest = |at: &usize| std::cmp::Reverse(series[*at].1.first().copied());
                if let Some(owner) = members.iter().copied().max_by_key(|at| (latest(at), earliest(at))) {
                    absent[owner].push(run);
                }
            }
        }
        absent
    }

    /// Whether something should have a value of a run even if the run does not mention it.
    fn is_due(&self, watch: &Watch, run: usize) -> bool {
        let Past { plan, planned, part, .. } = self.order.at(run);
        match watch {
            Watch::Subject { .. } if *part => false,
            Watch::Subject { subject, .. } => {
                !self.rotating.contains(plan) && self.measured.contains(&(*plan, *subject))
            }
            Watch::Part { .. } => planned.is_none(),
        }
    }
}
