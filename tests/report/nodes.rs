//! Tests within hosts: which GPU or host is slower than its fellows, settled by further cases, and what the page shows of it.

use std::path::Path;

use railgauge_analysis::{
    case::State,
    journal::{Journal, JournalEnd, Try},
    localise::{Localisation, Named, Standing, further, localise},
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, verdicts},
};
use railgauge_model::{
    journal::event::{Case, GpuDuring, LinkRecord, Sample},
    plan::parse,
    schedule::{Inventory, Port, schedule},
};
use railgauge_report::draw;
use railgauge_wire::{
    facts::Gpu,
    measure::Measurement,
    node::LINE,
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer, Metric, Op, Precision, TestMetric, Transport, flops},
    unit::{Bytes, Nanoseconds},
};

use crate::support::{self, Dice};

const HOSTS: &str = "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[1-4]\"]\n";
pub const EACH: &str = "[[test]]\nname = \"each\"\nop = \"host_to_gpu\"\nmetric = \"bandwidth\"\nrails = \"each\"\n";
pub const ALL: &str = "[[test]]\nname = \"all\"\nop = \"host_to_gpu\"\nmetric = \"bandwidth\"\n";
pub const PEERS: &str = "[[test.expect]]\nmetric = \"memory_bandwidth\"\nwithin_percent_of_peers = 10\n";

/// Hosts of two GPUs, 55 GB/s each, what a case carries of that, and what is seen of its GPU meanwhile.
pub struct Cluster {
    share: fn(&Case) -> f64,
    pub gpus: fn(&Case) -> Vec<GpuDuring>,
    dice: Dice,
}

impl Cluster {
    pub fn new(share: fn(&Case) -> f64) -> Self {
        Self { share, gpus: |_| Vec::new(), dice: Dice(3) }
    }

    fn run(&mut self, journal: &mut Journal, cases: &[Case]) {
        for case in cases {
            let rate = 55.0 * (self.share)(case) * (1.0 + 0.002 * self.dice.normal());
            let (elapsed, size) = (Nanoseconds::from_secs(2), case.cell.size);
            let operations = (rate * elapsed.as_f64() / size.as_f64()) as u64;
            let is_chase = case.cell.metric == TestMetric::Latency;
            // 100 ns for a line where a GPU copies 55 GB/s.
            let operations = if is_chase { (elapsed.as_f64() * rate / 5500.0) as u64 } else { operations };
            let bytes = if is_chase { LINE * operations } else { Bytes((rate * elapsed.as_f64()) as u64) };
            let rows = Precision::Bf16.rows(size).filter(|_| case.cell.op == Op::Matmul);
            let flops = rows.map_or(0, |rows| flops(rows) * operations);
            let each = is_chase.then(|| 5500.0 / rate);
            let initiator =
                Measurement { elapsed, operations, bytes, flops, each: each.map(Box::new), ..Measurement::default() };
            let checked = Checked { verified: size * 2, ..Checked::default() };
            let gpus = (self.gpus)(case);
            let sample =
                Sample { initiator, checked, waited: Some(elapsed * 2), gpus: gpus.into(), ..Sample::default() };
            let is_nic = case.cell.transport == Transport::Nic;
            let nic = || format!("mlx5_{}", case.flow.to.rail);
            let link = LinkRecord {
                transport: match case.cell.transport {
                    Transport::Cpu => Carrier::Cpu,
                    Transport::Nic => Carrier::VerbsLoopback,
                    _ if rows.is_some() => Carrier::Cublaslt,
                    _ => Carrier::CudaCopy,
                },
                link_layer: if is_chase { LinkLayer::Memory } else { LinkLayer::Pcie },
                gpu_path: GpuPath::None,
                software: false,
                from_device: if is_nic { nic() } else { "memory".into() },
                to_device: if is_nic { nic() } else { format!("0000:1{}:00.0", case.flow.to.rail) },
                rate_gbps: None,
                mtu: 0,
                write_order: None,
                settings: [("gpu_remote".to_owned(), case.flow.to.rail.to_string())].into(),
            };
            let started_at = "2026-11-21T02:00:00.000Z".to_owned();
            let result = Ok(sample);
            journal.tries.push(Try {
                case: case.id,
                repeat: 0,
                started_at: started_at.into(),
                link: Some(link.into()),
                result,
            });
        }
    }

    /// A run of these tests, with everything that settles suspects.
    pub fn settled(&mut self, tests: &str) -> Journal {
        let plan =
            parse("p.toml", &format!("{HOSTS}{tests}"), Path::new("")).unwrap_or_else(|wrong| panic!("{wrong}")).0;
        let mut inventory = Inventory::of_plan(&plan);
        for host in &plan.hosts {
            inventory.set(&host.name, Transport::Gpu, 2);
            inventory.set(&host.name, Transport::Cpu, 2);
            inventory.set(&host.name, Transport::Nic, 2);
        }
        let cases = Case::planned(&plan, &schedule(&plan, &inventory).unwrap());
        let mut hosts = support::group::hosts(&plan);
        for up in hosts.values_mut() {
            up.facts.gpus = (0..2).map(|index| Gpu { index, ..Gpu::default() }).collect();
        }
        let mut journal = Journal {
            run_id: "run".into(),
            time: ("2026-11-21T02:00:00.000Z".into(), "2026-11-21T02:10:00.000Z".into()),
            hosts,
            cases: cases.clone(),
            end: JournalEnd::Finished,
            ..Journal::of(plan)
        };
        self.run(&mut journal, &cases);
        loop {
            let results = results(&journal).unwrap();
            let cases = further(&journal, &results, &rows(&journal, &results));
            if cases.is_empty() {
                return journal;
            }
            assert!(journal.further.len() < 100, "the search does not end");
            journal.further.extend(cases.clone());
            self.run(&mut journal, &cases);
        }
    }
}

fn found(journal: &Journal) -> Vec<Localisation> {
    let results = results(journal).unwrap();
    localise(journal, &results, &rows(journal, &results))
}

pub fn suspects(journal: &Journal) -> Vec<Named> {
    found(journal).into_iter().flat_map(|one| one.suspects).collect()
}

pub fn is_at(case: &Case, host: &str, rail: u32) -> bool {
    case.flow.from == Port::new(host, rail)
}

#[test]
fn a_gpu_that_is_slow_again_is_confirmed_and_fails_what_is_demanded_of_peers() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 });
    let journal = cluster.settled(&format!("{ALL}{PEERS}"));
    let suspects = suspects(&journal);
    let [gpu] = suspects.as_slice() else { panic!("{suspects:?}") };
    assert_eq!(
        (gpu.kind, gpu.name.as_str(), gpu.standing),
        ("GPU", "GPU 1 of a3", Standing::Confirmed),
        "{}",
        gpu.reason
    );
    assert!((gpu.change_percent + 50.0).abs() < 2.0, "{}", gpu.change_percent);
    assert_eq!(gpu.confirmation.unwrap().bad, 3);
    // Both GPUs of its host, as they were, beside those of a good host.
    assert_eq!(journal.further.len(), 12);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let failed = |kind| verdicts.iter().any(|one| one.kind == kind && one.status == Status::Fail);
    assert!(failed(Kind::Parts) && failed(Kind::Expectation), "{verdicts:?}");
    assert!(rows.iter().filter(|row| row.metric == Metric::MemoryBandwidth).all(|row| row.unit() == "GB/s"));
}

/// It has the name that tests of pairs give it, so that both speak of one part, and its host is blamed for it.
#[test]
fn a_nic_that_is_slow_by_itself_is_named_as_one_of_pairs() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 });
    let test = "[[test]]\nname = \"loop\"\nop = \"nic_loopback\"\nmetric = \"bandwidth\"\n";
    let journal = cluster.settled(&format!("{test}{PEERS}"));
    let suspects = suspects(&journal);
    let [nic] = suspects.as_slice() else { panic!("{suspects:?}") };
    let told = (nic.kind, nic.name.as_str(), nic.rail, nic.standing);
    assert_eq!(told, ("nic", "rail 1 of a3 (mlx5_1)", Some(1), Standing::Confirmed), "{}", nic.reason);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let failed = |kind| verdicts.iter().any(|one| one.kind == kind && one.status == Status::Fail);
    assert!(failed(Kind::Parts) && failed(Kind::Expectation), "{verdicts:?}");
    assert!(rows.iter().all(|row| &*row.transport == "verbs-loopback" && row.metric == Metric::MemoryBandwidth));
    let page = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    assert!(page.parts.unwrap().reasons.concat().join(" ").contains("rail 1 of a3 (mlx5_1)"));
}

#[test]
fn what_is_good_again_is_cleared() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a3", 1) && case.id < 8 { 0.5 } else { 1.0 });
    let suspects = suspects(&cluster.settled(ALL));
    assert_eq!(suspects.iter().map(|one| one.standing).collect::<Vec<_>>(), [Standing::Cleared]);
}

#[test]
fn a_host_whose_parts_are_all_slow_is_one_suspect() {
    let mut cluster = Cluster::new(|case| if *case.flow.from.host == *"a2" { 0.6 } else { 1.0 });
    let suspects = suspects(&cluster.settled(ALL));
    let names: Vec<_> = suspects.iter().map(|one| (one.name.as_str(), one.standing)).collect();
    assert_eq!(names, [("host a2", Standing::Confirmed)]);
}

/// By design or by a fault that all have: it is told, and no GPU is confirmed to be bad by others of its own host.
#[test]
fn what_all_hosts_have_alike_is_told_and_nobody_is_named() {
    let journal = Cluster::new(|case| if case.flow.from.rail == 1 { 0.5 } else { 1.0 }).settled(ALL);
    assert_eq!((suspects(&journal), journal.further.len()), (Vec::new(), 0));
    let alike = found(&journal).remove(0).alike;
    let [gpu] = alike.as_slice() else { panic!("{alike:?}") };
    assert_eq!(gpu.place, "GPU 1");
    // The median of all lies between them: half is 29 % below it.
    assert!((gpu.change_percent + 29.3).abs() < 2.0, "{gpu:?}");
    let parts = draw(&journal, Path::new("records.jsonl")).unwrap().view.parts.unwrap();
    assert!(parts.tests.join("; ").contains(&gpu.place), "{:?}", parts.tests);
    // A GPU that is lower than the same GPU of others is still seen.
    let share = |case: &Case| match (case.flow.from.rail, &*case.flow.from.host) {
        (1, "a3") => 0.25,
        (1, _) => 0.5,
        _ => 1.0,
    };
    let suspects = suspects(&Cluster::new(share).settled(ALL));
    let names: Vec<_> = suspects.iter().map(|one| (one.name.as_str(), one.standing)).collect();
    assert_eq!(names, [("GPU 1 of a3", Standing::Confirmed)]);
}

/// Where every host is suspected nothing says what a good one reaches now.
#[test]
fn without_a_good_host_nothing_is_confirmed() {
    let share = |case: &Case| match (&*case.flow.from.host, case.flow.from.rail) {
        ("a1" | "a3", 0) | ("a2" | "a4", 1) => 0.5,
        _ => 1.0,
    };
    let journal = Cluster::new(share).settled(ALL);
    let results = results(&journal).unwrap();
    let verdicts = verdicts(&journal, &results, &rows(&journal, &results), Vec::new());
    assert_ne!(verdicts.status, Status::Pass);
    assert!(suspects(&journal).iter().all(|one| one.standing != Standing::Confirmed));
}

/// A fault takes away and adds nothing: few that are far above the others are the good ones.
#[test]
fn most_parts_being_slow_is_no_pass() {
    let journal = Cluster::new(|case| if *case.flow.from.host == *"a4" { 1.0 } else { 0.5 }).settled(ALL);
    let results = results(&journal).unwrap();
    let verdicts = verdicts(&journal, &results, &rows(&journal, &results), Vec::new());
    assert_eq!(verdicts.status, Status::Inconclusive, "{verdicts:?}");
}

#[test]
fn hosts_that_are_alike_cost_nothing() {
    let journal = Cluster::new(|_| 1.0).settled(&format!("{EACH}{ALL}"));
    assert_eq!((suspects(&journal), journal.further.len()), (Vec::new(), 0));
    assert!(found(&journal).iter().all(|one| one.counted == "part" && one.pairs == 8));
}

#[test]
fn a_page_shows_every_part_of_every_host() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 });
    let journal = cluster.settled(&format!("{EACH}{ALL}"));
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    for test in &drawn.view.tests {
        let map = test.map().unwrap();
        assert_eq!((map.cells.len(), map.cells.iter().filter(|cell| cell.outlined).count()), (8, 1), "{}", test.name);
        assert!(map.links.is_some());
    }
}

const PRODUCTS: &str = "[[test]]\nname = \"products\"\nop = \"matmul\"\nmetric = \"compute\"\n\
                        [[test.expect]]\nmetric = \"compute\"\nat_least = \"400 TFLOP/s\"\n\
                        [[test.expect]]\nmetric = \"compute\"\nwithin_percent_of_peers = 10\n";

#[test]
fn a_gpu_that_multiplies_slowly_is_confirmed_and_drawn() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 });
    let journal = cluster.settled(PRODUCTS);
    let suspects = suspects(&journal);
    let names: Vec<_> = suspects.iter().map(|one| (one.name.as_str(), one.standing)).collect();
    assert_eq!(names, [("GPU 1 of a3", Standing::Confirmed)]);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    assert!(rows.iter().all(|row| row.metric == Metric::Compute && row.unit() == "TFLOP/s" && row.error.is_none()));
    // 55 GB/s of results of 128 MiB, with 2 * 8192^3 operations for each.
    let value = rows[0].value.unwrap();
    assert!((value / 450.6 - 1.0).abs() < 0.02, "{value}");
    let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let failed = |kind| verdicts.iter().any(|one| one.kind == kind && one.status == Status::Fail);
    assert!(failed(Kind::Parts) && failed(Kind::Expectation), "{verdicts:?}");
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let map = drawn.view.tests[0].map().unwrap();
    assert_eq!(map.cells.iter().filter(|cell| cell.outlined).count(), 1);
}

#[test]
fn products_that_are_counted_wrong_are_no_measurement() {
    let mut journal = Cluster::new(|_| 1.0).settled(PRODUCTS);
    journal.tries[2].result.as_mut().unwrap().initiator.flops += 1;
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let wrong: Vec<_> = results.iter().filter(|result| result.state == State::Impossible).collect();
    assert_eq!(wrong.iter().map(|result| result.case.id).collect::<Vec<_>>(), [journal.tries[2].case]);
    let status = verdicts(&journal, &results, &rows, Vec::new()).status;
    assert_ne!(status, Status::Pass);
}

const CHASE: &str = "[[test]]\nname = \"latency\"\nop = \"memory_read\"\nmetric = \"latency\"\n\
                     [[test.expect]]\nmetric = \"memory_latency\"\nat_most = \"150 ns\"\n\
                     [[test.expect]]\nmetric = \"memory_latency\"\nwithin_percent_of_peers = 10\n";

/// On the scale of the judgement more is better; what people read is nanoseconds.
#[test]
fn memory_that_takes_longer_is_named_in_nanoseconds() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 });
    let journal = cluster.settled(CHASE);
    let found = found(&journal).remove(0);
    let [node] = found.suspects.as_slice() else { panic!("{found:?}") };
    assert_eq!((node.name.as_str(), node.standing), ("NUMA node 1 of a3", Standing::Confirmed), "{}", node.reason);
    assert!((node.change_percent - 100.0).abs() < 3.0, "{}", node.change_percent);
    assert!((found.good[0].centre - 100.0).abs() < 1.0, "{:?}", found.good);
    assert!(node.further.iter().all(|one| (one.value.unwrap() - 200.0).abs() < 4.0), "{:?}", node.further);
    assert!(node.confirmation.unwrap().change_percent > 90.0);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    assert!(rows.iter().all(|row| row.metric == Metric::MemoryLatency && row.unit() == "ns" && row.error.is_none()));
    let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let failed = verdicts.iter().filter(|one| one.kind == Kind::Expectation && one.status == Status::Fail);
    assert_eq!(failed.count(), 2, "{verdicts:?}");
    draw(&journal, Path::new("records.jsonl")).unwrap();
}

#[test]
fn reads_that_no_cache_answers_so_soon_are_no_measurement() {
    let mut journal = Cluster::new(|_| 1.0).settled(CHASE);
    let end = &mut journal.tries[2].result.as_mut().unwrap().initiator;
    (end.operations, end.bytes) = (10_000_000_000, LINE * 10_000_000_000);
    journal.tries[5].result.as_mut().unwrap().initiator.each = Some(Box::new(400.0));
    let results = results(&journal).unwrap();
    let wrong: Vec<_> = results.iter().filter(|result| result.state == State::Impossible).collect();
    let ids: Vec<_> = wrong.iter().map(|result| result.case.id).collect();
    assert_eq!(ids, [journal.tries[2].case, journal.tries[5].case]);
}

#[test]
fn a_wrong_byte_of_a_memory_test_fails_and_names_the_gpu() {
    let test = "[[test]]\nname = \"memory\"\nop = \"gpu_memory_test\"\nmetric = \"bandwidth\"\nsizes = \"72GiB\"\n";
    let mut journal = Cluster::new(|_| 1.0).settled(test);
    let case = journal.cases.iter().position(|case| is_at(case, "a2", 1)).unwrap();
    let sample = journal.tries[case].result.as_mut().unwrap();
    // In the window, too.
    sample.checked.verified += sample.initiator.bytes;
    (sample.checked.wrong, sample.checked.first_wrong) = (Bytes(3), Some(4096));
    let results = results(&journal).unwrap();
    let error = results[case].error().unwrap();
    assert!(
        error.contains("memory of GPU 1 does not keep what is written to it: 3 times a byte was another"),
        "{error}"
    );
    let status = verdicts(&journal, &results, &rows(&journal, &results), Vec::new()).status;
    assert_eq!(status, Status::Fail);
    let banner = draw(&journal, Path::new("records.jsonl")).unwrap().view.banner;
    assert!(banner.causes.iter().any(|cause| cause.ends_with(": GPU 1 of a2")), "{banner:?}");
    let step = banner.remedy.unwrap();
    assert!(step.about.starts_with("GPU 1 of a2") && step.text.contains("reset the GPU"), "{step:?}");
}
