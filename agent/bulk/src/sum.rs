//! Reading memory as fast as it goes.

/// Sums that are added up side by side, so that no addition waits for the one before it.
const LANES: usize = 8;

/// The sum of all words: every byte has to be read for it.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<{ 8 * LANES }>();
    let mut sums = [0_u64; LANES];
    for group in words {
        let (group, _) = group.as_chunks::<8>();
        for (sum, word) in sums.iter_mut().zip(group) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    let rest = rest.iter().fold(0_u64, |sum, byte| sum.wrapping_add(u64::from(*byte)));
    sums.into_iter().fold(rest, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sum_is_of_every_byte() {
        let bytes: Vec<u8> = (0..200).collect();
        let (head, tail) = bytes.split_at(192);
        let words = head.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let wanted = words.fold(0, u64::wrapping_add).wrapping_add(tail.iter().map(|byte| u64::from(*byte)).sum());
        assert_eq!(super::sum(&bytes), wanted);
    }
}
