//! Collectives of AMD's GPUs: ranks of an agent with the double of NCCL (`examples/nccl_double.rs`) as RCCL, beside that of HIP.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use railgauge_wire::{
    Answer, Ask, Bytes, Carrier, CollectiveMeasurement, CollectiveOptions, CollectiveSpec, Datatype, Failure, LinkId,
    MemberOpened, MemberSpec, Nanoseconds, Op, Reduction, TestMetric, Ticket, Transport, Window,
};

use super::{
    agent,
    hip::{HIP, HIPRTC, rocm, with},
};
use crate::{
    controller::{Agent, DEADLINE_MS},
    double::folder_of,
};

fn folder() -> PathBuf {
    folder_of(&[("hip_double", &[HIP, HIPRTC]), ("nccl_double", &["librccl.so.1"])])
}

fn spec(rank: u32) -> MemberSpec {
    let env = [("NCCL_DOUBLE_GROUP".to_owned(), "1".to_owned())].into();
    MemberSpec {
        rank,
        ranks: 2,
        transport: Transport::Nccl,
        gpu: Some(rank),
        library: None,
        env,
        max_size: Bytes(1 << 20),
        siblings: 2,
        endpoint: None,
    }
}

fn all_reduce(datatype: Datatype) -> CollectiveSpec {
    let options = CollectiveOptions {
        datatype,
        reduction: Some(Reduction::Sum),
        in_place: false,
        graph: false,
        ranks_per_host: 2,
        algorithm: None,
        env: BTreeMap::new(),
        training: None,
    };
    CollectiveSpec {
        op: Op::AllReduce,
        metric: TestMetric::Bandwidth,
        size: Bytes(400_000),
        options,
        exchange: None,
        beside: None,
        window: Window::Iterations(5),
        warm_up: Nanoseconds::ZERO,
        verify: true,
        seed: 11,
    }
}

const RANKS: [u32; 2] = [0, 1];

fn link(rank: u32) -> LinkId {
    u64::from(rank) + 1
}

fn opened(agent: &mut Agent, rank: u32, spec: MemberSpec) -> Result<MemberOpened, Failure> {
    match agent.ask(Ask::OpenMember { link: link(rank), spec: Box::new(spec) })? {
        Answer::MemberOpened(opened) => Ok(*opened),
        other => panic!("{other:?}"),
    }
}

/// Both ranks of a group on one agent, and what opening them told.
fn group(settings: &[(&str, &str)]) -> (Agent, Vec<MemberOpened>) {
    let mut agent = agent(&with(&folder(), settings));
    let opened: Vec<MemberOpened> = RANKS.map(|rank| opened(&mut agent, rank, spec(rank)).unwrap()).into();
    let tickets: Vec<Ticket> = opened.iter().map(|opened| opened.ticket.clone()).collect();
    let join = |rank: u32| Ask::JoinMember { link: link(rank), tickets: tickets.clone(), limit_ms: DEADLINE_MS };
    let asked = RANKS.map(|rank| agent.post(join(rank)));
    asked.into_iter().for_each(|asked| assert!(agent.wait(asked).is_ok()));
    (agent, opened)
}

fn measured(agent: &mut Agent, collective: &CollectiveSpec) -> Vec<Result<CollectiveMeasurement, Failure>> {
    let ask = |rank: u32| {
        let collective = Box::new(collective.clone());
        Ask::MeasureMember { link: link(rank), collective, limit_ms: DEADLINE_MS }
    };
    let asked = RANKS.map(|rank| agent.post(ask(rank)));
    let one = |asked| match agent.wait(asked)? {
        Answer::MemberMeasured(measured) => Ok(*measured),
        other => panic!("{other:?}"),
    };
    asked.into_iter().map(one).collect()
}

/// Two communicators of one process share the time of the double, if `settings` say so.
fn overlapped(settings: &[(&str, &str)]) -> Vec<Result<CollectiveMeasurement, Failure>> {
    let (mut agent, _) = group(&[&[("NCCL_DOUBLE_PACE", "2000")], settings].concat());
    let gather = CollectiveSpec { op: Op::AllGather, beside: Some(Op::ReduceScatter), ..all_reduce(Datatype::F32) };
    let options = CollectiveOptions { reduction: None, ..gather.options.clone() };
    measured(&mut agent, &CollectiveSpec { options, ..gather })
}

#[test]
fn an_operation_is_measured_alone_and_with_that_of_a_second_communicator() {
    let (apart, shared) = (overlapped(&[]), overlapped(&[("NCCL_DOUBLE_SHARED", "1")]));
    for rank in apart.iter().chain(&shared) {
        let rank = rank.as_ref().unwrap();
        assert!(rank.overlap.len() >= 3 && rank.overlap.iter().all(|pass| pass.other.unwrap().operations > 0));
        // The gather before, after and once more; the scatter, half of it on each rank, before and after.
        assert_eq!((rank.checked.verified, rank.checked.wrong), (Bytes(3 * 400_000 + 2 * 200_000), Bytes::ZERO));
    }
    let losses = |ranks: &[Result<CollectiveMeasurement, Failure>]| {
        let passes = ranks[0].as_ref().unwrap().overlap.clone();
        passes.iter().map(|pass| pass.loss().unwrap() + pass.loss_of_other().unwrap()).sum::<f64>()
            / passes.len() as f64
    };
    assert!(losses(&shared) > losses(&apart), "{shared:?} {apart:?}");
}

#[test]
fn what_a_second_communicator_leaves_behind_is_verified() {
    let wrong = overlapped(&[("NCCL_DOUBLE_WRONG", "1")]);
    assert!(wrong.iter().all(|rank| rank.as_ref().unwrap().checked.wrong > Bytes::ZERO), "{wrong:?}");
}

#[test]
fn an_all_reduce_by_rccl_is_measured_and_verified() {
    let (mut agent, opened) = group(&[]);
    for (opened, rank) in opened.iter().zip(RANKS) {
        let told = ["nccl_library", "nccl_version", "gpu_pci", "gpu_links"].map(|name| &*opened.settings[name]);
        let pci = ["0000:d0:00.0", "0000:d1:00.0"][rank as usize];
        // The file is the double's; the name that was opened leads there.
        assert!(told[0].ends_with("librccl.so.1") || told[0].ends_with("libnccl_double.so"), "{told:?}");
        assert_eq!(told[1..], ["2.28.3", pci, "xgmi"]);
    }
    for rank in measured(&mut agent, &all_reduce(Datatype::F32)) {
        let rank = rank.unwrap();
        assert_eq!((rank.checked.wrong, rank.batch), (Bytes::ZERO, 5), "{rank:?}");
        assert!(rank.checked.verified >= Bytes(2 * 400_000), "{:?}", rank.checked);
        assert_eq!(rank.carried.unwrap().transport, Carrier::NcclP2p);
    }
}

#[test]
fn a_wrong_element_of_rccl_is_found() {
    let (mut agent, _) = group(&[("NCCL_DOUBLE_WRONG", "1")]);
    for rank in measured(&mut agent, &all_reduce(Datatype::F32)) {
        // One element before the timed operations, and one of the last of them.
        assert_eq!(rank.unwrap().checked.wrong, Bytes(8));
    }
}

#[test]
fn elements_of_8_bits_are_refused_as_rccl_may_have_others() {
    let (mut agent, _) = group(&[]);
    for rank in measured(&mut agent, &all_reduce(Datatype::F8e4m3)) {
        let failure = rank.unwrap_err();
        assert!(failure.cause.contains("f8e4m3 is not used with RCCL"), "{failure}");
        assert_eq!(failure.remedy.unwrap().id, "rccl-of-8-bits");
    }
}

#[test]
fn errors_of_rccl_are_in_its_name() {
    let refused = |folder: &Path, settings: &[(&str, &str)], change: fn(&mut MemberSpec)| {
        let mut spec = spec(0);
        change(&mut spec);
        let failure = opened(&mut agent(&with(folder, settings)), 0, spec).unwrap_err();
        (failure.cause.clone(), failure.remedy.map(|remedy| remedy.id.to_string()))
    };
    let (cause, remedy) = refused(&rocm(), &[], |_| ());
    assert!(cause.contains("RCCL cannot be opened: librccl.so.1: cannot open"), "{cause}");
    assert_eq!(remedy.as_deref(), Some("install-rccl"));
    let (cause, remedy) = refused(&folder(), &[("NCCL_DOUBLE_VERSION", "21003")], |_| ());
    assert!(cause.contains("is RCCL 2.10.3, which is too old"), "{cause}");
    assert_eq!(remedy.as_deref(), Some("newer-rccl"));
    let (cause, _) = refused(&folder(), &[], |spec| spec.library = Some(HIP.to_owned()));
    assert!(cause.contains("it is not RCCL, or too old"), "{cause}");
    let (cause, _) = refused(&folder(), &[], |spec| spec.env.clear());
    assert!(cause.contains("RCCL error 3 (said by a double)"), "{cause}");
    let (cause, _) = refused(&folder(), &[], |spec| spec.gpu = Some(7));
    assert!(cause.contains("GPU 7 does not exist"), "{cause}");
}
