//! Faulty components: outliers in the order of urgency, and what was searched. Parts, states and order are from
//! [`outliers`](mod@railgauge_analysis::outliers).

use railgauge_analysis::{
    localise::{Alike, Further, Localisation, Named, OpenReason, Standing, Which},
    outliers::{Outliers, Part},
    reason::Id,
    status::Status,
    switches::{OnLinks, SuspectLink},
    verdict::{Kind, Verdict, Verdicts},
    words::{between, change, count, number, scatter, share as share_of, size, spread},
};
use railgauge_model::schedule::Flow;
use railgauge_wire::remedy::{self, Entry};
use serde::Serialize;

use super::alike::{groups, name};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    /// A suspect is not called faulty.
    pub title: &'static str,
    /// Test and reason of each verdict on components and on links between switches.
    pub reasons: Vec<[String; 2]>,
    /// Gravest first, each once for all tests.
    pub named: Vec<PartView>,
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

impl Parts {
    /// `write-bw: host gpu003 is at 50 % of its peers' bandwidth.`
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.reasons.iter().map(|[test, reason]| format!("{test}: {reason}."))
    }
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

/// `None` where nothing was searched and nothing stands out.
pub(super) fn parts(outliers: &Outliers<'_>, verdicts: &Verdicts) -> Option<Parts> {
    let found = &verdicts.localisation;
    let on_links = verdicts.switches.as_ref().map_or(&[][..], |switches| switches.links.as_slice());
    let is_searched = !found.is_empty() || !outliers.beside().is_empty();
    let named = is_searched.then(|| named(outliers, on_links))?;
    let title = if named.iter().any(PartView::is_bad) {
        "Faulty components"
    } else if named.iter().any(PartView::is_unsettled) {
        "Suspects"
    } else {
        "Outlier check"
    };
    Some(Parts { title, reasons: reasons(verdicts), named, tests: found.iter().map(looked_at).collect() })
}

fn reasons(verdicts: &Verdicts) -> Vec<[String; 2]> {
    let is_of_links = |one: &Verdict| one.reason.iter().any(|reason| reason.id == Id::LinkStandsOut);
    let shown = verdicts.verdicts.iter().filter(|one| one.kind == Kind::Parts || is_of_links(one));
    shown.map(|one| [one.narrowed_test(), one.reason.to_string()]).collect()
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
    let is_certain = part.standing.is_certain();
    found.filter(|link| !is_certain || link.standing == Standing::Confirmed)
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
        certain: link.certain,
        open: link.open,
        remedy: link.certain.then_some(remedy::CHECK_CABLE),
        class: link.class,
        evidence: vec![[link.test, link.change, link.flows, String::new()]],
        ..PartView::default()
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
            format!(" ({})", one.named.standing.words())
        };
        let view = one.test.searched().filter(|_| one.test.is_extra);
        let view = view.map_or_else(String::new, |view| format!(", {view}"));
        [one.test.test.clone(), difference(one.named), reason(one.named), view + &own]
    };
    let certain = part.standing.is_certain();
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
        class: if part.waived { "not-run" } else { part.standing.status().map_or("not-run", Status::word) },
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

const PLACES: usize = 5;

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
    let share =
        test.short_of_ceiling.map(|share| format!("{} of line rate, for which the plan has no limit", share_of(share)));
    words.extend(share);
    // What all hosts share does not stand out.
    let low = |one: &Alike| format!("{} low on every host ({})", one.place, change(one.change_percent));
    words.extend(test.alike.iter().take(PLACES).map(low));
    words.extend(test.across_rails().map(|across| across.to_string()));
    words.extend(test.remarks.iter().cloned());
    format!("{}: {}", test.test, words.join("; "))
}

/// By test their deviations, with the reason of the first.
fn together(hosts: &[&Part<'_>]) -> PartView {
    let views: Vec<PartView> = hosts.iter().map(|host| part(host)).collect();
    let Some(first) = views.first() else { return PartView::default() };
    let of_test = |number: usize, row: &[String; 4]| {
        let [test, _, reason, which] = row;
        let changes = hosts.iter().filter_map(|host| host.evidence.get(number)).map(|one| one.named.change_percent);
        let (some, none): (Vec<f64>, Vec<f64>) = changes.partition(|percent| percent.is_finite() && *percent > -100.0);
        let range = some.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        let mut change = if some.is_empty() { Vec::new() } else { vec![between(range)] };
        if !none.is_empty() {
            change.push(format!("failed: {}", count(none.len(), "host")));
        }
        let example = hosts.first().map_or("", |host| host.name);
        let reason = format!("each of {}; {example}: {reason}", count(hosts.len(), "host"));
        [test.clone(), change.join("; "), reason, which.clone()]
    };
    let evidence = first.evidence.iter().enumerate().map(|(number, row)| of_test(number, row)).collect();
    PartView {
        name: name(hosts),
        names: views.iter().flat_map(|view| view.names.clone()).collect(),
        hosts: views.iter().flat_map(|view| view.hosts.clone()).collect(),
        evidence,
        further: views.iter().flat_map(|view| view.further.clone()).collect(),
        ..first.clone()
    }
}
