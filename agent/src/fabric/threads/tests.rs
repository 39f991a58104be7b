use railgauge_wire::{Bytes, Carrier, GpuPath, Knobs, LinkLayer, Memory, Nanoseconds, Op, Role, Service, Transport};

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use super::*;

fn spec(qps: u32, threads: u32) -> LinkSpec {
    LinkSpec {
        role: Role::Initiator,
        transport: Transport::Verbs,
        service: Service::Rc,
        device: None,
        port: 1,
        address: None,
        memory: Memory::Host,
        gpu: None,
        gpu_path: None,
        qps,
        threads,
        max_size: Bytes::from_kib(64),
        token: String::new(),
        rides_out: false,
        knobs: Knobs { flow_label: Some(100), core: Some(4), ..Knobs::default() },
    }
}

#[test]
fn queue_pairs_are_divided_and_counted_on() {
    let shares = shares(&spec(7, 3)).unwrap();
    let told = |share: &LinkSpec| (share.qps, share.threads, share.knobs.flow_label, share.knobs.core);
    assert_eq!(
        shares.iter().map(told).collect::<Vec<_>>(),
        [(3, 1, Some(100), Some(4)), (2, 1, Some(103), Some(5)), (2, 1, Some(105), Some(6)),]
    );
    for threads in [0, 8] {
        assert_eq!(super::shares(&spec(7, threads)).unwrap_err().kind, Kind::Configuration);
    }
}

#[test]
fn windows_are_laid_end_to_end_and_never_on_top_of_one_another() {
    let one = Measurement {
        started: Nanoseconds(100),
        elapsed: Nanoseconds(1_000),
        operations: 10,
        bytes: Bytes(640),
        moved: Some(Bytes(700)),
        cpu: Nanoseconds(900),
        slices: [1, 2, 3].map(Bytes).into(),
        ..Measurement::default()
    };
    let late = Measurement { started: Nanoseconds(300), slices: [10, 20].map(Bytes).into(), ..one.clone() };
    let both = added(&one, &late);
    assert_eq!([both.started, both.elapsed, both.cpu], [100, 1_200, 1_800].map(Nanoseconds));
    assert_eq!((both.operations, both.bytes, both.moved), (20, Bytes(1_280), Some(Bytes(1_400))));
    assert_eq!(both.slices, [11, 22].map(Bytes));
    let idle = Measurement { elapsed: Nanoseconds(9_000), cpu: Nanoseconds(5), ..Measurement::default() };
    let (before, after) = (added(&idle, &one), added(&one, &idle));
    assert_eq!([before.started, after.elapsed, after.cpu], [100, 1_000, 905].map(Nanoseconds));
    // If one has not counted, the sum is unknown.
    assert_eq!(added(&one, &Measurement { moved: None, ..late }).moved, None);
}

fn timed(metric: TestMetric, window: Window, only: Option<u32>) -> Step {
    let op = Op::Write;
    Step::Time(Timing {
        op,
        metric,
        size: Bytes(64),
        window,
        warm_up: Nanoseconds::ZERO,
        start_at: None,
        bidirectional: false,
        only,
        pace: None,
    })
}

#[test]
fn a_queue_pair_alone_is_measured_by_its_own_thread() {
    let owner = |only| {
        let mut step = timed(TestMetric::Bandwidth, Window::Duration(Nanoseconds(1)), only);
        let thread = alone(&mut step, &[3, 2, 2]).map_err(|failure| failure.kind);
        let Step::Time(timing) = step else { panic!("no timed step") };
        thread.map(|thread| (thread, timing.only))
    };
    assert_eq!(owner(None), Ok((None, None)));
    assert_eq!(owner(Some(2)), Ok((Some(0), Some(2))));
    assert_eq!(owner(Some(3)), Ok((Some(1), Some(0))));
    assert_eq!(owner(Some(6)), Ok((Some(2), Some(1))));
    assert_eq!(owner(Some(7)), Err(Kind::Internal));
}

#[test]
fn only_a_bandwidth_over_a_fixed_time_or_number_is_divided() {
    let timing = |metric, window| together(&timed(metric, window, None));
    let now = clock::now();
    let Ok(Step::Time(planned)) = timing(TestMetric::Bandwidth, Window::Duration(Nanoseconds(1))) else {
        panic!("no timed step")
    };
    assert!(planned.start_at.is_some_and(|start| start >= now + LEAD));
    let adaptive = Window::Adaptive { relative: 0.1, at_least: Nanoseconds(1), at_most: Nanoseconds(2) };
    assert_eq!(timing(TestMetric::Bandwidth, adaptive).unwrap_err().kind, Kind::Unsupported);
    assert_eq!(timing(TestMetric::Latency, Window::Duration(Nanoseconds(1))).unwrap_err().kind, Kind::Unsupported);
}

/// An end whose second thread panics in every step and turn, while the others wait for it until their deadline.
struct Fragile(u32);

impl Fragile {
    fn wait(&self, control: &Control) -> Result<(), Failure> {
        assert!(self.0 != 1, "a defect of this test");
        while !control.stopped() {
            control.check(Stage::Measure)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Ends take their time to go: queue pairs are destroyed, memory is given back.
impl Drop for Fragile {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Link for Fragile {
    fn opened(&self) -> Opened {
        Opened {
            endpoint: Endpoint::Several(Vec::new()),
            device: "none".into(),
            transport: Carrier::Tcp,
            link_layer: LinkLayer::Loopback,
            gpu_path: GpuPath::None,
            rate_gbps: None,
            mtu: 0,
            software: false,
            write_order: None,
            settings: BTreeMap::new(),
        }
    }

    fn join(&mut self, _: &Endpoint, control: &Control) -> Result<(), Failure> {
        self.wait(control)
    }

    fn step(&mut self, _: &Step, control: &Control) -> Result<Stepped, Failure> {
        assert!(self.0 != 1, "a defect of this test");
        // A timed pass does not look for a stop.
        while !control.aborted() {
            control.check(Stage::Measure)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        control.check(Stage::Measure).map(|()| Stepped::Done)
    }

    fn give_turn(&mut self) -> Result<(), Failure> {
        assert!(self.0 != 1, "a defect of this test");
        Ok(())
    }

    fn await_turn(&mut self, control: &Control) -> Result<(), Failure> {
        self.wait(control)
    }

    fn give_up(&mut self) {}
}

type Work = fn(&mut dyn Link, &Control) -> Result<(), Failure>;

/// What comes of work on a fragile link, and of a turn after it.
fn broken(work: Work) -> (Failure, Failure) {
    let (done, outcome) = channel();
    std::thread::spawn(move || {
        let mut numbered = spec(3, 3);
        numbered.knobs.core = Some(0);
        let mut link = open(&numbered, |share| Ok(Box::new(Fragile(share.knobs.core.unwrap_or(0))))).unwrap();
        let control =
            Control::new(Arc::default(), Arc::<AtomicBool>::default(), Instant::now() + Duration::from_secs(600));
        let first = work(&mut *link, &control).unwrap_err();
        // While the end that panicked is going, and once it is gone.
        link.give_up();
        done.send((first, link.give_turn().unwrap_err())).unwrap();
    });
    outcome.recv_timeout(Duration::from_secs(60)).expect("the other threads wait for the one that panicked")
}

#[test]
fn a_thread_that_panics_ends_the_others_and_is_named() {
    let peers = |link: &mut dyn Link, control: &Control| {
        link.join(&Endpoint::Several(vec![Endpoint::Several(Vec::new()); 3]), control)
    };
    let all: [(Stage, Work); 4] = [
        (Stage::Join, peers),
        (Stage::Measure, |link, control| link.await_turn(control)),
        (Stage::Measure, |link, _| link.give_turn()),
        (Stage::Measure, |link, control| {
            link.step(&timed(TestMetric::Bandwidth, Window::Iterations(1), None), control).map(drop)
        }),
    ];
    for (stage, work) in all {
        let (failure, after) = broken(work);
        assert_eq!((failure.stage, failure.kind), (stage, Kind::Internal), "{failure}");
        assert!(failure.cause.contains("thread 1") && failure.cause.contains("a defect of this test"), "{failure}");
        assert!(failure.remedy.is_some());
        assert_eq!(after.kind, Kind::Internal, "{after}");
    }
}
