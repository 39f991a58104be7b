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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let wanted = scene.wanted().governor.as_deref();
    let latency = scene.has(|test| test.metric == TestMetric::Latency);
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        let remedy = remedy::GOVERNOR.with([("governor", wanted.unwrap_or(BEST))]);
        match (facts.cpu.governor.as_deref(), wanted) {
            (Some(governor), Some(wanted)) if governor != wanted => {
                let what = format!("the frequency governor is {governor}, the plan requires {wanted}");
                let observed = Observation::seen("governor", governor).wanted(wanted, WantedBy::Plan);
                found.push(Found::host(Severity::Failure, host, what, remedy).observed(observed));
            }
            (Some(governor), None) if governor != BEST => {
                let severity = if latency { Severity::Warning } else { Severity::Notice };
                let observed = Observation::seen("governor", governor).wanted(BEST, WantedBy::Check);
                let what = format!("the frequency governor is {governor}");
                found.push(Found::host(severity, host, what, remedy).observed(observed));
            }
            _ => {}
        }
    }
    found
}
