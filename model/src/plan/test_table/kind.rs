use railgauge_wire::{GpuPath, Memory, Op, Service, TestMetric, Transport};

use super::pattern;
use crate::plan::{At, Mistake, PerEnd, Table};

const OF_NETWORKS: &[&str] = &[
    "service",
    "memory",
    "gpu_path",
    "gpus",
    "gpu_distance",
    "qps",
    "threads",
    "bidirectional",
    "pattern",
    "links_covered",
    "beside",
];

/// Those that apply to a NIC, which accesses host memory or that of its GPU.
const OF_NICS: &[&str] = &["memory", "gpu_path", "gpus"];

#[derive(Debug, Clone)]
pub struct Kind {
    pub op: Option<Op>,
    pub metric: Option<TestMetric>,
    pub transport: Option<Transport>,
    /// `rc` for TCP, which has none.
    pub service: Option<Service>,
    pub memory: Option<PerEnd<Memory>>,
    pub gpu_path: Option<GpuPath>,
    pub bidirectional: bool,
    pub qps: Vec<u32>,
}

pub fn read(test: &Table<'_>) -> Kind {
    let op = test.term("op", Op::from_word);
    let metric = test.term("metric", TestMetric::from_word);
    let transport = test.term("transport", Transport::from_word);
    let tcp = transport.as_ref().is_some_and(|transport| transport.value == Transport::Tcp);
    let memory = memory(test);
    let words = (op.as_ref().map(|op| op.value), transport.as_ref().map(|transport| transport.value));
    let metric = suited(test, metric, words.0);
    if let Some((op, own)) = op.as_ref().and_then(|op| Some((op, op.value.within_host()?))) {
        return of_host(test, op, metric, transport.as_ref(), own);
    }
    if let Some(op) = &op
        && (op.value.is_collective() || transport.as_ref().is_some_and(|transport| transport.value == Transport::Nccl))
    {
        return of_group(test, op, metric, transport.as_ref(), memory.as_ref());
    }
    Kind {
        service: service(test, op.as_ref(), transport.as_ref()),
        gpu_path: gpu_path(test, memory.as_ref(), transport.as_ref(), op.as_ref()),
        bidirectional: bidirectional(test, metric.as_ref()),
        qps: qps(test, metric.as_ref()),
        op: op.and_then(|op| carried(test, op, tcp)).filter(|op| within_host(test, *op, transport.as_ref())),
        metric: metric.map(|at| at.value),
        transport: transport.map(|at| at.value),
        memory: memory.map(|at| at.value),
    }
}

/// The metric, unless the operation has no training step.
fn suited(test: &Table<'_>, metric: Option<At<TestMetric>>, op: Option<Op>) -> Option<At<TestMetric>> {
    let metric = metric?;
    let wrong = match (metric.value, op) {
        (TestMetric::Step, Some(op)) if op != Op::AllReduce => format!("{op} does not support metric = \"step\""),
        (TestMetric::Compute, Some(op)) if op != Op::Matmul => {
            let wrong = format!("{op} does not support metric = \"compute\"");
            let help = "matrix products (op = \"matmul\") are measured so; use \"bandwidth\" or \"latency\" for other operations";
            return test.reject(metric.span, wrong, help);
        }
        _ => return Some(metric),
    };
    let help = "a training step is an all_reduce; use \"bandwidth\" or \"latency\" for other operations";
    test.reject(metric.span, wrong, help)
}

/// Reads what kind of test within hosts it is, and reports keys it must not have.
fn of_host(
    test: &Table<'_>,
    op: &At<Op>,
    metric: Option<At<TestMetric>>,
    transport: Option<&At<Transport>>,
    own: Transport,
) -> Kind {
    let is_nic = own == Transport::Nic;
    let meaningless = OF_NETWORKS.iter().copied().filter(|name| !(is_nic && OF_NICS.contains(name)));
    let why = format!("does not apply to {}, which stays within a host", op.value);
    test.refuse(meaningless.chain(pattern::own_names()), &why);
    let fits = transport.is_none_or(|at| !at.own || at.value == own);
    if let Some(transport) = transport.filter(|_| !fits) {
        let mistake = Mistake::at(op.span.clone(), format!("{} is not supported over {}", op.value, transport.value));
        test.book.add(mistake.also(transport.span.clone(), "the transport").help("leave `transport` out"));
    }
    let wanted: &[TestMetric] = match op.value {
        Op::Matmul => &[TestMetric::Compute],
        Op::MemoryRead => &[TestMetric::Bandwidth, TestMetric::Latency],
        _ => &[TestMetric::Bandwidth],
    };
    let suits = metric.as_ref().is_none_or(|at| wanted.contains(&at.value));
    if let Some(metric) = metric.as_ref().filter(|_| !suits) {
        let message = format!("{} does not support metric = \"{}\"", op.value, metric.value);
        let words: Vec<String> = wanted.iter().map(|metric| format!("metric = \"{metric}\"")).collect();
        test.wrong(metric.span.clone(), message, format!("set {}", words.join(" or ")));
    }
    let memory = match own {
        Transport::Nic => of_loop(test),
        Transport::Gpu => Some(Memory::Cuda),
        _ => Some(Memory::Host),
    };
    Kind {
        op: fits.then_some(op.value),
        metric: metric.filter(|_| suits).map(|at| at.value),
        transport: Some(own),
        service: Some(Service::Rc),
        memory: memory.map(PerEnd::same),
        gpu_path: if is_nic { path_of_nic(test, memory) } else { None },
        bidirectional: false,
        qps: vec![1],
    }
}

fn memory(test: &Table<'_>) -> Option<At<PerEnd<Memory>>> {
    test.per_end("memory", |table, name| Some(table.term(name, Memory::from_word)?.value))
}

fn of_loop(test: &Table<'_>) -> Option<Memory> {
    let memory = memory(test)?;
    if memory.value.from != memory.value.to {
        let message = "nic_loopback writes within one memory";
        return test.reject(memory.span, message, "set memory = \"host\" or memory = \"cuda\"");
    }
    Some(memory.value.from)
}

/// The path from a NIC to the memory of its GPU. A staged path in the test itself is refused: the NIC would not access the GPU.
fn path_of_nic(test: &Table<'_>, memory: Option<Memory>) -> Option<GpuPath> {
    let path = test.term("gpu_path", GpuPath::from_word)?;
    let wrong = match (memory?, path.value) {
        (Memory::Host, _) => {
            Some(("`gpu_path` does not apply to host memory", "leave it out, or set memory = \"cuda\""))
        }
        (_, GpuPath::Staged) => Some((
            "nic_loopback is not measured through host memory: the NIC would not reach the GPU",
            "use gpu_path = \"gdr-dmabuf\" or \"gdr-peermem\", or leave it out; memory = \"host\" measures the way to host memory",
        )),
        _ => None,
    };
    let Some((message, help)) = wrong else { return Some(path.value) };
    if path.own {
        test.wrong(path.span, message, help);
    }
    None
}

fn of_group(
    test: &Table<'_>,
    op: &At<Op>,
    metric: Option<At<TestMetric>>,
    transport: Option<&At<Transport>>,
    memory: Option<&At<PerEnd<Memory>>>,
) -> Kind {
    let fits = transport.is_some_and(|transport| carried_in_group(test, op, transport.value));
    let (lives, words) = match transport.map(|transport| transport.value) {
        Some(Transport::Verbs | Transport::Tcp) => (Memory::Host, "collectives over verbs and TCP work on host memory"),
        _ => (Memory::Cuda, "NCCL works on GPU memory"),
    };
    if let Some(memory) = memory.filter(|memory| fits && memory.own && memory.value != PerEnd::same(lives)) {
        test.wrong(memory.span.clone(), words, format!("leave `memory` out, or set memory = \"{lives}\""));
    }
    Kind {
        op: fits.then_some(op.value),
        metric: metric.map(|at| at.value),
        transport: transport.filter(|_| fits).map(|transport| transport.value),
        service: Some(Service::Rc),
        memory: Some(PerEnd::same(lives)),
        gpu_path: None,
        bidirectional: false,
        qps: vec![1],
    }
}

fn carried_in_group(test: &Table<'_>, op: &At<Op>, transport: Transport) -> bool {
    if transport.carries(op.value) || transport == Transport::Tcp && !op.value.is_collective() {
        return true;
    }
    let carried = |op: &&Op| op.is_collective() && transport.carries(**op);
    let there = Op::ALL.iter().filter(carried).map(|op| op.word()).collect::<Vec<_>>().join(", ");
    let mistake = match transport {
        Transport::Nccl => Mistake::at(op.span.clone(), format!("NCCL does not support {}", op.value))
            .help(format!("transport = \"nccl\" supports {there}")),
        other => Mistake::at(op.span.clone(), format!("{} is not supported over {other}", op.value))
            .help(format!("between GPUs use transport = \"nccl\"; {other} supports {there}")),
    };
    test.book.add(mistake);
    false
}

fn carried(test: &Table<'_>, op: At<Op>, tcp: bool) -> Option<Op> {
    if tcp && !Transport::Tcp.carries(op.value) {
        let message = format!("TCP cannot carry {}", op.value);
        return test.reject(op.span, message, "TCP supports write, read and send; for RDMA use transport = \"verbs\"");
    }
    Some(op.value)
}

fn within_host(test: &Table<'_>, op: Op, transport: Option<&At<Transport>>) -> bool {
    let Some(transport) = transport.filter(|at| at.value.is_within_host() && !at.value.carries(op)) else {
        return true;
    };
    let carried: Vec<_> = Op::ALL.iter().filter(|op| transport.value.carries(**op)).map(|op| op.word()).collect();
    let help = format!("{} stays within a host: it carries {}", transport.value, carried.join(", "));
    test.wrong(transport.span.clone(), format!("{op} is not supported over {}", transport.value), help);
    false
}

fn service(test: &Table<'_>, op: Option<&At<Op>>, transport: Option<&At<Transport>>) -> Option<Service> {
    if let Some(transport) = transport.filter(|transport| transport.value == Transport::Tcp) {
        if let Some(span) = test.name_span("service") {
            let mistake = Mistake::at(span, "`service` does not apply to TCP");
            let mistake = if transport.own { mistake.also(transport.span.clone(), "the transport") } else { mistake };
            test.book.add(mistake.help("leave it out: queue pairs belong to verbs"));
        }
        return Some(Service::Rc);
    }
    let service = test.term("service", Service::from_word)?;
    transport?;
    let Some(op) = op else { return Some(service.value) };
    if service.value.carries(op.value) {
        return Some(service.value);
    }
    let carried: Vec<_> = Op::ALL.iter().filter(|op| service.value.carries(**op)).map(|op| op.word()).collect();
    // Reported even if inherited: a service other than the plan's would be measured.
    let message = format!("the service {} cannot carry {}", service.value, op.value);
    let mistake = Mistake::at(op.span.clone(), message).also(service.span, "the service");
    test.book.add(mistake.help(format!("{} carries {}; rc carries everything", service.value, carried.join(", "))));
    None
}

/// The path of GPU memory: a socket has only one, and a staged path needs a target that is notified of every message.
fn gpu_path(
    test: &Table<'_>,
    memory: Option<&At<PerEnd<Memory>>>,
    transport: Option<&At<Transport>>,
    op: Option<&At<Op>>,
) -> Option<GpuPath> {
    let path = test.term("gpu_path", GpuPath::from_word)?;
    if !memory?.value.has_gpu() {
        if path.own {
            test.wrong(path.span, "`gpu_path` does not apply to host memory", "leave it out, or set memory = \"cuda\"");
        }
        return None;
    }
    let mistake = match (transport.map(|transport| transport.value), path.value, op) {
        (Some(Transport::Tcp), GpuPath::GdrDmabuf | GpuPath::GdrPeermem | GpuPath::Gdr, _) => {
            let mistake = Mistake::at(path.span, format!("a socket cannot reach GPU memory by {}", path.value));
            mistake.help("over TCP use gpu_path = \"staged\": through page-locked host memory")
        }
        (Some(Transport::Verbs), GpuPath::Staged, Some(op)) if !op.value.takes_receives() => {
            let message = format!("{} does not notify its target, so data cannot be staged there", op.value);
            let mistake = Mistake::at(op.span.clone(), message).also(path.span, "the path");
            mistake.help("gpu_path = \"staged\" supports send and write_imm")
        }
        _ => return Some(path.value),
    };
    test.book.add(mistake);
    None
}

fn bidirectional(test: &Table<'_>, metric: Option<&At<TestMetric>>) -> bool {
    let Some(both) = test.flag("bidirectional").filter(|both| both.value) else { return false };
    match metric {
        Some(metric) if metric.value == TestMetric::Latency => {
            if both.own {
                let message = "latency cannot be measured in both directions at once";
                test.wrong(both.span, message, "leave `bidirectional` out");
            }
            false
        }
        _ => true,
    }
}

fn qps(test: &Table<'_>, metric: Option<&At<TestMetric>>) -> Vec<u32> {
    let Some(given) = test.wholes::<u32>("qps") else { return vec![1] };
    let latency = metric.is_some_and(|metric| metric.value == TestMetric::Latency);
    if latency && !given.own {
        return vec![1];
    }
    for qps in given.value.iter().filter(|qps| latency && qps.value != 1) {
        test.wrong(qps.span.clone(), "latency is measured on one queue pair", "leave `qps` out");
    }
    let mut list = test.unique("qps", given.value);
    list.sort_unstable();
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{model::Test, parse};

    const NCCL: &str = "op = \"all_reduce\"\ntransport = \"nccl\"";
    const LOOP: &str = "op = \"nic_loopback\"";
    const EACH: &str = "memory = { from = \"host\", to = \"cuda\" }";

    fn read(rest: &str) -> Result<Test, String> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = \"a[1-2]\" }\n[[test]]\n";
        let text = format!("{head}metric = \"bandwidth\"\n{rest}\n");
        let parsed = parse("p.toml", &text, std::path::Path::new(""));
        parsed.map(|(mut plan, _)| plan.tests.remove(0)).map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn each_end_of_a_pair_may_have_its_own_memory_and_gpu() {
        let test = read(&format!("op = \"write\"\n{EACH}\ngpus = [2, 3]\ngpu_path = \"gdr-dmabuf\"")).unwrap();
        assert_eq!(test.memory, PerEnd { from: Memory::Host, to: Memory::Cuda });
        assert_eq!((test.gpus, test.gpu_path), (PerEnd::same(vec![2, 3]), Some(GpuPath::GdrDmabuf)));
        assert_eq!(test.memory.to_string(), "host to cuda");
        let test = read("op = \"write\"\nmemory = \"cuda\"\ngpus = { from = 0, to = [4, 5] }").unwrap();
        assert_eq!((test.memory, test.gpus), (PerEnd::same(Memory::Cuda), PerEnd { from: vec![0], to: vec![4, 5] }));
        let knobs = "knobs = { inline = 0, huge_pages = true, data_direct = false }";
        read(&format!("op = \"write\"\n{EACH}\n{knobs}")).expect("of the end that each applies to");
    }

    #[test]
    fn ends_that_cannot_differ_are_refused() {
        for (rest, words) in [
            (format!("{NCCL}\n{EACH}"), "NCCL works on GPU memory"),
            (format!("{LOOP}\n{EACH}"), "within one memory"),
            (format!("{LOOP}\nmemory = \"cuda\"\ngpus = {{ from = 0, to = 1 }}"), "pairs with GPU memory at both"),
            (format!("{NCCL}\ngpus = {{ from = 0, to = 1 }}"), "pairs with GPU memory at both"),
            (format!("op = \"write\"\n{EACH}\ngpus = {{ from = 0, to = 1 }}"), "pairs with GPU memory at both"),
            ("op = \"write\"\nmemory = { from = \"cuda\" }".into(), "`to` is missing"),
            ("op = \"write\"\nmemory = { from = \"cuda\", at = \"host\", to = \"host\" }".into(), "unknown key `at`"),
            ("op = \"write\"\nmemory = { from = \"cuda\", to = \"disk\" }".into(), "`to` cannot be \"disk\""),
            ("op = \"write\"\nmemory = [\"cuda\", \"host\"]".into(), "{ from = …, to = … }"),
        ] {
            let refused = read(&rest).expect_err(&rest);
            assert!(refused.contains(words), "{rest}: {refused}");
        }
    }

    #[test]
    fn equal_ends_are_one_word_in_json() {
        let json = |memory| serde_json::to_value(memory).unwrap();
        let each = PerEnd { from: Memory::Cuda, to: Memory::Host };
        assert_eq!(json(PerEnd::same(Memory::Cuda)), serde_json::json!("cuda"));
        assert_eq!(json(each), serde_json::json!({ "from": "cuda", "to": "host" }));
        for memory in [each, PerEnd::same(Memory::Host)] {
            assert_eq!(serde_json::from_value::<PerEnd<Memory>>(json(memory)).unwrap(), memory);
        }
    }
}
