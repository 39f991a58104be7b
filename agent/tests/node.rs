//! Host memory of this machine, as an agent reads, writes and copies it.

use railgauge_wire::{
    Answer, Ask, Bytes, Checked, Kind, LinkLayer, Nanoseconds, NodeAccount, NodeFlow, NodeSpec, Op, Part, TestMetric,
    Window,
};

use crate::controller::{Agent, DEADLINE_MS, command, patiently};

const SIZE: Bytes = Bytes(8 * 1024 * 1024 + 24);

fn spec(op: Op, nodes: &[u32]) -> NodeSpec {
    NodeSpec {
        op,
        metric: TestMetric::Bandwidth,
        size: SIZE,
        window: Window::Duration(Nanoseconds::from_millis(250)),
        warm_up: Nanoseconds::from_millis(50),
        verify: Some(7),
        deadline_ms: DEADLINE_MS,
        precision: None,
        cached: true,
        flows: nodes.iter().map(|node| flow(*node)).collect(),
    }
}

fn flow(node: u32) -> NodeFlow {
    NodeFlow { from: Part::Processors(node), to: Part::Processors(node) }
}

fn measured(mut agent: Agent, spec: NodeSpec) -> Vec<NodeAccount> {
    match agent.ask(Ask::Node(Box::new(spec))) {
        Ok(Answer::Node(accounts)) => accounts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_byte_is_verified_twice_and_the_window_is_the_time_asked_for() {
    for op in [Op::MemoryRead, Op::MemoryWrite, Op::MemoryCopy] {
        // Until something was done in it: how much is a matter of what else runs here.
        let account = patiently("a pass with bytes in it", || {
            let account = measured(Agent::start(), spec(op, &[0])).remove(0);
            assert_eq!(account.account.failure, None, "{op}");
            Some(account).filter(|account| !account.account.measured.as_ref().unwrap().bytes.is_zero())
        });
        let right = Checked { verified: SIZE * 2, wrong: Bytes::ZERO, first_wrong: None };
        assert_eq!(account.account.checked, right, "{op}");
        let measured = account.account.measured.unwrap();
        assert_eq!(measured.elapsed, Nanoseconds::from_millis(250), "{op}");
        assert_eq!(measured.operations, measured.bytes.0.div_ceil(SIZE.0), "{op}");
        assert_eq!(measured.slices.len(), 2, "{op}");
        assert_eq!((account.link_layer, account.devices.0.as_str()), (Some(LinkLayer::Memory), "node0"), "{op}");
    }
}

#[test]
fn a_number_of_passes_is_that_many_bytes() {
    let spec = NodeSpec { window: Window::Iterations(3), ..spec(Op::MemoryCopy, &[0]) };
    let measured = measured(Agent::start(), spec).remove(0).account.measured.unwrap();
    assert_eq!((measured.operations, measured.bytes), (3, SIZE * 3));
}

/// A latency of reads over so many bytes, in nanoseconds.
fn latency(size: Bytes, environment: &[(&str, &str)]) -> NodeAccount {
    let spec = NodeSpec { metric: TestMetric::Latency, size, ..spec(Op::MemoryRead, &[0]) };
    measured(Agent::greeted(command().envs(environment.iter().copied())), spec).remove(0)
}

/// A latency of reads that went well, in nanoseconds.
fn each(size: Bytes) -> f64 {
    let account = latency(size, &[]);
    assert_eq!(account.account.failure, None);
    assert_eq!(account.account.checked.verified, size * 2);
    let measured = account.account.measured.unwrap();
    assert!(measured.operations > 0 && measured.bytes == Bytes(64) * measured.operations, "{measured:?}");
    assert_eq!((&*account.settings["threads"], &*account.devices.0), ("1", "node0"));
    assert!(account.settings["on_huge_pages"].ends_with(&format!("of {} bytes", size.0)), "{:?}", account.settings);
    *measured.each.unwrap()
}

#[test]
fn reads_that_wait_for_each_other_are_counted() {
    assert!(each(Bytes::from_kib(8)) > 0.0);
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn reads_take_longer_outside_of_the_caches() {
    // The first cache of any processor holds 8 KiB, and few hold 256 MiB.
    let (near, far) = (each(Bytes::from_kib(8)), each(Bytes::from_mib(256)));
    // In a debug build most of either is the loop.
    assert!(far > 1.1 * near, "{near} and {far} ns");
}

#[test]
fn a_wrong_byte_of_a_latency_is_found() {
    let account = latency(Bytes::from_mib(1), &[("RAILGAUGE_FAULT", "flip-bit")]).account;
    assert!(account.checked.wrong >= Bytes(2), "{account:?}");
}

#[test]
fn a_node_that_is_not_there_fails_alone() {
    let accounts = measured(Agent::start(), spec(Op::MemoryRead, &[0, 400]));
    assert_eq!(accounts[0].account.failure, None);
    let failure = accounts[1].account.failure.as_ref().unwrap();
    assert!(failure.kind == Kind::Configuration && failure.cause.contains("no NUMA node 400"), "{failure}");
}

#[test]
fn a_wrong_byte_of_memory_is_found() {
    for op in [Op::MemoryRead, Op::MemoryWrite, Op::MemoryCopy] {
        let agent = Agent::greeted(command().env("RAILGAUGE_FAULT", "flip-bit"));
        let checked = measured(agent, spec(op, &[0])).remove(0).account.checked;
        assert!(checked.wrong >= Bytes(2), "{op}: {checked:?}");
    }
}

#[test]
fn what_lies_in_caches_is_no_memory() {
    let spec = NodeSpec { cached: false, size: Bytes(4096), ..spec(Op::MemoryRead, &[0]) };
    let account = measured(Agent::start(), spec).remove(0);
    // A machine that does not tell its caches cannot refuse.
    match account.account.failure {
        Some(failure) => assert_eq!(failure.remedy.unwrap().id, "beyond-caches"),
        None => assert_eq!(account.settings["last_level_caches"], "unknown"),
    }
}
