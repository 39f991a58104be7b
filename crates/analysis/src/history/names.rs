//! Names of run directories: the shape of those of one kind, and the order of the numbers in them.

/// The name with every number removed, `reports/night-#`: equal for runs of one kind.
pub fn shape(name: &str) -> String {
    let mut shape = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if !c.is_ascii_digit() => shape.push(c),
            _ if shape.ends_with('#') => {}
            _ => shape.push('#'),
        }
    }
    shape
}

/// Sort key for names of one shape: `night-9` comes before `night-10`.
pub fn numbers(name: &str) -> Vec<(usize, &str)> {
    let digits = name.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    digits.map(|number| number.trim_start_matches('0')).map(|number| (number.len(), number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_kind_have_one_shape() {
        assert_eq!(shape("reports/night-041"), "reports/night-#");
        assert_eq!(shape("reports/before-20261121T030405Z"), "reports/before-#T#Z");
        assert_eq!(shape("2026-11-21/ib"), shape("2026-12-01/ib"));
        assert_ne!(shape("2026-11-21/ib"), shape("2026-11-21/tcp"));
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        for (first, second) in
            [("night-9", "night-10"), ("night-009", "night-10"), ("2026-09-30", "2026-10-01"), ("7", "8")]
        {
            assert!(numbers(first) < numbers(second), "{first} and {second}");
        }
        assert_eq!(numbers("night-007"), numbers("night-7"));
    }
}
