//! Which links flows load.

use super::{super::loaded::shares, *};

#[test]
fn flows_of_one_round_add_up_and_rounds_do_not() {
    let rates = [Some(400.0), Some(400.0), None];
    let one: [(f64, &[Link]); 2] = [(200.0, &[0, 1]), (190.0, &[0, 2])];
    let other: [(f64, &[Link]); 1] = [(200.0, &[1])];
    let found = Loaded::of(&rates, 0.9, [one.to_vec(), other.to_vec()]);
    assert_eq!(found.reached_gbps, [390.0, 200.0, 190.0]);
    assert_eq!((found.loaded, found.not_loaded, found.unknown), (vec![0], vec![1], vec![2]));
}

#[test]
fn what_cannot_be_is_not_counted() {
    let flows: [(f64, &[Link]); 3] = [(f64::NAN, &[0]), (f64::INFINITY, &[0]), (100.0, &[7])];
    let found = Loaded::of(&[Some(100.0), Some(-1.0)], 0.0, [flows]);
    assert_eq!((found.loaded.len(), found.not_loaded, found.unknown), (0, vec![0], vec![1]));
}

/// Three flows on a link of 300, one held by a second link at 50: the others share the rest.
#[test]
fn links_are_shared_fairly() {
    let ends: Vec<End> = (0..6).map(|host| End { host, leaf: Some(host / 3), rate_gbps: Some(200.0) }).collect();
    let network =
        Network::new(ends, vec![Some(300.0), Some(50.0)], |_, to| Some(if to == 3 { vec![0, 1] } else { vec![0] }));
    let flows = [(0, 3), (1, 4), (2, 5)];
    assert_eq!(network.alone(0, 3), 50.0);
    assert_eq!(shares(&network, &flows), [50.0, 125.0, 125.0]);
    assert_eq!(shares(&network, &flows[..2]), [50.0, 200.0]);
    assert_eq!(shares(&network, &[]), [0.0; 0]);
}
