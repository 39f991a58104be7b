//! The verdicts on ports by the levels that a maker publishes: from an error on they fail, from a warning on they are to be investigated,
//! which is neither a pass nor a fail.

use railgauge_model::plan::model::LinkValue;
use railgauge_wire::remedy;

use super::{
    Tally, Verdict,
    soak_events::{of_counts, verdict},
};
use crate::{
    reason::{Id, Reason, Reasons, Value},
    soak::levels::{OfLevel, PortValue},
    words::{count, number},
};

pub(super) fn judge(level: &OfLevel) -> Verdict {
    let OfLevel { of, warning, error, source, ports, judged, unjudged } = level;
    let from =
        |limit: Option<f64>| judged.iter().take_while(|one| limit.is_some_and(|limit| one.value >= limit)).count();
    let (bad, doubtful) = (from(*error), from(*warning));
    let shown = |value: f64| Value::Shown(value, of.unit(), words(*of, value));
    let at = |id, one: &PortValue| {
        Reason::new(id).about(&one.port).with("observed", shown(one.value)).with("source", *source)
    };
    let mut reason = Reasons::default();
    // A port that was not judged has not passed.
    let status = of_counts(bad, doubtful.max(bad), unjudged.is_empty() && !judged.is_empty());
    let lowest = warning.or(*error).unwrap_or(f64::INFINITY);
    if let Some(worst) = judged.first() {
        let (name, limit) = if bad > 0 { ("error", error) } else { ("warning", warning) };
        reason.push(if bad + doubtful == 0 {
            at(Id::SoakLevelKept, worst).with("required", shown(lowest))
        } else {
            let remedy = match of {
                LinkValue::PostFecBer | LinkValue::SymbolErrors => remedy::LOOK_AT_CABLE,
                LinkValue::LinkDowns | LinkValue::Outage => remedy::LINK_WENT_DOWN,
            };
            at(Id::SoakLevel, worst)
                .with("required", limit.map(shown))
                .with("level", name)
                .with("ports", Some(doubtful.max(bad)).filter(|ports| *ports > 1))
                .remedy(Some(remedy.into()))
        });
    }
    reason.extend(unjudged.first().map(|(port, why)| {
        Reason::new(Id::SoakLevelUnjudged)
            .about(port)
            .with("ports", unjudged.len())
            .with("of", *ports)
            .with("why", Value::data(why))
    }));
    let tally = Tally {
        in_scope: *ports,
        judged: judged.len(),
        violating: bad,
        doubtful: doubtful.saturating_sub(bad),
        missing: unjudged.len(),
        ..Tally::default()
    };
    let demand = format!("{} below {}", name(*of), words(*of, lowest));
    verdict(&format!("levels.{of}"), demand, &count(*ports, "port"), status, reason, tally)
}

const fn name(of: LinkValue) -> &'static str {
    match of {
        LinkValue::PostFecBer => "errors after FEC per bit",
        LinkValue::SymbolErrors => "symbol errors per bit",
        LinkValue::LinkDowns => "link-downs in 24 h",
        LinkValue::Outage => "the longest outage of a port",
    }
}

fn words(of: LinkValue, value: f64) -> String {
    match of {
        LinkValue::PostFecBer | LinkValue::SymbolErrors if value > 0.0 => format!("{value:.1e}"),
        LinkValue::Outage if value.fract() != 0.0 => format!("{} s", number(value)),
        LinkValue::Outage => format!("{value:.0} s"),
        _ => format!("{value:.0}"),
    }
}
