//! What no host and no switch of a plan explains.

use crate::generators::{
    Noise,
    cluster::{Cluster, confirmed},
};
use railgauge_stats::localise::{Part, Setting};

/// A slow trunk between switches that the plan does not name makes half of the pairs low. Its sides are named, and no host.
#[test]
fn a_trunk_that_no_plan_names_is_named_by_its_sides() {
    for (hosts, rounds, factor) in [(8, 7, 0.8), (16, 15, 0.5), (16, 6, 0.8), (32, 8, 0.9)] {
        let mut noise = Noise::new(7 + u64::from(hosts));
        for _ in 0..20 {
            let trunk = Part::Cut((0..hosts / 2).collect());
            let cluster =
                Cluster { faults: vec![(trunk, factor)], glitches: 0.0, ..Cluster::healthy(hosts, rounds, 0.005) };
            let pairs = cluster.run(&mut noise);
            let (names, _, findings) = confirmed(&cluster, &Setting::default(), &pairs, &mut noise);
            let upper = Part::Cut((hosts / 2..hosts).collect());
            assert_eq!(names.into_iter().collect::<Vec<_>>(), [upper], "{hosts} {rounds} {findings:#?}");
        }
    }
}
