use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "DCB netlink (application table), traffic class of tests and drivers",
    meaning: "the test packets travel in a class that may be dropped, not in the lossless one",
    source: "`dcb app show dev INTERFACE`; DSCP is the upper six bits of the traffic class",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[DCB],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let classes: BTreeSet<u8> = scene.plan.tests.iter().filter_map(|test| test.knobs.traffic_class).collect();
    for port in scene.roce() {
        let Some((interface, dcb)) = port.interface.zip(port.dcb()) else { continue };
        let Some(first) = dcb.pfc.first() else { continue };
        let lossless = dcb.pfc.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        let forced = port.port.traffic_class.and_then(|class| u8::try_from(class).ok());
        for class in forced.map_or_else(|| classes.clone(), |class| [class].into()) {
            let code = class >> 2;
            let what = match dcb.dscp.get(&code) {
                // A driver that shows no map has one of its own.
                None if dcb.dscp.is_empty() => continue,
                Some(priority) if dcb.pfc.contains(priority) => continue,
                Some(priority) => format!("which has priority {priority}"),
                None => "which is not mapped to any priority".into(),
            };
            let what = format!("traffic class {class} is DSCP {code}, {what}; PFC is on for priority {lossless}");
            let values =
                [("interface", &*interface.name), ("dscp", &code.to_string()), ("priority", &first.to_string())];
            found.push(port.found(Warning, what, remedy::MAP_DSCP.with(values)));
        }
    }
}
