//! Whole trees: as few rounds as can be.

use super::{super::cover, *};

fn both(network: &Network, label: &str) -> [usize; 2] {
    [false, true].map(|both_ways| {
        let wanted = Wanted { both_ways, ..wanted() };
        let cover = cover(network, wanted);
        assert_valid(network, &cover);
        assert_eq!(cover.not_loaded, [], "{label}");
        assert_eq!(cover.loaded.len(), network.rates.len(), "{label}");
        assert_eq!(counted(network, wanted, &cover.rounds).len(), network.rates.len(), "{label}");
        cover.rounds.len()
    })
}

#[test]
fn non_blocking_leaves_and_spines_take_one_round_for_each_direction() {
    for (leaves, hosts) in [(2, 4), (3, 4), (4, 4), (5, 4), (7, 3), (8, 8), (9, 6)] {
        let network = two_levels(leaves, hosts, hosts, (200.0, 200.0));
        let found = both(&network, &format!("{leaves} x {hosts}"));
        if leaves * hosts % 2 == 0 {
            assert_eq!(found, [2, 1], "{leaves} x {hosts}");
        } else {
            assert_eq!(found, [3, 2], "{leaves} x {hosts}");
        }
    }
}

#[test]
fn two_hosts_to_one_uplink_take_half_as_many() {
    assert_eq!(both(&two_levels(4, 8, 4, (200.0, 200.0)), "blocking"), [1, 1]);
}

#[test]
fn a_fast_uplink_takes_two_flows_at_once() {
    assert_eq!(both(&two_levels(4, 8, 4, (200.0, 400.0)), "fast"), [2, 1]);
}

/// Odd numbers of leaves and pods too, and 1,024 hosts.
#[test]
fn three_levels_take_one_round_for_each_direction() {
    for (half, pods) in [(2, 4), (4, 3), (4, 5), (4, 8), (8, 5), (8, 16)] {
        assert_eq!(both(&three_levels(half, pods), &format!("{half} x {pods}")), [2, 1], "{half} x {pods}");
    }
}

#[test]
fn a_thousand_hosts_below_sixty_four_leaves_take_as_few() {
    assert_eq!(both(&two_levels(64, 16, 16, (200.0, 200.0)), "64 x 16"), [2, 1]);
}
