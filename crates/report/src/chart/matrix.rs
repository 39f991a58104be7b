//! The pair matrix: rows send, columns receive, a cell is one link.
//!
//! Not plotters: cells of one colour share one path, a tenth of the size of rectangles at 128 hosts, and colours can be classes.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Write,
};

use railgauge_analysis::{
    outliers::{Grade, Look},
    words::short,
};

use super::escape;

pub(crate) const fn class(look: &Look) -> &'static str {
    match look {
        Look::Missing => "m-missing",
        Look::Doubtful => "m-doubtful",
        Look::Worse(Grade::Far) => "m-far",
        Look::Worse(Grade::Much) => "m-much",
        Look::Worse(Grade::Clear) => "m-clear",
        Look::Worse(Grade::Little) => "m-little",
        Look::Named => "m-named",
        Look::Usual => "m-usual",
        Look::Better => "m-better",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub at: (usize, usize),
    pub look: Look,
    pub value: Option<f64>,
    /// Percent of the centre; `None` without one.
    pub difference: Option<f64>,
    pub link: usize,
    pub outlined: bool,
    /// Whether the link goes from the column's place to the row's.
    pub reversed: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Matrix {
    pub names: (Vec<String>, Vec<String>),
    pub bad: (BTreeSet<usize>, BTreeSet<usize>),
    /// Groups of neighbouring rows and of columns; empty without at least two.
    pub groups: (Vec<Group>, Vec<Group>),
    pub cells: Vec<Cell>,
    /// Whether all cells are on or above the diagonal: see [`halved`].
    pub half: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Empty for those without a group.
    pub name: String,
    pub from: usize,
}

/// Smallest side of a cell with its value in it.
const WITH_TEXT: usize = 32;
/// Rows and columns up to which every cell has a tooltip without scripts; otherwise only outlined ones do.
const WITH_TIPS: usize = 24;
/// Height of a line of names.
const NAME: usize = 12;
/// Width shared by the matrices of a test, in units: the page's column.
const WIDTH: usize = 1128;
const GAP: usize = 36;
/// Height that fits a screen with the heads.
const HEIGHT: usize = 760;
/// Smallest and largest side of a cell, in units.
const SIDES: (usize, usize) = (5, 48);
/// Smallest side for which matrices share a row of the page.
const SHARED: usize = 7;

/// First row of each block: the groups, if few enough; otherwise equal runs of neighbours, at most `most`, and never
/// across two groups unless there are more groups than that.
pub(crate) fn blocks(count: usize, groups: &[Group], most: usize) -> Vec<usize> {
    let starts: Vec<usize> = groups.iter().map(|group| group.from).collect();
    if groups.len() > most || groups.len() < 2 {
        let block = count.div_ceil(most).max(1);
        return (0..count).step_by(block).collect();
    }
    // Readers know groups as blocks, but two or three large ones show too little.
    let least = if groups.len() * 4 >= most { count } else { count.div_ceil(most).max(1) };
    let ends = || starts.iter().copied().skip(1).chain([count]);
    let with = |block: usize| -> Vec<usize> {
        starts.iter().zip(ends()).flat_map(|(from, to)| (*from..to).step_by(block)).collect()
    };
    (least..=count.max(least)).map(with).find(|blocks| blocks.len() <= most).unwrap_or(starts)
}

/// If every pair was measured one way only, its half above the diagonal, without the empty first column and last row.
pub(crate) fn halved(matrix: Matrix) -> Matrix {
    let at: BTreeSet<(usize, usize)> = matrix.cells.iter().map(|cell| cell.at).collect();
    let one_way = at.iter().all(|&(row, column)| row != column && !at.contains(&(column, row)));
    let count = matrix.names.0.len();
    if count < 3 || matrix.names.0 != matrix.names.1 || !one_way {
        return matrix;
    }
    let cell = |cell: Cell| {
        let (row, column) = cell.at;
        Cell { at: (row.min(column), row.max(column) - 1), reversed: row > column, ..cell }
    };
    let columns = matrix.groups.1.into_iter().map(|group| Group { from: group.from.saturating_sub(1), ..group });
    Matrix {
        names: (matrix.names.0[..count - 1].to_vec(), matrix.names.1[1..].to_vec()),
        bad: (
            matrix.bad.0.into_iter().filter(|row| row + 1 < count).collect(),
            matrix.bad.1.into_iter().filter_map(|column| column.checked_sub(1)).collect(),
        ),
        groups: (matrix.groups.0.into_iter().filter(|group| group.from + 1 < count).collect(), columns.collect()),
        cells: matrix.cells.into_iter().map(cell).collect(),
        half: true,
    }
}

/// At most `most` rows and columns: larger ones become blocks that look like their worst cell.
pub(crate) fn condense(matrix: Matrix, most: usize) -> Matrix {
    let counts = (matrix.names.0.len(), matrix.names.1.len());
    if counts.0.max(counts.1) <= most {
        return matrix;
    }
    let starts = (blocks(counts.0, &matrix.groups.0, most), blocks(counts.1, &matrix.groups.1, most));
    let names = |names: &[String], starts: &[usize], groups: &[Group]| -> Vec<String> {
        let ends = starts.iter().copied().skip(1).chain([names.len()]);
        let name = |(from, to): (&usize, usize)| {
            // A block that is a whole group has its name.
            let at = groups.iter().position(|group| group.from == *from);
            let next = at.map(|at| groups.get(at + 1).map_or(names.len(), |next| next.from));
            match (at.and_then(|at| groups.get(at)), &names[*from..to]) {
                (Some(group), _) if next == Some(to) && !group.name.is_empty() => group.name.clone(),
                (_, [first, .., last]) => format!("{first} … {last}"),
                (_, names) => names.join(""),
            }
        };
        starts.iter().zip(ends).map(name).collect()
    };
    let place = |starts: &[usize], at: usize| starts.partition_point(|start| *start <= at).saturating_sub(1);
    let names =
        (names(&matrix.names.0, &starts.0, &matrix.groups.0), names(&matrix.names.1, &starts.1, &matrix.groups.1));
    let mut blocks: BTreeMap<(usize, usize), Cell> = BTreeMap::new();
    for mut cell in matrix.cells {
        let at = (place(&starts.0, cell.at.0), place(&starts.1, cell.at.1));
        cell.at = at;
        match blocks.entry(at) {
            Entry::Vacant(empty) => {
                empty.insert(cell);
            }
            Entry::Occupied(mut known) if (!cell.outlined, cell.look) < (!known.get().outlined, known.get().look) => {
                known.insert(cell);
            }
            Entry::Occupied(_) => {}
        }
    }
    let blocked = |places: &BTreeSet<usize>, starts: &[usize]| places.iter().map(|at| place(starts, *at)).collect();
    let grouped = |groups: &[Group], starts: &[usize]| -> Vec<Group> {
        let mut all: Vec<Group> =
            groups.iter().map(|group| Group { from: place(starts, group.from), ..group.clone() }).collect();
        all.dedup_by_key(|group| group.from);
        // A line around every block adds nothing.
        if all.len() == starts.len() { Vec::new() } else { all }
    };
    Matrix {
        names,
        bad: (blocked(&matrix.bad.0, &starts.0), blocked(&matrix.bad.1, &starts.1)),
        groups: (grouped(&matrix.groups.0, &starts.0), grouped(&matrix.groups.1, &starts.1)),
        cells: blocks.into_values().collect(),
        half: false,
    }
}

/// Space for the names of the rows and for those of the columns.
fn margins(matrix: &Matrix) -> (usize, usize) {
    // A character of 11 pixels is about 6.5 wide, a bold one 7.5.
    let wide = |name: &str, bold: bool| name.chars().count() * if bold { 15 } else { 13 } / 2;
    let of = |names: &[String], bad: &BTreeSet<usize>| {
        names.iter().enumerate().map(|(at, name)| wide(name, bad.contains(&at))).max().unwrap_or(0) + 14
    };
    (of(&matrix.names.0, &matrix.bad.0), of(&matrix.names.1, &matrix.bad.1))
}

/// Side of a cell if `panels` matrices share a row, unless that is too small.
fn side(matrix: &Matrix, (left, top): (usize, usize), panels: usize) -> usize {
    let (rows, columns) = (matrix.names.0.len().max(1), matrix.names.1.len().max(1));
    let beside = |n: usize| ((WIDTH + GAP) / n).saturating_sub(GAP + left + 2) / columns;
    let (least, most) = SIDES;
    let shared = (1..=panels.clamp(1, 3)).rev().map(beside).find(|side| *side >= SHARED);
    shared.unwrap_or_else(|| beside(1)).min(HEIGHT.saturating_sub(top) / rows).clamp(least, most)
}

/// With names on both sides, lines between groups, outlines, and texts if there is room. `panels` matrices share the
/// width of the page. `data` are further attributes of the SVG, escaped; `tip` is a link's tooltip.
pub(crate) fn large(matrix: &Matrix, label: &str, panels: usize, data: &str, tip: impl Fn(usize) -> String) -> String {
    let (rows, columns) = (matrix.names.0.len(), matrix.names.1.len());
    let most = rows.max(columns);
    let (left, top) = margins(matrix);
    let cell = side(matrix, (left, top), panels);
    let gap = usize::from(cell > 8);
    let (width, height) = (left + columns * cell + 2, top + rows * cell + 2);
    let mut svg = format!(
        "<svg class=\"matrix\" viewBox=\"0 0 {width} {height}\" style=\"width:{width}px\" role=\"img\" aria-label=\"{}\" data-grid=\"{left} {top} {cell}\"{}{data}>",
        escape(label),
        if matrix.half { " data-half" } else { "" }
    );
    svg += &ground(matrix, cell, (left, top));
    svg += &paths(matrix, cell, (left, top), gap);
    for Cell { at: (row, column), value, link, outlined, look, .. } in &matrix.cells {
        let (x, y) = (left + column * cell, top + row * cell);
        if cell >= WITH_TEXT {
            let (x, y, text) = (x + cell / 2, y + cell / 2 + 4, value.map_or_else(|| "–".to_owned(), short));
            let class = if matches!(look, Look::Worse(Grade::Far | Grade::Much)) { "on-dark" } else { "on-light" };
            let _ = write!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>");
        }
        if *outlined || most <= WITH_TIPS {
            let class = if *outlined { "outlined" } else { "tip" };
            let (tip, side) = (escape(&tip(*link)), cell - gap);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\"><title>{tip}</title></rect>"
            );
        }
    }
    lines(&mut svg, matrix, (left, top), cell);
    bands(&mut svg, matrix, (left, top), cell);
    names(&mut svg, matrix, (left, top), cell);
    svg + "</svg>"
}

/// Where cells can be: all of the grid, or the half above the diagonal.
fn ground(matrix: &Matrix, cell: usize, (left, top): (usize, usize)) -> String {
    let (rows, columns) = (matrix.names.0.len(), matrix.names.1.len());
    if !matrix.half {
        let (w, h) = (columns * cell, rows * cell);
        return format!("<rect class=\"m-none\" x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{h}\"/>");
    }
    let stairs = format!("h-{cell}v-{cell}").repeat(rows);
    format!("<path class=\"m-none\" d=\"M{left} {top}h{}v{}{stairs}z\"/>", columns * cell, rows * cell)
}

fn lines(svg: &mut String, matrix: &Matrix, (left, top): (usize, usize), cell: usize) {
    let (rows, columns) = (matrix.names.0.len() * cell, matrix.names.1.len() * cell);
    let mut path = String::new();
    for y in matrix.groups.0.iter().skip(1).map(|group| group.from * cell) {
        let from = if matrix.half { y } else { 0 };
        let _ = write!(path, "M{} {}h{}", left + from, top + y, columns - from);
    }
    for x in matrix.groups.1.iter().skip(1).map(|group| group.from * cell) {
        let _ = write!(path, "M{} {top}v{}", left + x, if matrix.half { (x + cell).min(rows) } else { rows });
    }
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"between\" d=\"{path}\"/>");
    }
}

fn bands(svg: &mut String, matrix: &Matrix, (left, top): (usize, usize), cell: usize) {
    let (rows, columns) = (matrix.names.0.len() * cell, matrix.names.1.len() * cell);
    let mut band = |x: usize, y: usize, width: usize, height: usize| {
        let _ = write!(svg, "<rect class=\"band\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
    };
    for y in matrix.bad.0.iter().map(|place| place * cell) {
        let from = if matrix.half { y } else { 0 };
        band(left + from, top + y, columns - from, cell);
    }
    for x in matrix.bad.1.iter().map(|place| place * cell) {
        band(left + x, top, cell, if matrix.half { x + cell } else { rows });
    }
}

/// Last, because heads that stick to the edge of a screen lie above the cells.
fn names(svg: &mut String, matrix: &Matrix, (left, top): (usize, usize), cell: usize) {
    let every = NAME.div_ceil(cell);
    let shown = |bad: &BTreeSet<usize>, place: usize| place.is_multiple_of(every) || bad.contains(&place);
    let class = |bad: &BTreeSet<usize>, place: usize| if bad.contains(&place) { "f-bad" } else { "f-ink" };
    let (rows, columns) = (matrix.names.0.len() * cell, matrix.names.1.len() * cell);
    let _ = write!(
        svg,
        "<g class=\"rows\"><rect class=\"f-paper\" x=\"0\" y=\"{top}\" width=\"{}\" height=\"{rows}\"/>",
        left - 2
    );
    for (row, name) in matrix.names.0.iter().enumerate().filter(|(row, _)| shown(&matrix.bad.0, *row)) {
        let class = class(&matrix.bad.0, row);
        let (x, y, name) = (left - 6, top + row * cell + cell.max(8) / 2 + 4, escape(name));
        let _ = write!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{name}</text>");
    }
    let _ = write!(
        svg,
        "</g><g class=\"columns\"><rect class=\"f-paper\" x=\"{left}\" y=\"0\" width=\"{columns}\" height=\"{}\"/>",
        top - 2
    );
    for (column, name) in matrix.names.1.iter().enumerate().filter(|(column, _)| shown(&matrix.bad.1, *column)) {
        let class = class(&matrix.bad.1, column);
        let (x, y, name) = (left + column * cell + cell / 2 + 4, top - 6, escape(name));
        let _ = write!(svg, "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-90)\">{name}</text>");
    }
    svg.push_str("</g>");
}

/// One path per look: runs of cells in a row are one rectangle where cells have no gap.
fn paths(matrix: &Matrix, cell: usize, (left, top): (usize, usize), gap: usize) -> String {
    let mut sorted: Vec<(Look, (usize, usize))> = matrix.cells.iter().map(|cell| (cell.look, cell.at)).collect();
    sorted.sort_unstable();
    let mut out = String::new();
    let side = cell - gap;
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        let mut path = String::new();
        let mut place = 0;
        while let Some((_, (row, column))) = same.get(place) {
            let follows = |n: &usize| same.get(place + n).is_some_and(|(_, at)| *at == (*row, column + n));
            let run = if gap == 0 { 1 + (1..).take_while(follows).count() } else { 1 };
            let (x, y) = (left + column * cell, top + row * cell);
            let width = run * cell - gap;
            let _ = write!(path, "M{x} {y}h{width}v{side}h-{width}z");
            place += run;
        }
        if let Some((look, _)) = same.first() {
            let _ = write!(out, "<path class=\"{}\" d=\"{path}\"/>", class(look));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(at: (usize, usize), look: Look) -> Cell {
        Cell { at, look, value: None, difference: None, link: 0, outlined: false, reversed: false }
    }

    #[test]
    fn a_run_of_equal_cells_is_one_rectangle() {
        let names = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let cells = vec![cell((0, 1), Look::Usual), cell((0, 2), Look::Usual), cell((1, 0), Look::Worse(Grade::Far))];
        let svg = paths(&Matrix { names: (names(), names()), cells, ..Matrix::default() }, 1, (0, 0), 0);
        assert!(svg.contains(r#"<path class="m-usual" d="M1 0h2v1h-2z"/>"#), "{svg}");
        assert!(svg.contains(r#"<path class="m-far" d="M0 1h1v1h-1z"/>"#), "{svg}");
    }

    #[test]
    fn a_block_looks_as_its_worst_cell() {
        let names = || (0..4).map(|n| format!("h{n}")).collect::<Vec<_>>();
        let cells = vec![cell((0, 1), Look::Usual), cell((1, 0), Look::Worse(Grade::Far)), cell((3, 3), Look::Better)];
        let small = condense(Matrix { names: (names(), names()), cells, ..Matrix::default() }, 2);
        assert_eq!(small.names.0, ["h0 … h1", "h2 … h3"]);
        let looks: Vec<_> = small.cells.iter().map(|cell| (cell.at, cell.look)).collect();
        assert_eq!(looks, [((0, 0), Look::Worse(Grade::Far)), ((1, 1), Look::Better)]);
    }

    #[test]
    fn blocks_are_groups_or_lie_within_them() {
        let groups = |sizes: &[usize]| -> Vec<Group> {
            let starts = sizes.iter().scan(0, |at, size| Some(std::mem::replace(at, *at + size)));
            starts.enumerate().map(|(at, from)| Group { name: format!("leaf{at}"), from }).collect()
        };
        let leaves = groups(&[32; 32]);
        assert_eq!(blocks(1024, &leaves, 40), (0..32).map(|leaf| 32 * leaf).collect::<Vec<_>>());
        // Two halves are too coarse for blocks: each is divided, and no block lies in both.
        let halves = blocks(500, &groups(&[301, 199]), 40);
        assert!(halves.contains(&301) && halves.len() > 30 && halves.len() <= 40, "{halves:?}");
        assert_eq!(blocks(1000, &[], 40).len(), 40);
        assert!(blocks(200, &groups(&[2; 100]), 40).len() <= 40);
        let names: Vec<String> = (0..1024).map(|n| format!("h{n}")).collect();
        let matrix = Matrix {
            names: (names.clone(), names),
            groups: (leaves.clone(), leaves),
            cells: vec![cell((33, 1023), Look::Worse(Grade::Far))],
            ..Matrix::default()
        };
        let small = condense(matrix, 40);
        assert_eq!((small.names.0[1].as_str(), small.cells[0].at), ("leaf1", (1, 31)));
    }

    #[test]
    fn groups_have_lines_between_them() {
        let names = || (0..4).map(|n| format!("h{n}")).collect::<Vec<_>>();
        let groups = || vec![Group { name: "a".into(), from: 0 }, Group { name: "b".into(), from: 1 }];
        let matrix = Matrix { names: (names(), names()), groups: (groups(), groups()), ..Matrix::default() };
        let svg = large(&matrix, "x", 1, "", |_| String::new());
        let (left, top) = margins(&matrix);
        let side = side(&matrix, (left, top), 1);
        let path = format!("M{left} {}h{2}M{} {top}v{2}", top + side, left + side, 4 * side);
        assert!(svg.contains(&path), "{path}: {svg}");
    }

    #[test]
    fn names_and_tips_are_escaped() {
        let names = || vec!["<b>".to_owned()];
        let svg = large(
            &Matrix { names: (names(), names()), cells: vec![cell((0, 0), Look::Usual)], ..Matrix::default() },
            "\"",
            1,
            "",
            |_| "<a>".to_owned(),
        );
        assert!(!svg.contains("<b>") && !svg.contains("<a>") && svg.contains("aria-label=\"&quot;\""), "{svg}");
    }
}
