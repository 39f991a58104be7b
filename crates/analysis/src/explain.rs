//! Which bad components and missing values a finding of preflight may explain.

use std::collections::BTreeSet;

use railgauge_model::plan::hostlist;
use railgauge_preflight::{CHECKS, Finding, Observation, Severity, Spoils};
use railgauge_wire::Better;
use serde::Serialize;

use super::{
    outliers::{Link, OfTest, Outliers, Part},
    row::Row,
    words::count,
};

/// Smallest share of the cases of its hosts that a fatal finding may explain, if at most half as large a share is missing elsewhere.
const MOST: f64 = 0.5;

/// Smallest number of links without a value that implicate their shared end: for one link it may be either end.
const FEWEST: usize = 2;

/// Share of an effect that a cause must be able to produce.
const HALF: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    #[serde(skip)]
    pub test: String,
    /// Names of the bad parts that it may cause; empty for missing values.
    #[serde(skip)]
    pub parts: Vec<String>,
    pub words: String,
}

/// What each finding fits, by test.
pub fn explained(found: &[Finding], outliers: &Outliers<'_>) -> Vec<Vec<Fit>> {
    let of = |finding: &Finding| {
        let check = CHECKS.iter().find(|check| check.name == finding.check);
        let Some(check) = check.filter(|check| check.rule.spoils != Spoils::Nothing) else { return Vec::new() };
        let with_it: BTreeSet<&str> = found
            .iter()
            .filter(|other| *other == finding || finding.is_alike(other))
            .flat_map(|other| other.hosts.iter().map(String::as_str))
            .collect();
        outliers.tests.iter().filter_map(|test| fit(finding, check.rule.spoils, &with_it, test, outliers)).collect()
    };
    found.iter().map(of).collect()
}

/// `None` where every host has it: there are no peers to compare with.
fn fit(
    finding: &Finding,
    spoils: Spoils,
    with_it: &BTreeSet<&str>,
    test: &OfTest<'_>,
    outliers: &Outliers<'_>,
) -> Option<Fit> {
    let hosts: BTreeSet<&str> = test.links.iter().flat_map(hosts_of).collect();
    if hosts.is_subset(with_it) {
        return None;
    }
    let fit = |parts: Vec<String>, what: String| Fit {
        test: test.test.to_owned(),
        parts,
        words: format!("{}: {what}", test.test),
    };
    let is_spoilt = test.links.iter().find_map(|link| link.row).is_some_and(|row| spoils_row(spoils, row));
    let bad: Vec<&Part<'_>> =
        outliers.parts.iter().filter(|part| is_spoilt && part.is_bad() && part.is_named_by(test.test)).collect();
    let is_bad = |host: &str| bad.iter().any(|part| part.hosts().iter().any(|of| of == host));
    // Good hosts that have it show that it does not cost that much.
    let (bad_with_it, good_with_it): (Vec<&str>, Vec<&str>) =
        hosts.iter().copied().filter(|host| with_it.contains(host)).partition(|host| is_bad(host));
    let parts: Vec<String> =
        bad.iter().filter(|part| may_cause(finding, part, test)).map(|part| part.name.to_owned()).collect();
    if !parts.is_empty() && good_with_it.len() < bad_with_it.len() {
        let what = format!("{} of {}", test.metric.name(), parts.join(", "));
        return Some(fit(parts, what));
    }
    // A finding that only slows things down does not prevent a value.
    let missing = (finding.severity == Severity::Failure).then(|| missing(finding, test)).flatten()?;
    Some(fit(Vec::new(), missing))
}

fn hosts_of<'l>(link: &'l Link<'_>) -> impl Iterator<Item = &'l str> {
    link.result.case.flow.hosts().into_iter().map(|host| &**host)
}

fn spoils_row(spoils: Spoils, row: &Row) -> bool {
    match spoils {
        Spoils::Everything => true,
        Spoils::Bandwidth => row.better == Better::Higher,
        Spoils::Latency => row.better == Better::Lower,
        Spoils::GpuMemory => [&row.src_memory, &row.dst_memory].iter().any(|memory| &***memory == "cuda"),
        Spoils::Nothing => false,
    }
}

/// Whether all hosts of a bad part have the finding, all its links touch a device of the finding, and it can cost that much.
fn may_cause(finding: &Finding, part: &Part<'_>, test: &OfTest<'_>) -> bool {
    let own = test.links.iter().filter(|link| part.speaks(test.test, link.result.case.id));
    let most = finding.observed.as_ref().and_then(Observation::takes_at_most).unwrap_or(f64::INFINITY);
    let hosts = part.hosts();
    !hosts.is_empty()
        && hosts.iter().all(|host| finding.hosts.contains(host))
        && own.filter_map(|link| link.row).all(|row| touches(finding, row))
        && most >= HALF * -part.effect
}

fn touches(finding: &Finding, row: &Row) -> bool {
    let ends = [(&row.src_host, &row.src_device, row.src_gpu), (&row.dst_host, &row.dst_device, row.dst_gpu)];
    let is_of = |(host, device, gpu): (&str, &str, Option<u32>)| {
        let is = |named: &String| {
            let port = device.split_once(':').map_or(device, |(nic, _)| nic);
            named == device || named == port || gpu.is_some_and(|gpu| *named == format!("GPU {gpu}"))
        };
        finding.hosts.iter().any(|of| of == host) && finding.devices.iter().any(is)
    };
    finding.devices.is_empty() || ends.into_iter().any(|(host, device, gpu)| is_of((host, device, gpu)))
}

/// `3 of 12 cases of gpu003 without a value`, if most cases of its hosts lack one and few elsewhere.
fn missing(finding: &Finding, test: &OfTest<'_>) -> Option<String> {
    let is_own = |link: &&Link<'_>| hosts_of(link).any(|host| finding.hosts.iter().any(|of| of == host));
    let (own, others): (Vec<&Link<'_>>, Vec<&Link<'_>>) = test.links.iter().partition(is_own);
    let lacks = |link: &&&Link<'_>| link.row.is_none_or(|row| row.value.is_none());
    let number = |links: &[&Link<'_>]| links.iter().filter(lacks).count();
    let rate = |links: &[&Link<'_>]| number(links) as f64 / links.len().max(1) as f64;
    let links: BTreeSet<BTreeSet<&str>> =
        own.iter().filter(|link| lacks(link)).map(|link| hosts_of(link).collect()).collect();
    let fits = !others.is_empty() && links.len() >= FEWEST && rate(&own) >= MOST && rate(&others) <= rate(&own) / 2.0;
    let hosts = hostlist::listed(finding.hosts.iter().map(String::as_str));
    fits.then(|| format!("{} of {} of {hosts} without a value", number(&own), count(own.len(), "case")))
}
