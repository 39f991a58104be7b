use serde_json::Value;

use super::text;

/// The largest magnitude of a number. As nanoseconds it is 146 years, so clocks since 1970 fit until 2116; as bytes it is 4 EiB. The sum of
/// two fits into an `i64`.
pub const FARTHEST: u64 = 1 << 62;

/// Fields whose numbers, and all below them, may be any 64 bits: kernel counters, seeds, addresses, the upper bound of an expectation for
/// all sizes. Code that calculates with them must handle overflow.
const FREE: &[&str] =
    &["Counters", "counters", "from_counters", "to_counters", "Facts", "facts", "seed", "address", "expect"];

/// Fields whose text may have several lines, as the plan's author wrote it.
const IN_LINES: &[&str] = &["description", "apply", "undo", "command"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// Bytes of all texts, with names of fields.
    pub said: usize,
    pub longest: usize,
    pub unprintable: bool,
    /// Place and value of a number beyond [`FARTHEST`].
    pub impossible: Option<String>,
}

pub fn look(value: &Value) -> Look {
    let far = far(value).map(|(mut place, number)| {
        place.reverse();
        format!("`{}` is {number}", text::printable(&place.join(".")))
    });
    let mut seen = Look { impossible: far, ..Look::default() };
    seen.texts(value, false);
    seen
}

pub(super) fn has_lines(field: &str) -> bool {
    IN_LINES.contains(&field)
}

impl Look {
    fn texts(&mut self, value: &Value, in_lines: bool) {
        match value {
            Value::String(text) => self.text(text, in_lines),
            Value::Array(items) => items.iter().for_each(|item| self.texts(item, in_lines)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                self.text(name, false);
                self.texts(value, has_lines(name));
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, in_lines: bool) {
        self.said += text.len();
        self.longest = self.longest.max(text.len());
        let printable = if in_lines { text::has_printable_lines(text) } else { text::is_printable(text) };
        self.unprintable |= !printable;
    }
}

/// A number beyond [`FARTHEST`], and the fields and positions that lead to it, last first.
fn far(value: &Value) -> Option<(Vec<String>, String)> {
    let below = |name: String, value: &Value| {
        far(value).map(|(mut place, number)| {
            place.push(name);
            (place, number)
        })
    };
    match value {
        Value::Number(number) => {
            let whole = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
            match (whole, number.as_f64()) {
                (Some(whole), _) if whole > FARTHEST => Some((Vec::new(), number.to_string())),
                (None, Some(part)) if part.abs() > FARTHEST as f64 => Some((Vec::new(), format!("{part:e}"))),
                _ => None,
            }
        }
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| below(at.to_string(), item)),
        Value::Object(fields) => {
            let mut bound = fields.iter().filter(|(name, _)| !FREE.contains(&name.as_str()));
            bound.find_map(|(name, value)| below(name.clone(), value))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}
