//! A collective counts as measured only if what its ranks say is whole and can be true.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use railgauge_analysis::{
    case::State,
    journal::{Journal, JournalEnd, Try},
    results::results,
    rows::rows,
    status::Status,
    verdict::verdicts,
};
use railgauge_model::{
    journal::event::{Case, FlowAccount, NicBytes, Sample},
    plan::parse,
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    terms::{Carrier, LinkLayer, Metric},
    unit::{Bytes, Nanoseconds},
};

use crate::support;

/// A run of a collective over four hosts with two ranks each.
fn run(op: &str, keys: &str, change: impl Fn(&Case, &mut Sample)) -> Journal {
    run_over("nccl", op, keys, change)
}

fn run_over(transport: &str, op: &str, keys: &str, change: impl Fn(&Case, &mut Sample)) -> Journal {
    let text = format!(
        "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[1-4]\"]\n[[test]]\nop = \"{op}\"\n\
         metric = \"bandwidth\"\ntransport = \"{transport}\"\nranks_per_host = 2\nsizes = \"64MiB\"\n{keys}"
    );
    let plan = parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let mut link = support::group::link();
    if transport == "tcp" {
        (link.transport, link.link_layer) = (Carrier::Tcp, LinkLayer::Ethernet);
    }
    let link = Arc::new(link);
    let tries = cases.iter().map(|case| {
        let mut sample = support::group::sample(case, 300_000);
        change(case, &mut sample);
        let started_at = "2026-11-21T02:00:00.000Z".to_owned();
        Try { case: case.id, repeat: 0, started_at: started_at.into(), link: Some(link.clone()), result: Ok(sample) }
    });
    Journal {
        run_id: "run".into(),
        tries: tries.collect(),
        hosts: support::group::hosts(&plan),
        time: ("2026-11-21T02:00:00.000Z".into(), "2026-11-21T02:10:00.000Z".into()),
        cases,
        end: JournalEnd::Finished,
        ..Journal::of(plan)
    }
}

fn judged(op: &str, keys: &str, change: impl Fn(&Case, &mut Sample)) -> (State, u8, String) {
    let journal = run(op, keys, change);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let verdicts = verdicts(&journal, &results, &rows, Vec::new());
    assert_eq!(verdicts.status == Status::Pass, verdicts.exit_code == 0);
    (results[0].state, verdicts.exit_code, results[0].error().unwrap_or_default())
}

#[test]
fn a_whole_result_of_any_collective_is_measured() {
    for op in ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv"] {
        let (state, code, error) = judged(op, "", |_, _| {});
        assert_eq!((state, code), (State::Measured, 0), "{op}: {error}");
    }
}

#[test]
fn ranks_bytes_and_operations_that_do_not_fit_the_plan_are_impossible() {
    type Change = fn(&Case, &mut Sample);
    let changes: [(&str, Change); 10] = [
        ("5 ranks", |_, sample| sample.ranks.truncate(5)),
        ("0 ranks", |_, sample| sample.ranks.clear()),
        ("rank 1 reports for a4", |_, sample| sample.ranks[1].host = "a4".into()),
        ("6 ranks", |_, sample| sample.ranks[1].rank = 0),
        ("bytes counted", |case, sample| sample.initiator.bytes = sample.initiator.bytes - case.cell.size),
        ("bytes counted", |_, sample| sample.initiator.bytes = Bytes::ZERO),
        ("operations", |case, sample| {
            sample.initiator.operations *= 3;
            sample.initiator.bytes = case.cell.size * sample.initiator.operations;
        }),
        ("bytes verified", |_, sample| sample.checked.verified = sample.checked.verified * 2),
        ("largest time of a rank", |_, sample| sample.ranks[2].max = Nanoseconds(400_000)),
        ("median of a rank", |_, sample| sample.ranks[2].p50 = Nanoseconds(400_000)),
    ];
    for (words, change) in changes {
        let (state, code, error) = judged("all_reduce", "", change);
        assert_eq!((state, code), (State::Impossible, 3), "{words}: {error}");
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_result_that_was_verified_in_part_is_not_verified() {
    let part = |_: &Case, sample: &mut Sample| {
        for checked in [&mut sample.checked, &mut sample.ranks[0].checked] {
            checked.verified = checked.verified - Bytes(8);
        }
    };
    let none = |_: &Case, sample: &mut Sample| {
        sample.checked.verified = Bytes::ZERO;
        sample.ranks.iter_mut().for_each(|account| account.checked.verified = Bytes::ZERO);
    };
    for op in ["all_reduce", "reduce_scatter", "reduce", "all_to_all"] {
        let (state, code, error) = judged(op, "", part);
        assert_eq!((state, code), (State::Unverified, 3), "{op}: {error}");
        assert_eq!(judged(op, "", none).0, State::Unverified, "{op}");
    }
    // A plan that does not ask for it gets none.
    let keys = "verify = false\n[[test.expect]]\nmetric = \"busbw\"\nat_least = \"1 GB/s\"\n";
    let (state, code, error) = judged("all_reduce", keys, none);
    assert_eq!((state, code), (State::Measured, 0), "{error}");
}

/// The status of what is demanded of the NICs, and the host and NIC that its reason names; `None` where nothing is demanded.
fn balance(keys: &str, change: impl Fn(&Case, &mut Sample)) -> Option<(Status, String, bool)> {
    let journal = run("all_reduce", keys, change);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let judged = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let one = judged.into_iter().find(|verdict| verdict.metric == Some(Metric::NicBalance))?;
    Some((one.status, one.reason.to_string(), one.line.is_some()))
}

/// Every host has two NICs that carried the same, but the second one of a3 only this percentage of it.
fn nics(sample: &mut Sample, share: u64) {
    let hosts: BTreeSet<String> = sample.ranks.iter().map(|rank| rank.host.clone()).collect();
    let of = |host: String| {
        ["mlx5_0", "mlx5_1"].map(|device| {
            let part = if host == "a3" && device == "mlx5_1" { share } else { 100 };
            NicBytes { host: host.clone(), device: device.to_owned(), bytes: Bytes(part << 30) }
        })
    };
    sample.nics = hosts.into_iter().flat_map(of).collect();
}

#[test]
fn an_idle_nic_of_a_collective_fails_by_default() {
    assert_eq!(balance("", |_, _| {}), None, "no NIC was read");
    let (status, ..) = balance("", |_, sample| nics(sample, 90)).unwrap();
    assert_eq!(status, Status::Pass);
    let (status, reason, in_plan) = balance("", |_, sample| nics(sample, 0)).unwrap();
    assert_eq!((status, in_plan), (Status::Fail, false));
    assert!(reason.contains("mlx5_1") && reason.contains("a3"), "{reason}");
}

#[test]
fn the_plan_decides_how_balanced_nics_have_to_be() {
    let keys = "[[test.expect]]\nmetric = \"nic_balance\"\nat_least = \"95 %\"\n";
    let (status, _, in_plan) = balance(keys, |_, sample| nics(sample, 90)).unwrap();
    assert_eq!((status, in_plan), (Status::Fail, true));
    // What cannot be judged is no pass.
    let (status, ..) = balance(keys, |_, _| {}).unwrap();
    assert_eq!(status, Status::Inconclusive);
}

#[test]
fn the_slowest_flow_of_an_exchange_is_compared_with_the_limit_and_named() {
    let keys = |limit: &str| {
        format!(
            "[test.traffic]\npipeline = {{ stages = 4, bytes = \"64MiB\" }}\nalone = 6\n[[test.expect]]\n{limit}\n\
             [[test.expect]]\nmetric = \"busbw\"\nat_least = \"1 GB/s\"\n"
        )
    };
    // Rank 2 on a2 receives from rank 0 on a1, and so on; two ranks share a port.
    let flows = |_: &Case, sample: &mut Sample| {
        let flow = |from: u32, together: u64| FlowAccount {
            from,
            to: from + 2,
            bytes: Bytes::from_mib(64),
            together: Nanoseconds(together),
            alone: Nanoseconds(100),
            share: 2.0,
        };
        sample.flows = [flow(0, 200), flow(1, 380), flow(2, 190)].into_iter().collect();
        for account in &mut sample.ranks {
            account.checked.verified = Bytes::from_mib(64) * 3 * u64::from(account.rank >= 2);
        }
        sample.checked.verified = Bytes::from_mib(64) * 3 * 6;
    };
    let judged = |limit: &str| {
        let journal = run_over("tcp", "all_to_all_v", &keys(limit), flows);
        let results = results(&journal).unwrap();
        assert_eq!(results[0].state, State::Measured, "{:?}", results[0].error());
        let rows = rows(&journal, &results);
        let value = |metric| rows.iter().find(|row| row.metric == metric).unwrap().value.unwrap();
        assert_eq!((value(Metric::TogetherOverAlone), value(Metric::TogetherOverShare)), (380.0, 190.0));
        let all = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
        let of = |metric| all.iter().find(|verdict| verdict.metric == Some(metric));
        let one = of(Metric::TogetherOverAlone).or(of(Metric::TogetherOverShare)).unwrap();
        (one.status, one.reason.to_string())
    };
    assert_eq!(judged("metric = \"together_over_alone\"\nat_most = \"400 %\"").0, Status::Pass);
    for limit in [
        "metric = \"together_over_alone\"\nat_most = \"300 %\"",
        "metric = \"together_over_share\"\nat_most = \"110 %\"",
    ] {
        let (status, reason) = judged(limit);
        assert_eq!(status, Status::Fail);
        assert!(reason.contains("rank 1 (a1)") && reason.contains("rank 3 (a2)"), "{reason}");
    }
}
