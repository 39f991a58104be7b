//! What came of the windows of a part of the soak, flow by flow.

mod stalls;

use std::collections::BTreeMap;

use railgauge_model::{
    journal::event::{Case, GpuDuring, Outcome, Sample, Soaked, SoakedFlow, SoakedGpu, Stall},
    schedule::Flow,
};
use railgauge_wire::{
    failure::{Failure, Kind},
    gpu_state::{GpuSeen, beside},
    measure::{Measurement, SLICE},
    unit::{GigabitsPerSecond, Nanoseconds},
};

use self::stalls::SHORTEST;
use super::watch::{Clocks, Shared};

/// Verifying and waiting that took so much longer than usual is a pause of the flow. What ends wait for beside their peer are readings of
/// counters, which a driver may take a second for.
const LONGEST_ASIDE: Nanoseconds = Nanoseconds::from_secs(2);

/// The part of the soak that runs.
pub(crate) struct Gather {
    from: Nanoseconds,
    /// When the round began that runs, and whether the next one has the same flows.
    round: (Nanoseconds, bool),
    /// When the last outcome came.
    last: Nanoseconds,
    /// Untimed time before each window.
    warm_up: Nanoseconds,
    shared: Shared,
    flows: BTreeMap<u64, Account>,
    /// What each flow saw of GPUs in the part, by host and PCI address.
    gpus: BTreeMap<(String, String), (SoakedGpu, BTreeMap<u64, GpuSeen>)>,
}

/// What is known of one flow.
#[derive(Default)]
struct Account {
    /// What the part has so far.
    part: SoakedFlow,
    /// Rates of its windows.
    rates: Vec<f64>,
    /// Since when nothing of it has arrived, and how far off that may be: a window failed, and none has been measured since.
    silent: Option<(Nanoseconds, Nanoseconds)>,
    /// Least time that verifying and waiting took in any window.
    least_aside: Option<Nanoseconds>,
}

impl Gather {
    /// A part that begins now, since 1970.
    pub(super) fn new(now: Nanoseconds, warm_up: Nanoseconds, shared: Shared) -> Self {
        Self {
            from: now,
            round: (now, true),
            last: now,
            warm_up,
            shared,
            flows: BTreeMap::new(),
            gpus: BTreeMap::new(),
        }
    }

    /// A round begins; `again` if the next one has the same flows.
    pub(super) fn round(&mut self, now: Nanoseconds, again: bool) {
        self.round = (now, again);
    }

    /// When the last outcome came: what runs since then is known to nobody yet.
    pub(super) fn last(&self) -> Nanoseconds {
        self.last.max(self.from)
    }

    /// Takes what came of a window. `progress` is when something of a failed one completed last, on the initiator's clock.
    pub(crate) fn add(&mut self, case: &Case, outcome: &Outcome, progress: Option<Nanoseconds>, now: Nanoseconds) {
        self.last = now;
        let (began, again) = (self.round.0.min(now), self.round.1);
        let account = self.flows.entry(case.id).or_default();
        account.part.case = case.id;
        let clocks = &self.shared.clocks;
        if let Some(link) = &outcome.link {
            self.shared.learn(&case.flow.from.host, &case.flow.to.host, link);
            account.part.from_device = Some(link.from_device.clone());
            account.part.to_device = Some(link.to_device.clone());
        }
        match &outcome.result {
            Ok(sample) => {
                account.measured(&case.flow, sample, (began, self.warm_up), clocks);
                for GpuDuring { host, seen } in &sample.gpus {
                    let (gpu, of_flows) = self.gpus.entry((host.clone(), seen.pci.clone())).or_default();
                    gpu.windows += 1;
                    gpu.unread += u64::from(seen.readings == 0);
                    gpu.without_xids += u64::from(!seen.is_amd && seen.xids.is_none());
                    let known = of_flows.entry(case.id).or_default();
                    *known = std::mem::take(known).joined(GpuSeen { series: Vec::new(), ..seen.clone() });
                }
            }
            Err(failure) => {
                let known = progress.and_then(|at| clocks.of(&case.flow.from.host)?.convert(at));
                // Without a word of the agent, and where its word cannot be, it was at any time of the window.
                let known = known.filter(|(at, _)| (began..=now).contains(at));
                let since =
                    known.map_or((began, now.saturating_sub(began)), |(at, error)| (at, error.saturating_add(SLICE)));
                account.failed(failure, since, (now, again));
            }
        }
    }

    /// A flow could not begin its window, because one of its hosts is gone.
    pub(super) fn missed(&mut self, case: &Case, failure: &Failure, now: Nanoseconds) {
        let (began, again) = (self.round.0.min(now), self.round.1);
        let account = self.flows.entry(case.id).or_default();
        account.part.case = case.id;
        account.failed(failure, (began, Nanoseconds::ZERO), (now, again));
    }

    /// The part, which ends at `until`; the next one begins.
    pub(super) fn take(&mut self, until: Nanoseconds) -> Soaked {
        let from = std::mem::replace(&mut self.from, until);
        let mut flows = Vec::new();
        for account in self.flows.values_mut() {
            // What is silent still is told up to here, and goes on in the next part.
            if let Some((since, error)) = account.silent {
                account.part.stalls.push(Stall {
                    from: since,
                    until: until.max(since),
                    error,
                    failed: true,
                    ..Stall::default()
                });
                account.silent = Some((until.max(since), Nanoseconds::ZERO));
            }
            let rates = std::mem::take(&mut account.rates);
            let part = std::mem::take(&mut account.part);
            account.part.case = part.case;
            if part.windows > 0 || part.failed > 0 || !part.stalls.is_empty() {
                flows.push(with_rates(part, rates));
            }
        }
        let gpus = std::mem::take(&mut self.gpus).into_iter();
        let one = |((host, _), (gpu, flows)): (_, (SoakedGpu, BTreeMap<_, _>))| SoakedGpu {
            host,
            seen: beside(flows.into_values()),
            ..gpu
        };
        let gpus = gpus.map(one).collect();
        Soaked { from, until, flows, gpus }
    }
}

impl Account {
    /// A window failed; nothing of the flow has arrived since so long. Where its next window is not the next round's, what follows is its
    /// wait for its turn.
    fn failed(&mut self, failure: &Failure, since: (Nanoseconds, Nanoseconds), (now, again): (Nanoseconds, bool)) {
        self.part.failed += 1;
        let is_wrong = failure.kind == Kind::Corruption;
        self.part.corrupted += u64::from(is_wrong);
        let known = self.part.failure.as_ref();
        // Beside an ill GPU other ends only wait.
        let is_ill = failure.is_of_gpu() && self.part.corrupted == 0 && !known.is_some_and(Failure::is_of_gpu);
        if known.is_none() || (is_wrong && self.part.corrupted == 1) || is_ill {
            self.part.failure = Some(failure.clone());
        }
        if again {
            self.silent.get_or_insert(since);
        } else {
            let (from, error) = since;
            self.part.stalls.push(Stall { from, until: now, error, failed: true, ..Stall::default() });
        }
    }

    fn measured(
        &mut self,
        flow: &Flow,
        sample: &Sample,
        (began, warm_up): (Nanoseconds, Nanoseconds),
        clocks: &Clocks,
    ) {
        let part = &mut self.part;
        let accounts = || [Some(&sample.initiator), sample.responder.as_deref()].into_iter().flatten();
        let rate = |one: &Measurement| one.bytes.0 as f64 * 8.0 / one.elapsed.0 as f64;
        let Some(slower) = accounts().filter(|one| !one.elapsed.is_zero()).min_by(|a, b| rate(a).total_cmp(&rate(b)))
        else {
            return;
        };
        part.windows += 1;
        part.measured = part.measured.saturating_add(slower.elapsed);
        part.bytes = part.bytes.saturating_add(slower.bytes);
        self.rates.push(rate(slower));
        part.checked += sample.checked;
        let begin = clocks.of(&flow.from.host).and_then(|clock| clock.convert(sample.initiator.started));
        let (begin, error) = begin.unwrap_or((began, SHORTEST));
        if let Some((since, of_since)) = self.silent.take() {
            let (until, error) = (begin.max(since), error.max(of_since));
            part.stalls.push(Stall { from: since, until, error, failed: true, ..Stall::default() });
        }
        self.part.stalls.extend(silences(flow, sample, began, clocks));
        let aside = self.aside(sample, (began, warm_up), slower.elapsed);
        self.part.stalls.extend(aside);
        self.part.stalls.sort_by_key(|stall| stall.from);
    }

    /// A pause around the window. Before it the ends agree and warm up, and bytes are moved and compared before and after it: a pause of
    /// the flow makes that longer.
    fn aside(
        &mut self,
        sample: &Sample,
        (began, warm_up): (Nanoseconds, Nanoseconds),
        window: Nanoseconds,
    ) -> Option<Stall> {
        let spent = sample.spent.as_deref()?;
        let before = spent.warm_up.saturating_sub(warm_up);
        let aside = spent.verify.saturating_add(spent.waiting).saturating_add(before);
        let least = self.least_aside.map_or(aside, |least| least.min(aside));
        self.least_aside = Some(least);
        let (until, loose) = (began.saturating_add(aside.saturating_sub(least)), window.saturating_add(aside));
        let is_pause = aside >= LONGEST_ASIDE.saturating_add(least * 3);
        is_pause.then_some(Stall { from: began, until, error: SHORTEST, loose, failed: false })
    }
}

/// The stalls inside of a window.
fn silences(flow: &Flow, sample: &Sample, began: Nanoseconds, clocks: &Clocks) -> Vec<Stall> {
    // The end at which bytes arrive sees silences that buffers hide from the other.
    let (arrives, host) = match &sample.responder {
        Some(responder) if !responder.slices.is_empty() => (&**responder, &flow.to.host),
        _ => (&sample.initiator, &flow.from.host),
    };
    let clock = clocks.of(host);
    let stall = |(from, until): (Nanoseconds, Nanoseconds)| {
        match clock.and_then(|clock| clock.convert(from).zip(clock.convert(until))) {
            Some(((from, error), (until, _))) => {
                Stall { from, until, error: error.saturating_add(SLICE), ..Stall::default() }
            }
            // Until the host's clock is known its length is, and its place in the round.
            None => {
                let place = |at: Nanoseconds| began.saturating_add(at.saturating_sub(arrives.started));
                let (from, until) = (place(from), place(until));
                Stall { from, until, error: SLICE, loose: arrives.elapsed, failed: false }
            }
        }
    };
    stalls::within(arrives).into_iter().map(stall).collect()
}

fn with_rates(part: SoakedFlow, mut rates: Vec<f64>) -> SoakedFlow {
    rates.sort_by(f64::total_cmp);
    let at = |place: usize| rates.get(place).copied().map(GigabitsPerSecond);
    SoakedFlow {
        slowest: at(0),
        median: at(rates.len().saturating_sub(1) / 2),
        fastest: at(rates.len().wrapping_sub(1)),
        ..part
    }
}

#[cfg(test)]
mod tests {
    use railgauge_model::schedule::{Cell, Port};
    use railgauge_wire::{
        case::Spent,
        failure::Stage,
        gpu_state::Range,
        step::Checked,
        terms::{Memory, Op, Service, TestMetric, Transport},
        unit::{Bytes, NanosecondsI64},
    };

    use super::*;

    const MS: Nanoseconds = Nanoseconds::from_millis(1);
    /// What the clocks of agents show less than the time since 1970.
    const BEHIND: Nanoseconds = Nanoseconds::from_secs(1_000_000_000);

    fn shared() -> Shared {
        let offset = NanosecondsI64::try_from(BEHIND).unwrap();
        Shared::with_clocks(&[("a", offset), ("b", offset)])
    }

    fn case() -> Case {
        let port = |host: &str| Port { host: host.into(), rail: 0 };
        let cell = Cell {
            op: Op::Write,
            metric: TestMetric::Bandwidth,
            transport: Transport::Tcp,
            service: Service::Rc,
            memory: Memory::Host,
            size: Bytes(64),
            qps: 1,
            only: None,
            neighbours: None,
            applied: None,
            manner: None,
        };
        Case { id: 7, test: "t".into(), round: 0, flow: Flow::pair(port("a"), port("b")), cell: cell.into() }
    }

    /// A window of so many slices with these bytes in each, on the agents' clocks.
    fn window(started: Nanoseconds, slices: &[u64]) -> Measurement {
        let slices: Vec<Bytes> = slices.iter().copied().map(Bytes).collect();
        Measurement {
            started,
            elapsed: SLICE * slices.len() as u64,
            operations: 1_000,
            bytes: slices.iter().copied().sum(),
            slices: slices.into(),
            ..Measurement::default()
        }
    }

    fn outcome(at: Nanoseconds, result: Result<Sample, Failure>) -> Outcome {
        let at = jiff::Timestamp::from_nanosecond(BEHIND.saturating_add(at).0.into()).unwrap();
        Outcome { case: 7, repeat: 0, started_at: at.to_string().into(), link: None, link_line: None, result }
    }

    fn measured(started: Nanoseconds, slices: &[u64]) -> Outcome {
        let sample = Sample {
            initiator: window(started, slices),
            responder: Some(Box::new(window(started, slices))),
            checked: Checked { verified: Bytes(64), ..Checked::default() },
            ..Sample::default()
        };
        outcome(started, Ok(sample))
    }

    fn failed(at: Nanoseconds) -> Outcome {
        outcome(at, Err(Failure::new(Stage::Measure, Kind::Fabric, "retries exceeded")))
    }

    fn gather() -> Gather {
        Gather::new(at(Nanoseconds::ZERO), Nanoseconds::ZERO, shared())
    }

    fn at(agent: Nanoseconds) -> Nanoseconds {
        BEHIND.saturating_add(agent)
    }

    #[test]
    fn what_gpus_tell_in_the_windows_of_a_part_is_told_with_it() {
        let mut gather = gather();
        for watts in [300.0, 500.0] {
            let mut outcome = measured(Nanoseconds::from_secs(1), &[8]);
            let all = Some(Range { min: watts, median: watts, max: watts });
            let seen = GpuSeen { pci: "0000:1b:00.0".into(), readings: 2, watts: all, ..GpuSeen::default() };
            outcome.result.as_mut().unwrap().gpus = GpuDuring::of("b", vec![seen]).into();
            gather.add(&case(), &outcome, None, at(Nanoseconds::from_secs(2)));
        }
        let part = gather.take(at(Nanoseconds::from_secs(3)));
        let [gpu] = part.gpus.as_slice() else { panic!("{:?}", part.gpus) };
        assert_eq!((&*gpu.host, gpu.windows, gpu.unread, gpu.without_xids, gpu.seen.readings), ("b", 2, 0, 2, 4));
        assert_eq!(gpu.seen.watts, Some(Range { min: 300.0, median: 400.0, max: 500.0 }));
        assert!(gather.take(at(Nanoseconds::from_secs(4))).gpus.is_empty());
    }

    #[test]
    fn windows_become_a_part_with_rates_and_sums() {
        let mut gather = gather();
        for (number, bytes) in [125_000_000, 250_000_000, 375_000_000].into_iter().enumerate() {
            let started = MS * 2_000 * number as u64;
            gather.add(&case(), &measured(started, &[bytes / 10; 10]), None, at(started + MS * 1_000));
        }
        let part = gather.take(at(MS * 6_000));
        assert_eq!((part.from, part.until, part.flows.len()), (at(Nanoseconds::ZERO), at(MS * 6_000), 1));
        let flow = &part.flows[0];
        assert_eq!((flow.case, flow.windows, flow.measured, flow.bytes), (7, 3, MS * 3_000, Bytes(750_000_000)));
        let rates = [flow.slowest, flow.median, flow.fastest].map(|rate| rate.unwrap().0);
        assert_eq!(rates, [1.0, 2.0, 3.0]);
        assert_eq!((flow.checked.verified, flow.failed, flow.stalls.len()), (Bytes(192), 0, 0));
        assert!(gather.take(at(MS * 7_000)).flows.is_empty(), "a part without windows has no flow");
    }

    #[test]
    fn a_silence_in_a_window_is_a_stall_at_its_time() {
        let mut gather = gather();
        let slices = [vec![9; 20], vec![0; 12], vec![9; 20]].concat();
        gather.add(&case(), &measured(MS * 500, &slices), None, at(MS * 6_000));
        let stalls = gather.take(at(MS * 6_000)).flows[0].stalls.clone();
        assert_eq!(
            stalls,
            [Stall {
                from: at(MS * 2_500),
                until: at(MS * 3_700),
                error: SLICE,
                loose: Nanoseconds::ZERO,
                failed: false
            }]
        );
    }

    #[test]
    fn failed_windows_are_one_stall_until_the_next_that_is_measured() {
        let mut gather = gather();
        gather.add(&case(), &failed(MS * 1_000), Some(MS * 3_300), at(MS * 5_000));
        gather.add(&case(), &failed(MS * 5_100), None, at(MS * 6_000));
        gather.add(&case(), &measured(MS * 9_000, &[9; 10]), None, at(MS * 10_000));
        let flow = gather.take(at(MS * 11_000)).flows.remove(0);
        assert_eq!(
            flow.stalls,
            [Stall {
                from: at(MS * 3_300),
                until: at(MS * 9_000),
                error: SLICE,
                loose: Nanoseconds::ZERO,
                failed: true
            }]
        );
        assert_eq!((flow.failed, flow.windows), (2, 1));
        assert_eq!(flow.failure.unwrap().cause, "retries exceeded");
    }

    #[test]
    fn without_a_word_of_the_agent_the_begin_is_as_unsure_as_the_window_is_long() {
        let mut gather = gather();
        gather.round(at(MS * 1_000), true);
        gather.add(&case(), &failed(MS * 1_000), None, at(MS * 5_000));
        gather.add(&case(), &measured(MS * 6_000, &[9; 10]), None, at(MS * 7_000));
        let stall = gather.take(at(MS * 8_000)).flows[0].stalls[0];
        assert_eq!((stall.from, stall.until), (at(MS * 1_000), at(MS * 6_000)));
        assert_eq!(stall.error, MS * 4_000);
    }

    #[test]
    fn a_silence_that_lasts_is_told_in_every_part_without_a_gap() {
        let mut gather = gather();
        gather.add(&case(), &failed(MS * 1_000), Some(MS * 2_000), at(MS * 3_000));
        let first = gather.take(at(MS * 10_000)).flows[0].stalls.clone();
        let second = gather.take(at(MS * 20_000)).flows[0].stalls.clone();
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_eq!((first[0].from, first[0].until), (at(MS * 2_000), at(MS * 10_000)));
        assert_eq!((second[0].from, second[0].until), (at(MS * 10_000), at(MS * 20_000)));
    }

    #[test]
    fn a_pause_while_bytes_are_verified_is_told_as_unsure() {
        let mut gather = gather();
        for (number, verify) in [20, 30, 3_000].into_iter().enumerate() {
            let mut outcome = measured(MS * 4_000 * number as u64, &[9; 10]);
            if let Ok(sample) = &mut outcome.result {
                sample.spent = Some(Spent { verify: MS * verify, ..Spent::default() }.into());
            }
            gather.add(&case(), &outcome, None, at(MS * 4_000 * (number as u64 + 1)));
        }
        let stalls = gather.take(at(MS * 12_000)).flows[0].stalls.clone();
        assert_eq!(stalls.len(), 1);
        assert_eq!(stalls[0].until - stalls[0].from, MS * 2_980);
        assert!(stalls[0].error <= SHORTEST && stalls[0].loose > MS * 2_980 && !stalls[0].failed);
    }

    #[test]
    fn a_pause_while_warming_up_is_one_too() {
        let mut gather = Gather::new(at(Nanoseconds::ZERO), MS * 500, shared());
        for (number, warm_up) in [510, 520, 5_500].into_iter().enumerate() {
            let mut outcome = measured(MS * 8_000 * number as u64, &[9; 10]);
            if let Ok(sample) = &mut outcome.result {
                sample.spent = Some(Spent { warm_up: MS * warm_up, ..Spent::default() }.into());
            }
            gather.add(&case(), &outcome, None, at(MS * 8_000 * (number as u64 + 1)));
        }
        let stalls = gather.take(at(MS * 24_000)).flows[0].stalls.clone();
        assert_eq!(stalls.iter().map(|stall| stall.until - stall.from).collect::<Vec<_>>(), [MS * 4_990]);
    }

    #[test]
    fn a_flow_that_waits_for_its_turn_does_not_stall() {
        let mut gather = gather();
        gather.round(at(MS * 1_000), false);
        gather.add(&case(), &failed(MS * 1_000), Some(MS * 2_000), at(MS * 4_000));
        gather.round(at(MS * 60_000), false);
        gather.add(&case(), &measured(MS * 60_000, &[9; 10]), None, at(MS * 61_000));
        let stalls = gather.take(at(MS * 62_000)).flows[0].stalls.clone();
        assert_eq!(
            stalls.iter().map(|stall| (stall.from, stall.until)).collect::<Vec<_>>(),
            [(at(MS * 2_000), at(MS * 4_000))]
        );
    }

    #[test]
    fn wrong_bytes_are_counted_and_told_before_other_failures() {
        let mut gather = gather();
        gather.add(&case(), &failed(MS * 1_000), None, at(MS * 2_000));
        let wrong = Failure::new(Stage::Verify, Kind::Corruption, "5 of 64 bytes were wrong");
        gather.add(&case(), &outcome(MS * 3_000, Err(wrong)), None, at(MS * 4_000));
        let flow = gather.take(at(MS * 5_000)).flows.remove(0);
        assert_eq!((flow.failed, flow.corrupted, flow.failure.unwrap().kind), (2, 1, Kind::Corruption));
    }

    #[test]
    fn a_word_of_an_agent_that_cannot_be_is_not_taken() {
        let mut gather = gather();
        gather.round(at(MS * 1_000), true);
        gather.add(&case(), &failed(MS * 1_000), Some(MS * 90_000), at(MS * 2_000));
        let stall = gather.take(at(MS * 5_000)).flows[0].stalls[0];
        assert_eq!((stall.from, stall.error), (at(MS * 1_000), MS * 1_000));
    }
}
