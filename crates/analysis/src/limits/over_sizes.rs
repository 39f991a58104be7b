//! The mean of a group's values over the sizes of a published limit.

use std::collections::HashMap;

use railgauge_model::{
    plan::model::{Misfit, Source},
    schedule::Flow,
};
use railgauge_wire::Bytes;

use crate::{case::CaseResult, row::Row};

type Group<'r> = (&'r Flow, String);

/// Values of each group by size, also unknown ones; empty where the limit is for each size.
pub(super) struct OverSizes<'w, 'r> {
    source: Option<&'w Source>,
    groups: HashMap<Group<'r>, Vec<(Bytes, Option<f64>)>>,
}

fn group<'r>(result: &'r CaseResult<'r>) -> Group<'r> {
    (&result.case.flow, result.variant())
}

impl<'w, 'r> OverSizes<'w, 'r> {
    pub(super) fn of(source: Option<&'w Source>, scope: &[(&'r CaseResult<'r>, &'r Row)]) -> Self {
        let source = source.filter(|source| source.is_mean_of_sizes());
        let mut groups: HashMap<_, Vec<(Bytes, Option<f64>)>> = HashMap::new();
        for (result, row) in scope.iter().filter(|(_, row)| source.is_some_and(|of| of.sizes.contains(&row.size_bytes)))
        {
            let value = row.value.filter(|_| result.state.is_trusted());
            groups.entry(group(result)).or_default().push((row.size_bytes, value));
        }
        Self { source, groups }
    }

    /// What is compared with the limit: of a mean, once for each group at its largest size, and `None` at the others.
    pub(super) fn value(
        &self,
        (result, row): (&'r CaseResult<'r>, &'r Row),
    ) -> Result<Option<f64>, (&'w Source, Misfit)> {
        let Some(source) = self.source else { return Ok(row.value) };
        let all = self.groups.get(&group(result)).map(Vec::as_slice).unwrap_or_default();
        if all.iter().map(|(size, _)| *size).max() != Some(row.size_bytes) {
            return Ok(None);
        }
        let known: Vec<(Bytes, f64)> = all.iter().filter_map(|(size, value)| Some((*size, (*value)?))).collect();
        let sizes: Vec<Bytes> = known.iter().map(|(size, _)| *size).collect();
        match source.incomplete(&sizes) {
            Some(misfit) => Err((source, misfit)),
            None => Ok(Some(known.iter().map(|(_, value)| value).sum::<f64>() / known.len() as f64)),
        }
    }
}
