//! Distance of hosts and NICs from the centre, by the median of their links in one cell.

use foldhash::HashMap;
use railgauge_model::schedule::Port;
use railgauge_stats::robust::median;

use super::{index::Index, links::Link};

/// Fewest links of an end for a median of its own.
const FEWEST_LINKS: usize = 2;
/// Fewest ends with a median: one of three cannot be distinguished by one value each.
const FEWEST_ENDS: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct NicDeviation {
    pub port: Port,
    pub links: usize,
    pub deviation: f64,
    pub ways: [Option<f64>; 2],
    /// Position among the named parts.
    pub part: Option<usize>,
}

/// Ends below the centre by more than the least effect, worst first.
pub(super) fn ends<'l, 'a: 'l>(
    here: impl Iterator<Item = &'l Link<'a>>,
    index: &Index<'_>,
    least: f64,
) -> Vec<NicDeviation> {
    let mut ports: HashMap<&Port, [Vec<f64>; 2]> = HashMap::default();
    for link in here {
        let flow = &link.result.case.flow;
        for (way, port) in [&flow.from, &flow.to].into_iter().enumerate() {
            ports.entry(port).or_default()[way].extend(link.deviation);
        }
    }
    let mut ports: Vec<(&Port, [Vec<f64>; 2])> = ports.into_iter().collect();
    ports.sort_unstable_by_key(|(port, _)| *port);
    let all: Vec<NicDeviation> = ports
        .into_iter()
        .filter_map(|(port, [from, to])| {
            let both: Vec<f64> = from.iter().chain(&to).copied().collect();
            let part = index.of_end(port);
            (both.len() >= FEWEST_LINKS).then_some(NicDeviation {
                port: port.clone(),
                links: both.len(),
                deviation: median(&both).ok()?,
                ways: [median(&from).ok(), median(&to).ok()],
                part,
            })
        })
        .collect();
    if all.len() < FEWEST_ENDS {
        return Vec::new();
    }
    let mut worse: Vec<NicDeviation> = all.into_iter().filter(|end| end.deviation < -least).collect();
    worse.sort_by(|a, b| a.deviation.total_cmp(&b.deviation));
    worse
}
