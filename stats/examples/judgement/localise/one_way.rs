//! What carries less in one direction between leaves.

use railgauge_stats::localise::{Part, Way};

use super::{Cluster, Score};
use crate::{
    noise::Kind,
    row::{Options, Row},
};

/// The uplinks of a leaf are slow in one direction, or what leads from one leaf to another: 2 to 8 leaves, 16 to 64 hosts.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for leaves in [2, 3, 4, 6, 8] {
        for (kind, what) in [(0, "uplink"), (1, "boundary")] {
            // What leads from one of two leaves to the other is the uplink of both.
            if leaves == 2 && kind == 1 {
                continue;
            }
            let mut score = Score::default();
            for run in 0..options.runs(200) {
                let hosts = [16, 24, 32, 64][run / 4 % 4];
                let rails = [1, 1, 2][run / 16 % 3];
                let sigma = [0.005, 0.01, 0.02][run / 2 % 3];
                let seed = options.seed + 15_487_469 * run as u64 + u64::from(leaves) + 31 * kind;
                let mut cluster = Cluster::new(seed, hosts, rails, Kind::Normal, sigma);
                cluster.leaves(leaves);
                if run % 2 == 1 && leaves > 2 {
                    cluster.between = 0.8;
                }
                let leaf = cluster.below(leaves);
                let other = (leaf + 1 + cluster.below(leaves - 1)) % leaves;
                let way = [Way::Send, Way::Receive][run / 3 % 2];
                let part = match kind {
                    0 => Part::Uplink(leaf, way),
                    _ => Part::Boundary(leaf.min(other), leaf.max(other), way),
                };
                cluster.faults = vec![(part.clone(), [0.9, 0.8, 0.5][run % 3], 1.0)];
                let said = cluster.run(if run % 4 == 0 { usize::MAX } else { 6 }, true);
                // Of few hosts under a leaf few pairs cross a boundary in one direction: too few to tell it from two paths.
                if cluster.tests_of(&part) >= 3 {
                    score.count(&said, &[part]);
                }
            }
            score.rows(&format!("{leaves} leaves, {what} slow in one direction"), 0.95, &mut rows);
        }
    }
    rows
}
