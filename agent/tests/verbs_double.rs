//! Verbs on a host without an RDMA device: agents with a double of libibverbs (`examples/verbs_double`).

#[path = "double/loopback.rs"]
mod loopback;

use std::{collections::BTreeMap, thread};

use railgauge_wire::{
    Answer, Ask, Bytes, Carrier, CaseSpec, Checked, Completion, Endpoint, GigabitsPerSecond, Joining, LinkLayer,
    LinkSpec, MegabitsPerSecond, Nanoseconds, Op, Role, Service, Step, TestMetric, Timing, Window, drivers,
};

use crate::{
    controller::{
        Agent, DEADLINE_MS, ENDLESS,
        pair::{LINK, Pair, opened, spec, step, timing},
        patiently,
    },
    double::{
        Fabric,
        devices::{self, Device},
        verbs,
    },
};

const ROCE: [&str; 8] = ["mlx5-roce", "mlx5-bond", "cx8", "vf-lag", "spectrum-x", "bnxt", "ionic", "irdma-roce"];

/// A speed as interfaces have it.
fn megabits(speed: &str) -> Option<GigabitsPerSecond> {
    speed.parse().ok().map(|megabits| GigabitsPerSecond::from(MegabitsPerSecond(megabits)))
}

#[test]
fn every_operation_moves_the_bytes_it_says() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "mlx5-roce")]);
    let (near, _) = fabric.pair.open(verbs(Service::Rc), 2, 1 << 20).unwrap();
    assert_eq!((near.transport, near.link_layer), (Carrier::VerbsRc, LinkLayer::RoceV2));
    for (op, size) in
        [(Op::Write, 7), (Op::Write, 1 << 20), (Op::Read, 100_003), (Op::Send, 65536), (Op::WriteImm, 4096)]
    {
        let right = Checked { verified: Bytes(2 * size), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(op, size, 1), right, "{op}");
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, size, Window::Iterations(20)));
        assert_eq!((near.operations, near.bytes), (40, Bytes(40 * size)), "{op}");
        assert_eq!(fabric.pair.verify(op, size, 2), right, "{op}");
    }
    for op in [Op::AtomicFadd, Op::AtomicCas] {
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, 8, Window::Iterations(20)));
        assert_eq!(near.operations, 40, "{op}");
    }
}

#[test]
fn atomics_in_both_directions_at_once_add_up() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "mlx5-roce")]);
    fabric.pair.open(verbs(Service::Rc), 2, 4096).unwrap();
    for op in [Op::AtomicFadd, Op::AtomicCas] {
        // Until the other end has done some: on a busy machine it may begin late.
        patiently("operations in both directions", || {
            let one_way = timing(op, TestMetric::Bandwidth, 8, Window::Duration(Nanoseconds::from_millis(100)));
            let (near, far) = fabric.pair.time(Timing { bidirectional: true, ..one_way });
            assert!(near.operations > 0, "{op}: {near:?} {far:?}");
            (far.operations > 0).then_some(())
        });
    }
}

#[test]
fn both_ends_count_what_arrives_of_messages_in_both_directions_at_once() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "mlx5-roce")]);
    fabric.pair.open(verbs(Service::Rc), 2, 1 << 16).unwrap();
    for op in [Op::Send, Op::WriteImm] {
        fabric.pair.verify(op, 4096, 1);
        let window = Window::Duration(Nanoseconds::from_millis(50));
        let one_way = timing(op, TestMetric::Bandwidth, 4096, window);
        let warm_up = Nanoseconds::from_millis(5);
        let (near, far) = fabric.pair.time(Timing { bidirectional: true, warm_up, ..one_way });
        assert!(near.moved > Some(near.bytes) && far.moved.is_some(), "{op}: {near:?} {far:?}");
        assert_eq!([near.received, far.received], [far.moved, near.moved], "{op}");
    }
}

/// What is read of the words before a pass of atomics takes one packet for each queue pair, not one for each of 64 words.
#[test]
fn atomics_are_ready_for_a_start_in_common() {
    let mut fabric = Fabric::with_tree("mlx5-roce");
    fabric.pair.open(verbs(Service::Rc), 4, 4096).unwrap();
    let first = timing(Op::AtomicFadd, TestMetric::Bandwidth, 8, Window::Iterations(4));
    let mut sent = |timing| {
        let (near, _) = fabric.pair.time(timing);
        let counters = counters(&mut fabric.pair.initiator, &devices::named("mlx5-roce"));
        (near, counters["counters/port_xmit_packets"])
    };
    let (before, packets) = sent(first);
    let start = before.started + before.elapsed + Nanoseconds::from_millis(400);
    let (near, all) = sent(Timing { start_at: Some(start), ..first });
    assert_eq!(near.operations, 16);
    assert!(near.started >= start, "{near:?}");
    // 16 atomics, the words before and after them, and what the two ends say to each other.
    assert!((16 + 8..16 + 64).contains(&(all - packets)), "{packets} and {all}");
}

/// One packet for each word of these queue pairs would take 0.8 s on a device whose completions come 3 ms late.
#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn atomics_keep_a_start_in_common() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_HOSTILE", "late-completions")]);
    fabric.pair.open(verbs(Service::Rc), 4, 4096).unwrap();
    let first = timing(Op::AtomicFadd, TestMetric::Bandwidth, 8, Window::Iterations(4));
    let (before, _) = fabric.pair.time(first);
    let start = before.started + before.elapsed + Nanoseconds::from_millis(400);
    let (near, _) = fabric.pair.time(Timing { start_at: Some(start), ..first });
    assert_eq!(near.operations, 16);
    let late = near.started.saturating_sub(start);
    assert!(near.started >= start && late < Nanoseconds::from_millis(100), "{late} after the start in common");
}

#[test]
fn every_operation_has_a_latency() {
    let mut fabric = Fabric::new(&[]);
    fabric.pair.open(verbs(Service::Rc), 1, 65536).unwrap();
    for (op, size) in [(Op::Write, 8), (Op::WriteImm, 8), (Op::Read, 4096), (Op::Send, 8), (Op::AtomicFadd, 8)] {
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Latency, size, Window::Iterations(20)));
        assert_eq!(near.operations, 20, "{op}: {near:?}");
        assert!(near.latency.is_some(), "{op}");
    }
}

#[test]
fn unreliable_services_move_bytes_too() {
    for (service, carrier, op, size) in
        [(Service::Uc, Carrier::VerbsUc, Op::Write, 65536), (Service::Ud, Carrier::VerbsUd, Op::Send, 4096)]
    {
        let mut fabric = Fabric::new(&[]);
        let (near, _) = fabric.pair.open(verbs(service), 1, size).unwrap();
        assert_eq!(near.transport, carrier);
        assert_eq!(
            fabric.pair.verify(op, size, 1),
            Checked { verified: Bytes(size), wrong: Bytes(0), first_wrong: None },
            "{service}"
        );
        let (near, far) = fabric.pair.time(timing(op, TestMetric::Bandwidth, size, Window::Iterations(20)));
        assert_eq!(near.operations, 20, "{service}: {near:?} {far:?}");
    }
}

#[test]
fn a_sleeping_loop_is_woken_by_events() {
    let mut fabric = Fabric::new(&[]);
    let change = |spec: &mut LinkSpec| {
        verbs(Service::Rc)(spec);
        spec.knobs.completion = Some(Completion::Events);
    };
    fabric.pair.open(change, 2, 65536).unwrap();
    let (near, _) = fabric.pair.time(timing(Op::Write, TestMetric::Bandwidth, 65536, Window::Iterations(20)));
    assert_eq!(near.operations, 40);
}

#[test]
fn roce_devices_of_every_maker_carry_writes() {
    for profile in ROCE {
        let device = devices::named(profile);
        let (near, _) = Fabric::with_tree(profile).writes();
        assert_eq!(
            (&*near.device, near.link_layer, near.software),
            (device.name, LinkLayer::RoceV2, false),
            "{profile}"
        );
        // Some of these drivers report a rate that is not the interface's, which is the true one, as in the facts.
        assert_eq!(near.rate_gbps, megabits(device.value("%speed").unwrap_or("400000")), "{profile}");
    }
}

#[test]
fn facts_are_those_of_the_tree_and_of_the_library() {
    for profile in ROCE {
        let device = devices::named(profile);
        let mut fabric = Fabric::with_tree(profile);
        let Ok(Answer::Facts(facts)) = fabric.pair.responder.ask(Ask::Facts) else { panic!("{profile}: no facts") };
        assert_eq!((&*facts.hostname, facts.rdma.len()), ("double2", 1), "{profile}");
        let found = &facts.rdma[0];
        let said = (&*found.name, found.driver.as_deref(), found.software);
        assert_eq!(said, (device.name, Some(device.driver), false), "{profile}");
        let port = &found.ports[0];
        assert_eq!((port.mtu, port.netdev.as_deref()), (Some(4096), Some("rail0")), "{profile}");
        let rate = device.value("%rate").unwrap_or("200 Gb/sec (4X HDR)");
        let reported = rate.split(' ').next().and_then(|rate| rate.parse().ok()).map(GigabitsPerSecond);
        assert_eq!(port.verbs_rate_gbps, reported, "{profile}");
        // Some of these drivers report a rate that is not the interface's, which is the true one.
        assert_eq!(port.rate_gbps, megabits(device.value("%speed").unwrap_or("400000")), "{profile}");
        assert!(facts.unreadable.keys().all(|what| !what.contains("rail0")), "{profile}: {:?}", facts.unreadable);
    }
}

/// Bytes that a port has counted, sent and received, by what its driver counts bytes in; `None` where nothing does.
fn counted(agent: &mut Agent, device: &Device) -> Option<(u64, u64)> {
    let counter = drivers::byte_counters(Some(device.driver)).first()?;
    let counters = counters(agent, device);
    let sum = |names: &[&str]| names.iter().filter_map(|name| counters.get(*name)).sum::<u64>() * counter.unit;
    Some((sum(counter.sent), sum(counter.received)))
}

fn counters(agent: &mut Agent, device: &Device) -> BTreeMap<String, u64> {
    match agent.ask(Ask::Counters { device: device.name.to_owned(), port: 1 }) {
        Ok(Answer::Counters(counters)) => counters,
        other => panic!("{}: {other:?}", device.profile),
    }
}

#[test]
fn ports_count_what_passes_them_in_the_units_of_their_drivers() {
    for profile in ["mlx5-roce", "mlx5-bond", "mlx5-ib", "vf-grh", "ionic", "irdma-roce", "irdma-iwarp"] {
        let device = devices::named(profile);
        let mut fabric = Fabric::with_tree(profile);
        let Pair { initiator, responder } = &mut fabric.pair;
        let before = [counted(initiator, &device), counted(responder, &device)].map(Option::unwrap);
        assert_eq!(before, [(0, 0); 2], "{profile}");
        fabric.writes();
        let Pair { initiator, responder } = &mut fabric.pair;
        let [near, far] = [counted(initiator, &device), counted(responder, &device)].map(Option::unwrap);
        // What `writes` moves, with headers and what the two ends say to each other.
        let payload = 21 * 65536;
        for (sent, received) in [(near.0, far.1), (far.0, near.1)] {
            assert!(sent.abs_diff(received) <= 4, "{profile}: {near:?} {far:?}");
        }
        assert!((payload..payload * 103 / 100 + 8192).contains(&near.0), "{profile}: {near:?}");
        assert!((1..payload / 10).contains(&near.1), "{profile}: {near:?}");
    }
}

/// bnxt_re: a second late, and so in no table of ours; what passes the interface by is not counted there.
#[test]
fn bytes_that_are_counted_late_are_held_against_nothing() {
    let device = devices::named("bnxt");
    let mut fabric = Fabric::with_tree("bnxt");
    fabric.writes();
    let agent = &mut fabric.pair.initiator;
    assert_eq!(counted(agent, &device), None);
    let is_there = |found: &BTreeMap<String, u64>| found["hw_counters/tx_bytes"] > 21 * 65536;
    let found = patiently("what the device has counted", || Some(counters(agent, &device)).filter(is_there));
    assert_eq!(found["netdev/tx_bytes"], 0);
}

#[test]
fn counters_that_are_stuck_stand_still() {
    let device = devices::named("mlx5-roce");
    let mut fabric = Fabric::of(&[("VERBS_DOUBLE_HOSTILE", "counters-stuck")], Some(device));
    fabric.writes();
    assert_eq!(counted(&mut fabric.pair.initiator, &device), Some((0, 0)));
}

#[test]
fn infiniband_is_addressed_by_lid() {
    let (near, _) = Fabric::with_tree("mlx5-ib").writes();
    assert_eq!((near.link_layer, near.software), (LinkLayer::Infiniband, false));
}

#[test]
fn a_port_that_wants_a_global_route_header_gets_one() {
    let (near, _) = Fabric::with_tree("vf-grh").writes();
    assert_eq!(near.link_layer, LinkLayer::Infiniband);
}

#[test]
fn efa_is_refused_by_its_name() {
    let mut fabric = Fabric::with_tree("efa");
    let mut spec = spec(Role::Initiator, 1, 65536);
    verbs(Service::Rc)(&mut spec);
    let failure = fabric.pair.initiator.ask(Ask::Open { link: 1, spec: Box::new(spec) }).unwrap_err();
    assert!(failure.cause.contains("EFA"), "{failure}");
}

#[test]
fn iwarp_is_joined_by_rdma_cm_and_has_no_atomics() {
    let mut fabric = Fabric::with_tree("irdma-iwarp");
    let (near, _) = fabric.writes();
    assert_eq!((near.link_layer, &*near.settings["joining"]), (LinkLayer::Iwarp, "rdma-cm"));
    let serve = Step::Serve { op: Op::AtomicFadd, metric: TestMetric::Bandwidth, size: Bytes(8), window: None };
    let failure = fabric.pair.responder.ask(step(serve)).unwrap_err();
    assert!(failure.cause.contains("no atomics"), "{failure}");
}

#[test]
fn a_link_ends_its_queue_pairs_before_the_memory_that_they_use() {
    for profile in ["mlx5-roce", "irdma-iwarp"] {
        let mut fabric = Fabric::with_tree(profile);
        fabric.writes();
        fabric.pair.verify(Op::Send, 4096, 2);
        for agent in [&mut fabric.pair.initiator, &mut fabric.pair.responder] {
            assert_eq!(agent.ask(Ask::Close { link: LINK }), Ok(Answer::Done));
        }
        assert_eq!(["1", "2"].map(|host| fabric.misuses(host)), ["", ""], "{profile}");
    }
}

/// Each link has a thread of its own, so that memory is registered and queues are made while others end.
#[test]
fn links_that_open_and_close_at_once_use_nothing_that_has_ended() {
    for profile in ["mlx5-roce", "irdma-iwarp"] {
        let mut fabric = Fabric::with_tree(profile);
        let agent = &mut fabric.pair.initiator;
        for _ in 0..4 {
            let asked = (0..8).map(|link| {
                let mut spec = spec(Role::Initiator, 2, 4096);
                verbs(Service::Rc)(&mut spec);
                (agent.post(Ask::Open { link, spec: Box::new(spec) }), agent.post(Ask::Close { link }))
            });
            for (open, close) in asked.collect::<Vec<_>>() {
                opened(agent.wait(open));
                assert_eq!(agent.wait(close), Ok(Answer::Done));
            }
        }
        assert_eq!(fabric.misuses("1"), "", "{profile}");
    }
}

#[test]
fn links_that_rdma_cm_makes_hear_of_an_event_each() {
    let hostile = [("VERBS_DOUBLE_PROFILE", "irdma-iwarp"), ("VERBS_DOUBLE_HOSTILE", "event=port-err@300")];
    let mut fabric = Fabric::of(&hostile, Some(devices::named("irdma-iwarp")));
    let change = verbs(Service::Rc);
    let pair = &mut fabric.pair;
    pair.open(&change, 1, 4096).unwrap();
    // A second link on the same devices, whose contexts librdmacm keeps for both.
    let second = LINK + 1;
    let open = |agent: &mut Agent, role| {
        let mut spec = spec(role, 1, 4096);
        change(&mut spec);
        opened(agent.ask(Ask::Open { link: second, spec: Box::new(spec) })).endpoint
    };
    let (near, far) = (open(&mut pair.initiator, Role::Initiator), open(&mut pair.responder, Role::Responder));
    let joining = pair.responder.post(Ask::Join { link: second, peer: near });
    opened(pair.initiator.ask(Ask::Join { link: second, peer: far }));
    opened(pair.responder.wait(joining));

    let timed = timing(Op::Write, TestMetric::Bandwidth, 4096, Window::Duration(ENDLESS));
    for link in [LINK, second] {
        let ask = Ask::Step { link, step: Step::Time(timed), limit_ms: DEADLINE_MS };
        let failure = pair.initiator.ask(ask).expect_err("the port went down while both links stood");
        assert!(failure.cause.contains("IBV_EVENT_PORT_ERR"), "link {link}: {failure}");
    }
}

#[test]
fn a_partition_that_rdma_cm_takes_is_not_told_as_that_of_the_ports_table() {
    let mut fabric = Fabric::with_tree("ib-pkey");
    // The interface that rdma_cm connects by; the double takes whatever address there is.
    let interfaces = fabric.folder.path().join("root1/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs");
    std::fs::create_dir_all(&interfaces).unwrap();
    std::fs::write(interfaces.join("0"), "lo\n").unwrap();
    for (joining, pkey) in [(Joining::Exchange, Some(0x8123)), (Joining::RdmaCm, None)] {
        let mut spec = spec(Role::Initiator, 1, 4096);
        verbs(Service::Rc)(&mut spec);
        spec.knobs.joining = Some(joining);
        let opened = opened(fabric.pair.initiator.ask(Ask::Open { link: LINK, spec: Box::new(spec) }));
        let Endpoint::Verbs(end) = &opened.endpoint else { panic!("{opened:?}") };
        assert_eq!((end.pkey, opened.settings.contains_key("pkey")), (pkey, pkey.is_some()), "{joining:?}");
        fabric.pair.initiator.ask(Ask::Close { link: LINK }).unwrap();
    }
}

#[test]
fn what_iwarp_lacks_is_refused_with_what_works_there() {
    let mut fabric = Fabric::with_tree("irdma-iwarp");
    let mut refused = |service, joining| {
        let mut spec = spec(Role::Initiator, 1, 65536);
        verbs(service)(&mut spec);
        spec.knobs.joining = joining;
        fabric.pair.initiator.ask(Ask::Open { link: 1, spec: Box::new(spec) }).unwrap_err().to_string()
    };
    for service in [Service::Uc, Service::Ud] {
        let said = refused(service, None);
        assert!(said.contains("iWARP has reliable connections only") && !said.contains("exchange"), "{said}");
    }
    let said = refused(Service::Rc, Some(Joining::Exchange));
    assert!(said.contains("iWARP joins queue pairs by rdma_cm only") && said.contains("leave `joining` out"), "{said}");
}

#[test]
fn a_service_that_a_device_lacks_is_refused_in_words() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "bnxt")]);
    let mut spec = spec(Role::Initiator, 1, 65536);
    verbs(Service::Uc)(&mut spec);
    // Without a tree of its own the GID's kind comes from the library, and the device counts as software.
    let failure = fabric.pair.initiator.ask(Ask::Open { link: 1, spec: Box::new(spec) }).unwrap_err();
    assert!(failure.cause.contains("creating a queue pair failed") && failure.cause.contains("uc"), "{failure}");
}

/// The processors that a thread may run on, as the kernel lists them (proc_pid_status(5)); its name is that in `comm`.
fn processors(process: u32, thread: &str) -> Option<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let text = |task: &std::path::Path, name| std::fs::read_to_string(task.join(name)).unwrap_or_default();
    let task = tasks.flatten().map(|task| task.path()).find(|task| text(task, "comm").trim_end() == thread)?;
    let status = text(&task, "status");
    Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned())
}

/// Whoever looks for the peer's turn does not compete with the loop that serves: it would have to wait for a time slice of it.
#[test]
fn a_watched_loop_has_its_core_for_itself() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "mlx5-roce")]);
    // The agent's main thread has the name of its program, cut to what the kernel keeps.
    let open = processors(fabric.pair.responder.child.id(), "railgauge-agent").unwrap();
    // A host of one processor has nowhere else to look from.
    let Some((_, last)) = open.rsplit_once(['-', ',']) else { return };
    let core = last.parse().unwrap();
    let pinned = |spec: &mut LinkSpec| {
        verbs(Service::Rc)(spec);
        spec.knobs.core = Some(core).filter(|_| spec.role == Role::Responder);
    };
    fabric.pair.open(pinned, 1, 4096).unwrap();
    let window = Window::Duration(Nanoseconds::from_millis(500));
    let timing = timing(Op::Write, TestMetric::Bandwidth, 64, window);
    let case = || Ask::Case { link: LINK, case: Box::new(CaseSpec { timing, verify: None, deadline_ms: DEADLINE_MS }) };
    let process = fabric.pair.responder.child.id();
    let is_off = || processors(process, "turn").is_some_and(|allowed| allowed != last && allowed != open);
    let look = || is_off().then(|| processors(process, &format!("link-{LINK}")));
    thread::scope(|scope| {
        let looks = scope.spawn(|| patiently("a watcher off the core", look));
        // It is there while a case is measured: on a busy machine not seen in the first one.
        while !looks.is_finished() {
            let (far, near) = (fabric.pair.responder.post(case()), fabric.pair.initiator.post(case()));
            for outcome in [fabric.pair.responder.wait(far), fabric.pair.initiator.wait(near)] {
                assert!(matches!(outcome, Ok(Answer::Case(account)) if account.failure.is_none()));
            }
        }
        assert_eq!(looks.join().unwrap().as_deref(), Some(last));
    });
}
