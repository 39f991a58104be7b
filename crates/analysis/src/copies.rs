//! Copies between hosts and their GPUs, against the ceiling of the GPUs' slots.

use railgauge_wire::{copies::Copies, facts::Gpu, unit::GigabytesPerSecond};

use super::{
    ceiling::{Pcie, nvlink},
    journal::Journal,
    words::number,
};

/// Share of the slot's ceiling below which copies get a remark: page-locked copies of a healthy GPU reach more than
/// nine tenths (`docs/dev/measured.md`), and a slot at half its width or generation half.
const SLOW: f64 = 0.75;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyWords {
    pub host: String,
    /// `GPU 0: copies to it 55.50 GB/s (92 % of its slot), …`.
    pub text: String,
    /// What must not be blamed on the fabric; empty where nothing is slow.
    pub caution: String,
}

pub fn words(journal: &Journal) -> Vec<CopyWords> {
    let of = |((host, _), copies): (&(String, u32), &Copies)| {
        let facts = journal.hosts.get(host).map(|up| &up.facts);
        let gpu = facts.and_then(|facts| facts.gpus.iter().find(|gpu| gpu.pci.as_deref() == Some(&copies.pci)));
        let (text, caution) = describe(copies, gpu);
        CopyWords { host: host.clone(), text, caution }
    };
    journal.copies.iter().map(of).collect()
}

fn best(gpu: &Gpu) -> Option<(f64, f64)> {
    let slot = Pcie::of_gpu(gpu)?;
    // The GPU fetches its input, and writes its output.
    Some((slot.sending()? / 8.0, slot.receiving()? / 8.0))
}

fn describe(copies: &Copies, gpu: Option<&Gpu>) -> (String, String) {
    let best = gpu.and_then(best);
    let of = |value: GigabytesPerSecond, best: Option<f64>, what: &str| {
        best.map_or_else(String::new, |best| format!(" ({:.0} % of its {what})", value.0 / best * 100.0))
    };
    let share = |value: GigabytesPerSecond, best: Option<f64>| of(value, best, "slot");
    let links = gpu.and_then(nvlink).map(|gbps| gbps / 8.0);
    let mut text = format!(
        "GPU {}: copies to it {} GB/s{}, from it {} GB/s{}, on it {} GB/s",
        copies.gpu,
        number(copies.to_gpu.0),
        share(copies.to_gpu, best.map(|best| best.0)),
        number(copies.from_gpu.0),
        share(copies.from_gpu, best.map(|best| best.1)),
        number(copies.on_gpu.0),
    );
    for (peer, speed) in &copies.to_peers {
        text.push_str(&format!(", to GPU {peer} {} GB/s{}", number(speed.0), of(*speed, links, "NVLinks")));
    }
    let slow = |(way, value, best): (&str, f64, f64)| {
        (value < SLOW * best).then(|| format!("{way} at {} of {} GB/s", number(value), number(best)))
    };
    let ways = best.map(|best| [("to it", copies.to_gpu.0, best.0), ("from it", copies.from_gpu.0, best.1)]);
    let slow: Vec<String> = ways.into_iter().flatten().filter_map(slow).collect();
    if slow.is_empty() {
        return (text, String::new());
    }
    let caution = format!(
        "GPU {} copies {}: what is measured on it may be limited by its slot and not by the fabric",
        copies.gpu,
        slow.join(" and ")
    );
    (text, caution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(lanes: u32) -> Gpu {
        Gpu { pcie_max: Some((5, lanes)), ..Gpu::default() }
    }

    fn copies(to_gpu: f64) -> Copies {
        let to_peers = vec![(1, GigabytesPerSecond(370.0))];
        Copies {
            gpu: 0,
            pci: String::new(),
            to_gpu: GigabytesPerSecond(to_gpu),
            from_gpu: GigabytesPerSecond(55.4),
            on_gpu: GigabytesPerSecond(2043.0),
            to_peers,
        }
    }

    #[test]
    fn copies_stand_beside_their_slot() {
        let (text, caution) = describe(&copies(55.5), Some(&gpu(16)));
        assert!(text.starts_with("GPU 0: copies to it 55.50 GB/s (92 % of its slot)"), "{text}");
        assert!(text.ends_with("to GPU 1 370.0 GB/s") && caution.is_empty(), "{text} {caution}");
        let linked =
            Gpu { nvlinks: Some(18), nvlink_mbps: Some(railgauge_wire::unit::MegabytesPerSecond(26_562)), ..gpu(16) };
        let (text, _) = describe(&copies(55.5), Some(&linked));
        assert!(text.ends_with("to GPU 1 370.0 GB/s (82 % of its NVLinks)"), "{text}");
    }

    #[test]
    fn a_slow_slot_is_named_and_an_unknown_one_is_not_judged() {
        let (_, caution) = describe(&copies(12.0), Some(&gpu(16)));
        assert!(caution.contains("to it at 12") && !caution.contains("from it"), "{caution}");
        assert!(caution.contains("not by the fabric"), "{caution}");
        let (text, caution) = describe(&copies(12.0), None);
        assert!(caution.is_empty() && !text.contains('%'), "{text} {caution}");
    }
}
