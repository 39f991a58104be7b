use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "wall clock of the host, compared with the controller's",
    meaning: "times in its logs do not match those of other hosts; measurements use monotonic clocks and are not affected",
    source: "clock readings at the greeting; the one with the shortest round trip counts",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Clock],
    find,
};

/// Beyond this, logs of hosts cannot be compared. A hardware clock is set to whole seconds, so hosts that were never synchronised differ by
/// one or two without a fault.
const LIMIT: Nanoseconds = Nanoseconds::from_secs(2);

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let off = scene.cluster.clocks.iter().filter(|(_, offset)| offset.distance() > LIMIT);
    found.extend(off.map(|(host, offset)| {
        let what = format!("its clock differs from the controller's by {:+.1} s", offset.seconds());
        // Rounded as in the sentence, so that equal sentences are one finding.
        let seconds = (offset.seconds() * 10.0).round() / 10.0;
        Found::host(Warning, host, what, remedy::SYNC_CLOCK).seen("clock_offset", seconds).unit("s")
    }));
}
