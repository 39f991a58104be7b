//! Pages: a view through its template, everything escaped, one file that needs no network.
//!
//! A page has one script of ours, inline: it makes tables sort and filter. The page's policy names it by its hash, so that a
//! browser runs it and nothing else, whatever the data says. Without scripts the page is whole.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, context, value::Serde};
use railgauge_model::plan::hostlist;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::worth::{Worth, worth};
use crate::analysis::words::count;

/// What pages are made of: their templates, and the parts they share.
const TEMPLATES: [(&str, &str); 9] = [
    ("page.html", include_str!("../../templates/page.html")),
    ("parts.html", include_str!("../../templates/parts.html")),
    ("report.html", include_str!("../../templates/report.html")),
    ("preflight.html", include_str!("../../templates/preflight.html")),
    ("index.html", include_str!("../../templates/index.html")),
    ("compare.html", include_str!("../../templates/compare.html")),
    ("imported.html", include_str!("../../templates/imported.html")),
    ("signoff.html", include_str!("../../templates/signoff.html")),
    ("trend.html", include_str!("../../templates/trend.html")),
];

const STYLE: &str = include_str!("../../templates/report.css");

const SCRIPT: &str = include_str!("../../templates/page.js");

/// The script that a report has in addition while its run goes on.
const LIVE_SCRIPT: &str = include_str!("../../templates/live.js");

/// Why a page could not be made. Every one is a mistake of ours.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct PageError(#[from] minijinja::Error);

/// The page of a view by one of the templates.
///
/// # Errors
/// The template asks for something the view does not have.
pub(super) fn page(template: &str, view: &impl Serialize) -> Result<String, PageError> {
    render(template, view, SCRIPT, "")
}

/// The report of a run that has not ended, with how far it is: the only page that asks for anything, which is that line.
///
/// # Errors
/// As [`page`].
pub(super) fn live_page(view: &impl Serialize, course: &str) -> Result<String, PageError> {
    render("report.html", view, &live_script(), course)
}

/// The policy of [`live_page`], as the page itself states it.
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
    environment.add_filter("fold", |names: Vec<String>| hostlist::fold(names.iter().map(String::as_str)));
    environment.add_filter("worth", worth_of_number);
    environment.add_filter("worth_of_text", worth_of_text);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    let template = environment.get_template(template)?;
    let script_hash = hash(script);
    Ok(template.render(context! { v => Serde(view), css => STYLE, script, script_hash, course })?)
}

/// What a cell of a column of numbers sorts by, where its text alone does not say it. A number with an unknown unit would stand
/// where it does not belong: while we develop it makes no page, and a released program leaves it without a worth.
fn worth_of_number(text: &str) -> Result<String, minijinja::Error> {
    // What the script reads itself.
    let plain = text.trim().replace('−', "-").parse::<f64>().is_ok();
    match worth(text) {
        Worth::Number { value, .. } if !plain => Ok(value.to_string()),
        Worth::Number { .. } | Worth::Words => Ok(String::new()),
        Worth::Unknown(unit) if cfg!(debug_assertions) => {
            let told = format!("report::worth does not know the unit `{unit}` of `{text}`");
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, told))
        }
        Worth::Unknown(_) => Ok(String::new()),
    }
}

/// What a cell of a column of texts sorts by, where it is a number with its unit and nothing else: `54.10 Gb/s`.
fn worth_of_text(text: &str) -> String {
    match worth(text) {
        Worth::Number { value, unit: true, whole: true } => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_it_has_a_worth_beside_its_text() {
        for (text, number, words) in [
            ("195.4", "", ""),
            ("−3", "", ""),
            ("±2.00", "2", ""),
            ("3 of 40", "3", ""),
            ("64 KiB", "65536", "65536"),
            ("−4.0 ms ± 4.4 ms", "-0.004", ""),
            ("54.10 Gb/s", "54100000000", "54100000000"),
            ("6.1.0", "", ""),
            ("–", "", ""),
        ] {
            assert_eq!(worth_of_number(text).ok().as_deref(), Some(number), "{text}");
            assert_eq!(worth_of_text(text), words, "{text}");
        }
    }

    #[test]
    fn a_number_of_an_unknown_unit_makes_no_page() {
        assert!(worth_of_number("3 furlongs").unwrap_err().to_string().contains("furlongs"));
    }

    #[test]
    fn the_script_cannot_end_before_its_end() {
        for script in [SCRIPT, LIVE_SCRIPT] {
            assert!(!script.to_lowercase().contains("</script") && !script.contains("<!--"));
        }
    }
}
