use railgauge_wire::terms::{GpuPath, Memory, Op, Service, TestMetric, Transport};

use crate::plan::{
    mistakes::Mistake,
    per_end::PerEnd,
    read::{At, Table},
};

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
    let metric = super::training::suited(test, metric, words.0);
    if let Some((op, own)) = op.as_ref().and_then(|op| Some((op, op.value.within_host()?))) {
        return super::node::read(test, op, metric, transport.as_ref(), own);
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

fn of_group(
    test: &Table<'_>,
    op: &At<Op>,
    metric: Option<At<TestMetric>>,
    transport: Option<&At<Transport>>,
    memory: Option<&At<PerEnd<Memory>>>,
) -> Kind {
    let fits = transport.is_some_and(|transport| super::collective::carried(test, op, transport.value));
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

pub fn memory(test: &Table<'_>) -> Option<At<PerEnd<Memory>>> {
    test.per_end("memory", |table, name| Some(table.term(name, Memory::from_word)?.value))
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
