use railgauge_model::plan::model::RateLimit;
use railgauge_wire::{BitsPerSecond, Failure, GigabitsPerSecond, Kind, Stage, remedy};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// Unlimited if `None`.
    pub rate_limit: Option<RateLimit>,
    /// Whether its link survives interruptions as those of jobs do.
    pub rides_out: bool,
}

/// The rate of each of this many queue pairs or streams, for a limit of the flow and ports of this rate; `None` if unlimited.
///
/// # Errors
/// A share of an unknown rate.
pub(super) fn of_each(
    limit: Option<RateLimit>,
    ports: Option<GigabitsPerSecond>,
    qps: u32,
) -> Result<Option<BitsPerSecond>, Failure> {
    let all = match (limit, ports) {
        (None, _) => return Ok(None),
        (Some(RateLimit::Rate(rate)), _) => rate,
        (Some(RateLimit::Percent(percent)), Some(ports)) => GigabitsPerSecond(ports.0 * percent / 100.0),
        (Some(RateLimit::Percent(percent)), None) => {
            let cause = format!("{percent} % of the rate of its ports is unknown: they do not report it");
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::RATE_FOR_SHARE));
        }
    };
    Ok(Some(BitsPerSecond(all.0 * 1e9 / f64::from(qps.max(1)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_flow_may_send_is_divided_among_its_queue_pairs() {
        let gbps = |rate| Some(GigabitsPerSecond(rate));
        let each = |limit, ports, qps| of_each(limit, ports, qps).map(|rate| rate.map(|rate| rate.0)).map_err(drop);
        assert_eq!(each(None, gbps(100.0), 1), Ok(None));
        assert_eq!(each(Some(RateLimit::Rate(GigabitsPerSecond(10.0))), None, 4), Ok(Some(2.5e9)));
        assert_eq!(each(Some(RateLimit::Percent(50.0)), gbps(400.0), 2), Ok(Some(100e9)));
        let unknown = of_each(Some(RateLimit::Percent(50.0)), None, 2).unwrap_err();
        // The limit is a test's or the soak's.
        assert!(unknown.remedy.is_some_and(|remedy| !remedy.to_string().contains("soak")));
    }
}
