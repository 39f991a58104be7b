//! Words become a filter: columns exist, and what is compared is of one kind.

use std::ops::Range;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use railgauge_model::border::wrong::{Wrong, nearest};
use railgauge_wire::terms::{Better, Memory, Metric, Op};

use super::{
    Arithmetic, Filter, FilterError, Number, Order, Text, Time,
    lex::{Word, words},
};
use crate::analysis::{
    frame::{COLUMNS, Kind, kind},
    row::Phase,
};

/// Brackets, signs and `not` inside one another.
const DEEPEST: u32 = 64;
/// Letters of a piece of a name that is taken for the name.
const LEAST_PART: usize = 3;
/// Words that are no column.
const KEYWORDS: [&str; 7] = ["and", "or", "not", "in", "is", "null", "like"];

/// The filter of a text.
///
/// # Errors
/// The text is none, names a column that no frame has, or compares what cannot be compared.
pub fn filter(text: &str) -> Result<Filter, FilterError> {
    let parsed = words(text).and_then(|words| {
        let mut parser = Parser { words, next: 0, end: text.len(), deep: 0 };
        let filter = parser.either()?;
        match parser.words.get(parser.next) {
            Some((_, at)) => Err(Wrong::new(at.clone(), "the filter ends before this", "write `and` or `or` between")),
            None => Ok(filter),
        }
    });
    parsed.map_err(|wrong| FilterError { text: text.to_owned(), wrong })
}

/// The nearest column, or all of them. A piece of a name is near: `case` was a column of version 1, `host` stands in two.
pub(in crate::query) fn columns_like(name: &str) -> String {
    let known = || COLUMNS.into_iter().map(|(known, _)| known);
    let part = || known().find(|known| name.len() >= LEAST_PART && known.split('_').any(|part| part == name));
    match nearest(name, known()).or_else(part) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("columns are {}", known().collect::<Vec<_>>().join(", ")),
    }
}

/// Words that a column of text can have, where there are no others.
fn vocabulary(column: &str) -> Option<Vec<&'static str>> {
    Some(match column {
        "metric" => Metric::ALL.iter().map(|metric| metric.word()).collect(),
        "op" => Op::ALL.iter().map(|op| op.word()).collect(),
        "better" => Better::ALL.iter().map(|better| better.word()).collect(),
        "phase" => Phase::ALL.iter().map(|phase| phase.word()).collect(),
        "memory" => Memory::ALL.iter().map(|memory| memory.word()).collect(),
        _ => return None,
    })
}

/// One side of a comparison, before it is known what the other is.
enum Side {
    Number(Number),
    Text(Text),
    Time(String),
}

struct Parser {
    words: Vec<(Word, Range<usize>)>,
    next: usize,
    end: usize,
    deep: u32,
}

impl Parser {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|(word, _)| word)
    }

    /// Where the next word is; the end of the text after the last one.
    fn place(&self) -> Range<usize> {
        self.words.get(self.next).map_or(self.end..self.end, |(_, at)| at.clone())
    }

    fn wrong<T>(&self, message: impl Into<String>, help: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong::new(self.place(), message, help))
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Word::Name(name)) if name.eq_ignore_ascii_case(keyword))
    }

    /// Whether the next word is this keyword, which is then taken.
    fn keyword(&mut self, keyword: &str) -> bool {
        let is = self.is_keyword(keyword);
        self.next += usize::from(is);
        is
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Word::Sign(found)) if *found == sign);
        self.next += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.sign(sign) {
            Ok(())
        } else {
            self.wrong(format!("`{sign}` is missing"), format!("write `{sign}` here"))
        }
    }

    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        self.deep += 1;
        if self.deep > DEEPEST {
            return self.wrong(format!("more than {DEEPEST} levels"), "use fewer brackets");
        }
        let found = inside(self);
        self.deep -= 1;
        found
    }

    fn either(&mut self) -> Result<Filter, Wrong> {
        let mut all = vec![self.both()?];
        while self.keyword("or") {
            all.push(self.both()?);
        }
        Ok(one_or(all, Filter::Or))
    }

    fn both(&mut self) -> Result<Filter, Wrong> {
        let mut all = vec![self.not()?];
        while self.keyword("and") {
            all.push(self.not()?);
        }
        Ok(one_or(all, Filter::And))
    }

    fn not(&mut self) -> Result<Filter, Wrong> {
        if self.keyword("not") {
            return self.deeper(|parser| Ok(Filter::Not(Box::new(parser.not()?))));
        }
        let begin = self.next;
        if self.sign("(") {
            // A bracket may also begin a number, as in `(value + 1) * 2 > 3`.
            let inside = self.deeper(|parser| {
                let filter = parser.either()?;
                parser.expect(")").map(|()| filter)
            });
            match inside {
                Ok(filter) if !self.goes_on() => return Ok(filter),
                Err(wrong) if !self.is_number_in_brackets(begin) => return Err(wrong),
                _ => self.next = begin,
            }
        }
        self.condition()
    }

    /// Whether what follows makes a number of what stands before.
    fn goes_on(&self) -> bool {
        let signs = ["=", "==", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/"];
        matches!(self.peek(), Some(Word::Sign(sign)) if signs.contains(sign))
    }

    /// Whether the brackets that open at a word hold a number and no condition.
    fn is_number_in_brackets(&self, begin: usize) -> bool {
        let mut open = 0_usize;
        for (word, _) in self.words.iter().skip(begin) {
            match word {
                Word::Sign("(") => open += 1,
                Word::Sign(")") => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return true;
                    }
                }
                Word::Sign("+" | "-" | "*" | "/") | Word::Number(_) => {}
                Word::Name(name) if !KEYWORDS.iter().any(|keyword| name.eq_ignore_ascii_case(keyword)) => {}
                _ => return false,
            }
        }
        false
    }

    fn condition(&mut self) -> Result<Filter, Wrong> {
        let begin = self.place();
        let left = self.side()?;
        let column = match &left {
            Side::Number(Number::Column(name)) | Side::Text(Text::Column(name)) | Side::Time(name) => {
                Some(name.clone())
            }
            _ => None,
        };
        if let Some(column) = column {
            if self.keyword("is") {
                let is_not = self.keyword("not");
                if !self.keyword("null") {
                    return self.wrong("`null` is missing", "write `is null` or `is not null`");
                }
                return Ok(negated(is_not, Filter::Null(column)));
            }
            let is_not = self.keyword("not");
            if self.keyword("in") {
                return Ok(negated(is_not, self.list(column)?));
            }
            if self.keyword("like") {
                return Ok(negated(is_not, self.pattern(column, &left, begin)?));
            }
            if is_not {
                return self.wrong("`in` or `like` is missing", "write `not in (…)` or `not like '…'`");
            }
        }
        let order = self.order()?;
        let right_begin = self.place();
        let right = self.side()?;
        self.compared(left, order, right, begin, right_begin)
    }

    fn order(&mut self) -> Result<Order, Wrong> {
        let Some(Word::Sign(sign)) = self.peek() else {
            return self.wrong("a comparison is missing", "write =, !=, <, <=, >, >=, in, like or is null");
        };
        let order = match *sign {
            "=" | "==" => Order::Same,
            "!=" | "<>" => Order::Other,
            "<" => Order::Less,
            "<=" => Order::AtMost,
            ">" => Order::More,
            ">=" => Order::AtLeast,
            other => {
                let message = format!("`{other}` is no comparison");
                return self.wrong(message, "write =, !=, <, <=, >, >=, in, like or is null");
            }
        };
        self.next += 1;
        Ok(order)
    }

    fn compared(
        &self,
        left: Side,
        order: Order,
        right: Side,
        left_at: Range<usize>,
        right_at: Range<usize>,
    ) -> Result<Filter, Wrong> {
        Ok(match (left, right) {
            (Side::Number(left), Side::Number(right)) => Filter::Numbers(left, order, right),
            (Side::Text(left), Side::Text(right)) => {
                for (column, word, at) in [(&left, &right, right_at), (&right, &left, left_at)] {
                    if let (Text::Column(column), Text::Constant(word)) = (column, word) {
                        is_possible(column, word, at)?;
                    }
                }
                Filter::Texts(left, order, right)
            }
            (Side::Time(left), Side::Time(right)) => Filter::Times(Time::Column(left), order, Time::Column(right)),
            (Side::Time(left), Side::Text(Text::Constant(right))) => {
                Filter::Times(Time::Column(left), order, Time::Constant(time(&right, right_at)?))
            }
            (Side::Text(Text::Constant(left)), Side::Time(right)) => {
                Filter::Times(Time::Constant(time(&left, left_at)?), order, Time::Column(right))
            }
            (left, right) => {
                let at = left_at.start..right_at.end;
                let message = format!("{} and {} cannot be compared", left.noun(), right.noun());
                let help = "texts and times stand in quotes, numbers do not";
                return Err(Wrong::new(at, message, help));
            }
        })
    }

    /// What stands behind `in`.
    fn list(&mut self, column: String) -> Result<Filter, Wrong> {
        self.expect("(")?;
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        let of = kind(&column);
        loop {
            let at = self.place();
            let minus = of != Some(Kind::Text) && self.sign("-");
            match (self.peek().cloned(), of) {
                (Some(Word::Text(text)), Some(Kind::Text)) => {
                    is_possible(&column, &text, at)?;
                    texts.push(text);
                }
                (Some(Word::Number(number)), Some(Kind::Whole | Kind::Real)) => {
                    numbers.push(if minus { -number } else { number });
                }
                (_, Some(Kind::Text)) => return self.wrong(format!("`{column}` is text"), "write a text in quotes"),
                (_, Some(Kind::Time)) => return self.wrong(format!("`{column}` is a time"), "write two comparisons"),
                _ => return self.wrong(format!("`{column}` is a number"), "write a number"),
            }
            self.next += 1;
            if self.sign(")") {
                break;
            }
            self.expect(",")?;
        }
        Ok(if of == Some(Kind::Text) { Filter::InTexts(column, texts) } else { Filter::InNumbers(column, numbers) })
    }

    /// What stands behind `like`.
    fn pattern(&mut self, column: String, left: &Side, begin: Range<usize>) -> Result<Filter, Wrong> {
        if !matches!(left, Side::Text(_)) {
            return Err(Wrong::new(begin, format!("`{column}` is no text"), "`like` is for columns of text"));
        }
        let Some(Word::Text(pattern)) = self.peek().cloned() else {
            return self.wrong("a pattern is missing", "write 'gpu0%': % is any characters, _ is one");
        };
        self.next += 1;
        Ok(Filter::Like(column, pattern))
    }

    fn side(&mut self) -> Result<Side, Wrong> {
        match self.peek() {
            Some(Word::Text(text)) => {
                let text = text.clone();
                self.next += 1;
                Ok(Side::Text(Text::Constant(text)))
            }
            Some(Word::Name(name)) if matches!(kind(name), Some(Kind::Text | Kind::Time)) => {
                let name = name.clone();
                self.next += 1;
                Ok(if kind(&name) == Some(Kind::Time) { Side::Time(name) } else { Side::Text(Text::Column(name)) })
            }
            _ => Ok(Side::Number(self.sum()?)),
        }
    }

    fn sum(&mut self) -> Result<Number, Wrong> {
        let mut number = self.product()?;
        loop {
            let what = if self.sign("+") {
                Arithmetic::Plus
            } else if self.sign("-") {
                Arithmetic::Minus
            } else {
                return Ok(number);
            };
            number = Number::Of(Box::new(number), what, Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Number, Wrong> {
        let mut number = self.factor()?;
        loop {
            let what = if self.sign("*") {
                Arithmetic::Times
            } else if self.sign("/") {
                Arithmetic::Over
            } else {
                return Ok(number);
            };
            number = Number::Of(Box::new(number), what, Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Number, Wrong> {
        if self.sign("-") {
            return self.deeper(|parser| Ok(Number::Negative(Box::new(parser.factor()?))));
        }
        if self.sign("(") {
            return self.deeper(|parser| {
                let number = parser.sum()?;
                parser.expect(")").map(|()| number)
            });
        }
        let number = match self.peek() {
            Some(Word::Number(number)) => Number::Constant(*number),
            Some(Word::Name(name)) => match kind(name) {
                Some(Kind::Whole | Kind::Real) => Number::Column(name.clone()),
                Some(_) => return self.wrong(format!("`{name}` is no number"), "compare it by itself"),
                None => return self.wrong(format!("there is no column `{name}`"), columns_like(name)),
            },
            Some(Word::Text(_)) => return self.wrong("a text is no number", "compare it by itself"),
            _ => return self.wrong("a column, a number or a text is missing", "write value < 380"),
        };
        self.next += 1;
        Ok(number)
    }
}

impl Side {
    fn noun(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Time(_) => "a time",
        }
    }
}

fn one_or(mut all: Vec<Filter>, make: fn(Vec<Filter>) -> Filter) -> Filter {
    match (all.len(), all.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            all.extend(last);
            make(all)
        }
    }
}

fn negated(is_not: bool, filter: Filter) -> Filter {
    if is_not { Filter::Not(Box::new(filter)) } else { filter }
}

/// A word that a column never has would keep no row, without a word about it.
fn is_possible(column: &str, word: &str, at: Range<usize>) -> Result<(), Wrong> {
    let Some(known) = vocabulary(column).filter(|known| !known.contains(&word)) else { return Ok(()) };
    let help = match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("it is one of {}", known.join(", ")),
    };
    Err(Wrong::new(at, format!("`{column}` is never '{word}'"), help))
}

/// A point in time, or the beginning of a day, in UTC.
fn time(text: &str, at: Range<usize>) -> Result<Timestamp, Wrong> {
    let of_day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let found = text.parse::<Timestamp>().ok().or_else(of_day);
    found.ok_or_else(|| Wrong::new(at, format!("'{text}' is no time"), "write '2026-11-26' or '2026-11-26T03:00:00Z'"))
}
