//! Flows of an `all_to_all_v` that were also measured alone, and what sharing a port makes of them.

use railgauge_model::{journal::event::FlowAccount, plan::traffic::Matrix};
use railgauge_wire::{Bytes, CollectiveMeasurement};

/// The slowest compared with alone first. `ports`: host and device of each rank. `blocks`: elements of `width` bytes.
pub(super) fn flows(
    ports: &[(&str, &str)],
    blocks: &Matrix,
    width: Bytes,
    accounts: &[CollectiveMeasurement],
) -> Vec<FlowAccount> {
    let received = accounts.iter().enumerate().flat_map(|(to, account)| account.flows.iter().map(move |one| (to, one)));
    let account = |(to, times): (usize, &railgauge_wire::FlowTimes)| {
        let from = times.from as usize;
        let own = blocks.get(from)?.get(to).copied().filter(|own| *own > 0)?;
        Some(FlowAccount {
            from: times.from,
            to: u32::try_from(to).ok()?,
            bytes: width * own,
            together: times.together,
            alone: times.alone,
            share: busiest(ports, blocks, (from, to)) as f64 / own as f64,
        })
    };
    let mut flows: Vec<FlowAccount> = received.filter_map(account).collect();
    flows.sort_by(|a, b| b.over_alone().total_cmp(&a.over_alone()));
    flows
}

/// What the sender's port sends in a round, or the receiver's receives, if that is more. Within a host no port carries a flow: then it is
/// what the rank itself sends or receives.
fn busiest(ports: &[(&str, &str)], blocks: &Matrix, (from, to): (usize, usize)) -> u64 {
    let apart = |a: usize, b: usize| ports[a].0 != ports[b].0;
    let leaves = apart(from, to);
    let at = |end: usize| (0..blocks.len()).filter(move |rank| *rank == end || leaves && ports[*rank] == ports[end]);
    let counted = |a: usize, b: usize| if !leaves || apart(a, b) { blocks[a][b] } else { 0 };
    let sent = at(from).map(|rank| (0..blocks.len()).map(|other| counted(rank, other)).sum::<u64>()).sum::<u64>();
    let received = at(to).map(|rank| (0..blocks.len()).map(|other| counted(other, rank)).sum::<u64>()).sum();
    sent.max(received)
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{FlowTimes, Nanoseconds};

    use super::*;

    fn shares(ports: &[(&str, &str)], blocks: &Matrix, flows: &[(u32, usize)]) -> Vec<(u32, u32, u64, f64)> {
        let mut accounts = vec![CollectiveMeasurement::default(); blocks.len()];
        for (from, to) in flows {
            let times = FlowTimes { from: *from, together: Nanoseconds(30), alone: Nanoseconds(10) };
            accounts[*to].flows.push(times);
        }
        let found = super::flows(ports, blocks, Bytes(4), &accounts);
        assert!(found.iter().all(|flow| (flow.over_alone() - 300.0).abs() < 1e-9));
        found.iter().map(|flow| (flow.from, flow.to, flow.bytes.0, flow.share)).collect()
    }

    #[test]
    fn the_busier_port_of_a_flow_is_shared() {
        let blocks = vec![vec![0, 10, 30], vec![0, 0, 10], vec![5, 0, 0]];
        let ports = [("a", "eth0"), ("b", "eth0"), ("c", "eth0")];
        // Rank 0 sends 40; rank 2 receives 40.
        let wanted = [(2, 0, 20, 1.0), (0, 1, 40, 4.0), (1, 2, 40, 4.0)];
        assert_eq!(shares(&ports, &blocks, &[(2, 0), (0, 1), (1, 2)]), wanted);
        assert_eq!(shares(&ports, &blocks, &[(1, 0)]), [], "nothing was sent");
    }

    #[test]
    fn ranks_of_a_host_share_its_port_only_to_other_hosts() {
        let blocks = vec![vec![0, 100, 10], vec![0, 0, 10], vec![0, 0, 0]];
        let one = [("a", "eth0"), ("a", "eth0"), ("b", "eth0")];
        // To b the port sends 20; within a rank 0 has 110 to send.
        assert_eq!(shares(&one, &blocks, &[(0, 2), (0, 1)]), [(0, 1, 400, 1.1), (0, 2, 40, 2.0)]);
        let two = [("a", "eth0"), ("a", "eth1"), ("b", "eth0")];
        assert_eq!(shares(&two, &blocks, &[(0, 2)]), [(0, 2, 40, 2.0)], "the receiver's port");
    }
}
