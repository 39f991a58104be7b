//! `[[test]]` and `[defaults]`: what is measured.

pub mod collective;
mod expect;
mod keys;
mod kind;
mod knobs;
pub mod pattern;
mod rails;
mod sizes;
mod window;

use std::{collections::HashMap, ops::Range, time::Duration};

use railgauge_wire::{
    step::Window,
    terms::{Aim, Fabric, Memory, Op, Service},
};

use super::{
    hosts::Hosts,
    mistake::Mistake,
    model::{Pattern, Rails, Test},
    table::Table,
};

pub use keys::{DEFAULTS, TEST};
pub use rails::LAST as LAST_RAIL;
pub use window::WINDOW;

/// Reads all tests of a plan.
pub fn read(top: &Table<'_>, hosts: &Hosts) -> Vec<Test> {
    let book = top.book;
    let defaults = top.table("defaults");
    let default_knobs = defaults.table("knobs");
    let tables = top.tables("test");
    if top.raw("test").is_some() && tables.is_empty() {
        let span = top.written("test").unwrap_or(top.span.clone());
        book.add(Mistake::at(span, "the plan has no test").help("add a [[test]] table"));
    }
    let mut names: HashMap<String, Range<usize>> = HashMap::new();
    let mut tests = Vec::new();
    for table in tables {
        let knobs = table.table("knobs").inherit(&default_knobs);
        let table = table.inherit(&defaults);
        let test = one(&table, &knobs, hosts);
        let span = table.written("name").unwrap_or(table.span.clone());
        if let Some(first) = names.get(&test.name) {
            let mistake =
                Mistake::at(span, format!("two tests are called {}", test.name)).also(first.clone(), "the first");
            book.add(mistake.help("give one of them another `name`"));
        } else if !test.name.is_empty() {
            names.insert(test.name.clone(), span);
        }
        tests.push(test);
    }
    tests
}

/// Reads one test. Where something is missing or wrong, and has been said, any value stands for it.
fn one(table: &Table<'_>, knobs: &Table<'_>, hosts: &Hosts) -> Test {
    let kind = kind::read(table);
    let taking_part = taking_part(table, hosts);
    let hosts_known = taking_part.is_some();
    let taking_part = taking_part.unwrap_or_default();
    let sizes = sizes::read(table, &kind);
    let gpus = collective::gpus(table, kind.memory);
    let collective = collective::read(table, &kind, hosts, &taking_part, sizes.as_deref(), &gpus);
    let pair = collective.is_none();
    let pattern = if hosts_known && pair { pattern::read(table, hosts, &taking_part) } else { None };
    let rails = if pair { rails::read(table, hosts, &taking_part, kind.fabric) } else { None };
    let subject = expect::Subject {
        produces: kind.aim.zip(kind.op),
        sizes: sizes.as_deref(),
        rails: rails.as_ref(),
        pattern: pattern.as_ref(),
        taking_part: &taking_part,
        hosts,
    };
    let expect = table.tables("expect").iter().filter_map(|table| expect::read(table, &subject)).collect();
    let time = |name| Duration::from_nanos(table.time(name).map_or(0, |at| at.value));
    Test {
        name: name(table, &kind),
        op: kind.op.unwrap_or(Op::Write),
        aim: kind.aim.unwrap_or(Aim::Bandwidth),
        fabric: kind.fabric.unwrap_or(Fabric::Verbs),
        service: kind.service.unwrap_or(Service::Rc),
        memory: kind.memory.unwrap_or(Memory::Host),
        gpu_path: kind.gpu_path,
        knobs: knobs::read(knobs, kind.fabric, kind.op),
        gpus,
        collective,
        qps: kind.qps,
        bidirectional: kind.bidirectional,
        sizes: sizes.unwrap_or_default(),
        pattern: pattern.unwrap_or(Pattern::Tournament),
        rails: rails.unwrap_or(Rails::Aligned),
        hosts: taking_part,
        repeats: table.whole("repeats").map_or(1, |at| at.value),
        window: window::read(table, pair).unwrap_or(Window::Iterations(1)),
        warm_up: time("warm_up"),
        verify: table.flag("verify").is_none_or(|at| at.value),
        deadline: time("deadline"),
        expect,
    }
}

/// The test's name, or the one its kind gives it; empty after saying what is wrong with it.
fn name(table: &Table<'_>, kind: &kind::Kind) -> String {
    if table.written("name").is_none() {
        let words = (kind.op, kind.aim, kind.fabric);
        let (Some(op), Some(aim), Some(fabric)) = words else { return String::new() };
        return format!("{op}-{aim}-{fabric}");
    }
    let Some(name) = table.text("name") else { return String::new() };
    if name.value.chars().count() > 100 {
        let mistake = Mistake::at(name.span, "a test's name of more than 100 characters");
        table.book.add(mistake.help("it stands in every row of the results: make it short"));
        return String::new();
    }
    name.value
}

/// Hosts that take part, in the plan's order; `None` after saying what is wrong.
fn taking_part(table: &Table<'_>, hosts: &Hosts) -> Option<Vec<String>> {
    let chosen = match table.raw("hosts") {
        None if table.written("hosts").is_some() => return None,
        None => hosts.sound.then(|| hosts.list.iter().map(|host| host.name.clone()).collect()),
        Some(_) => hosts.select(table, &table.texts("hosts")?.value),
    }?;
    if chosen.is_empty() {
        let span = table.raw("hosts").map_or(table.span.clone(), |raw| raw.span);
        let mistake = Mistake::at(span, "this test matches no hosts");
        table.book.add(mistake.help("name groups or hosts of [hosts] that are not excluded"));
        return None;
    }
    Some(chosen)
}
