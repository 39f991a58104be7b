//! Parts that the plan waives: reported, but not counted.

use railgauge_model::{
    plan::{Plan, model::Waiver},
    schedule::Flow,
};

use super::{Localisation, Named, names::groups_of};
use crate::journal::Journal;

impl Localisation {
    /// Marks every waived part, and notes waived rails without a case: a plan does not always say how many rails its hosts have.
    pub(super) fn waive(&mut self, journal: &Journal) {
        let waivers = &journal.plan.localise.waive;
        for named in &mut self.suspects {
            named.waived = waivers.iter().any(|waiver| waives(waiver, named));
        }
        let has = |rail: u32| journal.cases.iter().any(|case| [case.flow.from.rail, case.flow.to.rail].contains(&rail));
        let unknown = waivers.iter().filter_map(|waiver| match waiver {
            Waiver::Rail(rail) if !has(*rail) => Some(format!("the plan waives rail {rail}, which no case has")),
            _ => None,
        });
        self.remarks.splice(0..0, unknown);
    }
}

/// Whether a waiver covers this part: a host with its NICs and paths, a group with its uplinks and boundaries, a rail.
fn waives(waiver: &Waiver, named: &Named) -> bool {
    fn words(names: &[String]) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }
    // One NIC on a rail is its host's, and a group's share of the rail the group's.
    let rail = named.rail.filter(|_| named.hosts.is_empty() && named.groups.is_empty());
    waiver.covers(&words(&named.hosts), &words(&named.groups), rail.as_slice())
}

/// Whether the plan waives a flow between two ends: by a host, a group of these, or its rail.
pub(crate) fn waives_flow(plan: &Plan, flow: &Flow) -> bool {
    let hosts: Vec<&str> = flow.hosts().into_iter().map(|host| &**host).collect();
    let waives = |waiver: &Waiver| waiver.covers(&hosts, &groups_of(plan, &hosts), &[flow.from.rail, flow.to.rail]);
    plan.localise.waive.iter().any(waives)
}
