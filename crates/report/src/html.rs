//! Pages: a view through its template, everything escaped, one file that needs no network.
//!
//! A page has one inline script, which sorts and filters tables. The page's policy names it by its hash, so that a
//! browser runs nothing else, whatever the data says. The page is complete without scripts.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, context, value::Serde};
use railgauge_analysis::words::count;
use railgauge_model::plan::hostlist;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::worth::{Worth, worth};

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
    environment.add_filter("worth", worth_of_number);
    environment.add_filter("worth_of_text", worth_of_text);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    let template = environment.get_template(template)?;
    let script_hash = hash(script);
    Ok(template.render(context! { v => Serde(view), css => STYLE, script, script_hash, course })?)
}

/// Sort key of a cell in a column of numbers, if its text is not enough. An unknown unit would sort wrongly: debug
/// builds make no page with it, and release builds leave out the key.
fn worth_of_number(text: &str) -> Result<String, minijinja::Error> {
    // The script reads plain numbers itself.
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

/// Sort key of a cell in a column of texts, if it is only a number with a unit: `54.10 Gb/s`.
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
