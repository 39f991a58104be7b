//! What devices do differently, each on the double of its kind (`examples/verbs_double`): order of bytes, partitions, global
//! route headers, devices that have no connections, longest messages, events.

use railgauge_wire::{
    Answer, Ask, Bytes, Checked, Endpoint, Failure, GRH, Joining, Kind, Knobs, LinkSpec, Nanoseconds, Op, Opened,
    Pattern, Role, Service, Step, Stepped, TestMetric, Timing, Transport, Window, WriteLatency, WriteOrder,
};

use crate::{
    controller::{
        DEADLINE_MS, ENDLESS, Outcome,
        pair::{LINK, measured, spec, step, timing},
        patiently,
    },
    double::Fabric,
};

/// Two hosts with a device of this profile each, one of which misbehaves so.
fn hosts(profile: &str, hostile: [&str; 2]) -> Fabric {
    let [near, far] = hostile.map(|words| [("VERBS_DOUBLE_PROFILE", profile), ("VERBS_DOUBLE_HOSTILE", words)]);
    Fabric::each([&near, &far], None)
}

impl Fabric {
    /// What opening the initiator's end comes to.
    fn opens(&mut self, change: impl Fn(&mut LinkSpec)) -> Outcome {
        let mut spec = spec(Role::Initiator, 1, 4096);
        change(&mut spec);
        self.pair.initiator.ask(Ask::Open { link: LINK + 1, spec: Box::new(spec) })
    }

    /// Both ends of a timed pass.
    fn timed(&mut self, timing: Timing) -> (Outcome, Outcome) {
        self.pair.served(timing.op, timing.metric, timing.size.0, Step::Time(timing))
    }

    /// Both ends of a timed pass that fails; the responder is stopped once it has seen that by itself.
    fn timed_to_its_failure(&mut self, timing: Timing) -> (Outcome, Outcome) {
        let serve = Step::Serve { op: timing.op, metric: timing.metric, size: timing.size, window: None };
        assert_eq!(self.pair.responder.ask(step(serve)), Ok(Answer::Done));
        let near = self.pair.initiator.ask(step(Step::Time(timing)));
        // A link does one thing after the other: what it cannot do is refused when its step is over.
        let peer = Endpoint::Several(Vec::new());
        assert!(self.pair.responder.ask(Ask::Join { link: LINK, peer }).is_err());
        (near, self.pair.responder.ask(Ask::Stop { link: LINK }))
    }
}

fn verbs(service: Service, knobs: Knobs) -> impl Fn(&mut LinkSpec) {
    move |spec| {
        (spec.transport, spec.service, spec.address) = (Transport::Verbs, service, None);
        // The threads of the double share this machine's processors with everything else.
        spec.knobs = Knobs { timeout: Some(18), ..knobs.clone() };
    }
}

fn latency_of_writes(way: WriteLatency) -> impl Fn(&mut LinkSpec) {
    verbs(Service::Rc, Knobs { write_latency: Some(way), ..Knobs::default() })
}

fn pings(size: u64) -> Timing {
    timing(Op::Write, TestMetric::Latency, size, Window::Iterations(20))
}

fn failure(outcome: Outcome) -> Failure {
    outcome.expect_err("a failure")
}

#[test]
fn writes_are_polled_on_every_device_and_the_row_says_whether_order_is_promised() {
    for (profile, order) in [
        ("mlx5-roce", WriteOrder::Promised),
        ("bnxt", WriteOrder::NotPromised),
        ("ionic", WriteOrder::NotPromised),
        ("irdma-roce", WriteOrder::NotPromised),
    ] {
        let mut fabric = hosts(profile, ["", ""]);
        let (near, far) = fabric.pair.open(latency_of_writes(WriteLatency::Poll), 1, 4096).unwrap();
        assert_eq!((near.write_order, far.write_order), (Some(order), Some(order)), "{profile}");
        assert!(near.settings["write_latency"].starts_with("polls"), "{profile}: {:?}", near.settings);
        assert_eq!(near.settings["relaxed_ordering"], "false", "{profile}: what is polled is written in order");
        let (near, far) = fabric.pair.time(pings(64));
        // Those that were checked before are not among the samples.
        assert_eq!(near.operations, 20, "{profile}");
        assert!(far.operations > 20, "{profile}: {far:?}");
    }
}

#[test]
fn a_last_byte_that_lands_first_is_no_latency() {
    for (hostile, late) in [(["", "last-byte-first"], "responder"), (["last-byte-first", ""], "initiator")] {
        let mut fabric = hosts("bnxt", hostile);
        fabric.pair.open(latency_of_writes(WriteLatency::Poll), 1, 65536).unwrap();
        // No end waits for the deadline.
        let (near, far) = fabric.timed_to_its_failure(pings(4096));
        let (near, far) = (failure(near), failure(far));
        let (cause, waited) = if late == "responder" { (&far, &near) } else { (&near, &far) };
        assert_eq!(cause.kind, Kind::Fabric, "{late}: {near} / {far}");
        assert!(cause.cause.contains("was here before byte"), "{late}: {near} / {far}");
        assert_eq!(cause.remedy.as_ref().unwrap().id, "write-immediate");
        assert_eq!(waited.kind, Kind::Aborted, "{late}: {near} / {far}");
        // Immediate data waits for the whole message.
        let mut fabric = hosts("bnxt", hostile);
        let (near, _) = fabric.pair.open(latency_of_writes(WriteLatency::Immediate), 1, 65536).unwrap();
        assert_eq!(near.write_order, None);
        assert!(near.settings["write_latency"].starts_with("immediate"), "{:?}", near.settings);
        assert_eq!(measured(fabric.timed(pings(4096)).0).operations, 20);
    }
}

#[test]
fn polling_and_relaxed_ordering_exclude_each_other() {
    let mut fabric = hosts("mlx5-roce", ["", ""]);
    let both = Knobs { write_latency: Some(WriteLatency::Poll), relaxed_ordering: Some(true), ..Knobs::default() };
    assert!(failure(fabric.opens(verbs(Service::Rc, both))).cause.contains("relaxed"));
    // A link for other things has relaxed ordering, and no polling.
    let (near, _) = fabric.pair.open(verbs(Service::Rc, Knobs::default()), 1, 4096).unwrap();
    assert_eq!(near.settings["relaxed_ordering"], "true");
    let pattern = Pattern { size: Bytes(64), seed: 1, iteration: 1 };
    assert!(fabric.pair.initiator.ask(step(Step::Fill(pattern))).is_ok());
    let refused = fabric.pair.initiator.ask(step(Step::Time(pings(64))));
    assert_eq!(failure(refused).remedy.unwrap().id, "write-immediate");
}

#[test]
fn a_port_that_wants_a_global_route_header_gets_one() {
    for hostile in ["", "grh-dropped"] {
        for (service, op) in [(Service::Rc, Op::Write), (Service::Ud, Op::Send)] {
            let mut fabric = hosts("vf-grh", [hostile, hostile]);
            let (near, far) = fabric.pair.open(verbs(service, Knobs::default()), 1, 2048).unwrap();
            assert_eq!([near, far].map(|end| end.settings[GRH].clone()), ["true", "true"], "{service}");
            let right = Checked { verified: Bytes(2048), wrong: Bytes(0), first_wrong: None };
            assert_eq!(fabric.pair.verify(op, 2048, 1), right, "{service} {hostile}");
        }
    }
}

#[test]
fn a_partition_is_used_wherever_it_stands_in_the_table() {
    for pkey in [None, Some(0x8123), Some(0x0123)] {
        let knobs = || Knobs { pkey, ..Knobs::default() };
        for (service, op) in [(Service::Rc, Op::Write), (Service::Ud, Op::Send)] {
            let mut fabric = hosts("ib-pkey", ["", ""]);
            let (near, _) = fabric.pair.open(verbs(service, knobs()), 1, 2048).unwrap();
            assert_eq!((near.settings["pkey"].as_str(), near.settings["pkey_index"].as_str()), ("0x8123", "1"));
            let right = Checked { verified: Bytes(2048), wrong: Bytes(0), first_wrong: None };
            assert_eq!(fabric.pair.verify(op, 2048, 1), right, "{service} {pkey:?}");
        }
    }
    let mut fabric = hosts("ib-pkey", ["", ""]);
    let other = Knobs { pkey: Some(0x8001), ..Knobs::default() };
    let refused = failure(fabric.opens(verbs(Service::Rc, other)));
    assert_eq!(refused.kind, Kind::Configuration);
    assert!(refused.cause.contains("0x8001") && refused.cause.contains("0x8123 (index 1)"), "{refused}");
}

/// Both ends use what both makers have, as NCCL's do; perftest's do not ask for it.
#[test]
fn ends_agree_on_what_their_makers_have_beyond_the_specification() {
    for (far, wanted, agreed) in [
        ("spectrum-x", Some(true), Some("0x10000007")),
        ("mlx5-roce", Some(true), Some("0x10000003")),
        ("bnxt", Some(true), Some("none")),
        ("spectrum-x", None, None),
    ] {
        let settings = ["spectrum-x", far].map(|profile| [("VERBS_DOUBLE_PROFILE", profile)]);
        let mut fabric = Fabric::each([&settings[0], &settings[1]], None);
        let knobs = || Knobs { ece: wanted, ..Knobs::default() };
        let (near, far) = fabric.pair.open(verbs(Service::Rc, knobs()), 2, 4096).unwrap();
        let of = |end: &Opened| end.settings.get("ece").cloned();
        assert_eq!([of(&near), of(&far)], [agreed.map(str::to_owned), agreed.map(str::to_owned)]);
        let right = Checked { verified: Bytes(2 * 4096), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(Op::Write, 4096, 1), right);
    }
    let by_manager = Knobs { ece: Some(true), joining: Some(Joining::RdmaCm), ..Knobs::default() };
    let refused = failure(hosts("mlx5-roce", ["", ""]).opens(verbs(Service::Rc, by_manager)));
    assert_eq!(refused.kind, Kind::Configuration, "{refused}");
}

#[test]
fn efa_is_refused_by_its_name_before_a_queue_pair_is_made() {
    for service in [Service::Rc, Service::Ud] {
        let mut fabric = hosts("efa", ["", ""]);
        let refused = failure(fabric.opens(verbs(service, Knobs::default())));
        assert_eq!(refused.kind, Kind::Unsupported, "{refused}");
        assert!(refused.cause.contains("EFA"), "{refused}");
        assert_eq!(refused.remedy.unwrap().id, "efa-tcp-or-nccl");
    }
}

#[test]
fn a_message_over_what_the_port_takes_is_refused_when_it_is_opened() {
    let mut fabric = hosts("mlx5-roce", ["", ""]);
    let refused = failure(fabric.opens(|spec| {
        verbs(Service::Rc, Knobs::default())(spec);
        spec.max_size = Bytes((1 << 30) + 1);
    }));
    assert!(refused.cause.contains("1073741825") && refused.cause.contains("1073741824"), "{refused}");
}

#[test]
fn events_end_the_case_at_once_by_their_name() {
    for (hostile, name) in [
        ("port-down-after=300", "IBV_EVENT_PORT_ERR"),
        ("event=qp-fatal@300", "IBV_EVENT_QP_FATAL"),
        ("event=qp-fatal@300,late-events", "IBV_EVENT_QP_FATAL"),
        ("event=device-fatal@300", "IBV_EVENT_DEVICE_FATAL"),
    ] {
        for (op, metric) in [(Op::Write, TestMetric::Latency), (Op::Read, TestMetric::Bandwidth)] {
            let mut fabric = hosts("mlx5-roce", [hostile, ""]);
            fabric.pair.open(latency_of_writes(WriteLatency::Poll), 1, 4096).unwrap();
            let (near, _) = fabric.timed(timing(op, metric, 4096, Window::Duration(ENDLESS)));
            let failure = failure(near);
            assert!(failure.cause.contains(name), "{hostile}, {op}: {failure}");
            assert!(failure.cause.contains("mlx5_0"), "{failure}");
            assert!(failure.remedy.is_some());
        }
    }
}

#[test]
fn changes_that_change_nothing_of_the_link_pass_over() {
    for (hostile, number) in [
        ("event=sm-change@50", "13"),
        ("event=lid-change@50", "11"),
        ("event=pkey-change@50", "12"),
        ("event=port-active@50", "9"),
    ] {
        let mut fabric = hosts("mlx5-ib", [hostile, hostile]);
        let (near, _) = fabric.pair.open(verbs(Service::Rc, Knobs::default()), 1, 4096).unwrap();
        assert!(!near.settings.contains_key(GRH));
        // Until it has come and was looked at.
        let window = Window::Duration(Nanoseconds::from_millis(200));
        let taken = patiently("the event", || {
            let (near, _) = fabric.timed(timing(Op::Read, TestMetric::Latency, 4096, window));
            Some(fabric.noted("events", "1")).filter(|taken| measured(near).operations > 0 && !taken.is_empty())
        });
        assert_eq!(taken, [number], "{hostile}");
    }
}

/// Contexts of the initiator's host: mlx5's doorbell registers are of a context, and links at once do not wait for each other's.
#[test]
fn links_at_once_have_contexts_of_their_own_and_later_ones_use_them() {
    let mut fabric = hosts("mlx5-roce", ["", ""]);
    let opened = |fabric: &mut Fabric, link| {
        let mut spec = spec(Role::Initiator, 1, 4096);
        verbs(Service::Rc, Knobs::default())(&mut spec);
        fabric.pair.initiator.ask(Ask::Open { link, spec: Box::new(spec) }).unwrap();
        fabric.noted("contexts", "1").len()
    };
    let before = fabric.noted("contexts", "1").len();
    let first = opened(&mut fabric, 11);
    assert_eq!(opened(&mut fabric, 12), first + 1, "after {before}");
    for link in [11, 12] {
        fabric.pair.initiator.ask(Ask::Close { link }).unwrap();
    }
    assert_eq!((opened(&mut fabric, 13), opened(&mut fabric, 14)), (first + 1, first + 1));
}

#[test]
fn a_link_of_two_threads_moves_its_bytes() {
    let mut fabric = hosts("mlx5-roce", ["", ""]);
    let change = |spec: &mut LinkSpec| {
        verbs(Service::Rc, Knobs::default())(spec);
        spec.threads = 2;
    };
    let (near, _) = fabric.pair.open(change, 2, 4096).unwrap();
    assert_eq!(near.settings["threads"], "2");
    let right = Checked { verified: Bytes(2 * 4096), wrong: Bytes(0), first_wrong: None };
    assert_eq!(fabric.pair.verify(Op::Write, 4096, 1), right);
}

#[test]
fn a_message_that_is_under_way_when_its_sender_is_done_is_that_of_its_own_pass() {
    let mut fabric = hosts("mlx5-roce", ["", "ack-before-data"]);
    fabric.pair.open(verbs(Service::Uc, Knobs::default()), 1, 4096).unwrap();
    for iteration in 1..=3 {
        let right = Checked { verified: Bytes(4096), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(Op::Send, 4096, iteration), right, "pass {iteration}");
    }
}

#[test]
fn atomics_of_a_pass_walk_through_a_page_and_their_sum_is_right() {
    let mut fabric = hosts("mlx5-roce", ["", ""]);
    fabric.pair.open(verbs(Service::Rc, Knobs::default()), 1, 4096).unwrap();
    for (op, changed) in [(Op::AtomicFadd, 64..=128), (Op::AtomicCas, 0..=0)] {
        let pattern = Pattern { size: Bytes(4096), seed: 42, iteration: 1 };
        assert!(fabric.pair.verify(Op::Write, 4096, 1).wrong.is_zero(), "{op}");
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, 8, Window::Iterations(150)));
        assert_eq!(near.operations, 150, "{op}");
        // 150 operations on 64 words: each has a lowest byte that is another now, and a few carry into the next.
        let check = Ask::Step { link: LINK, step: Step::Check(pattern), limit_ms: DEADLINE_MS };
        let Ok(Answer::Stepped(Stepped::Checked(found))) = fabric.pair.responder.ask(check) else { panic!("{op}") };
        assert!(changed.contains(&found.wrong.0), "{op}: {found:?}");
    }
}

#[test]
fn a_device_that_keeps_the_order_at_first_only_is_found_out_later() {
    for (hostile, late) in [(["", "last-byte-first=400"], "responder"), (["last-byte-first=400", ""], "initiator")] {
        let mut fabric = hosts("bnxt", hostile);
        fabric.pair.open(latency_of_writes(WriteLatency::Poll), 1, 4096).unwrap();
        let (near, far) = fabric.timed(timing(Op::Write, TestMetric::Latency, 4096, Window::Iterations(1000)));
        let failures: Vec<_> = [near, far].into_iter().filter_map(Outcome::err).collect();
        let found = failures.iter().any(|failure| failure.cause.contains("was here before byte 0"));
        assert!(found, "{late}: {failures:?}");
    }
}
