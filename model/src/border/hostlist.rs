//! Host names in the field's short form: `gpu[001-032,040],login` (as Slurm, pdsh and ClusterShell write them).

use railgauge_wire::natural;

use super::wrong::Wrong;

/// Hosts one plan may have: a typing error in a range must not fill the memory.
pub const MOST: usize = 65_536;

/// The host names in a list, in order, with duplicates.
///
/// # Errors
/// A name is empty or invalid, a bracket is not closed, a range is reversed, or the list has more than [`MOST`] hosts (found before any
/// name is made).
pub fn expand(text: &str) -> Result<Vec<String>, Wrong> {
    let mut names = Vec::new();
    for (start, item) in items(text) {
        let pieces = pieces(item).map_err(|wrong| wrong.shifted(start))?;
        let count = pieces.iter().try_fold(1_usize, |count, piece| count.checked_mul(piece.count()));
        let at = start..start + item.len();
        if count.and_then(|count| count.checked_add(names.len())).is_none_or(|count| count > MOST) {
            let help = format!("a plan has at most {MOST} hosts: does the range have a digit too many?");
            return Err(Wrong::new(at, format!("`{item}` expands to too many hosts"), help));
        }
        let mut made = vec![String::new()];
        for piece in &pieces {
            made = made.iter().flat_map(|prefix| piece.words().map(move |word| format!("{prefix}{word}"))).collect();
        }
        for name in &made {
            valid(name, &at)?;
        }
        names.append(&mut made);
    }
    Ok(names)
}

/// Host names are passed to other programs, so they must not look like an option or contain shell, path or log syntax.
fn valid(name: &str, at: &std::ops::Range<usize>) -> Result<(), Wrong> {
    let message = match name.chars().find(|c| !c.is_ascii_alphanumeric() && !"._-".contains(*c)) {
        _ if name.is_empty() => "an empty host name".to_owned(),
        Some(' ') => format!("`{name}` contains a space: separate names in a list with commas"),
        Some(letter) => format!("`{name}` is not a host name: it contains {letter:?}"),
        None if name.starts_with('-') => format!("`{name}` is not a host name: it starts with `-`"),
        None if name.len() > LONGEST => format!("a host name of more than {LONGEST} characters"),
        None => return Ok(()),
    };
    Err(Wrong::new(at.clone(), message, "names are letters, digits, `.`, `_` and `-`, such as gpu001 or 10.0.0.7"))
}

/// Characters a host name may have (RFC 1035, section 2.3.4, in text without the final dot).
const LONGEST: usize = 253;

fn items(text: &str) -> Vec<(usize, &str)> {
    let (mut list, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth <= 0 => {
                list.push((start, &text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    list.push((start, &text[start..]));
    list.into_iter().map(|(start, item)| (start + item.len() - item.trim_start().len(), item.trim())).collect()
}

enum Piece<'a> {
    Text(&'a str),
    Choice(Vec<Range>),
}

/// Numbers from first to last, padded with zeros to `width` digits.
struct Range {
    first: u64,
    last: u64,
    width: usize,
}

impl Piece<'_> {
    fn count(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::Choice(ranges) => ranges.iter().fold(0, |count: usize, range| {
                count.saturating_add(usize::try_from(range.last - range.first).unwrap_or(usize::MAX).saturating_add(1))
            }),
        }
    }

    fn words(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Self::Text(text) => Box::new(std::iter::once((*text).to_owned())),
            Self::Choice(ranges) => Box::new(ranges.iter().flat_map(|range| {
                let width = range.width;
                (range.first..=range.last).map(move |number| format!("{number:0width$}"))
            })),
        }
    }
}

fn pieces(item: &str) -> Result<Vec<Piece<'_>>, Wrong> {
    let help = "a range is [FIRST-LAST], several are [1-4,7]: gpu[001-032,040]";
    let (mut list, mut at) = (Vec::new(), 0);
    while let Some(open) = item[at..].find(['[', ']']).map(|open| at + open) {
        if item.as_bytes()[open] == b']' {
            return Err(Wrong::new(open..open + 1, "a `]` without its `[`", help));
        }
        let Some(close) = item[open + 1..].find([']', '[']).map(|close| open + 1 + close) else {
            return Err(Wrong::new(open..item.len(), "a `[` that is not closed", help));
        };
        if item.as_bytes()[close] == b'[' {
            return Err(Wrong::new(close..close + 1, "a `[` inside brackets", help));
        }
        list.push(Piece::Text(&item[at..open]));
        let (mut ranges, mut start) = (Vec::new(), open + 1);
        for text in item[open + 1..close].split(',') {
            ranges.push(range(text).map_err(|wrong| wrong.shifted(start))?);
            start += text.len() + 1;
        }
        list.push(Piece::Choice(ranges));
        at = close + 1;
    }
    list.push(Piece::Text(&item[at..]));
    Ok(list)
}

fn range(text: &str) -> Result<Range, Wrong> {
    let whole = 0..text.len();
    let number = |digits: &str| {
        let fits = !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| digits.parse::<u64>().ok()).flatten().ok_or_else(|| {
            Wrong::new(whole.clone(), format!("`{text}` is not a range of numbers"), "write [7] or [001-032]")
        })
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = Range { first: number(first)?, last: number(last)?, width: first.len() };
    if range.last < range.first {
        return Err(Wrong::new(whole, format!("the range `{text}` is reversed"), format!("write {last}-{first}")));
    }
    let padded = |digits: &str| digits.len() > 1 && digits.starts_with('0');
    if (padded(first) || padded(last)) && first.len() != last.len() {
        let help =
            format!("write both ends with as many digits, such as {first}-{:0width$}", range.last, width = first.len());
        return Err(Wrong::new(whole, format!("the ends of `{text}` are not padded alike"), help));
    }
    Ok(range)
}

/// An ascending run: the first number as written, the first, the last.
type Run<'a> = (&'a str, u64, u64);

/// The short form of names, with runs as ranges. `expand(&fold(names))` returns the names in order.
pub fn fold<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut groups: Vec<(&str, Vec<Run<'_>>)> = Vec::new();
    for name in names {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (stem, number) = name.split_at(name.len() - digits.min(18));
        let Ok(value) = number.parse::<u64>() else {
            groups.push((name, Vec::new()));
            continue;
        };
        match groups.last_mut().filter(|(open, runs)| *open == stem && !runs.is_empty()) {
            None => groups.push((stem, vec![(number, value, value)])),
            Some((_, runs)) => match runs.last_mut() {
                Some((first, _, last))
                    if last.checked_add(1) == Some(value)
                        && (number.len() == first.len() || !(first.starts_with('0') || number.starts_with('0'))) =>
                {
                    *last = value;
                }
                _ => runs.push((number, value, value)),
            },
        }
    }
    let words = groups.iter().map(|(stem, runs)| {
        let range = |(first, from, to): &Run<'_>| match from == to {
            true => (*first).to_owned(),
            false => format!("{first}-{to:0width$}", width = first.len()),
        };
        match runs.as_slice() {
            [] => (*stem).to_owned(),
            [(first, from, to)] if from == to => format!("{stem}{first}"),
            runs => format!("{stem}[{}]", runs.iter().map(range).collect::<Vec<_>>().join(",")),
        }
    });
    words.collect::<Vec<_>>().join(",")
}

/// [`fold`] for readers: in natural order, `n[1-12]` for names that come as `n1, n10, n11, n12, n2, …`.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    natural::sort(&mut names);
    fold(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_expanded_in_order() {
        assert_eq!(expand("gpu[001-003,040]").unwrap(), ["gpu001", "gpu002", "gpu003", "gpu040"]);
        assert_eq!(expand("a[9-11]").unwrap(), ["a9", "a10", "a11"]);
        assert_eq!(expand("r[1-2]n[1-2].x, login").unwrap(), ["r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x", "login"]);
        assert_eq!(expand("10.0.0.[7-8]").unwrap(), ["10.0.0.7", "10.0.0.8"]);
    }

    #[test]
    fn readers_get_names_in_natural_order() {
        assert_eq!(listed(["n1", "n10", "n2", "a3", "n11"]), "a3,n[1-2,10-11]");
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        let at = |text: &str| expand(text).unwrap_err().at;
        assert_eq!(at("a,,b"), 2..2);
        assert_eq!(at("a[1-2"), 1..5);
        assert_eq!(at("x, a[1-3,5-4]"), 9..12);
        assert_eq!(at("a]"), 1..2);
        for text in
            ["", " ", ",", "a,", "a b", "-a", "a[]", "a[1-]", "a[x]", "a[01-3]", "a[1-010]", "é", "a[[1]]", "a/b"]
        {
            assert!(expand(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_expanded() {
        for text in ["a[1-999999999]", "a[0-999999999999999999]", "a[1-999]b[1-999]", "a[1-99]b[1-99]c[1-99]d[1-99]"] {
            assert!(expand(text).unwrap_err().message.contains("too many"), "{text}");
        }
    }

    #[test]
    fn ten_thousand_hosts_are_a_list_like_any_other() {
        let names = expand("gpu[00001-10000]").unwrap();
        assert_eq!(names.len(), 10_000);
        assert_eq!(fold(names.iter().map(String::as_str)), "gpu[00001-10000]");
        let one_by_one = names.join(",");
        assert_eq!(expand(&one_by_one).unwrap(), names);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = expand(&text);
        }

        #[test]
        fn no_near_miss_panics(text in "[a0-9,\\[\\] -]{0,24}") {
            let _ = expand(&text);
        }

        #[test]
        fn folding_and_expanding_round_trips(names in prop::collection::vec("[a-c]{0,2}[0-9]{0,3}(-[0-2]{1,2})?", 1..40)) {
            let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty() && !name.starts_with('-')).collect();
            prop_assume!(!names.is_empty());
            let text = fold(names.iter().map(String::as_str));
            prop_assert_eq!(expand(&text).unwrap(), names, "{}", text);
        }
    }
}
