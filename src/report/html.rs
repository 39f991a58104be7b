//! The page: the view through one template, everything escaped, one file that needs no network.

use minijinja::{AutoEscape, Environment, UndefinedBehavior, context, value::Serde};

use super::view::View;

/// The page of a view.
///
/// # Errors
/// The template asks for something the view does not have, in words.
pub(super) fn page(view: &View) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let words = |error: minijinja::Error| format!("{error:#}");
    environment.add_template("report.html", include_str!("../../templates/report.html")).map_err(words)?;
    let template = environment.get_template("report.html").map_err(words)?;
    template.render(context! { v => Serde(view), css => include_str!("../../templates/report.css") }).map_err(words)
}
