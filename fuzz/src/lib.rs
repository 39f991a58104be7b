//! What strangers can say to railgauge, each as a function of bytes that must come back: no panic, no overflow, no hang.
//!
//! Strangers are agents (frames, replies), whoever can write to a run directory (journals, baselines), authors of plans
//! (plans, host lists), texts of kits, and what is read on hosts (files of sysfs and procfs, NCCL's log). `bench/fuzz` runs all targets
//! guided by coverage; the tests of this package run every input of `corpus/`, among them all that ever failed.

mod journals;
mod replies;
mod tree;

use std::path::Path;

use railgauge::kit::anonymise::Anonymiser;
use railgauge_model::{
    border,
    plan::{self, grammar},
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    frame,
    message::{FromAgent, Request},
    terms::{Metric, Transport},
};

/// One thing that reads what strangers wrote.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: also that of its folder in `corpus/`.
    pub name: &'static str,
    /// Reads the bytes.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "frames", run: frames },
    Target { name: "replies", run: replies::run },
    Target { name: "journals", run: journals::run },
    Target { name: "baselines", run: baselines },
    Target { name: "plans", run: plans },
    Target { name: "hostlists", run: hostlists },
    Target { name: "quantities", run: quantities },
    Target { name: "nccl-log", run: nccl_log },
    Target { name: "host-files", run: tree::run },
    Target { name: "kits", run: kits },
];

/// A text whose names are replaced.
fn kits(data: &[u8]) {
    if let Ok(mut to) = Anonymiser::new([0; 32], [("gpu1", "host-1".to_owned())]) {
        let _ = to.text(&String::from_utf8_lossy(data));
    }
}

/// A stream as either side of a conversation reads it.
fn frames(data: &[u8]) {
    let mut stream = data;
    while let Ok(Some(_)) = frame::read::<Request>(&mut stream) {}
    // Controllers take a frame's bytes and pass them through the border.
    let mut rest = data;
    while let Some((prefix, behind)) = rest.split_first_chunk::<4>() {
        let Ok(length) = frame::length(*prefix) else { return };
        let Some((body, behind)) = behind.split_at_checked(length) else { return };
        let _ = border::read::<FromAgent>(body);
        rest = behind;
    }
}

fn baselines(data: &[u8]) {
    let _ = railgauge_model::plan::baseline::Baseline::parse(&String::from_utf8_lossy(data));
}

/// A plan, and the schedule of one that is right and small.
fn plans(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match plan::parse("plan.toml", &text, Path::new("/nonexistent")) {
        Err(mistakes) => assert!(!mistakes.render(false).is_empty()),
        Ok((plan, notes)) => {
            let _ = notes.render(false);
            // What is large takes its time, and rightly so.
            if plan.hosts.len() > 16 {
                return;
            }
            let mut inventory = Inventory::of_plan(&plan);
            for host in &plan.hosts {
                inventory.set(&host.name, Transport::Verbs, 2);
                inventory.set(&host.name, Transport::Tcp, 1);
            }
            let _ = schedule(&plan, &inventory);
        }
    }
}

/// What a list of hosts expands to folds to a list of the same hosts.
fn hostlists(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(names) = grammar::hostlist::expand(text) {
        let folded = grammar::hostlist::fold(names.iter().map(String::as_str));
        assert_eq!(grammar::hostlist::expand(&folded).as_ref(), Ok(&names), "{folded}");
    }
}

/// Every other small text of a plan.
fn quantities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = grammar::quantity::size(text);
    let _ = grammar::quantity::duration(text);
    let _ = grammar::quantity::percent(text);
    let _ = grammar::sweep::sweep(text);
    let _ = grammar::sweep::range(text);
    let _ = grammar::words::split(text);
    for metric in [Metric::Bandwidth, Metric::LatencyP50, Metric::Busbw, Metric::MessageRate] {
        let _ = grammar::quantity::limit(text, metric);
    }
}

fn nccl_log(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = railgauge_agent::parts::log::read(&text, &Default::default());
    let _ = railgauge_agent::parts::log::complaint(&text);
}
