use railgauge_analysis::compare::{Cause, Comparison, Word};
use serde::Serialize;

const NAMED: usize = 3;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseView {
    pub word: &'static str,
    pub name: String,
    pub text: String,
}

pub(super) fn bad(comparison: &Comparison) -> String {
    let worse = comparison.causes.iter().filter(|cause| cause.verdict == Word::Regressed);
    let names: Vec<&str> = worse.map(|cause| cause.name.as_str()).collect();
    let (told, more) = names.split_at(names.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    told.join("; ") + &more
}

pub(super) fn causes(comparison: &Comparison) -> Vec<CauseView> {
    let view =
        |cause: &Cause| CauseView { word: cause.verdict.words(), name: cause.name.clone(), text: cause.text.clone() };
    comparison.causes.iter().map(view).collect()
}
