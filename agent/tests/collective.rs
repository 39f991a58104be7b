//! Ranks of one group in one process, over TCP: every operation, algorithm, number of ranks and type, verified.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier, mpsc},
    thread,
    time::{Duration, Instant},
};

use railgauge_agent::parts::{Control, Rank, RankAsk};
use railgauge_wire::{
    Algorithm, Answer, Bytes, Carrier, CollectiveMeasurement, CollectiveOptions, CollectiveSpec, Datatype, Exchange,
    Failure, Kind, Knobs, LinkLayer, LinkSpec, MemberSpec, Memory, Nanoseconds, Op, RankEndpoint, Reduction, Role,
    Service, TestMetric, Ticket, Training, Transport, Window,
};

/// For each operation, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(120);

fn spec(rank: u32, ranks: u32, max_size: u64) -> MemberSpec {
    let link = LinkSpec {
        role: Role::Initiator,
        transport: Transport::Tcp,
        service: Service::Rc,
        device: None,
        port: 1,
        address: Some("127.0.0.1".into()),
        memory: Memory::Host,
        gpu: None,
        gpu_path: None,
        qps: 1,
        threads: 1,
        max_size: Bytes(max_size),
        token: "secret".into(),
        rides_out: false,
        knobs: Knobs::default(),
    };
    let endpoint = Some(Box::new(RankEndpoint { host: format!("h{rank}"), link }));
    let (gpu, library, env, siblings) = (None, None, BTreeMap::new(), ranks);
    MemberSpec {
        rank,
        ranks,
        transport: Transport::Tcp,
        gpu,
        library,
        env,
        max_size: Bytes(max_size),
        siblings,
        endpoint,
    }
}

fn collective(op: Op, size: u64, datatype: Datatype, reduction: Option<Reduction>) -> CollectiveSpec {
    let options = CollectiveOptions {
        datatype,
        reduction,
        in_place: false,
        graph: false,
        ranks_per_host: 1,
        algorithm: None,
        env: BTreeMap::new(),
        training: None,
    };
    let window = Window::Iterations(3);
    CollectiveSpec {
        op,
        metric: TestMetric::Bandwidth,
        size: Bytes(size),
        options,
        exchange: None,
        beside: None,
        window,
        warm_up: Nanoseconds::ZERO,
        verify: true,
        seed: 11,
    }
}

/// Uneven blocks of 4-byte elements, some of them empty, that fit the size at every rank.
fn exchange(rank: u32, ranks: u32, size: Bytes) -> Exchange {
    let unit = size.0 / 4 / u64::from(3 * ranks);
    let count = |from: u32, to: u32| u64::from((from + 2 * to) % 4) * unit;
    let offset = |from: u32| (0..rank).map(|to| count(from, to)).sum();
    Exchange {
        send: (0..ranks).map(|to| count(rank, to)).collect(),
        receive: (0..ranks).map(|from| count(from, rank)).collect(),
        offsets: (0..ranks).map(offset).collect(),
        alone: alone(ranks),
    }
}

fn alone(ranks: u32) -> Vec<(u32, u32)> {
    if ranks > 1 { vec![(1, 0), (0, 1), (ranks - 1, 0)] } else { Vec::new() }
}

/// What all ranks say to each of the collectives.
fn group(
    ranks: u32,
    max_size: u64,
    collectives: Vec<CollectiveSpec>,
) -> Vec<Vec<Result<CollectiveMeasurement, Failure>>> {
    let collectives = Arc::new(collectives);
    let opened = Arc::new(Barrier::new(ranks as usize));
    let (tell, told) = mpsc::channel();
    let mut threads = Vec::new();
    for number in 0..ranks {
        let (collectives, opened, tell) = (collectives.clone(), opened.clone(), tell.clone());
        let (give, tickets) = mpsc::channel::<Vec<Ticket>>();
        let thread = thread::spawn(move || {
            let mut rank = Rank::new(spec(number, ranks, max_size));
            let mut ask =
                |request| rank.ask(request, &Control::new(Arc::default(), Arc::default(), Instant::now() + LIMIT));
            let Ok(Answer::MemberOpened(said)) = ask(RankAsk::Open(Box::new(spec(number, ranks, max_size)))) else {
                panic!("not opened")
            };
            tell.send((number, said.ticket, give)).unwrap();
            ask(RankAsk::Join(tickets.recv().unwrap())).unwrap();
            opened.wait();
            let mut accounts = Vec::new();
            for collective in collectives.iter() {
                let exchange =
                    (collective.op == Op::AllToAllV).then(|| Box::new(exchange(number, ranks, collective.size)));
                let collective = CollectiveSpec { exchange, ..collective.clone() };
                accounts.push(ask(RankAsk::Measure(Box::new(collective))).map(|said| match said {
                    Answer::MemberMeasured(account) => *account,
                    other => panic!("{other:?}"),
                }));
            }
            accounts
        });
        threads.push(thread);
    }
    let mut all: Vec<_> = (0..ranks).map(|_| told.recv().unwrap()).collect();
    all.sort_by_key(|(number, ..)| *number);
    let tickets: Vec<Ticket> = all.iter().map(|(_, ticket, _)| ticket.clone()).collect();
    all.iter().for_each(|(.., give)| give.send(tickets.clone()).unwrap());
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Runs all collectives and demands that every byte of every rank was right.
fn all_right(ranks: u32, collectives: Vec<CollectiveSpec>) {
    let max_size = collectives.iter().map(|collective| collective.size.0).max().unwrap();
    for (rank, accounts) in group(ranks, max_size, collectives.clone()).into_iter().enumerate() {
        for (account, collective) in accounts.into_iter().zip(&collectives) {
            let words = format!("rank {rank} of {ranks}: {collective:?}");
            let account = account.unwrap_or_else(|failure| panic!("{words}: {failure}"));
            assert_eq!(account.checked.wrong, Bytes::ZERO, "{words}: {:?}", account.checked);
            let result = match collective.op {
                Op::ReduceScatter => collective.size / u64::from(ranks),
                Op::AllToAllV => {
                    let number = u32::try_from(rank).unwrap();
                    Bytes(exchange(number, ranks, collective.size).receive.iter().sum::<u64>() * 4)
                }
                _ => collective.size,
            };
            let flows = if collective.op == Op::AllToAllV { alone(ranks) } else { Vec::new() };
            let times = 2 + u64::from(!flows.is_empty());
            assert_eq!(account.checked.verified, result * times, "{words}: {:?}", account.checked);
            let senders: Vec<u32> = account.flows.iter().map(|flow| flow.from).collect();
            let wanted: Vec<u32> = flows.iter().filter(|(_, to)| *to as usize == rank).map(|(from, _)| *from).collect();
            assert_eq!(senders, wanted, "{words}");
            assert!(account.flows.iter().all(|flow| !flow.together.is_zero() && !flow.alone.is_zero()), "{words}");
            assert_eq!((account.times.len(), account.batch), (1, 3), "{words}");
            let carried = account.carried.unwrap();
            assert_eq!((carried.transport, carried.link_layer), (Carrier::Tcp, Some(LinkLayer::Loopback)));
        }
    }
}

#[test]
fn every_algorithm_is_right_for_every_number_of_ranks() {
    for ranks in [1, 2, 3, 4, 6, 7] {
        let mut collectives = Vec::new();
        for algorithm in Algorithm::ALL {
            for op in Op::ALL.iter().filter(|op| algorithm.does(**op)) {
                let unit = if op.is_divided() { 4 * u64::from(ranks) } else { 4 };
                for size in [unit, 3 * unit, 1000 * unit, 200_000 / unit * unit] {
                    let reduction = op.reduces().then_some(Reduction::Sum);
                    let mut plain = collective(*op, size, Datatype::F32, reduction);
                    plain.options.algorithm = Some(*algorithm);
                    let mut in_place = plain.clone();
                    in_place.options.in_place = !matches!(op, Op::AllToAll | Op::AllToAllV);
                    collectives.extend([plain, in_place]);
                }
            }
        }
        all_right(ranks, collectives);
    }
}

#[test]
fn every_type_and_reduction_is_right_and_large_data_streams() {
    let mut collectives = Vec::new();
    for datatype in Datatype::ALL {
        for reduction in Reduction::ALL.iter().filter(|reduction| reduction.is_plain(*datatype)) {
            let size = datatype.bytes().0 * 1021;
            collectives.push(collective(Op::AllReduce, size, *datatype, Some(*reduction)));
        }
    }
    for op in [Op::AllReduce, Op::Broadcast, Op::AllGather, Op::ReduceScatter, Op::AllToAll] {
        let reduction = op.reduces().then_some(Reduction::Max);
        collectives.push(collective(op, 3 << 20, Datatype::Bf16, reduction));
        let mut latency = collective(op, 96, Datatype::F64, reduction);
        latency.metric = TestMetric::Latency;
        collectives.push(latency);
    }
    let count = collectives.len();
    let accounts = group(3, 3 << 20, collectives);
    for (collective, account) in accounts.iter().flat_map(|accounts| accounts.iter().enumerate()) {
        let account =
            account.as_ref().unwrap_or_else(|failure| panic!("collective {collective} of {count}: {failure}"));
        assert_eq!(account.checked.wrong, Bytes::ZERO, "collective {collective} of {count}: {:?}", account.checked);
    }
}

#[test]
fn training_steps_reduce_every_bucket_and_last_as_long_as_their_backward_pass() {
    const COMPUTE: Nanoseconds = Nanoseconds::from_millis(20);
    let mut step = collective(Op::AllReduce, 300_000, Datatype::F32, Some(Reduction::Sum));
    step.metric = TestMetric::Step;
    step.options.training =
        Some(Training { model: None, bucket: Bytes(100_000), first_bucket: Bytes(4_096), compute: COMPUTE });
    let mut in_place = step.clone();
    in_place.options.in_place = true;
    for accounts in group(3, 300_000, vec![step, in_place]) {
        for account in accounts {
            let account = account.unwrap();
            assert_eq!((account.checked.wrong, account.checked.verified), (Bytes::ZERO, Bytes(2 * 300_000)));
            assert_eq!((account.times.len(), account.batch, account.alone.len()), (3, 1, 3));
            assert!(account.times.iter().all(|time| *time >= COMPUTE), "{:?}", account.times);
            assert!(account.alone.iter().all(|time| !time.is_zero()), "{:?}", account.alone);
        }
    }
}

#[test]
fn what_cannot_be_done_is_said_and_breaks_nothing() {
    let mut unknown = collective(Op::AllReduce, 64, Datatype::F32, Some(Reduction::Sum));
    unknown.options.algorithm = Some(Algorithm::Chain);
    let right = collective(Op::AllReduce, 64, Datatype::F32, Some(Reduction::Sum));
    for accounts in group(2, 64, vec![unknown, right.clone(), CollectiveSpec { size: Bytes::from_mib(1), ..right }]) {
        let failures: Vec<_> = accounts.iter().map(|account| account.as_ref().err()).collect();
        assert!(failures[0].unwrap().cause.contains("all_reduce by chain does not run"), "{failures:?}");
        assert!(failures[1].is_none(), "{failures:?}");
        assert_eq!(failures[2].unwrap().kind, Kind::Configuration, "{failures:?}");
    }
}
