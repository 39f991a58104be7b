//! The pair matrix: rows send, columns receive, a cell is one link.
//!
//! Written here and not by plotters: cells of one colour share one path, which makes 128 hosts a tenth of the size of
//! as many rectangles, and lets colours be classes.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Write,
};

use super::plot::escape;
use crate::analysis::outliers::{Grade, Look};

/// The class of the page's style sheet for a look.
pub(in crate::report) const fn class(look: &Look) -> &'static str {
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

/// One link of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Cell {
    /// Row and column.
    pub at: (usize, usize),
    /// How it looks.
    pub look: Look,
    /// Short text inside, where there is room.
    pub text: String,
    /// What appears over it.
    pub tip: String,
    /// Whether it is outlined.
    pub outlined: bool,
}

/// One matrix.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::report) struct Matrix {
    /// Names of the rows and of the columns.
    pub names: (Vec<String>, Vec<String>),
    /// Rows and columns that are a part which stands out.
    pub bad: (BTreeSet<usize>, BTreeSet<usize>),
    /// The cells that were planned.
    pub cells: Vec<Cell>,
}

/// Up to this many rows and columns, cells hold their text.
const WITH_TEXT: usize = 9;
/// Up to this many rows and columns, every cell tells its value; over it only the outlined ones do.
const WITH_TIPS: usize = 24;
/// Up to this many rows and columns, every row and column is named.
const WITH_NAMES: usize = 48;

/// At most `most` rows and columns: more are put together into blocks that look as their worst cell does.
pub(in crate::report) fn condense(matrix: Matrix, most: usize) -> Matrix {
    let block = matrix.names.0.len().max(matrix.names.1.len()).div_ceil(most).max(1);
    if block == 1 {
        return matrix;
    }
    let name = |names: &[String]| match names {
        [first, .., last] => format!("{first} … {last}"),
        names => names.join(""),
    };
    let names = |names: &[String]| names.chunks(block).map(name).collect();
    let mut blocks: BTreeMap<(usize, usize), Cell> = BTreeMap::new();
    for mut cell in matrix.cells {
        let at = (cell.at.0 / block, cell.at.1 / block);
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
    let blocked = |places: &BTreeSet<usize>| places.iter().map(|place| place / block).collect();
    Matrix {
        names: (names(&matrix.names.0), names(&matrix.names.1)),
        bad: (blocked(&matrix.bad.0), blocked(&matrix.bad.1)),
        cells: blocks.into_values().collect(),
    }
}

/// Small, without names: one of many side by side. A cell is one unit.
pub(in crate::report) fn thumbnail(matrix: &Matrix, label: &str) -> String {
    let (rows, columns) = (matrix.names.0.len(), matrix.names.1.len());
    let label = escape(label);
    format!(
        "<svg class=\"thumbnail\" viewBox=\"0 0 {columns} {rows}\" role=\"img\" aria-label=\"{label}\"><rect class=\"m-none\" width=\"{columns}\" height=\"{rows}\"/>{}</svg>",
        paths(matrix, 1, (0, 0), 0)
    )
}

/// Large, with names on both sides, outlines, and texts where there is room.
pub(in crate::report) fn large(matrix: &Matrix, label: &str) -> String {
    let (rows, columns) = (matrix.names.0.len(), matrix.names.1.len());
    let most = rows.max(columns);
    let cell = match most {
        0..=WITH_TEXT => 52,
        10..=16 => 30,
        17..=32 => 17,
        33..=WITH_NAMES => 12,
        49..=160 => 5,
        _ => 2,
    };
    let longest = matrix.names.0.iter().chain(&matrix.names.1).map(|name| name.chars().count()).max().unwrap_or(0);
    // A character of 11 pixels is about 6.5 wide.
    let margin = longest * 13 / 2 + 14;
    let gap = usize::from(cell > 8);
    let (width, height) = (margin + columns * cell + 2, margin + rows * cell + 2);
    let mut svg = format!(
        "<svg class=\"matrix\" viewBox=\"0 0 {width} {height}\" style=\"width:{width}px\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    );
    let (w, h) = (columns * cell, rows * cell);
    let _ = write!(svg, "<rect class=\"m-none\" x=\"{margin}\" y=\"{margin}\" width=\"{w}\" height=\"{h}\"/>");
    names(&mut svg, matrix, margin, cell, most);
    svg += &paths(matrix, cell, (margin, margin), gap);
    for Cell { at: (row, column), text, tip, outlined, look } in &matrix.cells {
        let (x, y) = (margin + column * cell, margin + row * cell);
        if most <= WITH_TEXT && !text.is_empty() {
            let (x, y, text) = (x + cell / 2, y + cell / 2 + 4, escape(text));
            let class = if matches!(look, Look::Worse(Grade::Far | Grade::Much)) { "on-dark" } else { "on-light" };
            let _ = write!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>");
        }
        if *outlined || most <= WITH_TIPS {
            let class = if *outlined { "outlined" } else { "tip" };
            let (tip, side) = (escape(tip), cell - gap);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\"><title>{tip}</title></rect>"
            );
        }
    }
    bands(&mut svg, matrix, margin, cell);
    svg + "</svg>"
}

/// Frames around rows and columns that are a part which stands out.
fn bands(svg: &mut String, matrix: &Matrix, margin: usize, cell: usize) {
    let (rows, columns) = (matrix.names.0.len() * cell, matrix.names.1.len() * cell);
    let at = |place: &usize| margin + place * cell;
    for y in matrix.bad.0.iter().map(at) {
        let _ = write!(svg, "<rect class=\"band\" x=\"{margin}\" y=\"{y}\" width=\"{columns}\" height=\"{cell}\"/>");
    }
    for x in matrix.bad.1.iter().map(at) {
        let _ = write!(svg, "<rect class=\"band\" x=\"{x}\" y=\"{margin}\" width=\"{cell}\" height=\"{rows}\"/>");
    }
}

/// Names on the left and on top; of many hosts only as many as there is room for.
fn names(svg: &mut String, matrix: &Matrix, margin: usize, cell: usize, most: usize) {
    let every = if most <= WITH_NAMES { 1 } else { 14_usize.div_ceil(cell) };
    let shown = |bad: &BTreeSet<usize>, place: usize| place.is_multiple_of(every) || bad.contains(&place);
    let class = |bad: &BTreeSet<usize>, place: usize| if bad.contains(&place) { "f-bad" } else { "f-ink" };
    for (row, name) in matrix.names.0.iter().enumerate().filter(|(row, _)| shown(&matrix.bad.0, *row)) {
        let class = class(&matrix.bad.0, row);
        let (x, y, name) = (margin - 6, margin + row * cell + cell.max(8) / 2 + 4, escape(name));
        let _ = write!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{name}</text>");
    }
    for (column, name) in matrix.names.1.iter().enumerate().filter(|(column, _)| shown(&matrix.bad.1, *column)) {
        let class = class(&matrix.bad.1, column);
        let (x, y, name) = (margin + column * cell + cell / 2 + 4, margin - 6, escape(name));
        let _ = write!(svg, "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-90)\">{name}</text>");
    }
}

/// One path per look: runs of cells of a row as one rectangle where there is no gap between cells.
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
        Cell { at, look, text: String::new(), tip: "<a>".into(), outlined: false }
    }

    #[test]
    fn a_run_of_equal_cells_is_one_rectangle() {
        let names = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let cells = vec![cell((0, 1), Look::Usual), cell((0, 2), Look::Usual), cell((1, 0), Look::Worse(Grade::Far))];
        let svg = thumbnail(&Matrix { names: (names(), names()), cells, ..Matrix::default() }, "x");
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
    fn names_and_tips_are_escaped() {
        let names = || vec!["<b>".to_owned()];
        let svg = large(
            &Matrix { names: (names(), names()), cells: vec![cell((0, 0), Look::Usual)], ..Matrix::default() },
            "\"",
        );
        assert!(!svg.contains("<b>") && !svg.contains("<a>") && svg.contains("aria-label=\"&quot;\""), "{svg}");
    }
}
