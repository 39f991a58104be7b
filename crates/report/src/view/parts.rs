//! Faulty components: outliers in the order of urgency, and what was searched. Parts, states and order are from
//! [`outliers`](mod@railgauge_analysis::outliers).

use railgauge_analysis::{
    localise::{Alike, Further, Localisation, Named, OpenReason, Standing, Which},
    outliers::{Link, OfTest, Outliers, Part},
    switches::{OnLinks, SuspectLink},
    verdict::{Lack, Verdicts, not_tested},
    words::{between, change, count, number, scatter, share as share_of, size, spread},
};
use railgauge_model::{plan::count::capital, schedule::Flow};
use railgauge_wire::remedy::{self, Entry};
use serde::Serialize;

use super::alike::{groups, name, together};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    pub sentence: String,
    /// Gravest first, each once for all tests.
    pub named: Vec<PartView>,
    pub beside: usize,
    /// Whether nothing stands out, although a fault would have been seen: no bad or suspect part, no link, no second cluster.
    pub nothing: bool,
    /// As the end of a sentence; `None` where all were tested.
    pub untested: Option<String>,
    /// Whether a test's values scatter too much for a bad part to stand out.
    pub noisy: bool,
    pub tests: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PartView {
    pub name: String,
    /// `confirmed`, `intermittent`, `suspect`, `undecided` or `cleared`; with `, waived` where the plan waives it.
    pub standing: String,
    pub cleared: bool,
    #[serde(skip)]
    pub certain: bool,
    #[serde(skip)]
    pub open: bool,
    #[serde(skip)]
    pub waived: bool,
    #[serde(skip)]
    pub names: Vec<String>,
    #[serde(skip)]
    pub hosts: Vec<String>,
    /// What to do about a bad part, or what may settle it. `None` for a link between switches that is not settled.
    #[serde(skip)]
    pub remedy: Option<Entry>,
    pub class: &'static str,
    pub alternatives: Vec<String>,
    /// Name of the test, change with its interval, reason; what the test was searched by, and the standing there if it differs.
    pub evidence: Vec<[String; 4]>,
    pub further: Vec<[String; 3]>,
}

impl PartView {
    pub(super) const fn is_bad(&self) -> bool {
        self.certain && !self.cleared && !self.waived
    }

    pub(super) fn with_alternatives(&self) -> String {
        [std::slice::from_ref(&self.name), self.alternatives.as_slice()].concat().join(" or ")
    }

    pub(super) const fn is_unsettled(&self) -> bool {
        !self.cleared && !self.certain && !self.waived
    }
}

const NAMED: usize = 3;

/// `None` where nothing was searched and nothing stands out. If the soak failed, only tests are called good.
pub(super) fn parts(outliers: &Outliers<'_>, verdicts: &Verdicts, soak_failed: bool) -> Option<Parts> {
    let found = &verdicts.localisation;
    let on_links = verdicts.switches.as_ref().map_or(&[][..], |switches| switches.links.as_slice());
    let of_parts = || verdicts.untested.iter().filter(|one| one.is_of_parts());
    let lacks_hosts = of_parts().any(|one| one.kind == Lack::Hosts);
    let untested = not_tested(of_parts());
    let beside = beside(outliers, on_links).len();
    let is_searched = !found.is_empty() || !outliers.beside().is_empty();
    is_searched.then(|| Parts {
        sentence: sentence(outliers, found, on_links, (untested.as_deref(), lacks_hosts), soak_failed),
        named: named(outliers, on_links),
        beside,
        nothing: outliers.searched
            && !outliers.any()
            && outliers.noisy.is_empty()
            && !lacks_hosts
            && found.iter().all(|test| test.carry_less().is_none())
            && unexplained(found).next().is_none(),
        noisy: !outliers.noisy.is_empty(),
        untested,
        tests: found.iter().map(looked_at).collect(),
    })
}

/// The link between switches that explains a part: all low values of the part passed it, in each test that names the
/// part. A part that was measured again and confirmed is reported by itself if the link was not.
fn explained<'l>(part: &Part<'_>, outliers: &Outliers<'_>, on_links: &'l [OnLinks]) -> Option<&'l SuspectLink> {
    let mut found = None;
    for evidence in &part.evidence {
        let test = &evidence.test.test;
        let on = on_links.iter().find(|on| on.test == *test)?;
        let low = outliers.of(test)?.standing_out().filter(|link| part.speaks(test, link.result.case.id));
        let flows: Vec<_> = low.map(|link| &link.result.case.flow).collect();
        let link = on.passed_by_all(&flows)?;
        // A link explains an end only if others are low through it as well, and all are.
        let hosts = &evidence.named.hosts;
        let is_its = |flow: &Flow| hosts.iter().any(|host| flow.hosts().iter().any(|end| ***end == **host));
        let is_end = matches!(evidence.named.kind, "host" | "nic");
        if is_end && (link.good > 0 || !on.explains_all() || link.passed_by.iter().all(is_its)) {
            return None;
        }
        found = Some(link);
    }
    let is_certain = matches!(part.standing, Standing::Confirmed | Standing::Intermittent);
    found.filter(|link| !is_certain || link.standing == Standing::Confirmed)
}

/// Links that stand out, belong to no part, and passed no link between switches that stands out.
fn beside<'o, 'a>(outliers: &'o Outliers<'a>, on_links: &[OnLinks]) -> Vec<(&'o OfTest<'a>, &'o Link<'a>, usize)> {
    let is_explained = |test: &str, link: &Link<'_>| {
        let mut of_test = on_links.iter().filter(|on| on.test == test);
        of_test.any(|on| on.passed_by_all(&[&link.result.case.flow]).is_some())
    };
    let mut all = outliers.beside();
    all.retain(|(test, link, _)| !is_explained(test.test, link));
    all
}

/// Confirmed first. Boundaries and paths that a link explains are replaced by the link.
fn named(outliers: &Outliers<'_>, on_links: &[OnLinks]) -> Vec<PartView> {
    let told = outliers.parts.iter().filter(|part| !part.is_bad() || explained(part, outliers, on_links).is_none());
    let told: Vec<&Part<'_>> = told.collect();
    let views = groups(&told).into_iter().map(|group| match group.as_slice() {
        [one] => part(one),
        hosts => together(hosts),
    });
    let (certain, open): (Vec<PartView>, Vec<PartView>) = views.partition(|part| part.certain);
    let links = super::switches::open(on_links).into_iter().map(|link| PartView {
        name: link.name,
        standing: link.standing.to_owned(),
        cleared: false,
        certain: link.certain,
        open: link.open,
        waived: false,
        names: Vec::new(),
        hosts: Vec::new(),
        remedy: link.certain.then_some(remedy::CHECK_CABLE),
        class: link.class,
        alternatives: Vec::new(),
        evidence: vec![[link.test, link.change, link.flows, String::new()]],
        further: Vec::new(),
    });
    certain.into_iter().chain(links).chain(open).collect()
}

pub(super) fn part(part: &Part<'_>) -> PartView {
    let mut alternatives: Vec<String> =
        part.evidence.iter().flat_map(|one| &one.named.alternatives).map(|name| name.name.clone()).collect();
    alternatives.sort_unstable();
    alternatives.dedup();
    let further = part.evidence.iter().flat_map(|one| one.named.further.iter().map(|case| further(one.test, case)));
    let evidence = |one: &railgauge_analysis::outliers::Evidence<'_>| {
        // State in one test, where it differs from the overall state.
        let own = if one.named.standing == part.standing {
            String::new()
        } else {
            format!(" ({})", one.named.standing.word())
        };
        let view = one.test.searched().filter(|_| one.test.is_extra);
        let view = view.map_or_else(String::new, |view| format!(", {view}"));
        [one.test.test.clone(), difference(one.named), reason(one.named), view + &own]
    };
    let certain = matches!(part.standing, Standing::Confirmed | Standing::Intermittent);
    // Not every test that names it shows it to be bad. Another program must end before anything else is tried.
    let excused = part.evidence.iter().find(|one| !certain && one.named.open == Some(OpenReason::SharedGpu));
    let shown = excused.or_else(|| part.evidence.iter().find(|one| one.named.standing == part.standing));
    PartView {
        name: part.name.to_owned(),
        standing: part.state(),
        cleared: part.standing == Standing::Cleared,
        certain,
        open: part.standing == Standing::Open,
        waived: part.waived,
        names: vec![part.name.to_owned()],
        hosts: part.evidence.first().map(|one| one.named.hosts.clone()).unwrap_or_default(),
        remedy: shown.map(|one| if certain { one.test.remedy(one.named) } else { one.test.settles(one.named) }),
        class: if part.waived { "not-run" } else { class(part.standing) },
        alternatives,
        evidence: part.evidence.iter().map(evidence).collect(),
        further: further.collect(),
    }
}

fn reason(part: &Named) -> String {
    match &part.meanwhile {
        Some(words) => format!("{}; while it was measured {words}", part.reason),
        None => part.reason.clone(),
    }
}

const fn class(standing: Standing) -> &'static str {
    match standing {
        Standing::Confirmed | Standing::Intermittent => "fail",
        Standing::Suspect | Standing::Open => "inconclusive",
        Standing::Cleared => "not-run",
    }
}

fn further(test: &Localisation, case: &Further) -> [String; 3] {
    let value = case.value.map(|value| format!("{} {}", number(value), test.unit));
    [test.test.clone(), case.link.clone(), value.or(case.error.clone()).unwrap_or_default()]
}

/// `−40.1 % (−41.0 to −39.2 %)`.
fn difference(part: &Named) -> String {
    // Where no group ran, nothing came through: that is not a difference.
    if part.change_percent <= -100.0 || !part.change_percent.is_finite() {
        return "failed".to_owned();
    }
    // Further tests are not selected for being bad: their interval is better if it is known.
    let confirmed = part.confirmation.and_then(|found| Some((found.change_percent, found.interval_percent?)));
    match confirmed.or(part.interval_percent.map(|interval| (part.change_percent, interval))) {
        Some((percent, interval)) => format!("{} ({})", change(percent), between(interval)),
        None => change(part.change_percent),
    }
}

fn of_link(link: &SuspectLink) -> String {
    super::switches::one_of(&link.name, &link.alternatives)
}

fn sentence(
    outliers: &Outliers<'_>,
    found: &[Localisation],
    on_links: &[OnLinks],
    (untested, lacks_hosts): (Option<&str>, bool),
    soak_failed: bool,
) -> String {
    let is_explained = |part: &&Part<'_>| explained(part, outliers, on_links).is_some();
    let with = |wanted: &[Standing]| {
        let named = outliers.parts.iter().filter(|part| wanted.contains(&part.standing) && !part.waived);
        let parts: Vec<&Part<'_>> = named.filter(|part| !part.is_bad() || !is_explained(part)).collect();
        let parts = groups(&parts).into_iter().map(|group| match group.as_slice() {
            [one] => part(one).with_alternatives(),
            all => name(all),
        });
        let links = super::switches::open(on_links);
        let links = links.into_iter().filter(|view| wanted.iter().any(|standing| standing.word() == view.standing));
        parts.chain(links.map(|view| view.name)).collect::<Vec<_>>().join("; ")
    };
    let waived = || {
        let named: Vec<&Part<'_>> = outliers.parts.iter().filter(|part| part.is_bad() && part.waived).collect();
        let told = |group: &Vec<&Part<'_>>| {
            let standing = group.first().map_or("", |part| part.standing.word());
            format!("{} ({standing})", name(group))
        };
        groups(&named).iter().map(told).collect::<Vec<_>>().join("; ")
    };
    let mut words = Vec::new();
    for (standing, what) in [
        (&[Standing::Confirmed][..], "Faulty, confirmed"),
        (&[Standing::Intermittent], "Faulty in part of the results"),
        (&[Standing::Suspect], "Suspect"),
        (&[Standing::Open], "Undecided"),
    ] {
        match with(standing) {
            names if names.is_empty() => {}
            names => words.push(format!("{what}: {names}.")),
        }
    }
    let parts = outliers.parts.iter().filter(|part| part.is_bad() && !part.waived).filter(is_explained).count();
    if parts > 0 {
        let noun = if parts == 1 { "host, path or boundary" } else { "hosts, paths or boundaries" };
        words.push(format!("All low values of {parts} {noun} passed it: they are not listed."));
    }
    match waived() {
        names if names.is_empty() => {}
        names => words.push(format!("Waived by the plan: {names}.")),
    }
    words.extend(unexplained(found));
    words.extend(clusters(outliers, on_links));
    for test in &outliers.noisy {
        let hidden = test.too_noisy.as_ref();
        words.extend(hidden.map(|hidden| format!("Values of {} scatter too much: {hidden}.", test.test)));
    }
    words.extend(carry_less(found));
    let none = words.is_empty();
    words.extend(told_beside(&beside(outliers, on_links), none));
    // A host without any value may be bad.
    let nothing = (words.is_empty() && !(lacks_hosts && outliers.searched)).then(|| refused(outliers, found));
    match nothing {
        Some(None) if soak_failed => {
            words.push(none_stands_out(" in the tests", untested) + " The soak section lists its failures.");
        }
        Some(None) => words.push(none_stands_out("", untested)),
        why => words.extend(why.flatten().into_iter().chain(untested.map(as_sentence))),
    }
    // What all hosts share does not stand out.
    for test in found {
        words.extend(test.across_rails().map(|what| format!("In {} {what}.", test.test)));
        words.extend(on_all_hosts(test));
    }
    for (test, share) in found.iter().filter_map(|test| Some((test, test.short_of_ceiling?))) {
        words.push(format!(
            "Good pairs in {} reach {} of line rate; the plan sets no limit for this.",
            test.test,
            share_of(share)
        ));
    }
    match with(&[Standing::Cleared]) {
        names if names.is_empty() => {}
        names => words.push(format!("Suspected but cleared by a retest: {names}.")),
    }
    words.join(" ")
}

fn none_stands_out(place: &str, untested: Option<&str>) -> String {
    format!("No component stands out{place}{}.", untested.map_or_else(String::new, |what| format!("; {what}")))
}

fn as_sentence(words: &str) -> String {
    capital(words) + "."
}

const PLACES: usize = 5;

fn on_all_hosts(test: &Localisation) -> Option<String> {
    let told = |one: &Alike| format!("{} ({})", one.place, change(one.change_percent));
    let named: Vec<String> = test.alike.iter().take(PLACES).map(told).collect();
    let more = match test.alike.len().saturating_sub(PLACES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "In {}, below the overall median on every host, by design or by a common fault: {}{more}.",
            test.test,
            named.join(", ")
        )
    })
}

fn unexplained(found: &[Localisation]) -> impl Iterator<Item = String> + '_ {
    let words = |test: &Localisation| {
        test.unexplained.clone().into_iter().chain(test.over_time.as_ref().map(ToString::to_string))
    };
    found.iter().flat_map(move |test| words(test).map(|words| format!("In {} {words}.", test.test)).collect::<Vec<_>>())
}

fn clusters(outliers: &Outliers<'_>, on_links: &[OnLinks]) -> Vec<String> {
    let told = outliers.clusters.iter().map(|(test, clusters)| {
        if let Some(unlike) = test.unlike() {
            return format!("In {} {unlike}. Which side is bad is not known.", test.test);
        }
        let on = on_links.iter().find(|on| on.test == test.test && on.explains_all());
        let cause = match on.map(|on| on.standing().map(of_link).collect::<Vec<_>>()) {
            Some(links) => format!("; all low ones passed {}", links.join(", or ")),
            None => "; which part separates them is not known".to_owned(),
        };
        let others = match test.pairs.saturating_sub(clusters.good.n + clusters.bad.n) {
            0 => String::new(),
            others => format!(" apart from {}", count(others, "other")),
        };
        format!(
            "The values of {} fall into two clusters ({} and {}{others}, {} {} at {} and {} at {}){cause}.",
            test.test,
            count(clusters.good.n, test.counted),
            clusters.bad.n,
            number(clusters.good.centre),
            test.unit,
            size(test.size_bytes),
            number(clusters.bad.centre),
            size(test.size_bytes)
        )
    });
    told.collect()
}

fn carry_less(found: &[Localisation]) -> impl Iterator<Item = String> + '_ {
    found.iter().filter_map(|test| Some(format!("In {} some carry {}.", test.test, test.carry_less()?)))
}

/// `None` where one could.
fn refused(outliers: &Outliers<'_>, found: &[Localisation]) -> Option<String> {
    let why = found.iter().find_map(|test| test.remarks.last()).filter(|_| !outliers.searched);
    why.map(|remark| capital(remark) + ".")
}

/// `None` without any.
fn told_beside(links: &[(&OfTest<'_>, &Link<'_>, usize)], none: bool) -> Option<String> {
    if links.is_empty() {
        return None;
    }
    let one = |link: &Link<'_>, test: &str| format!("{} ({test}, {})", link.result.link_name(), link.words());
    let named: Vec<String> = links.iter().take(NAMED).map(|(test, link, _)| one(link, test.test)).collect();
    let more = if links.len() > NAMED { format!(" and {} more", links.len() - NAMED) } else { String::new() };
    let stand = if links.len() == 1 { "stands" } else { "stand" };
    let front = if none { "No host, NIC or switch is suspect, but" } else { "Also," };
    Some(format!("{front} {} {stand} out: {}{more}.", count(links.len(), "link"), named.join("; ")))
}

/// `write-bw: 56 pairs at 1 MiB by bandwidth; good pairs reach 195.4 Gb/s, ±0.60 %`.
fn looked_at(test: &Localisation) -> String {
    let mut words =
        vec![format!("{} at {} by {}", count(test.pairs, test.counted), size(test.size_bytes), test.metric.word())];
    for good in &test.good {
        let which = if good.which == Which::ALL { "good pairs".to_owned() } else { good.which.to_string() };
        let centre = spread(good.centre, Some(good.centre * good.spread_percent / 100.0));
        words.push(format!("{which} reach {centre} {}, {}", test.unit, scatter(good.spread_percent)));
    }
    if test.missing > 0 {
        words.push(format!("{} without a value that may be trusted", test.missing));
    }
    words.extend(test.remarks.iter().cloned());
    format!("{}: {}", test.test, words.join("; "))
}
