//! The state of GPUs while they worked: what was bad, over time, and what every GPU did.

use railgauge_model::plan::hostlist;
use railgauge_wire::{
    gpu_state::{GpuReading, GpuSeen, Hold},
    remedy::Remedy,
    unit::Nanoseconds,
};

use super::{
    Block, Data, Figure,
    table::{Table, number_column, text_column},
};
use crate::{
    analysis::{
        gpus::{Bad, BadPass, OfGpu, OfTest, bad, name, of_test, range},
        words::{count, number, size},
    },
    report::chart::{
        ChartError,
        lanes::{Group, Lane, Step, lanes as draw},
        ticks::from_zero,
    },
};

/// Passes that are drawn.
const DRAWN: usize = 3;
/// GPUs of a pass that are drawn.
const GPUS: usize = 4;
/// GPUs that are listed.
const LISTED: usize = 16;
/// GPUs whose state is told in the sentence.
const NAMED: usize = 5;

/// What was read of the GPUs; `None` where no case used any.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(found) = of_test(&data.results) else { return Ok(None) };
    Ok(Some(Block {
        heading: "GPUs while they worked",
        sentence: sentence(&found),
        wide: found.drawn.iter().take(DRAWN).filter_map(|pass| figure(data, pass)).collect(),
        table: Some(table(&found)),
        method: METHOD.to_owned(),
        ..Block::default()
    }))
}

const METHOD: &str = "NVML, or AMD SMI of AMD's GPUs, is read before and after each pass and once a second in it (twice in a pass shorter \
                      than two seconds, at most ten times a second), by one thread of each agent. Counters are read at both ends of a \
                      case, verification included, but for flows at once: there at both ends of the pass. A power cap is how a loaded GPU works and is no fault. The generation of a PCIe link is \
                      judged where messages of 1 MiB and more pass it; an idle GPU lowers it. What a GPU does not tell or count is not \
                      judged.";

fn sentence(found: &OfTest<'_>) -> String {
    let of_all = count(found.gpus.len(), "GPU");
    let mut told = Vec::new();
    let is_bad = |gpu: &&OfGpu| !gpu.bad.is_empty();
    let all: Vec<&OfGpu> = found.gpus.iter().filter(is_bad).collect();
    if all.is_empty() {
        let read = found.gpus.iter().filter(|gpu| gpu.read > 0).count();
        told.push(match read {
            0 => format!("Nothing was read of the {of_all} in any of {}.", count(found.passes, "pass")),
            _ => format!("The driver told nothing bad of {read} of {of_all} in {}.", count(found.passes, "pass")),
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
        let hosts = hostlist::fold(unread.iter().map(|gpu| gpu.host.as_str()));
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

fn table(found: &OfTest<'_>) -> Table {
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
    let columns = vec![
        text_column("host"),
        text_column("GPU"),
        text_column("PCI address"),
        text_column("passes read"),
        number_column("readings", ""),
        text_column("SM clock"),
        text_column("power"),
        text_column("temperature"),
        text_column("held down by, readings"),
        text_column("PCIe"),
        text_column("counted"),
    ];
    Table { columns, rows: found.gpus.iter().take(LISTED).map(row).collect() }
}

/// The GPUs of a pass over time; `None` where no readings over time were kept.
fn figure(data: &Data<'_>, pass: &BadPass<'_>) -> Option<Figure> {
    let mut gpus: Vec<(&str, &GpuSeen, Vec<Bad>)> = pass
        .sample
        .gpus
        .iter()
        .filter(|gpu| !gpu.seen.series.is_empty())
        .map(|gpu| (&*gpu.host, &gpu.seen, bad(pass.result, &gpu.seen)))
        .collect();
    gpus.sort_by_key(|(.., bad)| std::cmp::Reverse(bad.len()));
    let more = gpus.len().saturating_sub(GPUS);
    gpus.truncate(GPUS);
    // Each host has a clock of its own: all passes begin at zero.
    let length = gpus.iter().map(|(_, seen, _)| seen.pass.1.saturating_sub(seen.pass.0)).max()?;
    let groups: Vec<Group> = gpus.iter().map(|(host, seen, bad)| group(host, seen, bad, length)).collect();
    let seconds = length.seconds();
    let marks = from_zero(String::new(), seconds / 1.06).marks;
    let marks: Vec<(f64, String)> =
        marks.into_iter().map(|(at, text)| (at / seconds.max(f64::MIN_POSITIVE), format!("{text} s"))).collect();
    let repeat = if data.test.repeats > 1 { format!(", repeat {}", pass.repeat + 1) } else { String::new() };
    let title = format!("{}, {}{repeat}", pass.result.link_name(), size(pass.result.case.cell.size));
    let not_drawn = if more > 0 { format!("; {} not drawn", count(more, "more GPU")) } else { String::new() };
    Some(Figure {
        svg: draw(&format!("state of GPUs over time, {title}"), &groups, &marks),
        title: format!("{title}{not_drawn}"),
        legend: [
            ("k-rate", "a value of the GPU, until the next reading"),
            ("k-low", "clocks held down by heat or the power supply"),
            ("k-t-hole", "not read"),
        ]
        .map(|(class, words)| (class.to_owned(), words.to_owned()))
        .into(),
    })
}

fn group(host: &str, seen: &GpuSeen, bad: &[Bad], length: Nanoseconds) -> Group {
    let words: Vec<String> = bad.iter().map(ToString::to_string).collect();
    let gpu = format!("{} of {host}", name(seen));
    let heading = if words.is_empty() { gpu } else { format!("{gpu}: {}", words.join("; ")) };
    let value = |name: &str, unit: &str, of: fn(&GpuReading) -> Option<f64>, top: Option<f64>, told: String| {
        let steps = steps(seen, length, of);
        let highest = steps.iter().map(|step| step.most).fold(0.0, f64::max);
        let top = top.unwrap_or(highest).max(highest).max(f64::MIN_POSITIVE);
        let (name, tip) = (name.to_owned(), format!("{name}: {told}, full height {} {unit}", number(top)));
        (!steps.is_empty()).then_some(Lane { name, steps, top, value: told, tip, is_rate: true })
    };
    let held = |reading: &GpuReading| {
        let held = reading.held.as_ref()?;
        Some(f64::from(u8::from(held.iter().any(|hold| hold.is_bad()))))
    };
    let held = steps(seen, length, held);
    let is_held = held.iter().any(|step| step.most > 0.0);
    let words = bad.iter().find(|bad| matches!(bad, Bad::Held { .. })).map(ToString::to_string).unwrap_or_default();
    let lanes = [
        value(
            "SM clock",
            "MHz",
            |one| one.sm_mhz.map(f64::from),
            seen.best_mhz.map(|best| best.0.into()),
            range(seen.sm_mhz, "MHz"),
        ),
        value("power", "W", |one| one.watts, seen.limit_watts, range(seen.watts, "W")),
        value("temperature", "°C", |one| one.celsius.map(f64::from), Some(100.0), range(seen.celsius, "°C")),
        is_held.then(|| Lane {
            name: "held down".to_owned(),
            steps: held,
            top: 1.0,
            value: String::new(),
            tip: words,
            is_rate: false,
        }),
    ];
    Group { heading, lanes: lanes.into_iter().flatten().collect() }
}

/// Readings as values that hold until the next one, as shares of the pass.
fn steps(seen: &GpuSeen, length: Nanoseconds, of: fn(&GpuReading) -> Option<f64>) -> Vec<Step> {
    let share = |at: Nanoseconds| at.saturating_sub(seen.pass.0).as_f64() / length.as_f64().max(1.0);
    let ends = seen.series.iter().skip(1).map(|next| next.at).chain([seen.pass.1]);
    let step = |(reading, until): (&GpuReading, Nanoseconds)| {
        let (value, until) = (of(reading).filter(|value| value.is_finite())?, until.min(seen.pass.1));
        let (from, until) = (share(reading.at), share(until));
        (until > from).then_some(Step { from, until, mean: value, most: value })
    };
    seen.series.iter().zip(ends).filter_map(step).collect()
}
