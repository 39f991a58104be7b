use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    meaning: "reading the clock takes microseconds because it leaves the processor; every latency sample includes this",
    source: "kernel Documentation/timers/timekeeping.rst; the time of one reading is in every latency record",
    spoils: Spoils::Latency,
    subject: Subject::Host,
    needs: &[Need::Host(|facts| facts.clock_source.is_some(), "its clock source")],
    find,
};

const SLOW: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let matters = scene.has(|test| test.metric == TestMetric::Latency);
    found.extend(scene.hosts().filter(|_| matters).filter_map(|(host, facts)| {
        let source = facts.clock_source.as_deref().filter(|source| SLOW.contains(source))?;
        let what = format!("the kernel's clock source is {source}");
        Some(Found::host(Notice, host, what, remedy::CLOCK_SOURCE).seen("clock_source", source))
    }));
}
