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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let asked = scene.has(|test| test.knobs.huge_pages == Some(true));
    let short = scene.hosts().filter(|(_, facts)| asked && facts.huge_pages.iter().all(|pages| pages.free == 0));
    found.extend(short.map(|(host, _)| {
        Found::host(Failure, host, "no free huge pages", remedy::HUGE_PAGES).seen("huge_pages.free", 0_u32)
    }));
}
