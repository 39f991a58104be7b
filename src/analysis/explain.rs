//! Which results a finding of the preflight probably explains. A finding fits what was seen if results of its hosts and devices
//! are worse than the same measurements elsewhere, beyond chance and in the direction in which the check works. A host has it too
//! if the same check found something of comparable size there, whatever the value. Where every host has it there is nothing to compare
//! with, and it explains nothing. Where something of a test is bad, it fits only what it is on and what it can take as much from: its own
//! value bounds that, and so do good peers that have it too. It says what coincides; whether one is the cause of the other is for the
//! reader.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::{
    plan::{Plan, hostlist},
    schedule::Flow,
};
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
use crate::preflight::{CHECKS, Finding, Observation, Rule, Severity, Spoils, Subject};

/// Smallest loss that is told, in percent, where the plan does not look for larger ones only.
const LEAST_PERCENT: f64 = 2.0;

/// Probability of a loss by chance (Mann & Whitney, one-sided, over links) below which it is told. Three links here and three
/// elsewhere, as a host of four has, can show no less.
const BY_CHANCE: f64 = 0.05;

/// Share of a finding's links without a value from which on it may be why, if elsewhere at most half as large a share has
/// none: what keeps a host from measuring keeps most of its links from it.
const MOST: f64 = 0.5;

/// Links without a value from which on they speak of the end that they share: of one link either end may be why.
const FEWEST_LINKS: usize = 2;

/// Share of an effect that a cause must be able to take.
const HALF: f64 = 0.5;

#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub test: String,
    /// Names of the bad parts that it may be the cause of; empty where no part of the test is bad.
    pub parts: Vec<String>,
    pub words: String,
}

/// What each finding fits, by test; empty if nothing, or if there are no peers to compare with.
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

/// Whether findings of this kind may change a row's value.
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

/// The devices that cases opened, by host, rail and whether they are network interfaces.
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

/// Devices by host; none of a host that is meant as a whole.
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
    /// Whether it is about ports; else about all ports of the devices that it names.
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
        // Of two ends of a link either may be why it is slow; a GPU by itself has no other end, and neither has a NIC.
        let alone = matches!(rule.subject, Subject::Gpu | Subject::Nic)
            && finding.severity > Severity::Notice
            && own.iter().all(|link| link.result.case.cell.transport.is_within_host());
        let least = self.plan.localise.least_percent.max(LEAST_PERCENT);
        let slower = spoilt.then(|| slower(test.metric, (own, free), least, alone)).flatten();
        let (parts, is_cause) = self.causes(test.test, &sides, outliers);
        let slower = slower.filter(|_| is_cause);
        // What only slows things down leaves no case without a value.
        let fatal = finding.severity == Severity::Failure;
        let missing = fatal.then(|| missing(&sides)).flatten();
        let said: Vec<String> = [slower, missing].into_iter().flatten().collect();
        let hosts = hostlist::fold(finding.hosts.iter().map(String::as_str));
        // Of a host with eight GPUs it is one that is meant.
        let place = match rule.subject {
            Subject::Gpu if !finding.devices.is_empty() => format!("{} of {hosts}", finding.devices.join(", ")),
            _ => hosts,
        };
        let words = || format!("{}: {} of {place} {}", test.test, test.metric.name(), said.join("; "));
        (!said.is_empty()).then(|| Fit { test: test.test.to_owned(), words: words(), parts })
    }

    /// The bad parts of a test that it may explain, and whether it may explain anything: one of these, links that stand out by
    /// themselves, or, where nothing is bad, the difference that it makes.
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
        // What peers that are good and have it too lose is what it takes. Without good ones that lack it the centre is what these reach.
        let with_it = of_good(&[&*sides.own, &*sides.too].concat());
        let on_good = with_it.map(|with_it| (of_good(&sides.free).unwrap_or(0.0) - with_it).max(0.0));
        let most = [on_good, self.finding.observed.as_ref().and_then(Observation::takes_at_most)];
        let most = most.into_iter().flatten().fold(f64::INFINITY, f64::min);
        // By part, with how many of its links it is on; links that stand out by themselves are one group.
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

    /// Whether one of the ends of a link is there.
    fn touches(&self, there: &Where<'_>, link: &Link<'_>) -> bool {
        let Some(row) = link.row else { return false };
        let flow = &link.result.case.flow;
        self.is(there, link, (&row.src_host, flow.from.rail), &row.src_device, row.src_gpu)
            || self.is(there, link, (&row.dst_host, flow.to.rail), &row.dst_device, row.dst_gpu)
    }

    /// Whether an end is there. A case that failed before its devices were opened has none: it is about those that others
    /// opened there or that the plan gives the host on its rail, or about any where neither is known.
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

    /// Whether a finding that names a device or port is about this one: `mlx5_0` is port 1, `mlx5_0:2` port 2.
    fn names(&self, named: &str, device: &str) -> bool {
        let port = device.strip_suffix(":1").unwrap_or(device);
        named == port || !self.exact && port.split_once(':').is_some_and(|(device, _)| device == named)
    }
}

/// `is 92.6 % of the ceiling, elsewhere 98.4 %`, if links here are worse than elsewhere by `least` percent and beyond chance.
///
/// With `alone` it is enough that these stand out among their peers.
fn slower(metric: Metric, (here, elsewhere): (&[&Link<'_>], &[&Link<'_>]), least: f64, alone: bool) -> Option<String> {
    let (mine, theirs) = (by_flow(here), by_flow(elsewhere));
    // Negative where worse, for every metric.
    let difference = median(&mine).ok()? - median(&theirs).ok()?;
    let loss = if metric.better() == Better::Higher { -difference.exp_m1() } else { (-difference).exp_m1() };
    let chance = mann_whitney(&mine, &theirs).ok()?.p.less;
    let beyond_chance = chance <= BY_CHANCE + 1e-9 || alone && stand_out(here, elsewhere);
    if 100.0 * loss < least || !beyond_chance {
        return None;
    }
    let of_ceiling = |row: &Row| Some(row.value? / row.ceiling?);
    let (mine, theirs) = (cells(here, of_ceiling), cells(elsewhere, of_ceiling));
    // Told of the size that fills the link best elsewhere: small ones are far from the ceiling everywhere.
    let both = theirs.into_iter().filter_map(|(cell, theirs)| Some((*mine.get(&cell)?, theirs)));
    let told = |(mine, theirs)| format!("is {} of the ceiling, elsewhere {}", share(mine), share(theirs));
    let ratio = if metric.better() == Better::Higher { difference.exp() } else { (-difference).exp() };
    let best = both.max_by(|a, b| a.1.total_cmp(&b.1));
    Some(best.map_or_else(|| format!("is {} of that of others", share(ratio)), told))
}

/// Whether every link here is worse than its peers by more than stands out, and few are elsewhere: one GPU of a host is too few for a
/// test of ranks, and its distance from the others is judged against their spread.
fn stand_out(here: &[&Link<'_>], elsewhere: &[&Link<'_>]) -> bool {
    let rate = |links: &[&Link<'_>]| {
        let far = links.iter().filter_map(|link| Some(-link.deviation? > link.level?.threshold));
        let far: Vec<bool> = far.collect();
        far.iter().filter(|far| **far).count() as f64 / far.len().max(1) as f64
    };
    rate(here) >= 1.0 && rate(elsewhere) <= MOST / 2.0
}

/// Every link's median distance from the centre over its sizes.
fn by_flow(links: &[&Link<'_>]) -> Vec<f64> {
    let mut flows: BTreeMap<&Flow, Vec<f64>> = BTreeMap::new();
    for link in links {
        flows.entry(&link.result.case.flow).or_default().extend(link.deviation);
    }
    flows.into_values().filter_map(|all| median(&all).ok()).collect()
}

/// What sets values apart that cannot be compared: size, queue pairs, environment.
type LinkCell<'a> = (Bytes, u32, &'a str);

/// The median of each cell, of values that may be trusted.
fn cells<'a>(links: &[&Link<'a>], value: impl Fn(&Row) -> Option<f64>) -> BTreeMap<LinkCell<'a>, f64> {
    let mut all: BTreeMap<LinkCell<'a>, Vec<f64>> = BTreeMap::new();
    for row in links.iter().filter(|link| link.value.is_some()).filter_map(|link| link.row) {
        if let Some(value) = value(row) {
            all.entry((row.size_bytes, row.qps, &row.env)).or_default().push(value);
        }
    }
    all.into_iter().filter_map(|(cell, values)| Some((cell, median(&values).ok()?))).collect()
}

/// `is missing in 3 of 12 cases`, if that happens to most links that have it and to few elsewhere.
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
