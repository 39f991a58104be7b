//! Further tests where every pair of the cluster is in one of two states by chance.

use crate::generators::{Noise, cluster::Cluster};
use railgauge_stats::localise::{Judgement, MOST_BATCHES, Part, Probe, Role, Setting, Way, localise, probes, settle};

const LEAF: u32 = 12;
/// What lies between the states, as a difference of logarithms.
const STATES: f64 = 0.05;
const TRIALS: u64 = 200;

/// A host was low in the tests. In the further ones all are alike: more pairs within leaves are in the good state than not, and fewer
/// between leaves, so that the medians of the two kinds lie in different states.
#[test]
fn states_of_all_confirm_nobody_whichever_state_the_controls_of_a_kind_are_mostly_in() {
    let cluster = Cluster {
        leaf: LEAF,
        glitches: 0.0,
        faults: vec![(Part::Host(5, Way::Both), (-1.2 * STATES).exp())],
        ..Cluster::healthy(24, 23, 0.005)
    };
    let groups: Vec<u32> = (0..24).map(|host| host / LEAF).collect();
    let setting = Setting { groups: &groups, directed: true, ..Setting::default() };
    let mut named = Vec::new();
    for seed in 0..TRIALS {
        let mut noise = Noise::new(seed);
        let pairs = cluster.run(&mut noise);
        let findings = localise(&pairs, &setting).unwrap();
        let number = findings.suspects.iter().position(|suspect| suspect.part == Part::Host(5, Way::Both)).unwrap();
        let wanted = probes(&pairs, &findings, &setting);
        let mut results: Vec<(Probe, f64)> = Vec::new();
        for probe in (0..MOST_BATCHES).flat_map(|_| &wanted).filter(|probe| probe.suspect == number) {
            let between = groups[probe.from.host as usize] != groups[probe.to.host as usize];
            let good = match (probe.role, between) {
                (Role::Suspect, _) => 0.2,
                (Role::Control, false) => 0.6,
                (Role::Control, true) => 0.4,
            };
            let at = if noise.chance(good) { 0.0 } else { -STATES };
            results.push((*probe, probe.level.centre + at + STATES / 5.0 * noise.normal()));
        }
        let kinds = [false, true].map(|kind| {
            let of = results.iter().filter(|(probe, _)| probe.role == Role::Control);
            of.filter(|(probe, _)| (groups[probe.from.host as usize] != groups[probe.to.host as usize]) == kind).count()
        });
        assert!(kinds.iter().all(|&controls| controls >= 9), "{kinds:?}");
        match settle(&findings.suspects[number], &results, &setting).judgement {
            Judgement::Open { .. } | Judgement::Cleared { .. } => {}
            judgement => named.push(judgement),
        }
    }
    assert!(named.len() as f64 <= 0.01 * TRIALS as f64, "{} of {TRIALS}: {named:#?}", named.len());
}
