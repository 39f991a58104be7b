//! A flow alone and alongside an incast among six hosts, computed by hand.

use railgauge_model::plan::Plan;
use railgauge_wire::{Congestion, Failure, Kind as FailureKind, Stage};

use super::*;
use crate::{
    together::{self, Answer, Beside, Other},
    verdict::Verdicts,
};

const VICTIM: &str = "pattern = \"victim\"\nvictim = [\"h0\", \"h1\"]\nto = \"h2\"\nqps = 1";

/// The flow's shares of 32 Gb/s in each repeat, alone and alongside the incast.
type Shares = [(f64, f64)];

fn parsed(keys: &str, repeats: usize) -> Plan {
    let sizes = if keys.contains("sizes") { "" } else { "sizes = [\"64KiB\"]\n" };
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-5]\"], groups = {{ G = \"h[0-1]\" }} }}\n[[test]]\nop = \"write\"\n\
         metric = \"bandwidth\"\n{sizes}verify = false\nwarm_up = \"0s\"\nrepeats = {repeats}\n{VICTIM}\n{keys}\n"
    );
    plan::parse("t.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0
}

/// `change` may spoil a sample, by case, repeat and whether it is the flow's.
fn journal_of(keys: &str, shares: &Shares, change: impl Fn(&Case, u32, &mut Sample)) -> Journal {
    let plan = parsed(keys, shares.len());
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    assert_eq!(cases.len() % 5, 0, "the flow twice, and three to h2");
    let mut tries = Vec::new();
    for (repeat, (alone, beside)) in (0..).zip(shares) {
        for case in &cases {
            let share = match (case.round, &*case.flow.from.host) {
                (0, _) => *alone,
                (_, "h0") => *beside,
                _ => 1.0 / 3.0,
            };
            let mut sample = scaled(share);
            change(case, repeat, &mut sample);
            let link = Some(Arc::new(link()));
            tries.push(Try {
                case: case.id,
                repeat,
                started_at: "2026-11-21T02:00:00.000Z".into(),
                link,
                result: Ok(sample),
            });
        }
    }
    let hosts = (0..6).map(|i| (format!("h{i}"), host(i))).collect();
    Journal { tries, hosts, cases, end: JournalEnd::Finished, ..Journal::of(plan) }
}

pub(super) fn scaled(share: f64) -> Sample {
    let mut sample = sample(GOOD);
    let all = &mut sample.initiator;
    let of = |bytes: Bytes| Bytes((bytes.0 as f64 * share) as u64);
    all.bytes = of(all.bytes);
    all.operations = (all.operations as f64 * share) as u64;
    all.moved = Some(all.bytes);
    all.slices.iter_mut().for_each(|slice| *slice = of(*slice));
    sample
}

fn beside_of(results: &[CaseResult<'_>]) -> Vec<Beside> {
    together::beside(&results.iter().collect::<Vec<_>>())
}

fn told(journal: &Journal) -> (Beside, Verdicts) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let victims = beside_of(&results);
    assert_eq!(victims.len(), 1);
    let verdicts = verdicts(journal, &results, &rows, Vec::new());
    assert_eq!(verdicts.beside, victims);
    (victims.into_iter().next().unwrap(), verdicts)
}

const STEADY: [(f64, f64); 4] = [(1.0, 0.7), (0.99, 0.71), (1.01, 0.7), (1.0, 0.69)];
const NOISY: [(f64, f64); 4] = [(1.0, 0.7), (0.99, 1.0), (1.01, 0.8), (1.0, 1.1)];

#[test]
fn a_loss_is_told_with_both_figures_and_judged() {
    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = ";
    let at = |percent: u32| journal_of(&format!("{limit}\"{percent}%\""), &STEADY, |_, _, _| {});
    let (victim, verdicts) = told(&at(10));
    assert_eq!(victim.answer, Answer::Lost);
    close(victim.alone_gbps, 32.0);
    close(victim.beside_gbps, 22.4);
    assert!((victim.loss_percent.unwrap() - 30.0).abs() < 0.5, "{victim:?}");
    let (low, high) = victim.interval_percent.unwrap();
    assert!(low > 27.0 && high < 33.0, "{victim:?}");
    assert_eq!(victim.other, Other::Incast { incast: "h2".into(), incast_flows: 3 });
    let of = |verdicts: &Verdicts| verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap().status;
    assert_eq!(of(&verdicts), Status::Fail);
    assert_eq!(of(&told(&at(50)).1), Status::Pass);
    // 30 % lies within the uncertainty of the repeats.
    assert_eq!(of(&told(&at(30)).1), Status::Inconclusive);
}

#[test]
fn the_loss_is_a_row_of_the_flow_beside_the_incast_alone() {
    let journal = journal_of("", &STEADY, |_, _, _| {});
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let losses: Vec<&Row> = rows.iter().filter(|row| row.metric == Metric::VictimLoss).collect();
    let [loss] = losses.as_slice() else { panic!("{losses:?}") };
    assert_eq!((loss.round, &*loss.src_host, loss.unit(), loss.n), (1, "h0", "%", 4));
    assert!((loss.value.unwrap() - 30.0).abs() < 1.0, "{loss:?}");
    // Flows of the incast have a third each, and no flow stands out from others that are not its peers.
    let judged = verdicts(&journal, &results, &rows, Vec::new());
    assert!(judged.verdicts.iter().all(|verdict| verdict.kind != Kind::Parts), "{:?}", judged.verdicts);
}

#[test]
fn a_loss_within_the_noise_is_none() {
    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = \"2%\"";
    let (victim, verdicts) = told(&journal_of(limit, &NOISY, |_, _, _| {}));
    assert_eq!(victim.answer, Answer::NoLoss);
    // The bound is the uncertainty of the repeats: a loss of zero is not proven.
    let high = victim.interval_percent.unwrap().1;
    assert!(high > 10.0, "{victim:?}");
    // Unknown whether it is below two percent.
    let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
    assert_eq!(judged.status, Status::Inconclusive, "{}", judged.reason);
}

#[test]
fn too_few_repeats_tell_nothing() {
    let (victim, _) = told(&journal_of("", &STEADY[..2], |_, _, _| {}));
    assert_eq!((victim.answer, victim.loss_percent), (Answer::Unknown, None));
}

#[test]
fn a_flow_alone_that_is_not_to_be_trusted_makes_no_loss() {
    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = \"50%\"";
    // Four times its bytes left the NIC while it was alone: foreign traffic.
    let foreign = |case: &Case, _: u32, sample: &mut Sample| {
        if case.round == 0 {
            sample.from_counters.insert("counters/port_xmit_data".into(), sample.initiator.bytes.0);
        }
    };
    let (victim, verdicts) = told(&journal_of(limit, &STEADY, foreign));
    assert_eq!((victim.answer, victim.alone_gbps), (Answer::Unknown, None));
    assert!(
        victim.why_unknown.contains("alone") && victim.why_unknown.contains("foreign traffic"),
        "{}",
        victim.why_unknown
    );
    let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
    assert_eq!(judged.status, Status::Inconclusive);
}

#[test]
fn packets_sent_again_are_no_reason_to_keep_silent() {
    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = \"10%\"";
    let again = |case: &Case, _: u32, sample: &mut Sample| {
        if case.round == 1 {
            sample.from_counters.insert("hw_counters/packet_seq_err".into(), sample.initiator.bytes.0 / 100_000);
        }
    };
    let journal = journal_of(limit, &STEADY, again);
    let state = results(&journal).unwrap().iter().find(|result| result.case.round == 1).unwrap().state;
    assert_eq!(state, State::Contaminated);
    let (victim, verdicts) = told(&journal);
    assert_eq!(victim.answer, Answer::Lost, "{}", victim.words());
    let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
    assert_eq!(judged.status, Status::Fail, "{}", judged.reason);
}

#[test]
fn a_flow_alone_that_lost_packets_is_no_reference() {
    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = \"50%\"";
    let again = |case: &Case, _: u32, sample: &mut Sample| {
        if case.round == 0 {
            sample.from_counters.insert("hw_counters/packet_seq_err".into(), sample.initiator.bytes.0 / 100_000);
        }
    };
    let (victim, verdicts) = told(&journal_of(limit, &STEADY, again));
    assert_eq!((victim.answer, victim.alone_gbps), (Answer::Unknown, None));
    assert!(victim.why_unknown.contains("the flow alone"), "{}", victim.why_unknown);
    let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
    assert_eq!(judged.status, Status::Inconclusive, "{}", judged.reason);
}

/// A limit between the upper ends of the interval of one flow and that of several together: the page and the verdict agree.
#[test]
fn the_verdict_rests_on_the_interval_of_the_page() {
    let of = |draws: &str, percent: f64| {
        let limit = format!("{draws}[[test.expect]]\nmetric = \"victim_loss\"\nat_most = \"{percent}%\"");
        let whole = |case: &Case, _: u32, sample: &mut Sample| {
            sample.initiator.operations = sample.initiator.bytes.0 / case.cell.size.0;
        };
        journal_of(&limit, &STEADY, whole)
    };
    let sizes = "sizes = [\"64KiB\", \"128KiB\", \"256KiB\", \"512KiB\"]\n";
    let all = |percent: f64| {
        let journal = of(sizes, percent);
        let results = results(&journal).unwrap();
        let victims = beside_of(&results);
        let rows = rows(&journal, &results);
        let judged = verdicts(&journal, &results, &rows, Vec::new());
        let expected = judged.verdicts.into_iter().find(|one| one.kind == Kind::Expectation).unwrap();
        (victims, expected.status)
    };
    let high = |victims: &[Beside]| victims.iter().map(|victim| victim.interval_percent.unwrap().1).fold(0.0, f64::max);
    let (many, _) = all(99.0);
    assert_eq!(many.len(), 4);
    let alone = told(&of("", 99.0)).0.interval_percent.unwrap().1;
    assert!(high(&many) > alone + 0.2, "{} {alone}", high(&many));
    let between = (10.0 * (high(&many) + alone) / 2.0).round() / 10.0;
    assert_eq!(all(between).1, Status::Inconclusive);
    assert_eq!(all((high(&many) + 1.0).ceil()).1, Status::Pass);
}

#[test]
fn hosts_that_are_one_machine_leave_open_what_the_fabric_did() {
    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = ";
    for (one, other) in [("h0", "h1"), ("h1", "h2"), ("h0", "h4")] {
        for percent in [10, 50] {
            let mut journal = journal_of(&format!("{limit}\"{percent}%\""), &STEADY, |_, _, _| {});
            journal.hosts.get_mut(other).unwrap().facts.hostname = one.into();
            let (victim, verdicts) = told(&journal);
            // The figures were measured; their meaning for the fabric is unknown.
            assert_eq!(victim.answer, Answer::Unknown, "{one} {other}");
            assert!((victim.loss_percent.unwrap() - 30.0).abs() < 0.5, "{victim:?}");
            assert_eq!(victim.one_machine, [one, other]);
            let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
            assert_eq!(judged.status, Status::Inconclusive, "{}", judged.reason);
            assert!(judged.reason.to_string().contains("one machine"), "{}", judged.reason);
        }
    }
    // Two senders of the incast on one machine do not affect the flow.
    let mut journal = journal_of(&format!("{limit}\"50%\""), &STEADY, |_, _, _| {});
    journal.hosts.get_mut("h4").unwrap().facts.hostname = "h5".into();
    let (victim, _) = told(&journal);
    assert_eq!((victim.answer, victim.one_machine.len()), (Answer::Lost, 0));
}

#[test]
fn a_flow_alone_that_failed_makes_no_loss() {
    let mut journal = journal_of("", &STEADY, |_, _, _| {});
    for attempt in journal.tries.iter_mut().filter(|attempt| attempt.case == 0) {
        attempt.result = Err(Failure::new(Stage::Measure, FailureKind::Deadline, "no end").at("h1"));
    }
    let (victim, _) = told(&journal);
    assert_eq!(victim.answer, Answer::Unknown);
    assert!(victim.why_unknown.contains("no end"), "{}", victim.why_unknown);
}

#[test]
fn pauses_and_notifications_are_told_by_port() {
    let of = |counted: &together::Counted, kind| (counted.kinds[&kind].counting, counted.kinds[&kind].rose.len());
    let none = told(&journal_of("", &STEADY, |_, _, _| {})).0.counted;
    assert_eq!(none.ports, 0);
    let uncounted = |_: &Case, _: u32, sample: &mut Sample| {
        sample.to_counters.insert("netdev/rx_bytes".into(), 0);
    };
    let counted = told(&journal_of("", &STEADY, uncounted)).0.counted;
    assert_eq!((counted.ports, of(&counted, Congestion::Pause)), (2, (0, 0)));
    // Pauses of two repeats at one port; notifications are counted and zero.
    let counts = |case: &Case, repeat: u32, sample: &mut Sample| {
        let pauses = u64::from(case.round == 1 && &*case.flow.from.host == "h0" && repeat < 2) * 7;
        sample.from_counters.insert("ethtool/rx_prio3_pause".into(), pauses);
        sample.from_counters.insert("hw_counters/np_cnp_sent".into(), 0);
    };
    let (victim, verdicts) = told(&journal_of("", &STEADY, counts));
    assert_eq!(of(&victim.counted, Congestion::Cnp), (4, 0));
    assert_eq!(victim.counted.kinds[&Congestion::Pause].rose["h0 mlx5_0"]["ethtool/rx_prio3_pause"], 14);
    // Neither missing notifications nor pauses are a failure.
    assert_ne!(verdicts.status, Status::Fail);
    assert!(verdicts.json().unwrap().contains("\"incast_flows\""));
}
