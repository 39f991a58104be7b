use railgauge_wire::TestMetric;

use super::kind::Kind;
use crate::plan::{Hosts, OnFabric, Pattern, Table};

/// The share in percent: 100 by default for a pattern that loads links, otherwise no demand.
pub fn read(table: &Table<'_>, kind: &Kind, pattern: Option<&Pattern>, hosts: &Hosts) -> Option<f64> {
    let covers = matches!(pattern, Some(Pattern::Fabric(OnFabric::CoverLinks(_))));
    if let (true, Some(metric)) = (covers, kind.metric.filter(|metric| *metric != TestMetric::Bandwidth)) {
        let span = table.written("pattern").unwrap_or(table.span.clone());
        let message = format!("the pattern cover-links loads links, and this test measures {metric}");
        return table.reject(span, message, "set metric = \"bandwidth\", or use the pattern cross-leaf");
    }
    let Some(span) = table.written("links_covered") else {
        return (covers && kind.metric == Some(TestMetric::Bandwidth)).then_some(100.0);
    };
    let wanted = table.percent("links_covered")?.value;
    let wrong = |message: &str, help: &str| table.reject(span.clone(), message, help);
    if pattern.is_none() || kind.metric != Some(TestMetric::Bandwidth) {
        return wrong("`links_covered` applies to the bandwidth of pairs only", "leave it out of this test");
    }
    if hosts.topology.is_none() {
        return wrong("`links_covered` needs to know the switches, and the plan has no [topology]", "add [topology]");
    }
    Some(wanted)
}
