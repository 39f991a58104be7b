//! Pages: a view through its template, everything escaped, one file that needs no network.
//!
//! A page has one inline script, which sorts and filters tables. The page's policy names it by its hash, so that a
//! browser runs nothing else, whatever the data says. The page is complete without scripts.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use minijinja::{AutoEscape, Environment, HtmlEscape, UndefinedBehavior, Value, context, value::Serde};
use railgauge_analysis::words::count;
use railgauge_model::plan::hostlist;
use serde::Serialize;
use sha2::{Digest, Sha256};

const TEMPLATES: [(&str, &str); 9] = [
    ("page.html", include_str!("../../../templates/page.html")),
    ("parts.html", include_str!("../../../templates/parts.html")),
    ("report.html", include_str!("../../../templates/report.html")),
    ("preflight.html", include_str!("../../../templates/preflight.html")),
    ("index.html", include_str!("../../../templates/index.html")),
    ("compare.html", include_str!("../../../templates/compare.html")),
    ("imported.html", include_str!("../../../templates/imported.html")),
    ("signoff.html", include_str!("../../../templates/signoff.html")),
    ("trend.html", include_str!("../../../templates/trend.html")),
];

const STYLE: &str = include_str!("../../../templates/report.css");

const SCRIPT: &str = include_str!("../../../templates/page.js");

const LIVE_SCRIPT: &str = include_str!("../../../templates/live.js");

/// Every variant is a bug.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct PageError(#[from] minijinja::Error);

/// # Errors
/// The template needs something that the view does not have.
pub(super) fn page(template: &str, view: &impl Serialize) -> Result<String, PageError> {
    render(template, view, SCRIPT, "")
}

/// The report of an unfinished run, with its progress, which is the only thing that a page ever requests.
///
/// # Errors
/// As [`page`].
pub(super) fn live_page(view: &impl Serialize, course: &str) -> Result<String, PageError> {
    render("report.html", view, &live_script(), course)
}

pub(super) fn live_policy() -> String {
    let hash = hash(&live_script());
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

fn live_script() -> String {
    [SCRIPT, LIVE_SCRIPT].concat()
}

fn hash(script: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(script))
}

fn render(template: &str, view: &impl Serialize, script: &str, course: &str) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("count", |n: usize, noun: &str| count(n, noun));
    environment.add_filter("fold", |names: Vec<String>| hostlist::listed(names.iter().map(String::as_str)));
    environment.add_filter("decimals", |table: Value| decimals(&table));
    environment.add_filter("pad", pad);
    environment.add_filter("code", code);
    environment.add_filter("without_id", |text: &str| text.rsplit_once(" [").map_or(text, |(step, _)| step).to_owned());
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    let template = environment.get_template(template)?;
    let script_hash = hash(script);
    Ok(template.render(context! { v => Serde(view), css => STYLE, script, script_hash, course })?)
}

/// A text with its parts between backticks as code.
fn code(text: &str) -> Value {
    let part = |(at, part): (usize, &str)| {
        let part = HtmlEscape(part);
        if at % 2 == 1 { format!("<code>{part}</code>") } else { part.to_string() }
    };
    Value::from_safe_string(text.split('`').enumerate().map(part).collect())
}

/// Digits behind the point; `None` for anything but a plain number.
fn places(text: &str) -> Option<usize> {
    let digits = text.trim().trim_start_matches(['−', '-', '+', '±']);
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    (!whole.is_empty() && is_number(whole) && is_number(behind)).then_some(behind.len())
}

/// The most decimals of each column.
fn decimals(table: &Value) -> Result<Vec<usize>, minijinja::Error> {
    let mut most = Vec::new();
    for row in table.get_attr("rows")?.try_iter()? {
        for (at, cell) in row.try_iter()?.enumerate() {
            most.resize(most.len().max(at + 1), 0);
            most[at] = most[at].max(cell.as_str().and_then(places).unwrap_or(0));
        }
    }
    Ok(most)
}

/// What a number lacks to end where the longest of its column ends, so that points are below each other: `.2` without a
/// point, `1` for one digit.
fn pad(cell: &str, most: usize) -> String {
    match places(cell) {
        Some(own) if own < most => format!("{}{}", if own == 0 { "." } else { "" }, (most - own).min(4)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_column_end_below_each_other() {
        for (cell, lacks) in [("195.4", "1"), ("3", ".2"), ("−0.25", ""), ("–", ""), ("3 of 40", ""), ("±2.0", "1")]
        {
            assert_eq!(pad(cell, 2), lacks, "{cell}");
        }
    }

    #[test]
    fn the_script_cannot_end_before_its_end() {
        for script in [SCRIPT, LIVE_SCRIPT] {
            assert!(!script.to_lowercase().contains("</script") && !script.contains("<!--"));
        }
    }
}
