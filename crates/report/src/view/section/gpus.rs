//! The state of GPUs during tests: faults, and the readings of every GPU.

use railgauge_analysis::{
    gpus::{OfGpu, OfTest, of_test, range},
    words::{count, number},
};
use railgauge_model::plan::hostlist;
use railgauge_wire::{Hold, remedy::Remedy};

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

const LISTED: usize = 16;
const NAMED: usize = 5;

/// `None` where no case used a GPU.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(found) = of_test(&data.results) else { return Ok(None) };
    Ok(Some(Block {
        heading: "GPUs while they worked",
        sentence: sentence(&found),
        table: Some(table(&found)),
        method: METHOD.to_owned(),
        ..Block::default()
    }))
}

const METHOD: &str = "NVML, or AMD SMI for AMD GPUs, is read before and after each pass and once a second in it (twice in a pass shorter \
                      than two seconds, at most ten times a second), by one thread of each agent. Counters are read at both ends of a \
                      case, verification included, but for flows at once: there at both ends of the pass. A power cap is how a loaded GPU works and not a fault. The generation of a PCIe link is \
                      judged where messages of 1 MiB and more pass it; an idle GPU lowers it. What a GPU does not report or count is not \
                      judged.";

fn sentence(found: &OfTest) -> String {
    let of_all = count(found.gpus.len(), "GPU");
    let mut told = Vec::new();
    let is_bad = |gpu: &&OfGpu| !gpu.bad.is_empty();
    let all: Vec<&OfGpu> = found.gpus.iter().filter(is_bad).collect();
    if all.is_empty() {
        let read = found.gpus.iter().filter(|gpu| gpu.read > 0).count();
        told.push(match read {
            0 => format!("Nothing was read of the {of_all} in any of {}.", count(found.passes, "pass")),
            _ => format!("The driver reported no fault of {read} of {of_all} in {}.", count(found.passes, "pass")),
        });
    }
    for gpu in all.iter().take(NAMED) {
        for (bad, passes) in &gpu.bad {
            let of = if gpu.passes > 1 { format!(" (in {passes} of {} passes)", gpu.passes) } else { String::new() };
            told.push(format!("{} of {}: {bad}{of}. To do: {}.", gpu.name, gpu.host, Remedy::from(bad.remedy())));
        }
    }
    if all.len() > NAMED {
        told.push(format!("{} more are in the table.", all.len() - NAMED));
    }
    // What was not seen is not known to be good.
    let unread: Vec<&OfGpu> = found.gpus.iter().filter(|gpu| gpu.read < gpu.passes).collect();
    if let Some(first) = unread.first() {
        let passes: usize = unread.iter().map(|gpu| gpu.passes - gpu.read).sum();
        let hosts = hostlist::listed(unread.iter().map(|gpu| gpu.host.as_str()));
        let why = first
            .failure
            .as_ref()
            .map_or_else(String::new, |why| format!(" ({} of {}: {why})", first.name, first.host));
        told.push(format!(
            "In {} of {} on {hosts} no reading fell{why}.",
            count(passes, "pass"),
            count(unread.len(), "GPU")
        ));
    }
    let blind = found.gpus.iter().filter(|gpu| gpu.without_xids > 0).count();
    if blind > 0 {
        told.push(format!(
            "Xids of {} could not be seen.",
            if blind == found.gpus.len() { of_all } else { count(blind, "GPU") }
        ));
    }
    told.join(" ")
}

fn table(found: &OfTest) -> Table {
    let held = |gpu: &OfGpu| {
        let words = |(hold, times): (&Hold, &u64)| format!("{} {times}", hold.words());
        gpu.held.iter().map(words).collect::<Vec<_>>().join(", ")
    };
    let pcie = |gpu: &OfGpu| {
        gpu.pcie.map_or_else(String::new, |((low, high), lanes)| match low == high {
            true => format!("gen {high} x{lanes}"),
            false => format!("gen {low}–{high} x{lanes}"),
        })
    };
    let counted = |gpu: &OfGpu| {
        let words: Vec<String> = gpu.counted.iter().map(|(name, rise)| format!("{name} +{rise}")).collect();
        words.join(", ")
    };
    let row = |gpu: &OfGpu| {
        let limit = gpu.limit_watts.map_or_else(String::new, |limit| format!(" of {}", number(limit)));
        vec![
            gpu.host.clone(),
            gpu.name.clone(),
            gpu.pci.clone(),
            format!("{} of {}", gpu.read, gpu.passes),
            gpu.readings.to_string(),
            range(gpu.sm_mhz, "MHz"),
            gpu.watts.map_or_else(String::new, |_| range(gpu.watts, "W") + &limit),
            range(gpu.celsius, "°C"),
            held(gpu),
            pcie(gpu),
            counted(gpu),
        ]
    };
    let heads = "host | GPU | PCI address | passes read | #readings | SM clock | power | temperature | \
                 held down by, readings | PCIe | counted";
    Table::new(heads, found.gpus.iter().take(LISTED).map(row))
}
