//! Huge pages that the plan asks for but that are not reserved.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/kernel/mm/hugepages/*/free_hugepages",
    meaning: "buffers cannot be placed as the plan requires: the cases fail",
    source: "kernel Documentation/admin-guide/mm/hugetlbpage.rst",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    if !scene.has(|test| test.knobs.huge_pages == Some(true)) {
        return Vec::new();
    }
    let short = scene.hosts().filter(|(_, facts)| facts.huge_pages.iter().all(|pages| pages.free == 0));
    let remedy = remedy::HUGE_PAGES;
    let one = |host| {
        let observed = Observation::seen("huge_pages.free", 0_u32);
        Found::host(Severity::Failure, host, "no free huge pages", remedy).observed(observed)
    };
    short.map(|(host, _)| one(host)).collect()
}
