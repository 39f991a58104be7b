use railgauge_model::plan::model::{Level, Levels, LinkValue, Links, PortTelemetry};

use super::{Need, rule::*};

pub(super) const RULE: Rule = Rule {
    reads: "the file of `ufm_telemetry` in [preflight], by node GUID and port number",
    meaning: "packets are sent again or lost on this link, in bursts that a short test may not meet",
    source: "docs.nvidia.com/networking/display/infinibandclusterbringupprocedure/ufm+telemetry",
    spoils: Spoils::Bandwidth,
    subject: Subject::InfiniBand,
    needs: &[Need::Plan(unknown), Need::Port(|port| port.device.guid.is_some(), "the GUID of its devices")],
    find,
};

/// Lanes of a NIC's port: the facts have its rate alone.
const LANES: f64 = 4.0;

fn unknown(plan: &Plan, _: &str, _: &HostFacts) -> Option<String> {
    plan.preflight.ufm_telemetry.is_empty().then(|| "the plan has no `ufm_telemetry`".to_owned())
}

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let all = &scene.plan.preflight.ufm_telemetry;
    let known: BTreeMap<(&str, u8), &PortTelemetry> = all.iter().map(|one| ((&*one.guid, one.port), one)).collect();
    if known.is_empty() {
        return;
    }
    let of = |port: &Port<'_>| known.get(&(port.device.guid.as_deref().unwrap_or_default(), port.port.number)).copied();
    // A file of another cluster.
    let has_none = !scene.ports().any(|port| of(&port).is_some());
    let (severity, what) = match has_none {
        true => (Severity::Warning, "not judged: UFM's telemetry does not have any port of these hosts"),
        false => (Severity::Notice, "not judged: UFM's telemetry does not have the port"),
    };
    for port in scene.ports().filter(|port| has_none || port.is_infiniband()) {
        match of(&port) {
            None => found.push(port.found(severity, what, remedy::LOOK_AT_CABLE)),
            Some(one) => {
                found.extend(Levels::Nvidia.table().iter().filter_map(|level| of_level(&port, one, level)));
            }
        }
    }
}

fn of_level(port: &Port<'_>, one: &PortTelemetry, level: &Level) -> Option<Found> {
    let (name, value) = match level.of {
        LinkValue::PostFecBer => ("errors after FEC", one.post_fec_ber),
        LinkValue::SymbolErrors => ("symbol errors", one.symbol_errors),
        // One snapshot has no time of them.
        LinkValue::LinkDowns | LinkValue::Outage => return None,
    };
    let Links::InfiniBandLanes(lane) = level.links else { return None };
    let say = |severity, what: String| Some(port.found(severity, what, remedy::LOOK_AT_CABLE));
    if port.port.rate_gbps.is_none_or(|rate| (rate.0 / LANES - lane).abs() >= 1.0) {
        return say(Notice, format!("{name} not judged: no level is published for its rate"));
    }
    let Some(value) = value else { return say(Notice, format!("{name} not judged: UFM has no value")) };
    if one.counted < level.after {
        let minutes = one.counted.seconds() / 60.0;
        let least = level.after.seconds() / 60.0;
        return say(Notice, format!("{name} not judged: counted for {minutes:.0} min, and {least:.0} are needed"));
    }
    let over = |limit: Option<f64>| limit.filter(|limit| value >= *limit);
    let (severity, limit) = match (over(level.error), over(level.warning)) {
        (Some(limit), _) => (Failure, limit),
        (None, Some(limit)) => (Warning, limit),
        (None, None) => return None,
    };
    say(
        severity,
        format!(
            "{value:.1e} {name} per bit; NVIDIA's {} begins at {limit:.0e}",
            if severity == Failure { "error" } else { "warning" }
        ),
    )
}
