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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    if !scene.has(|test| test.metric == TestMetric::Latency) {
        return Vec::new();
    }
    let slow = scene.hosts().filter_map(|(host, facts)| {
        let source = facts.clock_source.as_deref().filter(|source| SLOW.contains(source))?;
        let remedy = remedy::CLOCK_SOURCE;
        let found = Found::host(Severity::Notice, host, format!("the kernel's clock source is {source}"), remedy);
        Some(found.observed(Observation::seen("clock_source", source)))
    });
    slow.collect()
}
