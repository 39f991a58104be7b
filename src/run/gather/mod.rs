mod silent;
mod stalls;

use std::collections::BTreeMap;

use railgauge_model::{
    journal::event::{Case, GpuDuring, Outcome, Sample, Soaked, SoakedFlow, SoakedGpu, Stall},
    schedule::Flow,
};
use railgauge_wire::{
    Failure, GigabitsPerSecond, GpuSeen, Kind, Measurement, Nanoseconds, gpu_state::beside, measure::SLICE,
};

use self::{silent::Silent, stalls::SHORTEST};
use super::watch::{Clocks, Shared};

/// Verifying and waiting this much longer than usual is a pause of the flow. Other waits are for readings of counters, which may take a
/// driver a second.
const LONGEST_ASIDE: Nanoseconds = Nanoseconds::from_secs(2);

pub(crate) struct Gather {
    from: Nanoseconds,
    round: (Nanoseconds, bool),
    last: Nanoseconds,
    warm_up: Nanoseconds,
    window: Nanoseconds,
    shared: Shared,
    flows: BTreeMap<u64, Account>,
    gpus: BTreeMap<(String, String), (SoakedGpu, BTreeMap<u64, GpuSeen>)>,
}

#[derive(Default)]
struct Account {
    part: SoakedFlow,
    rates: Vec<f64>,
    /// Since when nothing of it has arrived: a window failed, and none has been measured since.
    silent: Option<Silent>,
    least_aside: Option<Nanoseconds>,
}

impl Gather {
    /// A part that begins now, since 1970, with windows and warm-ups of these lengths.
    pub(super) fn new(now: Nanoseconds, (warm_up, window): (Nanoseconds, Nanoseconds), shared: Shared) -> Self {
        Self {
            from: now,
            round: (now, true),
            last: now,
            warm_up,
            window,
            shared,
            flows: BTreeMap::new(),
            gpus: BTreeMap::new(),
        }
    }

    pub(super) fn round(&mut self, now: Nanoseconds, again: bool) {
        self.round = (now, again);
    }

    /// Time of the last outcome; later traffic has not been reported yet.
    pub(super) fn last(&self) -> Nanoseconds {
        self.last.max(self.from)
    }

    /// Adds the outcome of a window. `progress` is when something of a failed one completed last, on the initiator's clock.
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
                    *known = std::mem::take(known).joined(seen.clone());
                }
            }
            Err(failure) => {
                let known = progress.and_then(|at| clocks.of(&case.flow.from.host)?.convert(at));
                // Without a credible report of the agent, it was at any time of the window.
                let known = known.filter(|(at, _)| (began..=now).contains(at));
                let least = account.least_aside.unwrap_or_default();
                let untold = || {
                    let traffic = self.warm_up.saturating_add(self.window).saturating_add(longest_aside(least));
                    Silent::untold(began, now, traffic)
                };
                let since = known.map_or_else(untold, |(at, error)| Silent::known(at, error.saturating_add(SLICE)));
                account.failed(failure, since, (now, again));
            }
        }
    }

    pub(super) fn missed(&mut self, case: &Case, failure: &Failure, now: Nanoseconds) {
        let (began, again) = (self.round.0.min(now), self.round.1);
        let account = self.flows.entry(case.id).or_default();
        account.part.case = case.id;
        account.failed(failure, Silent::known(began, Nanoseconds::ZERO), (now, again));
    }

    pub(super) fn take(&mut self, until: Nanoseconds) -> Soaked {
        let from = std::mem::replace(&mut self.from, until);
        let mut flows = Vec::new();
        for account in self.flows.values_mut() {
            // An ongoing silence is recorded up to here, and continues in the next part.
            if let Some(silent) = account.silent {
                let told = silent.until(until, Nanoseconds::ZERO);
                account.part.stalls.push(told);
                account.silent = Some(Silent::known(told.until, Nanoseconds::ZERO));
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
    /// A window failed. Unless its next window is in the next round, the rest is its wait for its turn.
    fn failed(&mut self, failure: &Failure, since: Silent, (now, again): (Nanoseconds, bool)) {
        self.part.failed += 1;
        let is_wrong = failure.kind == Kind::Corruption;
        self.part.corrupted += u64::from(is_wrong);
        let known = self.part.failure.as_ref();
        // With an ill GPU, other ends only wait.
        let is_ill = failure.is_of_gpu() && self.part.corrupted == 0 && !known.is_some_and(Failure::is_of_gpu);
        if known.is_none() || (is_wrong && self.part.corrupted == 1) || is_ill {
            self.part.failure = Some(failure.clone());
        }
        if again {
            self.silent.get_or_insert(since);
        } else {
            self.part.stalls.push(since.until(now, Nanoseconds::ZERO));
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
        part.stalls.extend(self.silent.take().map(|silent| silent.until(begin, error)));
        self.part.stalls.extend(silences(flow, sample, began, clocks));
        let aside = self.aside(sample, (began, warm_up), slower.elapsed);
        self.part.stalls.extend(aside);
        self.part.stalls.sort_by_key(|stall| stall.from);
    }

    /// A pause around the window. The ends agree and warm up before it, and verify before and after: a pause of the flow makes that longer.
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
        let is_pause = aside >= longest_aside(least);
        is_pause.then_some(Stall { from: began, until, error: SHORTEST, loose, ..Stall::default() })
    }
}

/// The longest normal time outside warm-up and window, given the least observed.
fn longest_aside(least: Nanoseconds) -> Nanoseconds {
    LONGEST_ASIDE.saturating_add(least * 3)
}

fn silences(flow: &Flow, sample: &Sample, began: Nanoseconds, clocks: &Clocks) -> Vec<Stall> {
    // The receiving end sees silences that buffers hide from the other.
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
            // Until the host's clock is known, only its length is, and its place in the round.
            None => {
                let place = |at: Nanoseconds| began.saturating_add(at.saturating_sub(arrives.started));
                let (from, until) = (place(from), place(until));
                Stall { from, until, error: SLICE, loose: arrives.elapsed, ..Stall::default() }
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
mod tests;
