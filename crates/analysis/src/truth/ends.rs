//! Objections to a case from the facts of both ends, before a byte is sent.

use railgauge_model::journal::event::{Case, LinkRecord};
use railgauge_wire::Traffic;

use super::Ends;
use crate::{case::Doubt, ceiling::LinkEnd};

/// Share of a port's rate that other traffic may use before the run: file systems and monitoring are below.
const CARRIED: f64 = 0.05;
/// In bits per second, for an unknown rate: the load of monitoring on the slowest of links.
const CARRIED_UNKNOWN: f64 = 8e6;

/// Reasons not to trust any sample of a case: a NIC that was busy before the run had sent anything; and path MTUs that
/// differ, unless the plan sets one (`mtu_named`).
pub(crate) fn known_before(case: &Case, link: &LinkRecord, (from, to): Ends<'_>, mtu_named: bool) -> Vec<Doubt> {
    let ends = [
        (&*case.flow.from.host, &*link.from_device, LinkEnd::find(from, &link.from_device)),
        (&*case.flow.to.host, &*link.to_device, LinkEnd::find(to, &link.to_device)),
    ];
    let mut found: Vec<Doubt> = ends.iter().filter_map(|(host, device, end)| busy(host, device, end)).collect();
    let mtus = ends.each_ref().map(|(_, _, end)| end.port.and_then(|port| port.mtu));
    if let ([Some(near), Some(far)], false) = (mtus, mtu_named)
        && near != far
    {
        let (small, large) = if near < far { (0, 1) } else { (1, 0) };
        let ((host, device, _), (other, ..)) = (&ends[small], &ends[large]);
        let (mtu, possible) = (near.min(far), near.max(far));
        let (host, device, peer) = ((*host).to_owned(), (*device).to_owned(), (*other).to_owned());
        found.push(Doubt::MtuDiffers { host, device, mtu, peer, possible });
    }
    found
}

fn busy(host: &str, device: &str, end: &LinkEnd<'_>) -> Option<Doubt> {
    let port = end.port?;
    let Traffic { received, sent } = port.traffic.or(end.interface.and_then(|interface| interface.traffic))?;
    // An emulated device invents its rate.
    let rate = port.rate_gbps.filter(|_| end.device.is_some_and(|device| !device.software));
    let most = rate.map_or(CARRIED_UNKNOWN, |rate| rate.bits().0 * CARRIED);
    (received.max(sent).0 > most).then(|| Doubt::Busy {
        host: host.to_owned(),
        device: device.to_owned(),
        sent: sent.0,
        received: received.0,
    })
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{BitsPerSecond, GigabitsPerSecond, HostFacts, Op, RdmaDevice, RdmaPort};

    use super::{
        super::tests::{case, link},
        *,
    };

    fn host(mtu: u32, gigabits: f64) -> HostFacts {
        let traffic = Some(Traffic { received: BitsPerSecond(1e6), sent: GigabitsPerSecond(gigabits).bits() });
        let port = RdmaPort {
            number: 1,
            mtu: Some(mtu),
            rate_gbps: Some(GigabitsPerSecond(400.0)),
            traffic,
            ..RdmaPort::default()
        };
        let device = RdmaDevice { name: "mlx5_0".into(), ports: vec![port], ..RdmaDevice::default() };
        HostFacts { rdma: vec![device], ..HostFacts::default() }
    }

    fn found(from: &HostFacts, to: &HostFacts, mtu_named: bool) -> Vec<String> {
        let found = known_before(&case(Op::Write), &link(), (Some(from), Some(to)), mtu_named);
        found.iter().map(Doubt::to_string).collect()
    }

    #[test]
    fn a_nic_that_is_busy_before_the_run_is_named() {
        assert_eq!(found(&host(4096, 1.0), &host(4096, 19.0), false), Vec::<String>::new());
        let busy = found(&host(4096, 1.0), &host(4096, 21.0), false);
        assert!(matches!(&busy[..], [one] if one.starts_with("gpu02: mlx5_0 was busy")), "{busy:?}");
    }

    #[test]
    fn the_end_with_the_smaller_mtu_is_named_unless_the_plan_means_it() {
        let doubts = found(&host(1024, 0.0), &host(4096, 0.0), false);
        assert!(matches!(&doubts[..], [one] if one.starts_with("gpu01: the path MTU of mlx5_0 is 1024")), "{doubts:?}");
        assert_eq!(found(&host(1024, 0.0), &host(4096, 0.0), true), Vec::<String>::new());
        assert_eq!(found(&host(1024, 0.0), &host(1024, 0.0), false), Vec::<String>::new());
    }
}
