//! Names in the order a person expects: `mlx5_2` before `mlx5_10`. Agents number rails in this order, and reports name
//! hosts in it.

/// Sorts names: runs of digits by their value, everything else by its bytes.
pub fn sort<T: AsRef<str>>(names: &mut [T]) {
    names.sort_by_cached_key(|name| (key(name.as_ref()), name.as_ref().to_owned()));
}

/// What names sort by: their words, each with the number behind it.
pub fn key(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let words = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(words);
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(digits);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_value() {
        let mut names = ["mlx5_10", "mlx5_2", "rxe0", "mlx5_bond_0", "mlx4_0", "irdma0"];
        sort(&mut names);
        assert_eq!(names, ["irdma0", "mlx4_0", "mlx5_2", "mlx5_10", "mlx5_bond_0", "rxe0"]);
    }
}
