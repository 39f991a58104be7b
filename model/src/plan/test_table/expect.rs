use railgauge_wire::{Better, Bytes, Family, Metric};

use super::{
    members::Members,
    source::{self, SOURCE},
};
use crate::plan::{
    At, Expectation, Hosts, Limit, Mistake, Pattern, Rails, Scale, Section, Table,
    format::{keys, one_of},
    grammar::{quantity, sweep},
    model::Written,
    source::Source,
};

fn measured() -> impl Iterator<Item = Metric> {
    Metric::ALL.iter().copied().filter(|metric| metric.family() != Family::Imported)
}

pub static EXPECT: Section = Section {
    header: "[[test.expect]]",
    about: "One demand on one metric: exactly one of `at_least`, `at_most`, `percent_of_ceiling`, \
     `within_percent_of_peers` and `within_percent_of_baseline`. It is judged for every row it matches; one that matches no row is never a pass.",
    keys: keys! {
        "metric": Word(|| measured().map(|metric| metric.word()).collect()), Required,
            "A metric that the test measures.";
        "at_least": Quantity, Means("none"),
            "Lower limit with a unit: `\"90 Gb/s\"`, `\"1 Mmsg/s\"`. For metrics where more is better.";
        "at_most": Quantity, Means("none"),
            "Upper limit with a unit: `\"5us\"`, `\"20 ms/GiB\"`. For metrics where less is better.";
        "percent_of_ceiling": Percent(0.1, 100.0), Means("none"),
            "Lower limit in percent of the [ceiling](methods.md#ceilings): a flow at once has its share \
             of it, a sum has that of its NICs. Bandwidths only.";
        "within_percent_of_peers": Percent(0.1, 100.0), Means("none"),
            "Not worse than the median of comparable links by more than this.";
        "within_percent_of_baseline": Percent(0.1, 100.0), Means("none"),
            "Not worse than the results in the plan's `[baseline]` by more than this.";
        "sizes": SizeRange, Means("all sizes of the test"), "Message sizes, both ends included.";
        "rails": RailList, Means("all rails"), "Rails, counted from 0.";
        "group": Text, Means("all pairs"),
            "Only pairs or collectives within this group. `ingress_bandwidth` and `egress_bandwidth` go by the \
             shared NIC, `total_bandwidth` by all hosts of the round.";
        "source": Table(&SOURCE), Means("none: the limit is your own"),
            "Where and for what the limit was published.";
    },
};

#[derive(Debug)]
pub struct Subject<'a> {
    pub produces: Option<Vec<Metric>>,
    pub sizes: Option<&'a [Bytes]>,
    pub rails: Option<&'a Rails>,
    pub pattern: Option<&'a Pattern>,
    pub members: Option<&'a Members<'a>>,
    pub hosts: &'a Hosts,
    /// Of all groups.
    pub scales: Vec<Scale>,
    pub baseline: bool,
}

const LIMITS: &[&str] =
    &["at_least", "at_most", "percent_of_ceiling", "within_percent_of_peers", "within_percent_of_baseline"];

pub fn read(table: &Table<'_>, subject: &Subject<'_>) -> Option<Expectation> {
    let metric = table.term("metric", |word| measured().find(|metric| metric.word() == word));
    if let (Some(metric), Some(produces)) = (&metric, &subject.produces)
        && !produces.contains(&metric.value)
    {
        let produced: Vec<&str> = produces.iter().map(|metric| metric.word()).collect();
        let message = format!("this test does not measure {}", metric.value);
        table.wrong(metric.span.clone(), message, format!("it measures {}", one_of(&produced)));
    }
    let limit = limit(table, metric.as_ref(), subject);
    let sizes = sizes(table, subject);
    let rails = rails(table, subject);
    let group = group(table, metric.as_ref().map(|metric| metric.value), subject);
    let source = source::read(table);
    let (limit, written) = limit?;
    if let (Some(source), Some(metric)) = (&source, &metric) {
        applies(table, source, metric.value, subject, sizes);
    }
    Some(Expectation {
        metric: metric?.value,
        limit,
        written,
        sizes,
        rails,
        group,
        source,
        line: table.book.line(table.span.start),
    })
}

fn limit(table: &Table<'_>, metric: Option<&At<Metric>>, subject: &Subject<'_>) -> Option<(Limit, Option<Written>)> {
    let given: Vec<_> = LIMITS.iter().filter_map(|name| Some((*name, table.name_span(name)?))).collect();
    let (name, span) = match given.as_slice() {
        [] => {
            let help = format!("add one of {}", LIMITS.join(", "));
            return table.reject(table.span.clone(), "this expectation has no limit", help);
        }
        [one] => one.clone(),
        [first, second, ..] => {
            let message = format!("`{}` and `{}` in one expectation", first.0, second.0);
            let mistake = Mistake::at(second.1.clone(), message).also(first.1.clone(), "the first");
            table.book.add(mistake.help("write one [[test.expect]] for each limit"));
            return None;
        }
    };
    let metric = metric?.value;
    let (wanted, word) = match metric.better() {
        Better::Higher => ("at_least", "higher"),
        Better::Lower => ("at_most", "lower"),
    };
    if (name == "at_least" || name == "at_most") && name != wanted {
        let message = format!("`{name}` on {metric}, for which {word} values are better");
        return table.reject(span, message, format!("write `{wanted}`"));
    }
    match name {
        "percent_of_ceiling" => {
            if !metric.has_ceiling() {
                let message = format!("no ceiling can be computed for {metric}");
                return table.reject(span, message, format!("write `{wanted}` or `within_percent_of_peers`"));
            }
            table.percent(name).map(|at| (Limit::PercentOfCeiling(at.value), None))
        }
        "within_percent_of_peers" => table.percent(name).map(|at| (Limit::WithinPercentOfPeers(at.value), None)),
        "within_percent_of_baseline" => {
            if !subject.baseline {
                let message = format!("`{name}` without a [baseline] in the plan");
                return table.reject(span, message, "point to one: [baseline] file = \"baseline.json\"");
            }
            table.percent(name).map(|at| (Limit::WithinPercentOfBaseline(at.value), None))
        }
        _ => {
            let value = table.parsed(name, |text| quantity::limit(text, metric))?;
            let At { value: (value, written), span, .. } = value;
            if value <= 0.0 {
                return table.reject(
                    span,
                    format!("`{name}` of zero is always or never met"),
                    "give a value above zero",
                );
            }
            let limit = if name == "at_least" { Limit::AtLeast(value) } else { Limit::AtMost(value) };
            Some((limit, Some(written)))
        }
    }
}

fn sizes(table: &Table<'_>, subject: &Subject<'_>) -> Option<(Bytes, Bytes)> {
    let raw = table.raw("sizes")?;
    let range = match raw.value.as_integer() {
        Some(_) => super::sizes::number(table, &raw.value, &raw.span).map(|size| (size, size)),
        None => table.parsed("sizes", sweep::range).map(|at| at.value),
    };
    let (first, last) = range?;
    if let Some(all) = subject.sizes
        && !all.iter().any(|size| (first..=last).contains(size))
    {
        let (low, high) = (all.first().copied().unwrap_or_default(), all.last().copied().unwrap_or_default());
        let message = "no size of the test is in this range";
        table.wrong(raw.span, message, format!("its sizes are from {low} to {high} bytes"));
    }
    Some((first, last))
}

fn rails(table: &Table<'_>, subject: &Subject<'_>) -> Vec<u32> {
    let rails = super::rails::list(table, "rails").unwrap_or_default();
    if let Some(Rails::Only(measured)) = subject.rails {
        for rail in rails.iter().filter(|rail| !measured.contains(&rail.value)) {
            let message = format!("rail {} is not measured by this test", rail.value);
            table.wrong(rail.span.clone(), message, "add it to the test's `rails`");
        }
    }
    rails.into_iter().map(|rail| rail.value).collect()
}

fn group(table: &Table<'_>, metric: Option<Metric>, subject: &Subject<'_>) -> Option<String> {
    let group = table.text("group")?;
    let Some(inside) = subject.hosts.groups.get(&group.value) else {
        subject.hosts.no_group(table.book, &group.value, group.span);
        return None;
    };
    let nothing = subject.members.zip(subject.pattern).and_then(|(members, pattern)| match metric {
        Some(metric) if metric.is_sum() => {
            let words = match metric {
                Metric::IngressBandwidth => "no flow of this test arrives at a host of the group",
                Metric::EgressBandwidth => "no flow of this test leaves from a host of the group",
                _ => "the sum of a round includes every host of the test, and not all of them are in the group",
            };
            (!members.has_sum_in(pattern, metric, inside)).then_some(words)
        }
        _ => (!members.has_pair_in(pattern, inside)).then_some("no pair of this test has both ends in the group"),
    });
    if let Some(nothing) = nothing {
        let message = format!("{nothing} {}", group.value);
        let help = "an expectation that matches nothing can never be met";
        return table.reject(group.span, message, help);
    }
    Some(group.value)
}

/// Notes a limit that does not apply to all values of the test.
fn applies(table: &Table<'_>, source: &Source, metric: Metric, subject: &Subject<'_>, scope: Option<(Bytes, Bytes)>) {
    let is_of = |size: &&Bytes| scope.is_none_or(|(from, to)| (from..=to).contains(size));
    let sizes: Vec<Bytes> = subject.sizes.unwrap_or_default().iter().filter(is_of).copied().collect();
    let misfit = subject.scales.iter().find_map(|scale| source.misfit(metric, *scale, &sizes));
    let Some(misfit) = misfit.or_else(|| source.incomplete(&sizes)) else { return };
    let span = table.name_span("source").unwrap_or(table.span.clone());
    let message = format!("the limit of {} does not apply: it is {misfit}", source.system);
    let help = "such values are not judged (inconclusive): change the test or `sizes`, or set a limit of your own without `source`";
    table.book.note(Mistake::at(span, message).help(help));
}
