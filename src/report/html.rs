//! Pages: a view through its template, everything escaped, one file that needs no network.
//!
//! A page has one script of ours, inline: it makes tables sort and filter. The page's policy names it by its hash, so that a
//! browser runs it and nothing else, whatever the data says. Without scripts the page is whole.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context, value::Serde};
use railgauge_model::plan::hostlist;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::analysis::words::count;

/// What pages are made of: their templates, and the parts they share.
const TEMPLATES: [(&str, &str); 7] = [
    ("page.html", include_str!("../../templates/page.html")),
    ("parts.html", include_str!("../../templates/parts.html")),
    ("report.html", include_str!("../../templates/report.html")),
    ("preflight.html", include_str!("../../templates/preflight.html")),
    ("compare.html", include_str!("../../templates/compare.html")),
    ("signoff.html", include_str!("../../templates/signoff.html")),
    ("trend.html", include_str!("../../templates/trend.html")),
];

/// The style sheet of all pages.
const STYLE: &str = include_str!("../../templates/report.css");

/// The script of all pages.
const SCRIPT: &str = include_str!("../../templates/page.js");

/// Why a page could not be made. Every one is a mistake of ours.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct PageError(#[from] minijinja::Error);

/// The page of a view by one of the templates.
///
/// # Errors
/// The template asks for something the view does not have.
pub(super) fn page(template: &str, view: &impl Serialize) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("count", |n: usize, noun: &str| count(n, noun));
    environment.add_filter("fold", |names: Vec<String>| hostlist::fold(names.iter().map(String::as_str)));
    environment.add_filter("worth", |text: &str| worth(text).map_or_else(String::new, |value| value.to_string()));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    let template = environment.get_template(template)?;
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    Ok(template.render(context! { v => Serde(view), css => STYLE, script => SCRIPT, script_hash => hash })?)
}

/// What a cell of a column of numbers sorts by, where its text is more than a number: `64 KiB` are 65536. `None` where the text
/// says it all or has no number.
fn worth(text: &str) -> Option<f64> {
    let text = text.trim().replace('−', "-");
    let digits = text.find(|c: char| !(c.is_ascii_digit() || "+-.e".contains(c))).unwrap_or(text.len());
    if digits == text.len() {
        return None;
    }
    let value: f64 = text[..digits].trim_end_matches(['e', '-', '+']).parse().ok()?;
    let unit = text[digits..].split_whitespace().next().unwrap_or_default();
    let times = match unit {
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        _ => 1.0,
    };
    Some(value * times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_sort_by_what_they_are_worth() {
        for (text, value) in [
            ("64 KiB", Some(65536.0)),
            ("1 B", Some(1.0)),
            ("−31.2 %", Some(-31.2)),
            ("3 of 40", Some(3.0)),
            ("1.5 ms", Some(0.0015)),
            ("195.4 ± 0.2", Some(195.4)),
            ("195.4", None),
            ("–", None),
            ("", None),
            ("failed", None),
        ] {
            assert_eq!(worth(text), value, "{text}");
        }
    }

    #[test]
    fn the_script_cannot_end_before_its_end() {
        assert!(!SCRIPT.to_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
    }
}
