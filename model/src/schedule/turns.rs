use super::draw;

/// The order in which repeat number `repeat` measures `count` values. Each two repeats share a random order, once forwards and once
/// backwards: over both, linear drift cancels in differences of two values, and no value is always first.
pub fn turns(count: usize, repeat: u32, seed: u64) -> Vec<usize> {
    let mut order = draw::distinct(count, count, seed.wrapping_add(u64::from(repeat / 2)));
    if repeat % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_drift_is_in_no_difference_of_two_values() {
        for seed in 0..20 {
            let mut places = [0; 5];
            for repeat in 0..4 {
                let order = turns(5, repeat, seed);
                order.iter().zip(0..).for_each(|(value, place)| places[*value] += place);
            }
            assert_eq!(places, [8; 5], "{seed}");
        }
        let first: Vec<usize> = (0..20).map(|seed| turns(5, 0, seed)[0]).collect();
        assert!(first.iter().any(|value| *value != first[0]), "one value always comes first: {first:?}");
    }
}
