//! What a test is and how it was measured, in words.

use railgauge_analysis::{
    case::CaseResult,
    words::{amount, count, lane, number, part_words, short, size},
};
use railgauge_model::{
    border::text::command,
    plan,
    plan::model::{AtOnce, BesideWay, Collective, Cut, Grouping, OnFabric, Pattern, Rails, Test, Victim},
    plan::traffic::{Moe, Traffic},
};
use railgauge_wire::{Bytes, Op, TestMetric, Training, Transport};

/// By the field's names: `RDMA write bandwidth`.
pub fn title(test: &Test) -> String {
    let transport = match test.transport {
        Transport::Verbs => "RDMA",
        Transport::Tcp => "TCP",
        Transport::Nccl => "NCCL",
        Transport::Cpu | Transport::Gpu | Transport::Nic => return within_hosts(test),
    };
    let op = match test.op {
        Op::WriteImm => "write with immediate".to_owned(),
        Op::AtomicFadd => "atomic fetch-and-add".to_owned(),
        Op::AtomicCas => "atomic compare-and-swap".to_owned(),
        op => op.word().replace('_', "-"),
    };
    let both = if test.bidirectional { ", both directions at once" } else { "" };
    let rate = test.rate_limit.map_or_else(String::new, |rate| format!(", each flow {rate}"));
    format!("{transport} {op} {}{both}{rate}", test.metric)
}

fn within_hosts(test: &Test) -> String {
    let words = match test.op {
        Op::Matmul => return products(test),
        Op::MemoryRead if test.metric == TestMetric::Latency => "Latency of host memory",
        Op::MemoryRead => "Host memory, read",
        Op::MemoryWrite => "Host memory, written",
        Op::MemoryCopy => "Host memory, copied",
        Op::HostToGpu => "Copies from host to GPU",
        Op::GpuToHost => "Copies from GPU to host",
        Op::GpuCopy => "Copies within the memory of a GPU",
        Op::GpuMemoryTest => "Patterns written to the memory of GPUs and compared",
        Op::NicLoopback if test.memory.has_gpu() => "RDMA writes of each NIC to itself, in the memory of its GPU",
        Op::NicLoopback => "RDMA writes of each NIC to itself, in host memory",
        _ => "Copies from GPU to GPU of a host",
    };
    words.to_owned()
}

fn products(test: &Test) -> String {
    let precision = test.knobs.precision.map(|precision| format!(", {}", precision.word().to_uppercase()));
    format!("Matrix products of GPUs{}", precision.unwrap_or_default())
}

/// `Every pair once`.
fn who(test: &Test) -> String {
    if let Some(collective) = &test.collective {
        return match collective.grouping {
            Grouping::All => "All hosts in one group".to_owned(),
            Grouping::Each => "Each group of the plan by itself".to_owned(),
            Grouping::Pairs => "Every pair of hosts as a group".to_owned(),
            Grouping::Halves => "Each half of the hosts as a group".to_owned(),
            Grouping::Every(size) => format!("Every {size} hosts as a group"),
        };
    }
    match &test.pattern {
        Pattern::Tournament => "Every pair once".to_owned(),
        Pattern::Random(rounds) => count(*rounds as usize, "random round") + " of pairs",
        Pattern::Ring => "Each host to the next, in a ring".to_owned(),
        Pattern::Neighbours => "Neighbours in the host list".to_owned(),
        Pattern::OneToMany(host) => format!("From {host} to every other host"),
        Pattern::ManyToOne(host) => format!("Every other host to {host}"),
        Pattern::Between(a, b) => format!("Every host of {a} with every host of {b}"),
        Pattern::Pairs(pairs) => count(pairs.len(), "given pair"),
        Pattern::AtOnce(pattern) => at_once(pattern),
        Pattern::Within => "Each host by itself".to_owned(),
        Pattern::Fabric(OnFabric::SameLeaf(_)) => "NIC ports below one leaf switch".to_owned(),
        Pattern::Fabric(OnFabric::CrossLeaf(_)) => "NIC ports below different leaf switches".to_owned(),
        Pattern::Fabric(OnFabric::CoverLinks(percent)) => format!("Pairs that load every switch link to {percent} %"),
    }
}

fn rails(test: &Test) -> String {
    let part = part_words(test.transport);
    let list = |rails: &[u32]| rails.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match (&test.rails, part) {
        (Rails::Each, _) if test.op == Op::GpuToGpu => "every two GPUs by themselves, in both orders".to_owned(),
        (_, _) if test.op == Op::GpuToGpu => "each GPU to another, all at once".to_owned(),
        (Rails::Each, Some(part)) => format!("each {part} by itself"),
        (Rails::Only(rails), Some(part)) => format!("{part}s {} at once", list(rails)),
        (_, Some(part)) => format!("all {part}s at once"),
        (Rails::Aligned, None) => "rail i with rail i".to_owned(),
        (Rails::Crossed, None) => "every rail with every rail".to_owned(),
        (Rails::Each, None) => "rail i with rail i, one rail after the other".to_owned(),
        (Rails::Only(rails), None) => format!("rails {}", list(rails)),
    }
}

pub fn how(test: &Test) -> String {
    if let Some(collective) = &test.collective {
        return how_together(test, collective);
    }
    let repeats = count(test.repeats as usize, "repeat");
    if test.transport.is_within_host() {
        let (who, rails) = (who(test), rails(test));
        return format!("{who}, {rails}, {}; {repeats}{}", sizes(&test.sizes), configured(test));
    }
    let what = lane(test.transport);
    let qps = match test.qps.as_slice() {
        [one] => count(*one as usize, what),
        many => format!("{} {what}s", many.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    let threads = if test.threads > 1 { format!(" on {} threads", test.threads) } else { String::new() };
    let half = match (test.metric, test.op.pulls() || test.op.is_atomic()) {
        (TestMetric::Latency, true) => "; full round trips",
        (TestMetric::Latency, false) => "; half round trips",
        (TestMetric::Bandwidth | TestMetric::Step | TestMetric::Compute, _) => "",
    };
    let configured = format!("{}{}", beside(test), configured(test));
    let (who, rails, memory) = (who(test), rails(test), test.memory);
    format!("{who}, {rails}, {qps}{threads}, {memory} memory, {}; {repeats}{half}{configured}", sizes(&test.sizes))
}

fn beside(test: &Test) -> String {
    test.beside.as_ref().map_or_else(String::new, |beside| {
        if let Some(op) = beside.op {
            return format!("; each alone, then while a second communicator repeats {op}");
        }
        if let Some(one) = beside.command.as_ref().filter(|_| test.collective.is_some()) {
            return format!("; each alone, then alongside `{}` on all hosts", command(&one.words));
        }
        if let Some(one) = &beside.command {
            return format!("; each flow alone, then alongside `{}` {}", command(&one.words), one.on.words());
        }
        let numbers = beside.flows.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let way = match beside.direction {
            BesideWay::Same => "the same way",
            BesideWay::Opposite => "against it",
            BesideWay::Both => "each way",
        };
        let rate = beside.rate.map_or_else(String::new, |rate| format!(" at {} Gb/s", short(rate.0)));
        format!("; each flow alone, then alongside {numbers} TCP connections of its hosts {way}{rate}")
    })
}

fn configured(test: &Test) -> String {
    test.configure.as_ref().map_or_else(String::new, |configure| {
        let values = match configure.values.as_slice() {
            [] => String::new(),
            values => format!(" at each of {}, in turn", values.join(", ")),
        };
        format!("; configured by `{}`, taken back by `{}`{values}", command(&configure.apply), command(&configure.undo))
    })
}

fn at_once(pattern: &AtOnce) -> String {
    match pattern {
        AtOnce::Incast(Some(host)) => format!("Every other host to {host} at once"),
        AtOnce::Incast(None) => "Every other host to one at once, to each in turn".to_owned(),
        AtOnce::Outcast(Some(host)) => format!("From {host} to every other host at once"),
        AtOnce::Outcast(None) => "From one host to every other at once, from each in turn".to_owned(),
        AtOnce::AllToAll => "Every host to every other at once".to_owned(),
        AtOnce::Ring => "Each host to the next at once, in a ring".to_owned(),
        AtOnce::Permutation(_) => "Each host to another at once, chosen by the seed".to_owned(),
        AtOnce::Victim(Victim { flow, to, .. }) => {
            let flow =
                flow.as_ref().map_or_else(|| "a flow chosen by the seed".to_owned(), |(a, b)| format!("{a} to {b}"));
            let to = to.as_deref().unwrap_or("one that is drawn");
            plan::count::capital(&format!("{flow} alone, then while all other hosts send to {to}"))
        }
        AtOnce::Bisection(Cut::Drawn(_)) => "Between two halves at once, chosen by the seed".to_owned(),
        AtOnce::Bisection(Cut::Groups(a, b)) => format!("Between {a} and {b} at once, in both directions"),
    }
}

fn how_together(test: &Test, collective: &Collective) -> String {
    let list = |words: Vec<String>| words.join(", ");
    let mut words = vec![
        who(test),
        count(collective.ranks_per_host as usize, "rank") + " per host",
        list(collective.datatypes.iter().map(ToString::to_string).collect()),
        list(collective.reductions.iter().map(ToString::to_string).collect()),
        list(collective.algorithms.iter().flatten().map(ToString::to_string).collect()),
        (if collective.in_place { "in place" } else { "out of place" }).to_owned(),
        (if collective.graph { "launched by a CUDA graph" } else { "" }).to_owned(),
        format!("{} memory", test.memory),
        collective.traffic.as_ref().map_or_else(String::new, traffic),
        sizes(&test.sizes),
    ];
    if collective.env.len() > 1 {
        words.push(count(collective.env.len(), "environment"));
    }
    words.retain(|word| !word.is_empty());
    let manner = match test.metric {
        TestMetric::Bandwidth => "operations follow one another as in nccl-tests".to_owned(),
        TestMetric::Latency => "a barrier before each operation".to_owned(),
        TestMetric::Compute => String::new(),
        TestMetric::Step => collective.training.as_ref().map_or_else(String::new, step),
    };
    format!("{}; {}; {manner}{}", words.join(", "), count(test.repeats as usize, "repeat"), configured(test))
}

fn traffic(traffic: &Traffic) -> String {
    match traffic {
        Traffic::Matrix(_) => "bytes of a matrix in a file".to_owned(),
        Traffic::Moe(moe) => {
            let Moe { experts, top_k, tokens, hidden, value_bytes, skew, combine } = moe;
            let way = if *combine { "combine" } else { "dispatch" };
            let skewed = if *skew > 0.0 { format!(", skew {}", number(100.0 * skew)) } else { String::new() };
            format!("{way} of {tokens} tokens of {hidden} x {value_bytes} bytes, {top_k} of {experts} experts{skewed}")
        }
        Traffic::Kv { prefill, bytes } => format!("the first {prefill} ranks send {} each to the others", size(*bytes)),
        Traffic::Weights { trainers, bytes } => {
            format!("the first {trainers} ranks send {} to each of the others", size(*bytes))
        }
        Traffic::Pipeline { stages, bytes } => format!("{} to the next of {stages} stages", size(*bytes)),
    }
}

fn step(training: &Training) -> String {
    format!(
        "the gradients{} in buckets of {} (the first of {}), reduced while a timer of {} ms replaces the backward \
         pass",
        training.model.as_ref().map_or_else(String::new, |model| format!(" of {model}")),
        size(training.bucket),
        size(training.first_bucket),
        number(training.compute.milliseconds()),
    )
}

pub(super) fn verified(test: &Test, results: &[&CaseResult<'_>]) -> String {
    if !test.verify {
        return "The plan switches the verification of data off.".to_owned();
    }
    let (verified, wrong) = results
        .iter()
        .map(|result| result.checked())
        .fold((0_u64, 0_u64), |(v, w), (verified, wrong)| (v.saturating_add(verified), w.saturating_add(wrong)));
    let cases = results.iter().filter(|result| result.checked().0 > 0).count();
    let bytes = if wrong == 1 { "byte" } else { "bytes" };
    format!("{} compared in {}, {wrong} {bytes} wrong.", amount(Bytes(verified)), count(cases, "case"))
}

/// `64 B, 256 B, 1 KiB`; if there are many, `64 B … 16 MiB (10 sizes)`.
pub(in crate::view) fn sizes(list: &[Bytes]) -> String {
    match list {
        [first, .., last] if list.len() > 6 => format!("{} … {} ({} sizes)", size(*first), size(*last), list.len()),
        list => list.iter().map(|bytes| size(*bytes)).collect::<Vec<_>>().join(", "),
    }
}
