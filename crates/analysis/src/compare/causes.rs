//! What changes have in common, and the metrics and sizes for which that holds.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_stats::changepoint::Member;
use railgauge_wire::{Bytes, Metric};

use super::{Cause, Part, Word, digits, judge::Judged, table::Collected};
use crate::{
    history::{self, Labels},
    words::{count, size},
};

const SIZES: usize = 4;

impl Part {
    fn at(&self) -> String {
        if self.of_sizes == 1 || self.sizes.len() > SIZES {
            let all = self.sizes.len() == self.of_sizes;
            return match (self.of_sizes, all) {
                (1, _) => format!("at {}", size(self.sizes[0])),
                (of, true) => format!("at all {of} sizes"),
                (of, false) => format!("at {} of {of} sizes", self.sizes.len()),
            };
        }
        let list: Vec<String> = self.sizes.iter().map(|bytes| size(*bytes)).collect();
        let only = if self.sizes.len() < self.of_sizes { " only" } else { "" };
        format!("at {}{only}", list.join(", "))
    }

    fn what(&self) -> String {
        format!("{} {} {}", self.test, self.metric.word().replace('_', " "), self.at())
    }
}

/// Causes of changes for the worse, then for the better.
///
/// Looks at each metric first: a host whose bandwidth fell everywhere is the cause, even if its latency did not change.
/// The rest is searched together.
pub(super) fn causes(collected: &Collected, judged: &[Judged]) -> Vec<Cause> {
    let metrics: BTreeSet<Metric> = judged.iter().map(|case| case.metric).collect();
    let of_word = |word: Word| {
        let changed = |at: &usize| judged[*at].case.verdict == word;
        let mut found: Vec<CommonCause> = Vec::new();
        let mut left: BTreeSet<usize> = (0..judged.len()).filter(changed).collect();
        let mut looks: Vec<Vec<usize>> = metrics
            .iter()
            .map(|metric| (0..judged.len()).filter(|&at| judged[at].metric == *metric).collect())
            .collect();
        looks.push((0..judged.len()).collect());
        for look in looks {
            for one in look_at(collected, judged, &look, &left) {
                one.members.iter().for_each(|at| {
                    left.remove(at);
                });
                match found.iter_mut().find(|known| known.name == one.name) {
                    Some(known) => {
                        known.members.extend(one.members);
                        // The last look holds the cases of all others.
                        known.of = if look.len() == judged.len() { one.of } else { known.of + one.of };
                    }
                    None => found.push(one),
                }
            }
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.members.len()));
        let tell = |one: CommonCause| {
            let members: Vec<&Judged> = one.members.iter().map(|&at| &judged[at]).collect();
            let parts = parts(collected, judged, &members);
            told(word, one.name, (one.members.len(), one.of), parts, one.of == judged.len())
        };
        found.into_iter().map(tell).collect::<Vec<Cause>>()
    };
    [Word::Regressed, Word::Improved].into_iter().flat_map(of_word).collect()
}

struct CommonCause {
    name: String,
    members: BTreeSet<usize>,
    of: usize,
}

fn look_at(collected: &Collected, judged: &[Judged], look: &[usize], left: &BTreeSet<usize>) -> Vec<CommonCause> {
    let mut labels = Labels::default();
    look.iter().for_each(|&at| labels.add(Labels::words(&collected.subjects[judged[at].subject], &collected.groups)));
    let moved: Vec<(usize, usize)> = look.iter().copied().enumerate().filter(|(_, at)| left.contains(at)).collect();
    let changes: Vec<Member> =
        moved.iter().map(|&(series, at)| Member { series, day: 0, effect: judged[at].better }).collect();
    let found = |cause: history::Cause| CommonCause {
        members: cause.members.iter().map(|&member| moved[member].1).collect(),
        of: cause.of,
        name: cause.name,
    };
    labels.causes(&changes).into_iter().map(found).collect()
}

fn told(verdict: Word, name: String, cases: (usize, usize), parts: Vec<Part>, everything: bool) -> Cause {
    let whole = cases.0 == cases.1;
    let partly = parts.iter().any(|part| part.sizes.len() < part.of_sizes);
    // What holds for one metric or size must not be said of all.
    let name = match (name.as_str(), &parts[..]) {
        ("every link", _) if whole && everything => name,
        ("every link", [part]) => format!("links, {}", part.what()),
        ("every link", _) => "many links".to_owned(),
        (_, [part]) if !whole && partly => format!("{name}, {}", part.what()),
        _ => name,
    };
    let list: Vec<String> = parts
        .iter()
        .map(|part| {
            let (low, high) = part.percent;
            format!("{} ({})", part.what(), digits::range(low, high))
        })
        .collect();
    let of = match cases {
        (1, 1) => "its only case".to_owned(),
        (_, all) if whole => format!("all of its {}", count(all, "case")),
        (changed, all) => format!("{changed} of its {}", count(all, "case")),
    };
    let text = format!("{of} changed this way: {}", list.join("; "));
    Cause { verdict, name, cases, parts, text }
}

fn parts(collected: &Collected, judged: &[Judged], members: &[&Judged]) -> Vec<Part> {
    let key = |case: &Judged| {
        let pair = &collected.subjects[case.subject];
        ((pair.test.to_string(), case.metric), pair.cell.size)
    };
    let mut sizes: BTreeMap<(String, Metric), Vec<Bytes>> = BTreeMap::new();
    for (of, size) in judged.iter().map(key) {
        sizes.entry(of).or_default().push(size);
    }
    let mut parts: BTreeMap<(String, Metric), Vec<(Bytes, f64)>> = BTreeMap::new();
    for member in members {
        let (of, size) = key(member);
        parts.entry(of).or_default().push((size, member.case.change.percent));
    }
    let different = |mut list: Vec<Bytes>| {
        list.sort_unstable();
        list.dedup();
        list
    };
    let part = |((test, metric), changed): ((String, Metric), Vec<(Bytes, f64)>)| {
        let of_sizes = sizes.get(&(test.clone(), metric)).map_or(0, |list| different(list.clone()).len());
        let percents = || changed.iter().map(|(_, percent)| *percent);
        Part {
            test,
            metric,
            sizes: different(changed.iter().map(|(size, _)| *size).collect()),
            of_sizes,
            cases: changed.len(),
            percent: (percents().fold(f64::INFINITY, f64::min), percents().fold(f64::NEG_INFINITY, f64::max)),
        }
    };
    parts.into_iter().map(part).collect()
}
