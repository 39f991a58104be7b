//! Links that were bad from their first night on: no night of their own tells, others of their kind do.

use std::collections::BTreeMap;

use railgauge_stats::changepoint::{OTHERS, Out, stand_out};

use super::{Alert, Options, Rule, Series, State, Way, date, history::Everything, judge::percent, parts::sign, reason};

/// Fewest nights of a series that is held against others.
const NIGHTS: usize = 3;

/// What series that are held against each other have in common: kind, plan, and class of part.
type Kind<'a> = (String, String, &'a str);

/// Adds an alert to every series whose level is far worse than that of its like in the same nights. A series of which an
/// epoch was declared since it began is as it should be; one that changed has an alert already.
pub(super) fn hold(everything: &Everything, series: &mut [Series], options: &Options) {
    let least = (options.least_percent / 100.0).ln_1p();
    let accepted = options.epochs.iter().map(|(day, _)| *day).max().unwrap_or(i64::MIN);
    let mut kinds: BTreeMap<Kind<'_>, Vec<(usize, bool)>> = BTreeMap::new();
    for (at, (one, collected)) in series.iter().zip(&everything.series).enumerate() {
        let flow = &everything.subjects[collected.subject].flow;
        let hosts = flow.hosts();
        // Two hosts of one named group are another distance apart than two of different groups.
        let inside =
            |group: &Vec<String>| hosts.iter().all(|host| group.iter().any(|member| member.as_str() == &***host));
        let together = collected.part.is_none() && everything.groups.values().any(inside);
        let class = collected.part.as_ref().map_or("pair", |part| part.class());
        if one.alive && one.nights >= NIGHTS && flow.members.is_empty() {
            kinds.entry((one.kind.clone(), one.plan.clone(), class)).or_default().push((at, together));
        }
    }
    for members in kinds.into_values() {
        let level = |&(at, _): &(usize, bool)| sign(series[at].metric) * series[at].centre.ln();
        let mut found: Vec<(usize, Option<Out>, usize)> = Vec::new();
        for side in [true, false] {
            let like: Vec<(usize, bool)> = members.iter().copied().filter(|(_, together)| *together == side).collect();
            // Too few of one distance are held against all.
            let of = if like.len() > OTHERS { &like } else { &members };
            let out = stand_out(&of.iter().map(level).collect::<Vec<f64>>(), least);
            let own = of.iter().zip(out).filter(|((_, together), _)| *together == side);
            found.extend(own.map(|((at, _), out)| (*at, out, of.len() - 1)));
        }
        for (at, out, others) in found {
            let one = &mut series[at];
            let first = one.points.first().map_or(i64::MIN, |(day, _)| *day);
            let open = |alert: &Alert| alert.way == Way::Worse && alert.state == State::Open;
            let Some(out) = out.filter(|_| first >= accepted && !one.alerts.iter().any(open)) else { continue };
            let last = one.points.last().map_or(first, |(day, _)| *day);
            let mut alert = Alert {
                since: date(first),
                day: first,
                raised: date(last),
                rule: Rule::Fellows,
                way: Way::Worse,
                percent: percent(sign(one.metric) * out.effect),
                interval: None,
                strength: out.excess,
                nights: (others, one.nights),
                state: State::Open,
                end: None,
                back: None,
                reason: String::new(),
            };
            alert.reason = reason::alert(&alert);
            one.alerts.push(alert);
        }
    }
}
