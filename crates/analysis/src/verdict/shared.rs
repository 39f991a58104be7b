use std::collections::BTreeSet;

/// The only host that all of several cases share; `None` if they share more or none, as several cases of one pair do.
pub fn only_shared<'c>(cases: impl Iterator<Item = &'c [String]>) -> Option<String> {
    let mut of_all: Option<BTreeSet<&str>> = None;
    let mut any: BTreeSet<&str> = BTreeSet::new();
    for hosts in cases {
        let hosts: BTreeSet<&str> = hosts.iter().map(String::as_str).collect();
        any.extend(&hosts);
        of_all = Some(of_all.map_or_else(|| hosts.clone(), |known| known.intersection(&hosts).copied().collect()));
    }
    let of_all = of_all.unwrap_or_default();
    let only = of_all.first().filter(|_| of_all.len() == 1 && any.len() > 2)?;
    Some((*only).to_owned())
}

#[cfg(test)]
mod tests {
    use super::only_shared;

    #[test]
    fn only_one_host_that_all_share_is_told() {
        let shared = |cases: &[&[&str]]| {
            let cases: Vec<Vec<String>> =
                cases.iter().map(|hosts| hosts.iter().map(ToString::to_string).collect()).collect();
            only_shared(cases.iter().map(Vec::as_slice))
        };
        assert_eq!(shared(&[&["a", "b"], &["c", "a"]]), Some("a".to_owned()));
        let none: [&[&[&str]]; 5] =
            [&[], &[&["a", "b"]], &[&["a", "b"], &["b", "a"]], &[&["a", "b"], &["c", "d"]], &[&["a"], &["a"]]];
        for none in none {
            assert_eq!(shared(none), None, "{none:?}");
        }
        assert_eq!(shared(&[&["a", "b", "c"]]), None);
    }
}
