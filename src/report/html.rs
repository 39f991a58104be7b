//! Pages: a view through its template, everything escaped, one file that needs no network.

use minijinja::{AutoEscape, Environment, UndefinedBehavior, context, value::Serde};
use serde::Serialize;

use crate::analysis::words::count;

/// What pages are made of: their templates, and the parts they share.
const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("../../templates/page.html")),
    ("parts.html", include_str!("../../templates/parts.html")),
    ("report.html", include_str!("../../templates/report.html")),
    ("compare.html", include_str!("../../templates/compare.html")),
    ("signoff.html", include_str!("../../templates/signoff.html")),
    ("trend.html", include_str!("../../templates/trend.html")),
];

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
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    let template = environment.get_template(template)?;
    Ok(template.render(context! { v => Serde(view), css => include_str!("../../templates/report.css") })?)
}
