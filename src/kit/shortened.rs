//! A plan that measures briefly, and the tests that a kit adds.

use std::{path::Path, time::Duration};

use anyhow::Context;
use railgauge_model::plan::{
    self, Plan,
    model::{Host, Pattern, Test},
};
use railgauge_wire::{step::Window, terms::Transport};

/// Longest window of a test.
const WINDOW: Duration = Duration::from_millis(500);
/// Longest time before it.
const WARM_UP: Duration = Duration::from_millis(100);
/// Sizes of a test.
const SIZES: usize = 3;

/// Tests of a kit itself: one operation with a fixed number of messages over each transport, whose counters are read; and for
/// plans without tests of verbs, one of each kind of figure.
const OWN: &str = r#"
name = "kit"
[launch]
via = "local"
[hosts]
names = ["kit-a", "kit-b"]
[defaults]
warm_up = "0s"
measure = "500ms"
[[test]]
name = "kit-known-bytes-verbs"
op = "write"
metric = "bandwidth"
transport = "verbs"
sizes = "64KiB"
[[test]]
name = "kit-known-bytes-tcp"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "64KiB"
[[test]]
name = "kit-write-bandwidth"
op = "write"
metric = "bandwidth"
transport = "verbs"
sizes = "64KiB..1MiB x16"
[[test]]
name = "kit-write-latency"
op = "write"
metric = "latency"
transport = "verbs"
sizes = "8"
[[test]]
name = "kit-send-latency"
op = "send"
metric = "latency"
transport = "verbs"
sizes = "8"
"#;

/// Messages of 64 KiB that are moved while counters are read: 64 MiB, which no other traffic of a quiet port comes near.
const MESSAGES: u64 = 1024;

/// The tests that move known bytes, and those that a plan without verbs is given.
pub(crate) struct Own {
    /// One for each transport.
    pub known: Vec<Test>,
    verbs: Vec<Test>,
}

/// The tests of a kit itself.
///
/// # Errors
/// None but a mistake of ours.
pub(crate) fn own() -> anyhow::Result<Own> {
    let (plan, _) = plan::parse("kit", OWN, Path::new(""))
        .map_err(|mistakes| anyhow::anyhow!("the tests of kits are wrong: {}", mistakes.render(false)))?;
    let (mut known, verbs): (Vec<Test>, Vec<Test>) =
        plan.tests.into_iter().partition(|test| test.name.starts_with("kit-known-bytes"));
    for test in &mut known {
        (test.window, test.warm_up, test.verify) = (Window::Iterations(MESSAGES), Duration::ZERO, false);
        test.deadline = Duration::from_secs(60);
    }
    known.first().context("the tests of kits are missing")?;
    Ok(Own { known, verbs })
}

/// Makes a plan measure briefly. `has_rdma` says whether the first two hosts have active RDMA ports. Returns what was changed.
pub(crate) fn shorten(plan: &mut Plan, own: &Own, has_rdma: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let changing: Vec<String> =
        plan.tests.iter().filter(|test| test.configure.is_some()).map(|test| test.name.clone()).collect();
    if !changing.is_empty() {
        notes.push(format!("left out, because they change the cluster: {}", changing.join(", ")));
        plan.tests.retain(|test| test.configure.is_none());
    }
    // It names every switch and cable of a cluster.
    if plan.topology.take().is_some() {
        notes.push("left out: what the plan knows of switches; tests of such pairs measure one random round".into());
        for test in &mut plan.tests {
            test.links_covered = None;
            if matches!(test.pattern, Pattern::Fabric(_)) {
                test.pattern = Pattern::Random(1);
            }
        }
    }
    // It lasts for hours.
    if plan.soak.take().is_some() {
        notes.push("left out: the soak".into());
    }
    plan.interleave.clear();
    plan.localise.confirm = false;
    for test in &mut plan.tests {
        test.repeats = 1;
        test.warm_up = test.warm_up.min(WARM_UP);
        test.window = match test.window {
            Window::Duration(time) => Window::Duration(time.min(WINDOW.into())),
            Window::Iterations(count) => Window::Iterations(count.min(1000)),
            Window::Adaptive { .. } => Window::Duration(WINDOW.into()),
        };
        if test.sizes.len() > SIZES {
            let last = test.sizes.len() - 1;
            test.sizes = [0, last / 2, last].map(|at| test.sizes[at]).into();
        }
    }
    notes.push(format!(
        "every test once, windows of at most {} ms, at most {SIZES} sizes; parts are not confirmed",
        WINDOW.as_millis()
    ));
    let measures_verbs = plan.tests.iter().any(|test| test.transport == Transport::Verbs && test.collective.is_none());
    if let (false, true, [from, to, ..]) = (measures_verbs, has_rdma, plan.hosts.as_slice()) {
        let hosts: Vec<String> = [from, to].map(|host: &Host| host.name.clone()).into();
        let added = own.verbs.iter().cloned().map(|test| Test { hosts: hosts.clone(), ..test });
        notes.push(format!(
            "the plan has no test of pairs over verbs: a short set between {} and {} is added",
            hosts[0], hosts[1]
        ));
        plan.tests.extend(added);
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let head = "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a\", \"b\", \"c\"]\n";
        plan::parse("p", &format!("{head}{text}"), Path::new("")).unwrap_or_else(|m| panic!("{}", m.render(false))).0
    }

    #[test]
    fn a_plan_is_made_short_and_gets_verbs() {
        let test = "[[test]]\nname = \"t\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                    sizes = \"4KiB..4MiB x4\"\nrepeats = 3\nmeasure = \"10s\"\n";
        let own = own().unwrap();
        let (mut tcp, mut rdma) = (plan(test), plan(test));
        shorten(&mut tcp, &own, false);
        shorten(&mut rdma, &own, true);
        let short = &tcp.tests[0];
        assert_eq!((short.repeats, short.sizes.len(), short.window), (1, 3, Window::Duration(WINDOW.into())));
        assert_eq!((tcp.tests.len(), rdma.tests.len()), (1, 4));
        assert_eq!(rdma.tests[1].hosts, ["a", "b"]);
        assert_eq!(own.known.iter().map(|test| test.transport).collect::<Vec<_>>(), [Transport::Verbs, Transport::Tcp]);
    }

    #[test]
    fn what_changes_the_cluster_is_left_out() {
        let test = "[[test]]\nname = \"t\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                    sizes = \"4KiB\"\n[test.configure]\napply = [\"true\"]\nundo = [\"true\"]\n";
        let mut plan = plan(test);
        let notes = shorten(&mut plan, &own().unwrap(), false);
        assert!(plan.tests.is_empty() && notes[0].ends_with(": t"), "{notes:?}");
    }

    #[test]
    fn a_soak_of_days_is_left_out() {
        let test = "[[test]]\nname = \"t\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"4KiB\"\n\
                    [soak]\nfor = \"72h\"\ntest = \"t\"\n";
        let mut plan = plan(test);
        assert!(plan.soak.is_some());
        let notes = shorten(&mut plan, &own().unwrap(), false);
        assert!(plan.soak.is_none() && notes[0].contains("soak"), "{notes:?}");
    }
}
