//! Colours of a chart by their role.
//!
//! plotters gets arbitrary numbers as colours; [`classes`] converts each to a class of the page's style sheet.

use plotters::style::RGBColor;

pub(crate) type Role = RGBColor;

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident = $number:literal $class:literal;)+) => {
        $($(#[$doc])* pub(crate) const $name: Role = RGBColor(1, 2, $number);)+
        const ROLES: &[(u8, &str)] = &[$(($number, $class)),+];
    };
}

roles! {
    INK = 1 "ink";
    AXIS = 2 "axis";
    MESH = 3 "mesh";
    MAIN = 4 "main";
    OUTER = 5 "outer";
    INNER = 6 "inner";
    WORST = 7 "worst";
    LIMIT = 8 "limit";
    GOOD = 9 "good";
    DEMAND = 10 "demand";
    A = 11 "a";
    B = 12 "b";
    C = 13 "c";
    D = 14 "d";
    E = 15 "e";
    F = 16 "f";
}

/// Lines next to each other, with the names of their classes.
pub(crate) const LINES: [(Role, &str); 6] = [(A, "k-a"), (B, "k-b"), (C, "k-c"), (D, "k-d"), (E, "k-e"), (F, "k-f")];

/// What plotters writes and the style sheet or a browser has anyway.
const USUAL: [&str; 2] = [" opacity=\"1\"", " font-family=\"sans-serif\""];

/// Replaces the numbers by classes: `f-main` for fills, `s-main` for lines.
pub(super) fn classes(svg: &str) -> String {
    let bare = USUAL.iter().fold(svg.to_owned(), |svg, usual| svg.replace(usual, ""));
    ROLES.iter().fold(bare, |svg, (number, class)| {
        svg.replace(&format!("fill=\"#0102{number:02X}\""), &format!("class=\"f-{class}\""))
            .replace(&format!("stroke=\"#0102{number:02X}\""), &format!("class=\"s-{class}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_becomes_a_class() {
        assert_eq!(
            classes(r##"<line opacity="1" stroke="#010204"/><text font-family="sans-serif" fill="#010201">"##),
            r#"<line class="s-main"/><text class="f-ink">"#
        );
    }
}
