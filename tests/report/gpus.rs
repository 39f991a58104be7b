//! The state of GPUs while cases used them: which of it disturbs a value, which explains it, and what the page shows.

use std::path::Path;

use railgauge_analysis::{
    case::{CaseResult, State},
    gpus::of_test,
    journal::{Journal, parse},
    localise::{OpenReason, Standing, localise},
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, Verdict, verdicts},
};
use railgauge_model::journal::event::{Case, GpuDuring};
use railgauge_report::{draw, view::Pointer};
use railgauge_wire::{
    gpu_state::{GpuSeen, Hold, PcieSeen, Range, counter},
    unit::Nanoseconds,
};

use crate::{
    nodes::{ALL, Cluster, PEERS, is_at, suspects},
    support::Scenario,
};

const SECOND: Nanoseconds = Nanoseconds::from_secs(1);

/// A GPU that is well, read three times in a pass of two seconds.
fn well(case: &Case) -> GpuDuring {
    let all = |value: f64| Some(Range { min: value, median: value, max: value });
    let seen = GpuSeen {
        pci: format!("0000:1{}:00.0", case.flow.from.rail),
        index: Some(case.flow.from.rail),
        pass: (SECOND * 10, SECOND * 12),
        readings: 3,
        sm_mhz: all(1980.0),
        best_mhz: Some((1980, 2619)),
        watts: all(350.0),
        limit_watts: Some(700.0),
        celsius: all(48.0),
        held: Some([(Hold::PowerCap, 3)].into()),
        pcie: Some(PcieSeen { generation: (5, 5), width: (16, 16), best: Some((5, 16)) }),
        counted: [(counter::PCIE_REPLAYS.to_owned(), 0), (counter::ECC_CORRECTED.to_owned(), 900)].into(),
        xids: Some(Vec::new()),
        ..GpuSeen::default()
    };
    GpuDuring { host: case.flow.from.host.to_string(), seen }
}

/// GPU 1 of a3 in another state than all others.
fn with(case: &Case, change: impl FnOnce(&mut GpuSeen)) -> Vec<GpuDuring> {
    let mut gpu = well(case);
    if is_at(case, "a3", 1) {
        change(&mut gpu.seen);
    }
    vec![gpu]
}

/// A run in which a case carries so much, and its GPU is in this state.
fn run(share: fn(&Case) -> f64, gpus: fn(&Case) -> Vec<GpuDuring>) -> Journal {
    let mut cluster = Cluster::new(share);
    cluster.gpus = gpus;
    cluster.settled(&format!("{ALL}{PEERS}"))
}

fn judged(journal: &Journal) -> (Vec<CaseResult<'_>>, Vec<Verdict>) {
    let results = results(journal).unwrap();
    let verdicts = verdicts(journal, &results, &rows(journal, &results), Vec::new()).verdicts;
    (results, verdicts)
}

/// The state of the case of GPU 1 of a3, what stands against it, and the remedy.
fn told(journal: &Journal) -> (State, String, Option<String>) {
    let results = results(journal).unwrap();
    let result = results.iter().find(|result| is_at(result.case, "a3", 1)).unwrap();
    assert!(results.iter().all(|one| is_at(one.case, "a3", 1) || one.state == State::Measured));
    (result.state, result.error().unwrap_or_default(), result.remedy().map(|remedy| remedy.id.into_owned()))
}

#[test]
fn a_loaded_gpu_at_its_power_limit_is_well() {
    let journal = run(|_| 1.0, |case| with(case, |_| ()));
    let (results, verdicts) = judged(&journal);
    assert!(results.iter().all(|result| result.state == State::Measured));
    assert!(verdicts.iter().all(|verdict| verdict.status == Status::Pass), "{verdicts:?}");
    let found = of_test(&results.iter().collect::<Vec<_>>()).unwrap();
    assert!(found.gpus.len() == 8 && found.gpus.iter().all(|gpu| gpu.bad.is_empty()));
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let block = drawn.view.tests[0].block("gpus").unwrap();
    assert_eq!(block.sentence, "The driver reported no fault of 8 of 8 GPUs in 8 passes.");
    assert_eq!(block.table.as_ref().unwrap().rows.len(), 8);
}

#[test]
fn errors_and_xids_of_a_gpu_contaminate_the_case_and_name_what_to_do() {
    let xid = run(|_| 1.0, |case| with(case, |seen| seen.xids = Some(vec![79])));
    let (state, error, remedy) = told(&xid);
    assert_eq!((state, remedy.as_deref()), (State::Contaminated, Some("xid")));
    assert_eq!(error, "contaminated: a3: GPU 1: the driver reported Xid 79 of it");
    // What was disturbed cannot pass.
    let (_, verdicts) = judged(&xid);
    let of = |kind| verdicts.iter().find(|verdict| verdict.kind == kind).unwrap().status;
    assert_eq!((of(Kind::EveryCase), of(Kind::Expectation)), (Status::Inconclusive, Status::Inconclusive));
    let replays = run(|_| 1.0, |case| with(case, |seen| _ = seen.counted.insert(counter::PCIE_REPLAYS.into(), 4)));
    assert_eq!((told(&replays).0, told(&replays).2.as_deref()), (State::Contaminated, Some("reseat-gpu")));
    let memory = run(|_| 1.0, |case| with(case, |seen| _ = seen.counted.insert(counter::ECC_UNCORRECTED.into(), 1)));
    assert_eq!((told(&memory).0, told(&memory).2.as_deref()), (State::Contaminated, Some("gpu-memory-errors")));
    let nvlink = run(|_| 1.0, |case| with(case, |seen| _ = seen.counted.insert(counter::NVLINK_RECOVERIES.into(), 1)));
    assert_eq!((told(&nvlink).0, told(&nvlink).2.as_deref()), (State::Contaminated, Some("nvlink-errors")));
}

/// Single packets are sent again on healthy links, corrected errors cost nothing, and Xids of a program's own mistake are none of the GPU.
#[test]
fn what_healthy_gpus_do_now_and_then_disturbs_nothing() {
    let journal = run(
        |_| 1.0,
        |case| {
            with(case, |seen| {
                seen.counted.extend([(counter::PCIE_REPLAYS.to_owned(), 3), (counter::NVLINK_CRC.to_owned(), 3)]);
                seen.xids = Some(vec![31, 43]);
            })
        },
    );
    assert_eq!(told(&journal).0, State::Measured);
}

#[test]
fn a_slow_gpu_says_in_the_verdict_that_it_was_too_hot() {
    let hot = |case: &Case| {
        with(case, |seen| {
            seen.held = Some([(Hold::PowerCap, 3), (Hold::HotHardware, 2)].into());
            seen.sm_mhz = Some(Range { min: 1005.0, median: 1200.0, max: 1980.0 });
        })
    };
    let journal = run(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 }, hot);
    // The value is that of the GPU as it is: it counts, and the part is confirmed.
    assert_eq!(told(&journal).0, State::Measured);
    let words =
        "GPU 1: its clocks were held down in 2 of 3 readings: too hot (hardware), 1005 of 1980 MHz at the lowest";
    assert_eq!(suspects(&journal)[0].meanwhile.as_deref(), Some(words));
    let (_, verdicts) = judged(&journal);
    let parts = verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).unwrap();
    assert_eq!(parts.status, Status::Fail);
    let reason = parts.reason.to_string();
    assert!(reason.contains(&format!("GPU 1 of a3 ({words})")), "{reason}");
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let block = drawn.view.tests[0].block("gpus").unwrap();
    assert!(block.sentence.starts_with(&format!("GPU 1 of a3: {}", &words[7..])), "{}", block.sentence);
    assert!(block.sentence.contains("fans"), "{}", block.sentence);
    let evidence = &drawn.view.parts.as_ref().unwrap().named[0].evidence[0][2];
    assert!(evidence.contains(words), "{evidence}");
}

const HALF: fn(&Case) -> f64 = |case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 };

/// The only suspect is GPU 1 of a3, open since it was shared; the first step of the run.
fn open_as_shared(journal: &Journal) -> Pointer {
    let suspects = suspects(journal);
    let [gpu] = suspects.as_slice() else { panic!("{suspects:?}") };
    assert_eq!((gpu.name.as_str(), gpu.standing), ("GPU 1 of a3", Standing::Open), "{}", gpu.reason);
    assert_eq!(gpu.open, Some(OpenReason::SharedGpu));
    let (_, verdicts) = judged(journal);
    let parts = verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).unwrap();
    assert_eq!(parts.status, Status::Inconclusive, "{}", parts.reason);
    let step = draw(journal, Path::new("records.jsonl")).unwrap().view.banner.remedy.unwrap();
    assert!(step.text.ends_with("[wait-for-gpu]"), "{}: {}", step.about, step.text);
    step
}

/// What another program takes is no fault of the GPU: it is not confirmed, and to end that program comes first.
#[test]
fn a_slow_gpu_on_which_another_program_ran_is_open() {
    let journal = run(HALF, |case| with(case, |seen| seen.others = Some(1)));
    assert_eq!(told(&journal).0, State::Measured);
    assert_eq!(suspects(&journal)[0].meanwhile.as_deref(), Some("GPU 1: 1 other program ran on it"));
    assert_eq!(open_as_shared(&journal).about, "GPU 1 of a3 (undecided)");
    let (_, verdicts) = judged(&journal);
    let broken = verdicts.iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap();
    assert_eq!(broken.status, Status::Fail);
    let reason = broken.reason.to_string();
    assert!(reason.ends_with("meanwhile GPU 1: 1 other program ran on it"), "{reason}");
    // It takes nothing from a GPU that is as fast as the others.
    let journal = run(|_| 1.0, |case| with(case, |seen| seen.others = Some(1)));
    let (_, verdicts) = judged(&journal);
    assert!(suspects(&journal).is_empty() && verdicts.iter().all(|verdict| verdict.status == Status::Pass));
}

/// In a container NVML does not list the agent, and who else was there before it came is all that is known.
#[test]
fn a_slow_gpu_that_was_in_use_before_the_run_is_open_and_the_preflight_says_why() {
    let mut journal = run(HALF, |case| with(case, |_| ()));
    assert_eq!(suspects(&journal)[0].standing, Standing::Confirmed);
    for (host, up) in &mut journal.hosts {
        for gpu in &mut up.facts.gpus {
            gpu.processes = Some(u32::from(host == "a3" && gpu.index == 1));
        }
    }
    let step = open_as_shared(&journal);
    assert!(step.about.contains("GPU 1 of a3") && step.about.contains("may explain"), "{}", step.about);
}

/// What the passes tell counts, and not what was there before the run; nor does a daemon that every GPU has excuse one of them.
#[test]
fn a_program_that_has_gone_or_that_all_gpus_have_excuses_nothing() {
    let standing = |journal: &Journal| {
        let suspects = suspects(journal);
        let [gpu] = suspects.as_slice() else { panic!("{suspects:?}") };
        assert_eq!(gpu.name, "GPU 1 of a3");
        (gpu.standing, gpu.open)
    };
    let mut gone = run(HALF, |case| with(case, |seen| seen.others = Some(0)));
    for up in gone.hosts.values_mut() {
        up.facts.gpus.iter_mut().for_each(|gpu| gpu.processes = Some(1));
    }
    assert_eq!(standing(&gone), (Standing::Confirmed, None));
    // In the first pass alone; further cases are numbered behind the planned ones.
    let first = run(HALF, |case| with(case, |seen| seen.others = Some(u32::from(case.id < 8))));
    assert_eq!(standing(&first), (Standing::Confirmed, None));
    let everywhere = run(HALF, |case| {
        let mut gpu = well(case);
        gpu.seen.others = Some(1);
        vec![gpu]
    });
    assert_eq!(standing(&everywhere), (Standing::Confirmed, None));
    let more = run(HALF, |case| {
        let mut gpu = well(case);
        gpu.seen.others = Some(1 + u32::from(is_at(case, "a3", 1)));
        vec![gpu]
    });
    assert_eq!(standing(&more), (Standing::Open, Some(OpenReason::SharedGpu)));
}

/// One program on one GPU of a host is no excuse for the other.
#[test]
fn a_slow_host_is_not_excused_by_a_program_on_one_of_its_gpus() {
    let slow: fn(&Case) -> f64 = |case| if &*case.flow.from.host == "a3" { 0.5 } else { 1.0 };
    let journal = run(slow, |case| {
        let mut gpu = well(case);
        gpu.seen.others = Some(u32::from(is_at(case, "a3", 1)));
        vec![gpu]
    });
    let suspects = suspects(&journal);
    let [host] = suspects.as_slice() else { panic!("{suspects:?}") };
    assert_eq!((host.name.as_str(), host.standing), ("host a3", Standing::Confirmed), "{}", host.reason);
    assert!(host.reason.contains("3 further tests (3 during another program left out)"), "{}", host.reason);
}

#[test]
fn a_gpu_that_nvml_loses_contaminates_its_case() {
    let journal = run(|_| 1.0, |case| with(case, |seen| (seen.lost, seen.failure) = (true, Some("lost".into()))));
    let (state, error, remedy) = told(&journal);
    assert_eq!((state, remedy.as_deref()), (State::Contaminated, Some("look-at-gpu")));
    assert!(error.contains("GPU 1: NVML lost it"), "{error}");
}

#[test]
fn a_narrow_or_slow_link_is_told_and_its_value_counts() {
    let narrow = |case: &Case| {
        let link = PcieSeen { generation: (1, 4), width: (8, 16), best: Some((5, 16)) };
        with(case, |seen| seen.pcie = Some(link))
    };
    let journal = run(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 }, narrow);
    assert_eq!(told(&journal).0, State::Measured);
    let gpus = suspects(&journal)[0].meanwhile.clone().unwrap();
    assert!(
        gpus.contains("x8, and can have x16") && gpus.contains("generation 4 under load, and can have 5"),
        "{gpus}"
    );
    // A link that has reached its best has merely slept before.
    let asleep = |case: &Case| {
        let link = PcieSeen { generation: (1, 5), width: (16, 16), best: Some((5, 16)) };
        with(case, |seen| seen.pcie = Some(link))
    };
    let journal = run(|case| if is_at(case, "a3", 1) { 0.5 } else { 1.0 }, asleep);
    assert_eq!(suspects(&journal)[0].meanwhile, None);
}

#[test]
fn what_was_not_read_is_told_and_is_not_well() {
    let blind = |case: &Case| {
        with(case, |seen| {
            let failure = Some("NVML is not there: the library is missing".to_owned());
            *seen = GpuSeen { pci: seen.pci.clone(), pass: seen.pass, failure, ..GpuSeen::default() };
        })
    };
    let journal = run(|_| 1.0, blind);
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let sentence = &drawn.view.tests[0].block("gpus").unwrap().sentence;
    assert!(sentence.starts_with("The driver reported no fault of 7 of 8 GPUs in 8 passes."), "{sentence}");
    assert!(
        sentence.contains("In 1 pass of 1 GPU on a3 no reading fell (GPU at 0000:11:00.0 of a3: NVML is not there"),
        "{sentence}"
    );
    assert!(sentence.contains("Xids of 1 GPU could not be seen."), "{sentence}");
}

/// Journals of versions before tell of no GPU.
#[test]
fn without_a_state_there_is_no_block() {
    let journal = run(|_| 1.0, |_| Vec::new());
    assert!(draw(&journal, Path::new("records.jsonl")).unwrap().view.tests[0].block("gpus").is_none());
}

/// Also where there are too few parts to name one: the verdict that failed tells what to do about its GPU.
#[test]
fn a_failed_limit_says_what_to_do_about_the_gpu_that_broke_it() {
    let mut cluster = Cluster::new(|case| if is_at(case, "a1", 1) { 0.5 } else { 1.0 });
    cluster.gpus = |case| {
        let mut gpu = well(case);
        gpu.seen.others = Some(u32::from(is_at(case, "a1", 1)));
        vec![gpu]
    };
    let limit = "[[test.expect]]\nmetric = \"memory_bandwidth\"\nat_least = \"50 GB/s\"\n";
    let journal = cluster.settled(&format!("{ALL}hosts = [\"a1\"]\n{limit}"));
    assert!(suspects(&journal).is_empty());
    let step = draw(&journal, Path::new("records.jsonl")).unwrap().view.banner.remedy.unwrap();
    assert!(step.about.starts_with("all: memory_bandwidth") && step.text.ends_with("[wait-for-gpu]"), "{step:?}");
}

/// A throttled GPU behind a NIC looks like a slow fabric.
#[test]
fn a_host_whose_pairs_are_slow_tells_what_its_gpus_suffered() {
    let text = Scenario { slow: Some(4), ..Scenario::healthy(8, 2) }.jsonl();
    let mut journal = parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    for attempt in &mut journal.tries {
        let flow = &journal.cases[attempt.case as usize].flow;
        let gpus = flow.hosts().into_iter().map(|host| {
            let held = if **host == *"gpu005" { Hold::PowerBrake } else { Hold::PowerCap };
            let seen = GpuSeen { index: Some(6), readings: 2, held: Some([(held, 2)].into()), ..GpuSeen::default() };
            GpuDuring { host: host.to_string(), seen }
        });
        let gpus = gpus.collect();
        if let Ok(sample) = &mut attempt.result {
            sample.gpus = gpus;
        }
    }
    let results = results(&journal).unwrap();
    let found = localise(&journal, &results, &rows(&journal, &results));
    let suspects: Vec<_> = found.iter().flat_map(|found| &found.suspects).collect();
    assert!(!suspects.is_empty() && suspects.iter().all(|suspect| suspect.name == "host gpu005"), "{suspects:?}");
    let words = "GPU 6: its clocks were held down in 2 of 2 readings: power brake";
    assert!(suspects.iter().all(|suspect| suspect.meanwhile.as_deref() == Some(words)), "{suspects:?}");
}
