//! Counts that exist more than once: of the parts and the whole, of both ends, of every rank. One rule judges each row of the table.

use railgauge_model::journal::event::Sample;
use railgauge_wire::{Measurement, Op, Service, TestMetric, Transport, measure::SLICE, node::LINE, terms::flops};

use crate::case::{CaseResult, Contradiction, Impossible, verified};

/// Tolerance between both ends of a verbs stream: they do not start and stop to count at the same moment.
const COUNT_TOLERANCE: f64 = 0.01;
/// Messages of a queue pair that an unreliable service may count at one end only: the receiver reports some receives at
/// a time, of the 512 that it has posted (`docs/tests.md`).
const RECEIVES: u64 = 512;

type Count<'h> = (&'h str, u128);

#[derive(Default)]
struct Table(Vec<Impossible>);

impl Table {
    /// Two counts of `what`, with their origins and the tolerance `off`.
    fn equal(&mut self, what: &'static str, by: [&'static str; 2], counts: [Count<'_>; 2], off: u128) {
        let [(_, one), (_, two)] = counts;
        self.row(what, by, counts, one.abs_diff(two) <= off);
    }

    fn at_most(&mut self, what: &'static str, by: [&'static str; 2], counts: [Count<'_>; 2], off: u128) {
        let [(_, one), (_, most)] = counts;
        self.row(what, by, counts, one <= most.saturating_add(off));
    }

    fn row(&mut self, what: &'static str, by: [&'static str; 2], [one, two]: [Count<'_>; 2], agree: bool) {
        if !agree {
            let at = (one.0 != two.0).then(|| two.0.to_owned());
            let what = Contradiction::Counts { what, by, counts: [one.1, two.1], at };
            self.0.push(Impossible::Sample { host: one.0.to_owned(), what });
        }
    }
}

pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample) -> Vec<Impossible> {
    let flow = &result.case.flow;
    let here = (&*flow.from.host, &sample.initiator);
    let nothing = Measurement::default();
    let there = (&*flow.to.host, sample.responder.as_deref().unwrap_or(&nothing));
    let mut table = Table::default();
    if flow.members.is_empty() {
        of_parts(result, here, &mut table);
        of_parts(result, there, &mut table);
        of_initiator(result, here, &mut table);
        of_ends(result, here, there, &mut table);
    } else {
        of_ranks(result, sample, here, &mut table);
    }
    of_verified(result, sample, here.0, &mut table);
    for one in &sample.neighbours {
        let [from, to] = if one.opposite { [&flow.to.host, &flow.from.host] } else { [&flow.from.host, &flow.to.host] };
        if let Some(receiver) = &one.receiver {
            let counts = [(&**from, one.sender.bytes.0.into()), (&**to, receiver.bytes.0.into())];
            table.equal("bytes of the traffic alongside", ["counted", "counted"], counts, 0);
        }
    }
    table.0
}

/// Of one end's account. Each queue pair or stream may be inside a message at the start and at the end of the window.
fn of_parts(result: &CaseResult<'_>, (host, end): (&str, &Measurement), table: &mut Table) {
    let cell = &result.case.cell;
    let at = |count: u128| (host, count);
    let bytes = at(end.bytes.0.into());
    // A latency within hosts is of single reads of a line each.
    let of_lines = cell.transport.is_within_host() && cell.metric == TestMetric::Latency;
    let each = if of_lines { LINE } else { cell.size };
    let off = 2 * u128::from(each.0) * u128::from(cell.qps.max(1));
    // The responder of single reads counts their requests.
    let answers_reads = *host != *result.case.flow.from.host && cell.metric == TestMetric::Latency && cell.op.pulls();
    if !answers_reads {
        let wanted = at(u128::from(end.operations) * u128::from(each.0));
        table.equal("bytes", ["counted", "by its operations"], [bytes, wanted], off);
    }
    if !end.lanes.is_empty() {
        let lanes = at(end.lanes.iter().map(|lane| u128::from(lane.bytes.0)).sum());
        table.equal("bytes", ["counted", "in its lanes"], [bytes, lanes], off);
        table.equal("lanes", ["counted", "planned"], [at(end.lanes.len() as u128), at(cell.qps.max(1).into())], 0);
    }
    let slices = at(end.slices.iter().map(|bytes| u128::from(bytes.0)).sum());
    table.at_most("bytes", ["in its slices", "counted"], [slices, bytes], off);
    // One more slice, because threads do not end at the same moment.
    let slices = [at(end.slices.len() as u128), at((end.elapsed / SLICE).into())];
    table.at_most("slices of 100 ms", ["counted", "in its window"], slices, 1);
    if let Some(moved) = end.moved {
        table.at_most("bytes", ["in its window", "with warm-up and all"], [bytes, at(moved.0.into())], 0);
    }
}

fn of_initiator(result: &CaseResult<'_>, (host, end): (&str, &Measurement), table: &mut Table) {
    let cell = &result.case.cell;
    let operations = (host, end.operations.into());
    // Reads of a memory latency are not timed one by one.
    if let Some(latency) = end.latency.as_deref().filter(|_| cell.metric == TestMetric::Latency) {
        table.equal("operations", ["counted", "timed"], [operations, (host, latency.samples.into())], 0);
    }
    let rows = result.test.knobs.precision.and_then(|precision| precision.rows(cell.size));
    if let (Op::Matmul, Some(rows)) = (cell.op, rows) {
        let counts = [(host, end.flops.into()), (host, u128::from(flops(rows)) * operations.1)];
        table.equal("floating-point operations", ["counted", "in its products"], counts, 0);
    }
}

fn counts_stream(result: &CaseResult<'_>) -> bool {
    result.case.cell.metric == TestMetric::Bandwidth && responder_counts(result)
}

/// Both ends over TCP compare their counts before a pass ends. What one end does alone (writes and reads over verbs) is counted once.
fn of_ends(
    result: &CaseResult<'_>,
    (from, here): (&str, &Measurement),
    (to, there): (&str, &Measurement),
    table: &mut Table,
) {
    let cell = &result.case.cell;
    for ((host, sent), (other, end)) in [((from, here), (to, there)), ((to, there), (from, here))] {
        // Over verbs each end has its own window, and the whole step covers both.
        let whole = if cell.transport == Transport::Verbs { sent.moved.unwrap_or_default() } else { sent.bytes };
        if let Some(received) = end.received {
            table.equal("bytes", ["counted", "received"], [(host, whole.0.into()), (other, received.0.into())], 0);
        }
    }
    if counts_stream(result) && !result.test.bidirectional {
        let (share, messages) = match (cell.transport, cell.service) {
            (Transport::Tcp, _) => (0.0, 0),
            (_, Service::Uc | Service::Ud) => (COUNT_TOLERANCE, RECEIVES),
            _ => (COUNT_TOLERANCE, 2),
        };
        let off = here.bytes.as_f64() * share + messages as f64 * cell.size.as_f64() * f64::from(cell.qps.max(1));
        let counts = [(from, here.bytes.0.into()), (to, there.bytes.0.into())];
        table.equal("bytes", ["counted", "counted"], counts, off as u128);
    }
    // Messages in both directions. Over TCP the warm-up is a pass of its own, over verbs it is in the peer's count.
    let sent = match (cell.metric, cell.transport, here.moved) {
        (TestMetric::Latency, Transport::Tcp, _) => here.operations,
        (TestMetric::Latency, Transport::Verbs, Some(moved)) if !cell.op.pulls() && !cell.op.is_atomic() => {
            moved.0 / cell.size.0.max(1)
        }
        _ => return,
    };
    let counts = [(from, sent.into()), (to, there.operations.into())];
    table.equal("operations", ["sent", "answered"], counts, 0);
}

fn of_ranks(result: &CaseResult<'_>, sample: &Sample, (host, all): (&str, &Measurement), table: &mut Table) {
    let (flow, ranks) = (&result.case.flow, &sample.ranks);
    let at = |count: u128| (host, count);
    let once = |rank: &u32| ranks.iter().filter(|account| account.rank == *rank).count() == 1;
    let present = at((0..flow.ranks()).filter(once).count() as u128);
    table.equal("ranks", ["with one account", "planned"], [present, at(flow.members.len() as u128)], 0);
    table.equal("ranks", ["with an account", "planned"], [at(ranks.len() as u128), at(flow.members.len() as u128)], 0);
    let bytes = u128::from(all.operations) * u128::from(result.case.cell.size.0);
    table.equal("bytes", ["counted", "by its operations"], [at(all.bytes.0.into()), at(bytes)], 0);
    for account in ranks {
        let counts = [(&*account.host, account.operations.into()), at(all.operations.into())];
        table.equal("operations", ["counted by one rank", "in all"], counts, 0);
    }
    let checked = |of: fn(&railgauge_wire::step::Checked) -> u64| {
        [at(of(&sample.checked).into()), at(ranks.iter().map(|account| u128::from(of(&account.checked))).sum())]
    };
    table.equal("bytes", ["verified", "by all ranks"], checked(|one| one.verified.0), 0);
    table.equal("bytes", ["wrong", "by all ranks"], checked(|one| one.wrong.0), 0);
}

/// Two verify passes, before and after the window. Buffers consist of words of eight bytes.
fn of_verified(result: &CaseResult<'_>, sample: &Sample, host: &str, table: &mut Table) {
    let (cell, flow) = (&result.case.cell, &result.case.flow);
    // A test of memory compares in its window, too.
    let in_window = if cell.op == Op::GpuMemoryTest { sample.initiator.bytes.0 } else { 0 };
    let most = match flow.members.is_empty() {
        true => 2 * u128::from(cell.qps.max(1)) * u128::from(cell.size.0.max(8)) + u128::from(in_window),
        false => verified(result.test, result.case).0.into(),
    };
    let counts = [(host, sample.checked.verified.0.into()), (host, most)];
    table.at_most("bytes", ["verified", "to verify"], counts, 0);
}

/// Whether arriving bytes are counted by the receiver: a responder's sockets over TCP, and the receives of messages
/// over verbs. Reads and writes over verbs need nothing of the responder.
pub(super) fn responder_counts(result: &CaseResult<'_>) -> bool {
    let cell = &result.case.cell;
    let takes_part = match cell.transport {
        Transport::Tcp => true,
        Transport::Verbs => matches!(cell.op, Op::Send | Op::WriteImm) && cell.metric == TestMetric::Bandwidth,
        Transport::Nccl | Transport::Cpu | Transport::Gpu | Transport::Nic => false,
    };
    takes_part && result.case.flow.members.is_empty()
}
