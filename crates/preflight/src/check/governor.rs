use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    meaning: "cores lower their clock between messages: latencies rise and vary, and one core may not fill the link",
    source: "kernel Documentation/admin-guide/pm/cpufreq.rst",
    spoils: Spoils::Latency,
    subject: Subject::Host,
    needs: &[Need::Host(|facts| facts.cpu.governor.is_some(), "its frequency governor")],
    find,
};

const BEST: &str = "performance";

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let wanted = scene.wanted().governor.as_deref();
    let best = wanted.unwrap_or(BEST);
    let (severity, by, required) = match wanted {
        Some(wanted) => (Failure, WantedBy::Plan, format!(", the plan requires {wanted}")),
        None if scene.has(|test| test.metric == TestMetric::Latency) => (Warning, WantedBy::Check, String::new()),
        None => (Notice, WantedBy::Check, String::new()),
    };
    found.extend(scene.hosts().filter_map(|(host, facts)| {
        let governor = facts.cpu.governor.as_deref().filter(|governor| *governor != best)?;
        let what = format!("the frequency governor is {governor}{required}");
        let observed = Observation::seen("governor", governor).wanted(best, by);
        Some(Found::host(severity, host, what, remedy::GOVERNOR.with([("governor", best)])).observed(observed))
    }));
}
