//! Matches findings of the preflight to results that they probably explain.
//!
//! A finding fits if results of its hosts and devices are worse than the same measurements elsewhere, beyond chance and in the direction of
//! the check. A host with a finding of the same check and comparable size has it too. A finding on every host has no comparison and
//! explains nothing. If part of a test is bad, a finding fits only where the part is, and only if it can cause as large a loss: its own
//! value limits that, and so do good peers that have it too. A fit is a coincidence; the reader decides on the cause.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::{
    plan::{Plan, hostlist},
    schedule::Flow,
};
use railgauge_preflight::{CHECKS, Finding, Observation, Rule, Severity, Spoils, Subject};
use railgauge_stats::{rank::mann_whitney, robust::median};
use railgauge_wire::{
    terms::{Better, Metric, Transport},
    unit::Bytes,
};

use super::{
    outliers::{Link, OfTest, Outliers},
    row::Row,
    words::{count, share},
};

/// Smallest reported loss in percent, unless the plan only looks for larger ones.
const LEAST_PERCENT: f64 = 2.0;

/// Largest probability of a chance loss (Mann & Whitney, one-sided, over links) that is reported. Three links against
/// three, as a host of four has, cannot give less.
const BY_CHANCE: f64 = 0.05;

/// Smallest share of a finding's links without a value that it may explain, if at most half as large a share is missing
/// elsewhere: a cause in a host affects most of its links.
const MOST: f64 = 0.5;

/// Smallest number of links without a value that implicate their shared end: for one link it may be either end.
const FEWEST_LINKS: usize = 2;

/// Share of an effect that a cause must be able to produce.
const HALF: f64 = 0.5;

#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub test: String,
    /// Names of the bad parts that it may cause; empty where the test has none.
    pub parts: Vec<String>,
    pub words: String,
}

/// What each finding fits, by test; empty without a match or without peers to compare with.
pub fn explained(found: &[Finding], plan: &Plan, outliers: &Outliers<'_>) -> Vec<Vec<Fit>> {
    let opened = opened(outliers);
    let of = |finding: &Finding| {
        let check = CHECKS.iter().find(|check| check.name == finding.check);
        let Some(check) = check.filter(|check| check.rule.spoils != Spoils::Nothing) else { return Vec::new() };
        let is_peer = |other: &&Finding| finding.is_alike(other) && *other != finding;
        let about = About {
            own: Where::new(&[finding]),
            too: Where::new(&found.iter().filter(is_peer).collect::<Vec<_>>()),
            finding,
            plan,
            exact: matches!(check.rule.subject, Subject::Port | Subject::RocePort | Subject::InfiniBand),
            opened: &opened,
        };
        outliers.tests.iter().filter_map(|test| about.fit(&check.rule, test, outliers)).collect()
    };
    found.iter().map(of).collect()
}

fn spoils(spoils: Spoils, row: &Row) -> bool {
    match spoils {
        Spoils::Everything => true,
        Spoils::Bandwidth => row.better_is_higher(),
        Spoils::Latency => !row.better_is_higher(),
        Spoils::GpuMemory => &*row.memory == "cuda",
        Spoils::Nothing => false,
    }
}

impl Row {
    const fn better_is_higher(&self) -> bool {
        matches!(self.better, Better::Higher)
    }
}

type Opened<'a> = HashMap<(&'a str, u32, bool), &'a str>;

fn opened<'a>(outliers: &'a Outliers<'a>) -> Opened<'a> {
    let links = outliers.tests.iter().flat_map(|test| &test.links);
    let of = |link: &'a Link<'a>| -> Option<[_; 2]> {
        let (row, flow) = (link.row?, &link.result.case.flow);
        let tcp = link.result.case.cell.transport == Transport::Tcp;
        Some([
            ((&*row.src_host, flow.from.rail, tcp), &*row.src_device),
            ((&*row.dst_host, flow.to.rail, tcp), &*row.dst_device),
        ])
    };
    links.filter_map(of).flatten().filter(|(_, device)| !device.is_empty()).collect()
}

/// Devices by host; empty for a host as a whole.
struct Where<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Where<'a> {
    fn new(findings: &[&'a Finding]) -> Self {
        let mut hosts: HashMap<&str, Vec<&str>> = HashMap::new();
        for finding in findings {
            for host in &finding.hosts {
                hosts.entry(host).or_default().extend(finding.devices.iter().map(String::as_str));
            }
        }
        Self(hosts)
    }
}

struct Sides<'l, 'a> {
    own: Vec<&'l Link<'a>>,
    too: Vec<&'l Link<'a>>,
    free: Vec<&'l Link<'a>>,
}

struct About<'a> {
    finding: &'a Finding,
    own: Where<'a>,
    too: Where<'a>,
    plan: &'a Plan,
    /// Whether it is about the named ports, instead of all ports of the named devices.
    exact: bool,
    opened: &'a Opened<'a>,
}

impl About<'_> {
    fn fit(&self, rule: &Rule, test: &OfTest<'_>, outliers: &Outliers<'_>) -> Option<Fit> {
        let mut sides = Sides { own: Vec::new(), too: Vec::new(), free: Vec::new() };
        for link in test.links.iter().filter(|link| link.row.is_some()) {
            let side = if self.touches(&self.own, link) {
                &mut sides.own
            } else if self.touches(&self.too, link) {
                &mut sides.too
            } else {
                &mut sides.free
            };
            side.push(link);
        }
        let Sides { own, free, .. } = &sides;
        if own.is_empty() || free.is_empty() {
            return None;
        }
        let finding = self.finding;
        let spoilt = own.iter().all(|link| link.row.is_some_and(|row| spoils(rule.spoils, row)));
        // Either end of a link may slow it down; a GPU or a NIC alone has no other end.
        let alone = matches!(rule.subject, Subject::Gpu | Subject::Nic)
            && finding.severity > Severity::Notice
            && own.iter().all(|link| link.result.case.cell.transport.is_within_host());
        let least = self.plan.localise.least_percent.max(LEAST_PERCENT);
        let slower = spoilt.then(|| slower(test.metric, (own, free), least, alone)).flatten();
        let (parts, is_cause) = self.causes(test.test, &sides, outliers);
        let slower = slower.filter(|_| is_cause);
        // A finding that only slows things down does not prevent a value.
        let fatal = finding.severity == Severity::Failure;
        let missing = fatal.then(|| missing(&sides)).flatten();
        let said: Vec<String> = [slower, missing].into_iter().flatten().collect();
        let hosts = hostlist::listed(finding.hosts.iter().map(String::as_str));
        // A single GPU of a host with eight.
        let place = match rule.subject {
            Subject::Gpu if !finding.devices.is_empty() => format!("{} of {hosts}", finding.devices.join(", ")),
            _ => hosts,
        };
        let words = || format!("{}: {} of {place} {}", test.test, test.metric.name(), said.join("; "));
        (!said.is_empty()).then(|| Fit { test: test.test.to_owned(), words: words(), parts })
    }

    /// The bad parts of a test that it may explain, and whether it may explain anything: one of these, links that stand
    /// out by themselves, or, where nothing is bad, its own difference.
    fn causes(&self, test: &str, sides: &Sides<'_, '_>, outliers: &Outliers<'_>) -> (Vec<String>, bool) {
        let bad_part = |link: &Link<'_>| {
            let is_bad =
                |at: &usize| outliers.parts.get(*at).is_some_and(|part| part.is_bad() && part.is_named_by(test));
            let part = link.part.filter(is_bad);
            (part.is_some() || link.stands_out).then_some(part)
        };
        let centre = |links: &[&Link<'_>]| median(&by_flow(links)).ok();
        let of_good = |links: &[&Link<'_>]| {
            let good: Vec<&Link<'_>> = links.iter().copied().filter(|link| bad_part(link).is_none()).collect();
            Some(centre(&good)?).filter(|_| good.len() >= FEWEST_LINKS)
        };
        // The loss of good peers that have it is its effect. Without good ones that lack it, the centre is what those reach.
        let with_it = of_good(&[&*sides.own, &*sides.too].concat());
        let on_good = with_it.map(|with_it| (of_good(&sides.free).unwrap_or(0.0) - with_it).max(0.0));
        let most = [on_good, self.finding.observed.as_ref().and_then(Observation::takes_at_most)];
        let most = most.into_iter().flatten().fold(f64::INFINITY, f64::min);
        // By part, with the number of its links affected; links that stand out by themselves form one group.
        let mut bad: BTreeMap<Option<usize>, (usize, Vec<&Link<'_>>)> = BTreeMap::new();
        for (is_own, links) in [(true, &sides.own), (false, &sides.too), (false, &sides.free)] {
            for &link in links {
                let Some(part) = bad_part(link) else { continue };
                let (on, all) = bad.entry(part).or_default();
                *on += usize::from(is_own);
                all.push(link);
            }
        }
        let is_cause = |(on, all): &(usize, Vec<&Link<'_>>)| {
            let effect = centre(all).map_or(0.0, |centre| -centre);
            2 * on >= all.len() && most >= HALF * effect
        };
        let of_parts: Vec<Option<usize>> =
            bad.iter().filter(|(_, links)| is_cause(links)).map(|(part, _)| *part).collect();
        let names = of_parts.iter().filter_map(|part| Some(outliers.parts.get((*part)?)?.name.to_owned())).collect();
        (names, bad.is_empty() || !of_parts.is_empty())
    }

    fn touches(&self, there: &Where<'_>, link: &Link<'_>) -> bool {
        let Some(row) = link.row else { return false };
        let flow = &link.result.case.flow;
        self.is(there, link, (&row.src_host, flow.from.rail), &row.src_device, row.src_gpu)
            || self.is(there, link, (&row.dst_host, flow.to.rail), &row.dst_device, row.dst_gpu)
    }

    /// A case that failed before it opened devices has none: then those that others opened there or that the plan
    /// assigns count, or any where neither is known.
    fn is(
        &self,
        Where(there): &Where<'_>,
        link: &Link<'_>,
        (host, rail): (&str, u32),
        device: &str,
        gpu: Option<u32>,
    ) -> bool {
        let Some(devices) = there.get(host) else { return false };
        if devices.is_empty() || gpu.is_some_and(|gpu| devices.contains(&&*format!("GPU {gpu}"))) {
            return true;
        }
        let tcp = link.result.case.cell.transport == Transport::Tcp;
        let planned = || {
            let of = self.plan.hosts.iter().find(|one| one.name == host)?;
            let list = if tcp { &of.tcp } else { &of.devices };
            list.get(rail as usize).map(String::as_str)
        };
        let opened = || self.opened.get(&(host, rail, tcp)).copied();
        let device = Some(device).filter(|device| !device.is_empty()).or_else(opened).or_else(planned);
        match device {
            Some(device) => devices.iter().any(|named| self.names(named, device)),
            None => !tcp && link.value.is_none(),
        }
    }

    /// Whether a finding's device or port is this one: `mlx5_0` is port 1, `mlx5_0:2` port 2.
    fn names(&self, named: &str, device: &str) -> bool {
        let port = device.strip_suffix(":1").unwrap_or(device);
        named == port || !self.exact && port.split_once(':').is_some_and(|(device, _)| device == named)
    }
}

/// `is 92.6 % of the ceiling, elsewhere 98.4 %`, if links here are worse by `least` percent and beyond chance.
///
/// With `alone` it suffices that they stand out among their peers.
fn slower(metric: Metric, (here, elsewhere): (&[&Link<'_>], &[&Link<'_>]), least: f64, alone: bool) -> Option<String> {
    let (mine, theirs) = (by_flow(here), by_flow(elsewhere));
    let difference = median(&mine).ok()? - median(&theirs).ok()?;
    let loss = if metric.better() == Better::Higher { -difference.exp_m1() } else { (-difference).exp_m1() };
    let chance = mann_whitney(&mine, &theirs).ok()?.less;
    let beyond_chance = chance <= BY_CHANCE + 1e-9 || alone && stand_out(here, elsewhere);
    if 100.0 * loss < least || !beyond_chance {
        return None;
    }
    let of_ceiling = |row: &Row| Some(row.value? / row.ceiling?);
    let (mine, theirs) = (cells(here, of_ceiling), cells(elsewhere, of_ceiling));
    // At the size that fills the link best elsewhere: small ones are far from the ceiling everywhere.
    let both = theirs.into_iter().filter_map(|(cell, theirs)| Some((*mine.get(&cell)?, theirs)));
    let told = |(mine, theirs)| format!("is {} of the ceiling, elsewhere {}", share(mine), share(theirs));
    let ratio = if metric.better() == Better::Higher { difference.exp() } else { (-difference).exp() };
    let best = both.max_by(|a, b| a.1.total_cmp(&b.1));
    Some(best.map_or_else(|| format!("is {} of that of others", share(ratio)), told))
}

/// Whether every link here stands out below its peers, and few do elsewhere: one GPU of a host is too few for a test of
/// ranks, so its distance is compared with the spread of the others.
fn stand_out(here: &[&Link<'_>], elsewhere: &[&Link<'_>]) -> bool {
    let rate = |links: &[&Link<'_>]| {
        let far = links.iter().filter_map(|link| Some(-link.deviation? > link.level?.threshold));
        let far: Vec<bool> = far.collect();
        far.iter().filter(|far| **far).count() as f64 / far.len().max(1) as f64
    };
    rate(here) >= 1.0 && rate(elsewhere) <= MOST / 2.0
}

fn by_flow(links: &[&Link<'_>]) -> Vec<f64> {
    let mut flows: BTreeMap<&Flow, Vec<f64>> = BTreeMap::new();
    for link in links {
        flows.entry(&link.result.case.flow).or_default().extend(link.deviation);
    }
    flows.into_values().filter_map(|all| median(&all).ok()).collect()
}

/// Values differ in size, queue pairs and environment, and are only comparable if these are equal.
type LinkCell<'a> = (Bytes, u32, &'a str);

fn cells<'a>(links: &[&Link<'a>], value: impl Fn(&Row) -> Option<f64>) -> BTreeMap<LinkCell<'a>, f64> {
    let mut all: BTreeMap<LinkCell<'a>, Vec<f64>> = BTreeMap::new();
    for row in links.iter().filter(|link| link.value.is_some()).filter_map(|link| link.row) {
        if let Some(value) = value(row) {
            all.entry((row.size_bytes, row.qps, &row.env)).or_default().push(value);
        }
    }
    all.into_iter().filter_map(|(cell, values)| Some((cell, median(&values).ok()?))).collect()
}

/// `is missing in 3 of 12 cases`, if most links that have it are missing and few elsewhere.
fn missing(Sides { own, too, free }: &Sides<'_, '_>) -> Option<String> {
    let lacks = |link: &&&Link<'_>| link.row.is_none_or(|row| row.value.is_none());
    let rate = |links: &[&Link<'_>]| {
        let mut flows: BTreeMap<&Flow, bool> = BTreeMap::new();
        links.iter().for_each(|link| *flows.entry(&link.result.case.flow).or_default() |= lacks(&link));
        (flows.values().filter(|missing| **missing).count() as f64 / flows.len().max(1) as f64, flows.len())
    };
    let ((mine, links), (peers, of_peers), (others, _)) = (rate(own), rate(too), rate(free));
    let fits = links >= FEWEST_LINKS && mine >= MOST && others <= mine / 2.0 && (of_peers == 0 || peers >= MOST);
    fits.then(|| format!("is missing in {} of {}", own.iter().filter(lacks).count(), count(own.len(), "case")))
}
