use std::collections::{BTreeMap, HashMap, HashSet};

use railgauge_wire::{
    Answer, Ask, Congestion, LinkLayer,
    case::COUNTERS_LIMIT,
    drivers::{REORDERED, congestion, counts_bytes, of_member},
    facts::port_name,
    watch::of_one_queue,
};

use tokio::task::JoinSet;

use super::super::links::Link;
use crate::cluster::Agent;

pub(crate) type Counters = BTreeMap<String, u64>;

/// Current counters of every NIC of these links, each read once; by host and device.
pub(crate) async fn all(links: &[&Link]) -> HashMap<(String, String), Counters> {
    let mut reading = JoinSet::new();
    let mut asked = HashSet::new();
    for link in links.iter().filter(|link| link.record.link_layer != LinkLayer::Loopback) {
        let ends =
            [(&link.from, &link.record.from_device, link.ports.0), (&link.to, &link.record.to_device, link.ports.1)];
        for (agent, device, port) in ends {
            let nic = (agent.host().to_owned(), device.clone());
            if asked.insert(nic.clone()) {
                let agent = agent.clone();
                reading.spawn(async move {
                    let counters = one(&agent, &nic.1, port).await;
                    (nic, counters)
                });
            }
        }
    }
    reading.join_all().await.into_iter().collect()
}

pub(super) async fn one(agent: &Agent, device: &str, port: u8) -> Counters {
    // `mlx5_0:2` is a plan's name of a port; the agent has separate fields.
    let (device, named) = port_name(device);
    let port = named.unwrap_or(port);
    match agent.ask(Ask::Counters { device: device.to_owned(), port }, COUNTERS_LIMIT).await {
        Ok(Answer::Counters(counters)) => counters,
        // A device without counters is not a failure: the check is skipped, and the report says so.
        _ => Counters::new(),
    }
}

/// Differences, without zeros and per-queue statistics. Zeros of byte counters stay: with payload, they show that the counter does not
/// count.
pub(crate) fn difference(before: &Counters, after: &Counters) -> Counters {
    with_zeros(before, after, |_| false)
}

/// Differences where flows compete. Zeros of pauses, marks, notifications and packets out of order also stay, to distinguish ports without
/// any from ports that do not count them.
pub(crate) fn of_congestion(before: &Counters, after: &Counters) -> Counters {
    with_zeros(before, after, |plain| {
        REORDERED.contains(&plain) || congestion(plain).is_some_and(|of| of != Congestion::Discard)
    })
}

/// Keeps zeros of byte counters and of those that `keeps` names.
fn with_zeros(before: &Counters, after: &Counters, keeps: fn(&str) -> bool) -> Counters {
    let moved = |(name, now): (&String, &u64)| {
        let then = *before.get(name)?;
        let delta = since(then, *now)?;
        let plain = of_member(name).map_or(name.as_str(), |(_, plain)| plain);
        ((delta > 0 || counts_bytes(plain) || keeps(plain)) && !of_one_queue(plain)).then(|| (name.clone(), delta))
    };
    after.iter().filter_map(moved).collect()
}

/// Difference of a counter that only increases; 32-bit counters wrap. `None` where it was reset.
fn since(then: u64, now: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match now.checked_sub(then) {
        Some(delta) => Some(delta),
        // Old values just below 2^32 are treated as a wrap, anything else as a restarted driver.
        None if then < WRAP && then > WRAP - WRAP / 4 => Some(now + WRAP - then),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(of: &[(&str, u64)]) -> Counters {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn counters_wrap_reset_and_appear() {
        let before = counters(&[("a", 5), ("wraps", (1 << 32) - 10), ("resets", 700), ("still", 3)]);
        let after = counters(&[("a", 9), ("wraps", 4), ("resets", 2), ("still", 3), ("new", 8)]);
        assert_eq!(difference(&before, &after), counters(&[("a", 4), ("wraps", 14)]));
    }

    #[test]
    fn byte_counters_that_stand_still_are_kept() {
        let still =
            [("counters/port_xmit_data", 7), ("members/eth1/ethtool/tx_bytes_phy", 9), ("netdev/tx_packets", 4)];
        let found = difference(&counters(&still), &counters(&still));
        assert_eq!(found, counters(&[("counters/port_xmit_data", 0), ("members/eth1/ethtool/tx_bytes_phy", 0)]));
    }

    #[test]
    fn pauses_that_stand_still_are_kept_where_flows_compete() {
        let still =
            counters(&[("ethtool/rx_prio3_pause", 7), ("hw_counters/np_cnp_sent", 0), ("netdev/rx_dropped", 4)]);
        assert_eq!(difference(&still, &still), Counters::new());
        let kept = counters(&[("ethtool/rx_prio3_pause", 0), ("hw_counters/np_cnp_sent", 0)]);
        assert_eq!(of_congestion(&still, &still), kept);
    }

    #[test]
    fn queues_are_left_out_and_priorities_kept() {
        assert!(of_one_queue("ethtool/rx12_packets") && of_one_queue("ethtool/tx_queue_0_bytes"));
        let queue = [("members/eth1/ethtool/rx12_packets", 0)];
        assert_eq!(
            difference(&counters(&queue), &counters(&[("members/eth1/ethtool/rx12_packets", 5)])),
            Counters::new()
        );
        assert!(!of_one_queue("ethtool/rx_prio3_pause") && !of_one_queue("hw_counters/rx0"));
    }
}
