//! Looks up the part of a link or a case: a large cluster has hundreds of bad parts and hundreds of thousands of links.

use foldhash::HashMap;
use railgauge_model::schedule::{Flow, Port};

use super::parts::Part;

/// Positions are those among all parts, the gravest first.
#[derive(Default)]
pub(super) struct Index<'a> {
    /// Ends that are a part: the first part of each host, of all its rails or of one.
    ends: HashMap<(&'a str, Option<u32>), usize>,
    flows: HashMap<&'a Flow, usize>,
    bad: HashMap<u64, usize>,
}

impl<'a> Index<'a> {
    pub(super) fn new(parts: &'a [Part<'_>], test: &str) -> Self {
        let mut index = Self::default();
        for (at, part) in parts.iter().enumerate() {
            for end in part.ends() {
                index.ends.entry(end).or_insert(at);
            }
            for flow in part.flows_of(test) {
                index.flows.entry(flow).or_insert(at);
            }
            if part.is_bad() {
                for case in part.cases(test) {
                    index.bad.entry(case).or_insert(at);
                }
            }
        }
        index
    }

    /// The first part that is the end, or whose NIC it is.
    pub(super) fn of_end(&self, port: &Port) -> Option<usize> {
        let of = |rail| self.ends.get(&(&*port.host, rail)).copied();
        [of(None), of(Some(port.rail))].into_iter().flatten().min()
    }

    /// The first part that has one of the link's ends, or has the link as evidence, at any size.
    pub(super) fn of_link(&self, flow: &Flow) -> Option<usize> {
        let of_flow = self.flows.get(flow).copied();
        [self.of_end(&flow.from), self.of_end(&flow.to), of_flow].into_iter().flatten().min()
    }

    /// The first bad part with this case as evidence.
    pub(super) fn bad_of_case(&self, case: u64) -> Option<usize> {
        self.bad.get(&case).copied()
    }
}
