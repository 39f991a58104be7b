use std::time::Duration;

use toml::{Spanned, de::DeTable};

use super::{
    Book, Chosen, Launcher, Pods, Section, Table,
    alert::{self, ALERT},
    baseline::{self, BASELINE},
    format::keys,
    hosts::{self, HOSTS},
    interleave::{self, INTERLEAVE},
    launch::{self, LAUNCH},
    localise::{self, LOCALISE},
    model::{Kubectl, Plan, Subset},
    preflight::{self, PREFLIGHT},
    soak::{self, SOAK},
    test_table::{self, DEFAULTS, TEST},
    topology::{self, TOPOLOGY},
};

pub static PLAN: Section = Section {
    header: "",
    about: "The top of the file, before the first table.",
    keys: keys! {
        "name": Text, Required,
            "Name of the plan and of run directories: letters, digits, `.`, `_` and `-`, at most 64.";
        "description": Text, Means("none"), "What the plan is for; shown in the report.";
        "seed": Whole(0, i64::MAX as u64), Is("1"),
            "Seed of everything random, schedules and verified bytes. The same seed gives the same run.";
        "rotate": Flag, Is("false"),
            "Whether the rounds of `random` and the choices of `permutation` and `bisection` advance with the UTC \
             day of the run's start, so that each night measures other pairs. `trend` then also watches hosts, NICs \
             and rails, and ignores the seed.";
        "at_most": Time("1s", "2000h"), Means("as long as it takes"),
            "Time for the whole run. What does not fit is reported as not run: the last tests first, then last \
             repeats, last rounds, last cases of a round. A quarter of it, or `at_most` of `[localise]` if less, is \
             kept for suspects; a soak's time is included.";
        "launch": Table(&LAUNCH), Required, "How agents are started.";
        "hosts": Table(&HOSTS), Required, "Which hosts take part.";
        "topology": Table(&TOPOLOGY), Means("unknown"),
            "Switches and cables.";
        "localise": Table(&LOCALISE), Means("suspects are found and measured again"),
            "How faulty components are found.";
        "preflight": Table(&PREFLIGHT), Means("hosts are compared"),
            "Required configuration of the hosts.";
        "baseline": Table(&BASELINE), Means("none"), "Results of earlier runs to compare with.";
        "alert": Table(&ALERT), Means("after one night"),
            "When a fault is reported.";
        "defaults": Table(&DEFAULTS), Means("none"), "Keys for all tests.";
        "test": Tables(&TEST), Required, "What is measured.";
        "interleave": Tables(&INTERLEAVE), Means("none"), "Tests that are measured in turn and compared.";
        "soak": Table(&SOAK), Means("none"), "Traffic for hours after the tests.";
    },
};

/// Reads a whole plan and records mistakes in the book; with mistakes the plan must not be used.
///
/// With a selection, the whole plan must have been read without mistakes before: references to unselected hosts or tests are then dropped
/// silently.
pub fn read<'a>(book: &'a Book<'a>, document: &'a Spanned<DeTable<'a>>, chosen: Option<&Chosen<'_>>) -> Plan {
    // The document's own span is the whole file; missing keys are marked at its start.
    let top = Table::new(book, &PLAN, 0..0, Some(document.get_ref()));
    let name = top.text("name");
    if let Some(name) = &name
        && !is_directory_name(&name.value)
    {
        let help = "use letters, digits, `.`, `_` and `-`, at most 64, and start with a letter or digit";
        book.wrong(name.span.clone(), format!("`{}` is not a valid plan name", name.value), help);
    }
    let launch_table = top.table("launch");
    let launch = launch::read(&launch_table, top.raw("launch").is_some());
    let mut hosts = hosts::read(&top.table("hosts"), top.raw("hosts").is_some(), &launch);
    // Of all hosts, also excluded ones: an excluded host must not become a switch.
    hosts.topology = topology::read(&top, &hosts.everyone()).or_else(|| hosts::of_slurm(&top, &launch, &hosts));
    topology::groups(&mut hosts);
    if let Some(chosen) = chosen {
        hosts.only(&chosen.hosts);
    }
    if hosts.sound {
        launch.via.judge(&launch_table, &hosts.list);
    }
    let (mut tests, left_out) = test_table::read(&top, &hosts, chosen);
    if let Some(repeats) = chosen.and_then(|chosen| chosen.subset.repeats) {
        tests.iter_mut().for_each(|test| test.repeats = repeats);
    }
    let subset = chosen.map(|chosen| Subset { left_out, ..chosen.subset.clone() });
    let (interleave, localise) = {
        let mut both = || {
            let interleave = interleave::read(&top, &mut tests);
            (interleave, localise::read(&top, &hosts.list, &hosts.groups, &tests))
        };
        match chosen {
            None => both(),
            // Missing tests are not interleaved, and missing rails not waived.
            Some(_) => book.attempt(both).unwrap_or_else(|(made, _)| made),
        }
    };
    if subset.is_some() {
        hosts.groups.retain(|_, members| !members.is_empty());
    }
    let soak = match chosen {
        None => soak::read(&top, &tests),
        // Without its test there is none.
        Some(_) => book.attempt(|| soak::read(&top, &tests)).unwrap_or(None),
    };
    let at_most = top.time("at_most").map(|at_most| (at_most.span, Duration::from(at_most.value)));
    if let (Some((span, at_most)), Some(soak)) = (&at_most, &soak)
        && *at_most <= soak.lasts
    {
        let message = "the soak alone takes all of `at_most`";
        book.wrong(span.clone(), message, "give the run more time, or the soak less (`for` of [soak])");
    }
    let baseline = baseline::read(&top).map(|baseline| baseline::wanted(baseline, &tests));
    Plan {
        name: name.map(|name| name.value).unwrap_or_default(),
        description: top.text("description").map(|text| text.value).unwrap_or_default(),
        seed: top.whole("seed").map_or(1, |seed| seed.value),
        rotate: top.flag("rotate").is_some_and(|rotate| rotate.value).then_some(0),
        at_most: at_most.map(|(_, at_most)| at_most),
        subset,
        launch,
        pods: hosts.pods,
        hosts: hosts.list,
        groups: hosts.groups,
        places: hosts.places,
        topology: hosts.topology,
        localise,
        alert: alert::read(&top),
        preflight: preflight::read(&top),
        baseline,
        tests,
        soak,
        interleave,
    }
}

/// The pods a document asks for, and where they are; `None` if it asks for none or is invalid.
pub fn pods<'a>(book: &'a Book<'a>, document: &'a Spanned<DeTable<'a>>) -> Option<(Kubectl, Pods)> {
    let top = Table::new(book, &PLAN, 0..0, Some(document.get_ref()));
    let launch = launch::read(&top.table("launch"), top.raw("launch").is_some());
    let wanted = hosts::wanted_pods(&top.table("hosts"))?;
    match launch.via {
        Launcher::Kubectl(kubectl) => Some((kubectl, wanted)),
        _ => None,
    }
}

fn is_directory_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.len() <= 64 && name.chars().all(allowed) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}
