//! Tests within hosts: flows from a part of a host to itself, or to another part of the same host.

use std::{collections::BTreeSet, sync::Arc};

use railgauge_wire::Op;

use super::{Flow, Port};
use crate::plan::{Rails, Test, limits};

/// More parts than any host has; the number may come from another process.
const MOST: u32 = 256;

/// How many flows [`rounds`] makes of a host with this many parts.
pub(super) fn flows(test: &Test, parts: u32) -> u128 {
    let parts = match &test.rails {
        Rails::Only(only) => only.iter().collect::<BTreeSet<_>>().len() as u128,
        _ => parts.clamp(1, MOST).into(),
    };
    limits::within(test.op, parts)
}

/// Rounds of flows within hosts; `parts` returns how many parts a host has. Every part is in one round with all others of its host (`rails
/// = "aligned"`, or a list), or in one without any of them (`"each"`). Two parts of a host meet in every order. Hosts run at the same time,
/// unless all are one machine.
pub(super) fn rounds(
    test: &Test,
    hosts: &[Arc<str>],
    parts: impl Fn(&str) -> u32,
    one_machine: bool,
) -> Vec<Vec<Flow>> {
    let of_host = |host: &Arc<str>| {
        let parts: Vec<u32> = match &test.rails {
            Rails::Only(only) => only.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            _ => (0..parts(host).clamp(1, MOST)).collect(),
        };
        let flow =
            |(from, to): (u32, u32)| Flow::pair(Port::new(Arc::clone(host), from), Port::new(Arc::clone(host), to));
        let at_once: Vec<Vec<(u32, u32)>> = match test.op {
            // A single part has no other: the case reports it when tried.
            Op::GpuToGpu => (1..parts.len().max(2)).map(|shift| shifted(&parts, shift)).collect(),
            _ => vec![parts.iter().map(|&part| (part, part)).collect()],
        };
        let rounds = match test.rails {
            Rails::Each => at_once.into_iter().flatten().map(|one| vec![one]).collect(),
            _ => at_once,
        };
        rounds.into_iter().map(|round| round.into_iter().map(flow).collect()).collect::<Vec<Vec<Flow>>>()
    };
    let each: Vec<Vec<Vec<Flow>>> = hosts.iter().map(of_host).collect();
    if one_machine {
        return each.into_iter().flatten().collect();
    }
    let most = each.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).map(|round| each.iter().filter_map(|host| host.get(round)).flatten().cloned().collect()).collect()
}

fn shifted(parts: &[u32], shift: usize) -> Vec<(u32, u32)> {
    let behind = parts.iter().cycle().skip(shift);
    parts.iter().copied().zip(behind.copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::plan;

    fn made(rest: &str, one_machine: bool) -> Vec<Vec<String>> {
        let text = format!(
            "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n[[test]]\nmetric = \"bandwidth\"\n{rest}\n"
        );
        let plan = plan::parse("t.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
        let hosts: Vec<Arc<str>> = ["a".into(), "b".into()].into();
        let parts = |host: &str| if host == "a" { 3 } else { 1 };
        let rounds = rounds(&plan.tests[0], &hosts, parts, one_machine);
        let counted: u128 = hosts.iter().map(|host| flows(&plan.tests[0], parts(host))).sum();
        assert_eq!(rounds.iter().map(Vec::len).sum::<usize>() as u128, counted, "what bounds a plan is what it makes");
        assert!(limits::flows(&plan.groups, &plan.tests[0]) <= counted);
        rounds.iter().map(|round| round.iter().map(Flow::name).collect()).collect()
    }

    #[test]
    fn parts_run_all_at_once_or_one_after_the_other() {
        let all = vec![vec!["a:0", "a:1", "a:2", "b:0"]];
        assert_eq!(made("op = \"memory_read\"", false), all);
        assert_eq!(made("op = \"nic_loopback\"", false), all);
        let each = vec![vec!["a:0", "b:0"], vec!["a:1"], vec!["a:2"]];
        assert_eq!(made("op = \"memory_read\"\nrails = \"each\"", false), each);
        assert_eq!(made("op = \"nic_loopback\"\nrails = \"each\"", false), each);
        assert_eq!(made("op = \"memory_read\"\nrails = [2]", true), vec![vec!["a:2"], vec!["b:2"]]);
    }

    #[test]
    fn two_parts_meet_once_in_each_order() {
        let first = vec!["a:0 → a:1", "a:1 → a:2", "a:2 → a:0", "b:0"];
        let all = vec![first, vec!["a:0 → a:2", "a:1 → a:0", "a:2 → a:1"]];
        assert_eq!(made("op = \"gpu_to_gpu\"", false), all);
        assert_eq!(made("op = \"gpu_to_gpu\"\nrails = \"each\"", true).len(), 7);
        for rails in ["[1]", "[0, 2]", "[0, 1, 2, 7]"] {
            made(&format!("op = \"gpu_to_gpu\"\nrails = {rails}"), false);
        }
    }
}
