//! The data of a matrix for the page's script: every link with its value and look, in few bytes.

use std::collections::{BTreeMap, HashMap};

use railgauge_analysis::{
    outliers::{Grade, Look},
    words::{brief, change, number},
};

use crate::chart::matrix::{self, Matrix};

const fn letter(look: Look) -> char {
    match look {
        Look::Missing => 'M',
        Look::Doubtful => 'D',
        Look::Worse(Grade::Far) => 'F',
        Look::Worse(Grade::Much) => 'W',
        Look::Worse(Grade::Clear) => 'C',
        Look::Worse(Grade::Little) => 'L',
        Look::Named => 'N',
        Look::Usual => 'U',
        Look::Better => 'B',
    }
}

/// The attribute with all links of a matrix: rows with `;` between them, cells with `,`, each its column in base 36, the letter of its
/// look, `!` where the link goes from the column to the row, its value, and after `/` its difference from the centre, if any.
/// `rail` is the one rail of both ends, if there is one.
pub(in crate::view) fn cells(matrix: &Matrix, rail: Option<u32>) -> String {
    let mut rows: Vec<Vec<(usize, String)>> = vec![Vec::new(); matrix.names.0.len()];
    for cell in &matrix.cells {
        let (row, column) = cell.at;
        let value = cell.value.map_or_else(String::new, number) + &cell.difference.map_or_else(String::new, difference);
        if let Some(row) = rows.get_mut(row) {
            let way = if cell.reversed { "!" } else { "" };
            row.push((column, format!("{}{}{way}{value}", base36(column), letter(cell.look))));
        }
    }
    let row = |mut row: Vec<(usize, String)>| {
        row.sort_by_key(|(column, _)| *column);
        row.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
    };
    let all = rows.into_iter().map(row).collect::<Vec<_>>().join(";");
    let rail = rail.map_or_else(String::new, |rail| format!(" data-rail=\"{rail}\""));
    format!("{rail} data-cells=\"{all}\"")
}

/// Percent of the centre, rounded as in the page's tables: `/-49.8`, `/0.42`, `/4.7x` for a factor.
fn difference(percent: f64) -> String {
    // `change` also returns a factor from twice as much on.
    if percent >= 100.0 {
        return format!("/{}x", brief(1.0 + percent / 100.0));
    }
    format!("/{}", change(percent).trim_end_matches([' ', '%']).replace('−', "-").replace('+', ""))
}

/// The attributes with the first row and column of each block.
pub(in crate::view) fn blocks(matrix: &Matrix, most: usize) -> String {
    let starts = |count: usize, groups: &[matrix::Group]| {
        let starts = matrix::blocks(count, groups, most);
        starts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let rows = starts(matrix.names.0.len(), &matrix.groups.0);
    format!(" data-blocks=\"{rows};{}\"", starts(matrix.names.1.len(), &matrix.groups.1))
}

pub(in crate::view) fn names((rows, columns): (Vec<String>, Vec<String>)) -> (String, String) {
    let list = |names: &[String]| names.iter().map(|name| name.replace('\n', " ")).collect::<Vec<_>>().join("\n");
    let same = rows == columns;
    (list(&rows), if same { String::new() } else { list(&columns) })
}

fn base36(mut number: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// The hosts by group and then in their own order, and where each group begins; no groups without at least two.
pub(in crate::view) fn ordered<'p>(
    groups: &'p BTreeMap<String, Vec<String>>,
    hosts: &'p [String],
) -> (Vec<&'p str>, Vec<matrix::Group>) {
    let of = groups_of(groups, hosts);
    let group = |host: &str| of.get(host).copied().unwrap_or("");
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (at, host) in hosts.iter().enumerate() {
        first.entry(group(host)).or_insert(at);
    }
    let mut order: Vec<&str> = hosts.iter().map(String::as_str).collect();
    order.sort_by_key(|host| first.get(group(host)).copied());
    let starts = order.iter().enumerate().map(|(from, host)| matrix::Group { name: group(host).to_owned(), from });
    let mut starts: Vec<matrix::Group> = starts.collect();
    starts.dedup_by(|next, group| next.name == group.name);
    (order, if starts.len() < 2 { Vec::new() } else { starts })
}

/// The group of each host in a matrix: the smallest of the plan or of the topology's leaf switches with at least two of
/// these hosts and not all of them.
fn groups_of<'p>(groups: &'p BTreeMap<String, Vec<String>>, hosts: &'p [String]) -> HashMap<&'p str, &'p str> {
    let here: std::collections::HashSet<&str> = hosts.iter().map(String::as_str).collect();
    let members = |names: &'p [String]| names.iter().map(String::as_str).filter(|name| here.contains(name));
    let mut found: Vec<(usize, &str, &'p [String])> =
        groups.iter().map(|(name, names)| (members(names).count(), name.as_str(), names.as_slice())).collect();
    found.retain(|(size, ..)| (2..hosts.len()).contains(size));
    found.sort_unstable();
    let mut of = HashMap::new();
    for (_, group, names) in found {
        members(names).for_each(|host| {
            of.entry(host).or_insert(group);
        });
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_belong_to_their_smallest_group() {
        let names = |range: std::ops::Range<usize>| range.map(|n| format!("h{n}")).collect::<Vec<_>>();
        let groups = BTreeMap::from([
            ("all".to_owned(), names(0..8)),
            ("half".to_owned(), names(0..4)),
            ("leaf".to_owned(), names(2..4)),
            ("one".to_owned(), names(5..6)),
        ]);
        let hosts = names(0..8);
        let found = groups_of(&groups, &hosts);
        assert_eq!((found["h0"], found["h3"], found.get("h5"), found.get("h7")), ("half", "leaf", None, None));
    }

    #[test]
    fn differences_are_those_of_the_tables() {
        for (percent, told) in
            [(-49.84, "/-49.8"), (0.423, "/0.42"), (0.0, "/0"), (371.5, "/4.7x"), (-99.97, "/-99.97")]
        {
            assert_eq!(difference(percent), told);
        }
    }

    #[test]
    fn columns_are_in_base_36() {
        assert_eq!([0, 35, 36, 1023].map(base36), ["0", "z", "10", "sf"]);
    }
}
