//! Devices that misbehave: agents with a hostile double of libibverbs (`examples/verbs_double/hostile.rs`). Of each way a test
//! says what comes of it: words that name it, or right figures.

use railgauge_wire::{
    Answer, Ask, Bytes, Checked, Kind, LinkSpec, Nanoseconds, Op, Pattern, Service, Stage, Step, Stepped, TestMetric,
    Window, WriteLatency,
};

use crate::{
    controller::{
        ENDLESS, Outcome,
        pair::{LINK, step, timing},
        patiently,
    },
    double::{Fabric, devices, verbs},
};

/// A fabric with a hostile device at both ends, and a link over it.
fn hostile(words: &str) -> Fabric {
    hostile_to(Service::Rc, words)
}

fn hostile_to(service: Service, words: &str) -> Fabric {
    opened(Fabric::new(&[("VERBS_DOUBLE_HOSTILE", words)]), service)
}

/// The same, on hosts that have the device of a profile.
fn hostile_device(profile: &str, service: Service, words: &str) -> Fabric {
    let settings = [("VERBS_DOUBLE_PROFILE", profile), ("VERBS_DOUBLE_HOSTILE", words)];
    opened(Fabric::of(&settings, Some(devices::named(profile))), service)
}

/// Opens a link that gives a silent peer up soon.
fn opened(mut fabric: Fabric, service: Service) -> Fabric {
    let quick = |spec: &mut LinkSpec| {
        verbs(service)(spec);
        (spec.knobs.timeout, spec.knobs.retry_count) = (Some(10), Some(3));
    };
    fabric.pair.open(quick, 1, 65536).unwrap();
    fabric
}

#[test]
fn a_wrong_byte_is_found() {
    let checked = hostile("wrong-byte=1").pair.verify(Op::Write, 65536, 1);
    assert_eq!((checked.verified, checked.wrong, checked.first_wrong), (Bytes(65536), Bytes(1), Some(32768)));
}

#[test]
fn late_completions_and_late_bytes_cost_time_and_nothing_else() {
    for words in ["late-completions", "last-byte-first"] {
        let mut fabric = hostile(words);
        let (near, _) = fabric.pair.time(timing(Op::Write, TestMetric::Bandwidth, 4096, Window::Iterations(20)));
        assert_eq!((near.operations, near.bytes), (20, Bytes(20 * 4096)), "{words}");
        let right = Checked { verified: Bytes(4096), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(Op::Write, 4096, 2), right, "{words}");
    }
}

#[test]
fn bytes_that_are_under_way_when_their_write_is_complete_are_not_wrong() {
    for service in [Service::Rc, Service::Uc] {
        let checked = hostile_to(service, "ack-before-data").pair.verify(Op::Write, 65536, 1);
        assert_eq!(checked, Checked { verified: Bytes(65536), wrong: Bytes(0), first_wrong: None }, "{service}");
    }
}

/// A completion of iWARP only says that TCP has the bytes. A pass is over when they have arrived: its time says so, and none of
/// them are counted in the next one.
#[test]
fn a_pass_over_iwarp_is_over_when_its_bytes_have_arrived() {
    // `hostile::BEHIND`, and a little less for clocks that differ.
    let behind = Nanoseconds::from_millis(29);
    for op in [Op::Write, Op::Send] {
        let settings = [("VERBS_DOUBLE_PROFILE", "irdma-iwarp"), ("VERBS_DOUBLE_HOSTILE", "ack-before-data")];
        let mut fabric = Fabric::of(&settings, Some(devices::named("irdma-iwarp")));
        let shallow = |spec: &mut LinkSpec| {
            verbs(Service::Rc)(spec);
            spec.knobs.depth = Some(4);
        };
        fabric.pair.open(shallow, 1, 65536).unwrap();
        let right = Checked { verified: Bytes(65536), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(op, 65536, 1), right, "{op}");
        let mut timing = timing(op, TestMetric::Bandwidth, 4096, Window::Iterations(4));
        let (near, _) = fabric.pair.time(timing);
        assert!(near.elapsed >= behind * 4, "{op}: {near:?}");
        timing.warm_up = Nanoseconds::from_millis(20);
        let (near, far) = fabric.pair.time(timing);
        assert_eq!((near.operations, near.bytes), (4, Bytes(4 * 4096)), "{op}");
        assert_eq!(far.operations, if op == Op::Send { 4 } else { 0 }, "{op}: {far:?}");
        assert_eq!(fabric.pair.verify(op, 65536, 2), right, "{op}");
    }
}

/// The end of each direction would be known only behind what the other sends.
#[test]
fn sends_in_both_directions_over_iwarp_are_refused_in_words() {
    let mut fabric = Fabric::with_tree("irdma-iwarp");
    fabric.pair.open(verbs(Service::Rc), 1, 65536).unwrap();
    let mut both = timing(Op::Send, TestMetric::Bandwidth, 4096, Window::Iterations(4));
    both.bidirectional = true;
    let (near, _) = fabric.pair.served(Op::Send, TestMetric::Bandwidth, 4096, Step::Time(both));
    let failure = near.unwrap_err();
    assert!(failure.cause.contains("not measured in both directions at once"), "{failure}");
    assert!(failure.remedy.is_some(), "{failure}");
}

/// siw has neither operation: the one that the latency of writes would turn into is refused as it is by its own name.
#[test]
fn the_latency_of_writes_by_immediate_data_is_refused_where_there_is_none() {
    let mut fabric = Fabric::with_tree("irdma-iwarp");
    for host in ["1", "2"] {
        let device = fabric.folder.path().join(format!("root{host}/sys/class/infiniband/irdma0"));
        std::fs::write(device.join("node_desc"), "Software iWARP stack\n").unwrap();
    }
    let immediate = |spec: &mut LinkSpec| {
        verbs(Service::Rc)(spec);
        spec.knobs.write_latency = Some(WriteLatency::Immediate);
    };
    let (near, _) = fabric.pair.open(immediate, 1, 4096).unwrap();
    assert_eq!(near.settings["driver"], "siw");
    for op in [Op::Write, Op::WriteImm] {
        let pings = timing(op, TestMetric::Latency, 8, Window::Iterations(4));
        let serve = Step::Serve { op, metric: TestMetric::Latency, size: Bytes(8), window: None };
        let ends = [(&mut fabric.pair.initiator, Step::Time(pings)), (&mut fabric.pair.responder, serve)];
        for (agent, part) in ends {
            let failure = agent.ask(step(part)).unwrap_err();
            assert_eq!(failure.kind, Kind::Unsupported, "{op}: {failure}");
            assert!(failure.cause.contains("no writes with immediate data"), "{op}: {failure}");
            let next = if op == Op::Write { "poll-writes" } else { "leave-tests-out" };
            assert_eq!(failure.remedy.unwrap().id, next, "{op}");
        }
    }
    // The bandwidth of writes needs none.
    let (near, _) = fabric.pair.time(timing(Op::Write, TestMetric::Bandwidth, 4096, Window::Iterations(4)));
    assert_eq!(near.operations, 4);
}

#[test]
fn a_port_that_goes_down_ends_a_window_in_words() {
    let mut fabric = hostile("port-down-after=200");
    let failure = endless(&mut fabric, Op::Write).unwrap_err();
    assert!(failure.cause.contains("retries exceeded") || failure.cause.contains("port"), "{failure}");
}

/// Every word that a device is asked to misbehave by is in a test: here, or in a whole run.
#[test]
fn every_word_has_a_test() {
    let code = include_str!("../examples/verbs_double/hostile.rs");
    let tests = [
        include_str!("verbs_hostile.rs"),
        include_str!("verbs_devices.rs"),
        include_str!("../../tests/devices/main.rs"),
    ]
    .concat();
    let words = code.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" =>"));
    let events = code.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", event::"));
    let words: Vec<&str> = words.chain(events).map(|(word, _)| word).collect();
    assert!(words.len() > 15, "{words:?}");
    for word in words {
        let named =
            ["\"", ",", "=", "("].map(|before| ["\"", "=", "@"].map(|after| format!("{before}{word}{after}"))).concat();
        assert!(named.iter().any(|named| tests.contains(named)), "no test names `{word}`");
    }
}

fn windowed(fabric: &mut Fabric, op: Op, window: Nanoseconds) -> Outcome {
    let timing = timing(op, TestMetric::Bandwidth, 4096, Window::Duration(window));
    fabric.pair.served(op, TestMetric::Bandwidth, 4096, Step::Time(timing)).0
}

/// A window that something ends, 200 ms after its first request.
fn endless(fabric: &mut Fabric, op: Op) -> Outcome {
    windowed(fabric, op, ENDLESS)
}

/// Windows over which an event comes: that with this number, and the agents of these hosts have looked at it.
fn over_event(fabric: &mut Fabric, op: Op, number: &str, hosts: &[&str]) {
    patiently("the event", || {
        let outcome = windowed(fabric, op, Nanoseconds::from_millis(200));
        let Ok(Answer::Stepped(Stepped::Measured(measured))) = &outcome else { panic!("event {number}: {outcome:?}") };
        assert_eq!(measured.bytes, Bytes(4096 * measured.operations), "event {number}");
        hosts.iter().all(|host| !fabric.noted("events", host).is_empty()).then_some(())
    });
    for host in hosts {
        assert_eq!(fabric.noted("events", host), [number], "host {host}");
    }
}

#[test]
fn events_that_end_a_link_end_its_window_by_their_names() {
    for (word, profile, named) in [
        ("qp-fatal@200", "mlx5-roce", "IBV_EVENT_QP_FATAL"),
        ("device-fatal@200", "mlx5-roce", "IBV_EVENT_DEVICE_FATAL"),
        ("port-err@200", "mlx5-roce", "IBV_EVENT_PORT_ERR"),
        ("new-lid@200", "mlx5-ib", "IBV_EVENT_LID_CHANGE"),
        ("lost-pkey@200", "mlx5-ib", "IBV_EVENT_PKEY_CHANGE"),
        ("lost-gid@200", "mlx5-roce", "IBV_EVENT_GID_CHANGE"),
    ] {
        let mut fabric = hostile_device(profile, Service::Rc, &format!("event={word}"));
        let failure = match endless(&mut fabric, Op::Write) {
            Err(failure) => failure,
            Ok(figure) => panic!("{word}: {figure:?}"),
        };
        assert!(failure.cause.contains(named) && failure.cause.contains("mlx5_0"), "{word}: {failure}");
        assert!(failure.remedy.is_some(), "{word}: {failure}");
    }
}

/// A subnet manager that gives the same again, a port that comes up, an address that is added: no case ends for that.
#[test]
fn events_that_change_nothing_end_nothing() {
    // With their numbers in `enum ibv_event_type` of <infiniband/verbs.h>.
    for (word, profile, number) in [
        ("port-active@100", "mlx5-roce", "9"),
        ("sm-change@100", "mlx5-ib", "13"),
        ("lid-change@100", "mlx5-ib", "11"),
        ("pkey-change@100", "mlx5-ib", "12"),
        ("gid-change@100", "mlx5-roce", "18"),
    ] {
        let mut fabric = hostile_device(profile, Service::Rc, &format!("event={word}"));
        // A send takes both ends' work: their clocks of events run from the first request that they post.
        over_event(&mut fabric, Op::Send, number, &["1", "2"]);
        let right = Checked { verified: Bytes(4096), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(Op::Send, 4096, 2), right, "{word}");
    }
}

/// A link that outlives breaks goes on after its port was down for a moment; what ends its queue pairs ends it, too.
#[test]
fn a_link_that_rides_breaks_out_is_ended_by_its_queue_pairs_alone() {
    let riding = |event: &str| {
        let settings = [("VERBS_DOUBLE_PROFILE", "mlx5-roce"), ("VERBS_DOUBLE_HOSTILE", event)];
        let mut fabric = Fabric::of(&settings, Some(devices::named("mlx5-roce")));
        let change = |spec: &mut LinkSpec| {
            verbs(Service::Rc)(spec);
            spec.rides_out = true;
        };
        fabric.pair.open(change, 1, 65536).unwrap();
        fabric
    };
    over_event(&mut riding("event=port-err@200"), Op::Write, "10", &["1"]);
    let failure = endless(&mut riding("event=qp-fatal@200"), Op::Write).unwrap_err();
    assert!(failure.cause.contains("IBV_EVENT_QP_FATAL"), "{failure}");
}

#[test]
fn a_completion_queue_that_runs_over_is_named_and_gives_no_figure() {
    for service in [Service::Rc, Service::Uc] {
        let mut fabric = hostile_device("mlx5-roce", service, "cq-overrun=20");
        let failure = endless(&mut fabric, Op::Write).unwrap_err();
        assert!(failure.cause.contains("IBV_EVENT_CQ_ERR"), "{service}: {failure}");
        assert!(failure.cause.contains("a completion queue ran over or broke"), "{service}: {failure}");
    }
}

/// Whatever completes first: every datagram counts once, and its bytes are looked at where they are.
#[test]
fn datagrams_that_complete_out_of_order_are_counted_right() {
    let mut fabric = hostile_to(Service::Ud, "reordered-completions");
    let right = Checked { verified: Bytes(4096), wrong: Bytes(0), first_wrong: None };
    assert_eq!(fabric.pair.verify(Op::Send, 4096, 1), right);
    let (near, far) = fabric.pair.time(timing(Op::Send, TestMetric::Bandwidth, 4096, Window::Iterations(200)));
    assert_eq!((near.operations, near.bytes), (200, Bytes(200 * 4096)), "{near:?} {far:?}");
    assert!(far.operations <= 200, "{far:?}");
    assert_eq!(fabric.pair.verify(Op::Send, 4096, 2), right);
}

/// A verify pass that its deadline ends while it waits for the peer, or for what was lost on the way, says that it was one.
#[test]
fn a_verify_pass_that_runs_out_of_time_is_named_one() {
    let pattern = Pattern { size: Bytes(4096), seed: 42, iteration: 1 };
    let transfer = |limit_ms| Ask::Step { link: LINK, step: Step::Transfer { op: Op::Send, pattern }, limit_ms };
    let serve = Step::Serve { op: Op::Send, metric: TestMetric::Bandwidth, size: pattern.size, window: None };
    let mut fabric = hostile_to(Service::Ud, "lost-datagrams");
    assert_eq!(fabric.pair.responder.ask(step(serve)), Ok(Answer::Done));
    // Nothing comes for 100 ms before it is taken for lost.
    let failure = fabric.pair.initiator.ask(transfer(60)).unwrap_err();
    assert_eq!((failure.kind, failure.stage), (Kind::Deadline, Stage::Verify), "{failure}");
    // Nobody serves.
    let mut fabric = hostile_to(Service::Ud, "");
    let failure = fabric.pair.initiator.ask(transfer(60)).unwrap_err();
    assert_eq!((failure.kind, failure.stage), (Kind::Deadline, Stage::Verify), "{failure}");
}

/// Our paths have the header where the port asks for it: nothing is lost where others' would be.
#[test]
fn a_port_that_drops_what_has_no_global_route_header_drops_nothing_of_ours() {
    for (service, op) in [(Service::Rc, Op::Write), (Service::Uc, Op::Write), (Service::Ud, Op::Send)] {
        let mut fabric = hostile_device("vf-grh", service, "grh-dropped");
        let right = Checked { verified: Bytes(4096), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(op, 4096, 1), right, "{service}");
    }
}
