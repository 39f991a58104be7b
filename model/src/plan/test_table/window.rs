use railgauge_wire::{Nanoseconds, Window};
use toml::de::DeValue;

use crate::plan::{Mistake, Section, Table, Wrong, format::keys, grammar::quantity};

pub static WINDOW: Section = Section {
    header: "[test.measure]",
    about: "An adaptive measurement ends when the 95 % confidence interval of the mean is narrow enough.",
    keys: keys! {
        "confidence": Percent(0.1, 50.0), Required, "Target half width of the interval, in percent of the mean.";
        "at_least": Time("1ms", "1h"), Is("\"1s\""), "Shortest time.";
        "at_most": Time("1ms", "1h"), Is("\"10s\""), "Longest time.";
    },
};

const HELP: &str =
    "write \"2s\", \"1000 iterations\", or { confidence = \"2%\", at_least = \"1s\", at_most = \"10s\" }";
const SHORTEST: Nanoseconds = Nanoseconds::from_millis(1);
const LONGEST: Nanoseconds = Nanoseconds::from_secs(3600);

pub fn read(test: &Table<'_>, adaptive: bool) -> Option<Window> {
    let raw = test.raw("measure")?;
    if !adaptive && raw.value.is_table() {
        let message = "a collective is not measured adaptively: its ranks would not agree";
        return test.reject(raw.span, message, "write measure = \"2s\" or measure = \"20 iterations\"");
    }
    if raw.value.is_str() {
        return test.parsed("measure", text).map(|at| at.value);
    }
    let std::borrow::Cow::Borrowed(DeValue::Table(entries)) = raw.value else { return None };
    let table = Table::new(test.book, &WINDOW, raw.span.clone(), Some(entries));
    let confidence = table.percent("confidence");
    let (at_least, at_most) = (table.time("at_least")?, table.time("at_most")?);
    if at_most.value < at_least.value {
        let message = "`at_most` is shorter than `at_least`";
        let mistake = Mistake::at(at_most.span, message).also(at_least.span, "at least this");
        test.book.add(mistake.help("let at_most be the longer one; at_least is \"1s\" if it is not given"));
        return None;
    }
    Some(Window::Adaptive { relative: confidence?.value / 100.0, at_least: at_least.value, at_most: at_most.value })
}

/// `"2s"` or `"1000 iterations"`.
fn text(text: &str) -> Result<Window, Wrong> {
    let whole = 0..text.len();
    if let Some(number) = text.strip_suffix("iterations").or_else(|| text.strip_suffix("iteration")) {
        let count = number.trim().parse().ok().filter(|count| (1..=1_000_000_000_000_u64).contains(count));
        return count.map(Window::Iterations).ok_or_else(|| {
            Wrong::new(
                whole,
                format!("`{}` is not a number of iterations", number.trim()),
                "write a number from 1 to 10^12",
            )
        });
    }
    match quantity::duration(text) {
        Ok(time) if (SHORTEST..=LONGEST).contains(&time) => Ok(Window::Duration(time)),
        Ok(_) => {
            Err(Wrong::new(whole, format!("`{text}` is not from 1ms to 1h"), "two seconds are a good start: \"2s\""))
        }
        Err(wrong) => Err(Wrong { help: HELP.into(), ..wrong }),
    }
}
