//! Tukey's median polish: a table as overall + row + column + residual.

use std::{iter::StepBy, ops::Range};

use crate::{refusal::Refusal, robust::median_in_place};

/// `overall + rows[i] + columns[j] + residuals[i][j]` is the cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Polish {
    pub overall: f64,
    /// `None` for a row without values.
    pub rows: Vec<Option<f64>>,
    /// `None` for a column without values.
    pub columns: Vec<Option<f64>>,
    /// Row by row; `None` where the table has no value.
    pub residuals: Vec<Option<f64>>,
    pub sweeps: usize,
    /// Whether the sum of absolute residuals settled before the sweeps were used up.
    pub converged: bool,
}

/// Median polish (Tukey 1977, *Exploratory Data Analysis*, chapter 11): row medians, then column medians are moved into the effects until
/// the sum of absolute residuals changes by less than `tolerance` of itself, at most `sweeps` times. `cells` is row by row with `columns`
/// cells a row; unmeasured cells are `None` and do not count for the medians.
///
/// # Errors
/// A table whose length is no multiple of `columns`, a table without values, or a value that is not finite.
pub fn median_polish(cells: &[Option<f64>], columns: usize, tolerance: f64, sweeps: usize) -> Result<Polish, Refusal> {
    if columns == 0 || !cells.len().is_multiple_of(columns) {
        return Err(Refusal::Parameter("the number of cells is no multiple of the number of columns"));
    }
    if cells.iter().all(Option::is_none) {
        return Err(Refusal::TooFew { need: 1, got: 0 });
    }
    if let Some(at) = cells.iter().position(|c| c.is_some_and(|v| !v.is_finite())) {
        return Err(Refusal::NotFinite { at });
    }
    let rows = cells.len() / columns;
    let row_cells = |i: usize| (i * columns..(i + 1) * columns).step_by(1);
    let column_cells = |j: usize| (j..rows * columns).step_by(columns);
    let start = |mut places: StepBy<Range<usize>>| places.any(|at| cells[at].is_some()).then_some(0.0);
    let mut polish = Polish {
        overall: 0.0,
        rows: (0..rows).map(|i| start(row_cells(i))).collect(),
        columns: (0..columns).map(|j| start(column_cells(j))).collect(),
        residuals: cells.to_vec(),
        sweeps: 0,
        converged: false,
    };
    let mut before = 0.0;
    while polish.sweeps < sweeps && !polish.converged {
        polish.sweeps += 1;
        let Polish { overall, rows: row, columns: column, residuals, .. } = &mut polish;
        for (i, effect) in row.iter_mut().enumerate() {
            take_median(residuals, row_cells(i), effect);
        }
        *overall += take_centre(column);
        for (j, effect) in column.iter_mut().enumerate() {
            take_median(residuals, column_cells(j), effect);
        }
        *overall += take_centre(row);
        let now: f64 = residuals.iter().flatten().map(|r| r.abs()).sum();
        polish.converged = now == 0.0 || (now - before).abs() < tolerance * now;
        before = now;
    }
    Ok(polish)
}

fn take_median(cells: &mut [Option<f64>], places: StepBy<Range<usize>>, effect: &mut Option<f64>) {
    let Some(effect) = effect else { return };
    let mut there: Vec<f64> = places.clone().filter_map(|at| cells[at]).collect();
    let centre = median_in_place(&mut there);
    for at in places {
        if let Some(cell) = &mut cells[at] {
            *cell -= centre;
        }
    }
    *effect += centre;
}

fn take_centre(effects: &mut [Option<f64>]) -> f64 {
    let mut there: Vec<f64> = effects.iter().flatten().copied().collect();
    let centre = median_in_place(&mut there);
    effects.iter_mut().flatten().for_each(|e| *e -= centre);
    centre
}
