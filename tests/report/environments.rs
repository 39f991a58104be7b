//! A matrix of environments: each compared with the first, and against what its NVLinks carry.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{
    costs::{Answer, costs},
    journal::{HostUp, Journal, JournalEnd, Try},
    results::results,
    status::Status,
};
use railgauge_model::{
    journal::event::{Case, LinkRecord, RankAccount, Sample},
    plan::parse,
    schedule::{Inventory, schedule},
};
use railgauge_report::draw;
use railgauge_wire::{
    facts::{Gpu, HostFacts},
    failure::{Failure, Kind, Stage},
    measure::{Latency, Measurement},
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer, Metric},
    unit::{Bytes, MegabytesPerSecond, Nanoseconds, NanosecondsF64},
};

use crate::support::Dice;

/// Microseconds of an all-reduce on four GPUs, by algorithm and size: about what H200 take.
fn time(algorithm: &str, size: u64) -> f64 {
    let (start, gigabytes) = match algorithm {
        "Ring" => (11.0, 240.0),
        "Tree" => (8.0, 150.0),
        _ => (11.0, 239.7),
    };
    start + size as f64 / gigabytes / 1e3
}

fn sample(case: &Case, dice: &mut Dice) -> Result<Sample, Failure> {
    let algorithm = &case.cell.manner.as_ref().unwrap().env["NCCL_ALGO"];
    if algorithm == "PAT" {
        let cause = "rank 0 (GPU 0): a collective: NCCL error 5 (invalid usage)";
        return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).at("h1"));
    }
    // Repeats scatter by 1 %.
    let p50 = (1e3 * time(algorithm, case.cell.size.0) * (1.0 + 0.01 * dice.normal())) as u64;
    let latency = Latency {
        samples: 100,
        min: Nanoseconds(p50),
        p50: Nanoseconds(p50),
        p90: Nanoseconds(p50),
        p99: Nanoseconds(p50),
        p999: Nanoseconds(p50),
        max: Nanoseconds(p50),
        mean: NanosecondsF64(p50 as f64),
        histogram: vec![(Nanoseconds(p50), 100)],
        ..Latency::default()
    };
    let rank = |rank: u32| RankAccount {
        rank,
        host: "h1".into(),
        device: format!("GPU {rank} (NVIDIA H200)"),
        gpu: Some(rank),
        p50: Nanoseconds(p50),
        max: Nanoseconds(p50),
        operations: 100,
        checked: Checked { verified: case.cell.size * 2, ..Checked::default() },
        carried: None,
        nics: Vec::new(),
    };
    Ok(Sample {
        initiator: Measurement {
            elapsed: Nanoseconds(100 * p50),
            operations: 100,
            bytes: case.cell.size * 100,
            latency: Some(Box::new(latency)),
            ..Measurement::default()
        },
        checked: Checked { verified: case.cell.size * 8, wrong: Bytes::ZERO, first_wrong: None },
        ranks: (0..4).map(rank).collect(),
        ..Sample::default()
    })
}

fn link(case: &Case) -> LinkRecord {
    let channels = if case.cell.manner.as_ref().unwrap().env["NCCL_ALGO"] == "Tree" { "16" } else { "24" };
    let settings = [
        ("carried: via P2P/CUMEM", "48"),
        ("channels: coll", channels),
        ("channels: nvls", "0"),
        ("nccl_library", "/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3"),
        ("nccl_version", "2.28.3"),
    ];
    LinkRecord {
        transport: Carrier::NcclP2p,
        link_layer: LinkLayer::Nvlink,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "GPU 0 (NVIDIA H200)".into(),
        to_device: "GPU 3 (NVIDIA H200)".into(),
        rate_gbps: None,
        mtu: 0,
        write_order: None,
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

/// A host of four GPUs with 18 NVLinks each.
fn facts() -> HostFacts {
    let gpu = |index| Gpu {
        index,
        name: Some("NVIDIA H200".into()),
        nvlinks: Some(18),
        nvlink_mbps: Some(MegabytesPerSecond(26_562)),
        ..Gpu::default()
    };
    HostFacts { hostname: "h1".into(), gpus: (0..4).map(gpu).collect(), ..HostFacts::default() }
}

/// A run on one host of four GPUs, in which one of four environments does not work.
fn run(repeats: u32) -> Journal {
    let text = format!(
        "name = \"environments\"\nhosts = {{ names = [\"h1\"] }}\nlaunch = {{ via = \"ssh\" }}\n[[test]]\nname = \"algorithms\"\n\
         op = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\ngpus = [0, 1, 2, 3]\n\
         sizes = [\"4KiB\", \"256MiB\"]\nrepeats = {repeats}\n\
         env = {{ NCCL_ALGO = [\"Ring\", \"Tree\", \"Ring,Tree\", \"PAT\"], NCCL_DMABUF_ENABLE = \"1\" }}\n\
         [[test.expect]]\nmetric = \"busbw\"\npercent_of_ceiling = 60\nsizes = \"256MiB\"\n"
    );
    let plan = parse("p.toml", &text, Path::new("")).unwrap().0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let mut dice = Dice(11);
    let mut tries = Vec::new();
    for repeat in 0..repeats {
        for case in &cases {
            let result = sample(case, &mut dice);
            let link = result.is_ok().then(|| Arc::new(link(case)));
            tries.push(Try { case: case.id, repeat, started_at: "2026-11-21T02:00:00.000Z".into(), link, result });
        }
    }
    let up = HostUp { facts: facts(), clock: None, wall: None };
    Journal {
        run_id: "environments-20261121T020000Z".into(),
        version: "0.1.0".into(),
        controller: "Debian GNU/Linux 12 (bookworm)".into(),
        launcher: "ssh".into(),
        time: ("2026-11-21T02:00:00.000Z".into(), "2026-11-21T02:10:00.000Z".into()),
        hosts: [("h1".to_owned(), up)].into(),
        cases,
        tries,
        end: JournalEnd::Finished,
        ..Journal::of(plan)
    }
}

/// Answers in the headline at one size: environment and how it compares with the first.
fn answers(journal: &Journal, size: u64) -> Vec<(String, Answer)> {
    let costs = costs(&journal.plan.tests, &results(journal).unwrap());
    let here = costs.into_iter().filter(|one| one.metric == Metric::Busbw && one.size_bytes == Bytes(size));
    here.map(|one| (one.value, one.compared.answer)).collect()
}

#[test]
fn only_what_is_beyond_the_scatter_is_a_difference() {
    use Answer::{Costs, Gains, NoDifference, Reference, Unknown};
    let journal = run(6);
    let of = |answers: Vec<(String, Answer)>| answers.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>();
    assert_eq!(of(answers(&journal, 4 << 10)), [Reference, Gains, NoDifference, Unknown]);
    assert_eq!(of(answers(&journal, 256 << 20)), [Reference, Costs, NoDifference, Unknown]);
    // Two repeats have no answer.
    assert_eq!(of(answers(&run(2), 4 << 10)), [Reference, Unknown, Unknown, Unknown]);
    // What all environments share distinguishes none.
    assert_eq!(answers(&journal, 4 << 10)[1].0, "NCCL_ALGO=Tree");
}

#[test]
fn equal_environments_are_rarely_told_apart() {
    let mut told = 0;
    for seed in 0..200 {
        let mut journal = run(5);
        let mut dice = Dice(seed);
        for tried in &mut journal.tries {
            if let Ok(sample) = &mut tried.result {
                let p50 = (1e6 * (1.0 + 0.01 * dice.normal())) as u64;
                sample.initiator.latency.as_mut().unwrap().p50 = Nanoseconds(p50);
            }
        }
        let all = [answers(&journal, 4 << 10), answers(&journal, 256 << 20)].concat();
        told += u32::from(all.iter().any(|(_, answer)| matches!(answer, Answer::Gains | Answer::Costs)));
    }
    // At most one run in twenty, and half as many again for the luck of 200.
    assert!(told <= 15, "{told} of 200 runs name a difference that is none");
}

#[test]
fn rows_stand_beside_their_nvlinks() {
    let journal = run(3);
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let verdict = &drawn.view.expectations[0];
    // Ring carries 240 × 3/2 of 450 GB/s, Tree 150 × 3/2: 80 and 50 %, which is 83 % of the 60 % that are demanded.
    assert_eq!((verdict.status, verdict.offenders.len()), (Status::Fail, 1), "{verdict:?}");
    let share = &verdict.offenders[0].share;
    assert!(share.starts_with("82.") || share.starts_with("83."), "{share}");
}

#[test]
fn the_table_of_a_matrix() {
    let journal = run(6);
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let block = drawn.view.tests[0].block("costs").unwrap();
    let shown = serde_json::json!({ "sentence": block.sentence, "table": block.table, "method": block.method });
    insta::assert_json_snapshot!(shown);
}
