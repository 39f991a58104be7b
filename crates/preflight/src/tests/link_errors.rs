use railgauge_model::plan::model::PortTelemetry;
use railgauge_wire::{GigabitsPerSecond, Nanoseconds};

use super::*;

const GUID: &str = "946d:ae03:00f4:2e5a";

/// The graver findings of one host whose port UFM knows with these error rates after so many minutes.
fn found(post_fec: f64, symbols: f64, minutes: u64, gbps: f64) -> Vec<Severity> {
    with(GUID, (post_fec, symbols), minutes, gbps)
}

/// The same where UFM knows the port of this GUID.
fn with(guid: &str, (post_fec, symbols): (f64, f64), minutes: u64, gbps: f64) -> Vec<Severity> {
    let text = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"gpu1\", \"gpu2\"] }\n[[test]]\nop = \"write\"\n\
                metric = \"bandwidth\"\ntransport = \"verbs\"\n";
    let mut plan = railgauge_model::plan::parse("t.toml", text, std::path::Path::new(".")).unwrap().0;
    plan.preflight.ufm_telemetry = vec![PortTelemetry {
        guid: guid.into(),
        port: 1,
        post_fec_ber: Some(post_fec),
        symbol_errors: Some(symbols),
        counted: Nanoseconds::from_secs(60 * minutes),
    }];
    let mut host = host();
    host.rdma[0].guid = Some(GUID.into());
    host.rdma[0].ports[0].number = 1;
    host.rdma[0].ports[0].link_layer = Some("InfiniBand".into());
    host.rdma[0].ports[0].rate_gbps = Some(GigabitsPerSecond(gbps));
    let facts = BTreeMap::from([("gpu1".to_owned(), host)]);
    let all = judge(&plan, &Cluster { facts, clocks: BTreeMap::new() });
    all.into_iter().filter(|one| one.check == "link-errors").map(|one| one.severity).collect()
}

#[test]
fn error_rates_of_ufm_have_three_levels() {
    assert_eq!(found(4.9e-12, 4.9e-15, 125, 400.0), []);
    assert_eq!(found(5e-12, 0.0, 125, 400.0), [Severity::Warning]);
    assert_eq!(found(0.0, 5e-15, 125, 400.0), [Severity::Warning]);
    assert_eq!(found(9.9e-12, 0.0, 125, 400.0), [Severity::Warning]);
    assert_eq!(found(1e-11, 0.0, 125, 400.0), [Severity::Failure]);
    assert_eq!(found(0.0, 1e-14, 125, 400.0), [Severity::Failure]);
}

#[test]
fn a_short_time_and_other_speeds_are_not_judged() {
    for all in [found(1.0, 1.0, 124, 400.0), found(1.0, 1.0, 125, 200.0)] {
        assert!(!all.is_empty() && all.iter().all(|severity| *severity == Severity::Notice), "{all:?}");
    }
}

#[test]
fn a_file_without_any_port_of_the_hosts_is_a_warning() {
    let all = with("946d:ae03:00f4:0000", (0.0, 0.0), 125, 400.0);
    assert!(!all.is_empty() && all.iter().all(|severity| *severity == Severity::Warning), "{all:?}");
}
