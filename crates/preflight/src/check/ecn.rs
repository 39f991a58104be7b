use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/net/*/ecn/roce_np and roce_rp (MLNX_OFED)",
    meaning: "without notifications senders do not slow down: PFC spreads congestion to unrelated flows",
    source: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015 (DCQCN)",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[Need::Port(|port| port.interface.is_some_and(|interface| interface.ecn.is_some()), "ECN of RoCE"), DCB],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for port in scene.roce() {
        let Some((interface, dcb)) = port.interface.zip(port.dcb()) else { continue };
        let Some(ecn) = &interface.ecn else { continue };
        for (point, file, on) in [("notification", "roce_np", &ecn.notifies), ("reaction", "roce_rp", &ecn.reacts)] {
            for priority in dcb.pfc.iter().filter(|priority| !on.contains(priority)) {
                let what = format!("ECN {point} is off for priority {priority}, which has PFC");
                let values = [("interface", &*interface.name), ("file", file), ("priority", &priority.to_string())];
                found.push(port.found(Warning, what, remedy::ECN_ON.with(values)));
            }
        }
    }
}
