mod at_once;
mod beside;
pub mod collective;
mod configure;
mod distances;
mod environments;
mod expect;
mod keys;
mod kind;
mod knobs;
mod like;
mod links;
mod members;
mod node;
pub mod pattern;
mod rails;
mod sizes;
mod source;
mod threads;
mod traffic;
pub mod training;
mod victim;
mod window;

use std::{collections::HashMap, ops::Range, time::Duration};

use railgauge_wire::{Family, Memory, Op, Service, TestMetric, Transport, Window};

use super::{
    Chosen, Collective, Hosts, Mistake, Pattern, PerEnd, Rails, Scale, Table, Test, limits::TESTS as MOST,
    metrics::metrics_of, soak, subset::LeftOut,
};

use members::Members;

pub use keys::{DEFAULTS, TEST};
pub use window::WINDOW;

/// Reads all tests of a plan; with a selection only the selected ones, and which of them need unselected hosts.
pub fn read(top: &Table<'_>, hosts: &Hosts, chosen: Option<&Chosen<'_>>) -> (Vec<Test>, Vec<LeftOut>) {
    let book = top.book;
    let defaults = top.table("defaults");
    let default_knobs = defaults.table("knobs");
    let tables = top.tables("test");
    if top.raw("test").is_some() && tables.is_empty() {
        let span = top.written("test").unwrap_or(top.span.clone());
        book.wrong(span, "the plan has no tests", "add a [[test]] table");
    }
    if let Some(table) = tables.get(MOST) {
        let message = format!("the plan has {} tests", tables.len());
        book.wrong(table.span.clone(), message, "a plan has at most 1000 tests");
        return (Vec::new(), Vec::new());
    }
    let mut left_out = Vec::new();
    let mut names: HashMap<String, Range<usize>> = HashMap::new();
    let mut tests = Vec::new();
    for table in tables {
        let like = like::Like::of(&table);
        if like.is_none() && table.written("like").is_some() {
            continue;
        }
        let entries = [false, true].map(|knobs| like.as_ref().map(|like| like.entries(knobs)));
        let [keys, like_knobs] = [(&TEST, &entries[0]), (&knobs::KNOBS, &entries[1])]
            .map(|(section, entries)| Table::new(book, section, table.span.clone(), entries.as_ref()));
        let (like_knobs, keys) = (like_knobs.inherit(&default_knobs), keys.inherit(&defaults));
        let knobs = table.table("knobs").inherit(&like_knobs);
        let table = table.inherit(&keys);
        let baseline = top.written("baseline").is_some();
        let span = table.written("name").unwrap_or(table.span.clone());
        let made = match chosen {
            None => one(&table, &knobs, hosts, baseline),
            Some(chosen) => match book.attempt(|| one(&table, &knobs, hosts, baseline)) {
                Ok(made) => {
                    let made: Vec<Test> = made.into_iter().filter(|test| chosen.has(&test.name)).collect();
                    let parts = hosts.take_left_out();
                    if let Some(test) = made.first() {
                        left_out.extend(parts.into_iter().map(|why| LeftOut {
                            test: test.name.clone(),
                            why,
                            whole: false,
                        }));
                    }
                    made
                }
                Err((made, why)) => {
                    drop(hosts.take_left_out());
                    let of = |test: Test| LeftOut { test: test.name, why: why.clone(), whole: true };
                    left_out.extend(made.into_iter().filter(|test| chosen.has(&test.name)).map(of));
                    continue;
                }
            },
        };
        for test in made {
            if let Some(first) = names.get(&test.name) {
                let mistake = Mistake::at(span.clone(), format!("two tests have the name {}", test.name))
                    .also(first.clone(), "the first");
                book.add(mistake.help("give one of them another `name`"));
            } else if !test.name.is_empty() {
                names.insert(test.name.clone(), span.clone());
            }
            tests.push(test);
        }
    }
    (tests, left_out)
}

/// Reads one table: a test, or one for each distance it requests. Missing or wrong values have been reported and are replaced with
/// arbitrary ones.
fn one(table: &Table<'_>, knobs: &Table<'_>, hosts: &Hosts, baseline: bool) -> Vec<Test> {
    let kind = kind::read(table);
    let members = Members::read(table, hosts);
    let turned = knobs::read(knobs, &kind);
    let within = kind.transport.is_some_and(Transport::is_within_host);
    let sizes = training::bytes(table, &kind);
    let sizes = match turned.precision {
        Some(precision) => node::products(table, precision, sizes),
        None if kind.op == Some(Op::GpuMemoryTest) => node::tested(table, sizes),
        None if within && kind.metric == Some(TestMetric::Latency) => node::spread(table, sizes),
        None => sizes,
    };
    let gpus = match (within, kind.transport) {
        (true, transport) if transport != Some(Transport::Nic) => PerEnd::default(),
        _ => collective::gpus(table, &kind),
    };
    let distances = if within { Vec::new() } else { distances::read(table, &kind) };
    let collective = collective::read(table, &kind, members.as_ref(), sizes.as_deref(), &gpus.from);
    let sizes = traffic::sizes(table, collective.as_ref(), members.as_ref(), sizes);
    let pair = collective.is_none();
    let pattern = match (pair, within) {
        (true, true) => Some(Pattern::Within),
        (true, false) => pattern::read(table, members.as_ref()),
        (false, _) => None,
    };
    let rails = if pair { rails::read(table, members.as_ref(), kind.transport) } else { None };
    let window = window::read(table, pair);
    let (window, rails) = if within { node::settled(table, &kind, window, rails) } else { (window, rails) };
    let flows = if let Some(Pattern::AtOnce(pattern)) = &pattern { Some(pattern) } else { None };
    let at_once = flows.is_some();
    let beside = if within { None } else { beside::read(table, members.as_ref()) };
    let second = beside.as_ref().and_then(|beside| beside.op);
    if let (Some(op), Some(collective)) = (second.filter(|op| kind.op != Some(*op)), &collective) {
        collective::divides(table, op, collective, members.as_ref(), sizes.as_deref());
    }
    let subject = expect::Subject {
        produces: kind.metric.zip(kind.op).map(|(metric, op)| {
            let alone = collective.as_ref().is_some_and(|collective| collective.alone > 0);
            let all = metrics_of(metric, op, flows, beside.as_ref()).into_iter();
            all.filter(|metric| alone || metric.family() != Family::Exchange).collect()
        }),
        sizes: sizes.as_deref(),
        rails: rails.as_ref(),
        pattern: pattern.as_ref(),
        members: members.as_ref(),
        hosts,
        scales: scales(&kind, collective.as_ref(), members.as_ref(), within),
        baseline,
    };
    let demand = |table: &Table<'_>| match hosts.narrowed {
        false => expect::read(table, &subject),
        true => table.book.attempt(|| expect::read(table, &subject)).unwrap_or_else(|(_, why)| {
            let line = table.book.line(table.span.start);
            hosts.leave_out(format!("the expectation on line {line}: {why}"));
            None
        }),
    };
    let expect = table.tables("expect").iter().filter_map(demand).collect();
    let links_covered = if within { None } else { links::read(table, &kind, pattern.as_ref(), hosts) };
    let time = |name| table.time(name).map_or(Duration::ZERO, |at| at.value.into());
    let held_back = pair && !within && kind.metric == Some(TestMetric::Bandwidth);
    if !held_back {
        table.refuse(["rate", "share"], "applies only to the bandwidth of pairs");
    }
    let mut test = Test {
        name: name(table, &kind),
        op: kind.op.unwrap_or(Op::Write),
        metric: kind.metric.unwrap_or(TestMetric::Bandwidth),
        transport: kind.transport.unwrap_or(Transport::Verbs),
        service: kind.service.unwrap_or(Service::Rc),
        memory: kind.memory.unwrap_or(PerEnd::same(Memory::Host)),
        gpu_path: kind.gpu_path,
        knobs: turned,
        gpus,
        gpu_distance: None,
        rate_limit: held_back
            .then(|| {
                soak::rate_limit(table, kind.bidirectional, window, sizes.as_deref().unwrap_or_default(), &kind.qps)
            })
            .flatten(),
        collective,
        configure: configure::read(table, members.as_ref()),
        beside,
        threads: if within { 1 } else { threads::read(table, &kind, window) },
        qps: kind.qps,
        bidirectional: kind.bidirectional,
        sizes: sizes.unwrap_or_default(),
        pattern: pattern.clone().unwrap_or(Pattern::Tournament),
        links_covered,
        rails: rails.unwrap_or(Rails::Aligned),
        hosts: members.as_ref().map(|members| members.list.clone()).unwrap_or_default(),
        repeats: table.whole("repeats").map_or(1, |at| at.value),
        window: window.unwrap_or(Window::Iterations(1)),
        warm_up: time("warm_up"),
        // A test of memory always compares.
        verify: kind.op == Some(Op::GpuMemoryTest) || table.flag("verify").is_none_or(|at| at.value),
        deadline: time("deadline"),
        expect,
    };
    if at_once {
        at_once::judge(table, &mut test);
    }
    beside::judge(table, &mut test);
    rails::judge(table, &test);
    if pattern.is_some() {
        members::judge_amount(table, &test, hosts);
    }
    unjudged(table, &test);
    distances::spread(test, &distances)
}

/// Of each group of a collective; of every flow otherwise.
fn scales(
    kind: &kind::Kind,
    collective: Option<&Collective>,
    members: Option<&Members<'_>>,
    within: bool,
) -> Vec<Scale> {
    let memory = kind.memory.unwrap_or(PerEnd::same(Memory::Host));
    let Some(collective) = collective else {
        let (hosts, ranks) = if within { (1, None) } else { (2, Some(2)) };
        return vec![Scale::of(Some(hosts), &memory, ranks)];
    };
    let scale = |ranks: u64| {
        let ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
        Scale::of(Some(ranks / collective.ranks_per_host.max(1)), &memory, Some(ranks))
    };
    collective::rank_counts(collective, members).into_iter().map(scale).collect()
}

fn unjudged(table: &Table<'_>, test: &Test) {
    if !test.verify && test.expect.is_empty() {
        let span = table.written("verify").unwrap_or(table.span.clone());
        let note = Mistake::at(span, format!("{} neither verifies its data nor has an expectation", test.name));
        table.book.note(note.help("its verdict will be inconclusive: add an expectation, or set verify = true"));
    }
}

fn name(table: &Table<'_>, kind: &kind::Kind) -> String {
    if table.written("name").is_none() {
        let words = (kind.op, kind.metric, kind.transport);
        let (Some(op), Some(metric), Some(transport)) = words else { return String::new() };
        return format!("{op}-{metric}-{transport}");
    }
    let Some(name) = table.text("name") else { return String::new() };
    if name.value.chars().count() > 100 {
        let message = "the test's name is longer than 100 characters";
        table.wrong(name.span, message, "it is in every row of the results: use a shorter name");
        return String::new();
    }
    name.value
}
