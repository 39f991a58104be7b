//! Flows between GPUs at a distance from their NICs.

use std::collections::BTreeSet;

use railgauge_wire::{Distance, Memory};

use super::{numbers, plan};
use crate::{
    plan::{
        model::{Pattern, Rails},
        per_end::PerEnd,
    },
    schedule::{Inventory, schedule},
};

#[test]
fn rails_without_a_gpu_at_the_distance_are_left_out_where_it_is_known() {
    let mut plan = plan(Pattern::Tournament, Rails::Aligned, &[2, 2], 0);
    plan.tests[0].memory = PerEnd::same(Memory::Cuda);
    let mut inventory = Inventory::of_plan(&plan);
    let far = |distances: &[Distance]| distances.iter().copied().collect::<BTreeSet<_>>();
    inventory.set_distances("h0", vec![far(&[Distance::Pix, Distance::Sys]), far(&[Distance::Sys])]);
    let mut flows = |distance| {
        plan.tests[0].gpu_distance = distance;
        numbers(&schedule(&plan, &inventory).unwrap())
    };
    let both = vec![vec![(0, 0, 1, 0), (0, 1, 1, 1)]];
    assert_eq!(flows(None), both);
    assert_eq!(flows(Some(Distance::Sys)), both);
    assert_eq!(flows(Some(Distance::Pix)), [[(0, 0, 1, 0)]]);
    assert!(flows(Some(Distance::Phb)).is_empty());
    plan.tests[0].gpu_distance = Some(Distance::Phb);
    let notes = schedule(&plan, &inventory).unwrap().notes;
    assert!(notes[0].text.contains("no two ends have GPUs that are PHB"), "{notes:?}");
    plan.tests[0].memory.from = Memory::Host;
    assert_eq!(numbers(&schedule(&plan, &inventory).unwrap()), both, "h0 sends from host memory");
}
