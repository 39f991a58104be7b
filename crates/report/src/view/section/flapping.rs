//! Whether links were steady: every window in slices of 100 ms, each against the window's median.

use std::{cmp::Ordering, collections::BTreeMap};

use railgauge_analysis::{
    case::CaseResult,
    percentile,
    words::{brief, count, percent_of, share, size, spread, were},
};
use railgauge_stats::robust::{MAD_TO_SIGMA, mad, median, quantile};
use railgauge_wire::{Bytes, TestMetric, measure::SLICE};

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

const HEADING: &str = "Steadiness";
/// A window counts as flapping if its slowest slice is under this share of its median.
const HALF: f64 = 0.5;
/// Fewest slices of a window to be checked.
const AT_LEAST: usize = 5;
/// Messages that must fit into a median slice: with fewer, one message more or less looks like a change of rate.
const MESSAGES: f64 = 20.0;
const LISTED: usize = 10;

struct Window<'a> {
    result: &'a CaseResult<'a>,
    repeat: u32,
    rates: Vec<f64>,
    median: f64,
    lowest: f64,
}

impl Window<'_> {
    fn share(&self) -> f64 {
        self.lowest / self.median
    }

    /// Rate below which one slice in twenty lies, in Gb/s; `None` with too few slices.
    fn low(&self) -> Option<f64> {
        let enough = percentile::carries_quantile(0.05, self.rates.len());
        quantile(&self.rates, 0.05).ok().filter(|_| enough)
    }

    /// In Gb/s: the median absolute deviation, scaled to a standard deviation.
    fn spread(&self) -> f64 {
        mad(&self.rates).unwrap_or(0.0) * MAD_TO_SIGMA
    }

    /// Worst share first; of equal ones the faster window, which lost more.
    fn before(&self, other: &Self) -> Ordering {
        self.share().total_cmp(&other.share()).then(other.median.total_cmp(&self.median))
    }
}

/// Links that fell under half of their median in any window, worst first; `None` for tests without bandwidth or slices.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    if data.test.metric != TestMetric::Bandwidth {
        return Ok(None);
    }
    let (mut looked, mut coarse) = (0_usize, 0_usize);
    let mut links: BTreeMap<_, Window<'_>> = BTreeMap::new();
    for result in &data.results {
        for (repeat, sample) in &result.samples {
            let rates: Vec<f64> = sample.initiator.slices.iter().map(|bytes| bytes.bits() / SLICE.as_f64()).collect();
            let Ok(median) = median(&rates) else { continue };
            let messages = median * SLICE.as_f64() / 8.0 / result.case.cell.size.max(Bytes(1)).as_f64();
            if rates.len() < AT_LEAST || messages < MESSAGES {
                coarse += 1;
                continue;
            }
            looked += 1;
            let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let window = Window { result, repeat: *repeat, rates, median, lowest };
            let key = (&result.case.flow, data.variant(result));
            if links.get(&key).is_none_or(|known| window.before(known).is_lt()) {
                links.insert(key, window);
            }
        }
    }
    let mut worst: Vec<Window<'_>> = links.into_values().collect();
    worst.sort_by(Window::before);
    let Some(first) = worst.first() else {
        let none = "Windows are too short for a stability analysis in slices of 100 ms.".to_owned();
        return Ok((coarse > 0).then(|| Block { heading: HEADING, sentence: none, ..Block::default() }));
    };
    let flapping = worst.iter().filter(|window| window.share() < HALF).count();
    let skipped = match coarse {
        0 => String::new(),
        n => format!(" {} not analysed: too short, or too few messages in a slice.", were(n, "window")),
    };
    let sentence = if flapping == 0 {
        let low = first.low().map_or_else(String::new, |low| format!("p5 {}, ", share(low / first.median)));
        format!(
            "Every link was steady: over {} the slowest 100 ms still reached {} of its window's median ({}: {low}spread {}).\
             {skipped}",
            count(looked, "window"),
            share(first.share()),
            first.result.link_name(),
            share(first.spread() / first.median)
        )
    } else {
        format!("{} fell under half of the window's own median for 100 ms or longer.{skipped}", count(flapping, "link"))
    };
    Ok(Some(Block {
        heading: HEADING,
        sentence,
        table: (flapping > 0).then(|| table(&worst[..flapping.min(LISTED)])),
        ..Block::default()
    }))
}

fn table(windows: &[Window<'_>]) -> Table {
    let rows = windows.iter().map(|window| {
        vec![
            window.result.link_name(),
            size(window.result.case.cell.size),
            (window.repeat + 1).to_string(),
            spread(window.lowest, Some(window.spread())),
            window.low().map_or_else(|| "–".to_owned(), |low| spread(low, Some(window.spread()))),
            spread(window.median, Some(window.spread())),
            brief(window.spread()),
            percent_of(window.lowest, window.median),
        ]
    });
    let heads = "link | #size | #repeat | #slowest 100 ms [Gb/s] | #p5 [Gb/s] | #median [Gb/s] | \
                 #spread [Gb/s] | #slowest of median [%]";
    Table::new(heads, rows)
}
