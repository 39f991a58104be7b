//! The words of a filter.

use std::ops::Range;

use railgauge_model::border::wrong::Wrong;

/// Words of one filter: what is made of them is walked through by functions that call themselves.
const MOST: usize = 2_000;

/// One word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A column or a keyword.
    Name(String),
    /// A number; sizes are in bytes.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// A sign.
    Sign(&'static str),
}

/// Signs, the longer ones first.
const SIGNS: [&str; 15] = ["!=", "<>", "<=", ">=", "==", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/"];

/// Units of sizes, in bytes.
const SIZES: [(&str, f64); 4] =
    [("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("TiB", 1_099_511_627_776.0)];

/// The words of a text, each with its bytes.
pub(super) fn words(text: &str) -> Result<Vec<(Word, Range<usize>)>, Wrong> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (word, length) = if first == '\'' || first == '"' {
            quoted(rest, first, at)?
        } else if first.is_ascii_digit() || first == '.' {
            number(rest, at)?
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Word::Name(rest[..length].to_owned()), length)
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Word::Sign(sign), sign.len())
        } else {
            let help = "columns, numbers, texts in quotes, and = != < <= > >= + - * / ( ) ,";
            return Err(Wrong::new(at..at + first.len_utf8(), format!("`{first}` is no part of a filter"), help));
        };
        words.push((word, at..at + length));
        if words.len() > MOST {
            return Err(Wrong::new(at..at + length, format!("more than {MOST} words"), "use several queries"));
        }
        at += length;
    }
    Ok(words)
}

/// A text in quotes; a quote in it is written twice.
fn quoted(rest: &str, quote: char, at: usize) -> Result<(Word, usize), Wrong> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((place, letter)) = letters.next() {
        if letter != quote {
            text.push(letter);
        } else if letters.peek().is_some_and(|(_, next)| *next == quote) {
            text.push(quote);
            letters.next();
        } else {
            return Ok((Word::Text(text), place + quote.len_utf8()));
        }
    }
    Err(Wrong::new(at..at + rest.len(), "a text without an end", format!("close it with {quote}")))
}

/// A number, and a unit of sizes right behind it.
fn number(rest: &str, at: usize) -> Result<(Word, usize), Wrong> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let power = digits((length + 1 + sign).min(bytes.len()));
        length += if power > 0 { 1 + sign + power } else { 0 };
    }
    let unit_length = rest[length..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len() - length);
    let (written, unit) = (&rest[..length], &rest[length..length + unit_length]);
    let value = written.parse::<f64>().ok().filter(|value| value.is_finite());
    let value = value.ok_or_else(|| Wrong::new(at..at + length, format!("`{written}` is no number"), "write 0.5"))?;
    let factor = match unit {
        "" => 1.0,
        unit => {
            let known = SIZES.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
            let place = at + length..at + length + unit_length;
            let help = "sizes are in KiB, MiB, GiB and TiB, and all else is in the unit of its column";
            known.ok_or_else(|| Wrong::new(place, format!("`{unit}` is no unit here"), help))?
        }
    };
    Ok((Word::Number(value * factor), length + unit_length))
}
