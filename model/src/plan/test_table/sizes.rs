use std::ops::Range;

use railgauge_wire::{Bytes, Op, Service, TestMetric, Transport};
use toml::de::DeValue;

use super::kind::Kind;
use crate::plan::{
    Mistake, Table,
    grammar::{
        quantity::in_bounds,
        sweep::{self, sweep},
    },
    read::{Raw, texts_of},
};

/// Largest RDMA message: 2^31 bytes (InfiniBand Architecture Specification, volume 1, 9.3 and 9.7).
const LARGEST_VERBS: Bytes = Bytes::from_gib(2);
const LARGEST_DATAGRAM: Bytes = Bytes(4096);

pub fn number(table: &Table<'_>, value: &DeValue<'_>, span: &Range<usize>) -> Option<Bytes> {
    let integer = value.as_integer()?;
    // What does not fit is too large, or too small if it is negative.
    let sign = if integer.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    let bytes = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(sign);
    let text = table.book.text.get(span.clone()).unwrap_or_default();
    match in_bounds(bytes, text) {
        Ok(bytes) => Some(bytes),
        Err(wrong) => {
            table.book.add(Mistake::wrong(0, span.start, wrong));
            None
        }
    }
}

/// Ascending, with their places, and whether all are right.
pub fn listed(table: &Table<'_>, raw: Raw<'_>) -> (Vec<(Bytes, Range<usize>)>, bool) {
    let elements: Vec<(&DeValue<'_>, Range<usize>)> = match &*raw.value {
        DeValue::Array(list) => list.iter().map(|value| (value.get_ref(), value.span())).collect(),
        one => vec![(one, raw.span.clone())],
    };
    let mut sizes: Vec<(Bytes, Range<usize>)> = Vec::new();
    let mut sound = true;
    for (value, span) in elements {
        if sizes.len() > sweep::MOST {
            break;
        }
        if value.is_integer() {
            match number(table, value, &span) {
                Some(size) => sizes.push((size, span)),
                None => sound = false,
            }
            continue;
        }
        for words in texts_of(table.book, value, span.clone()) {
            match sweep(&words.text) {
                Ok(some) => sizes.extend(some.into_iter().map(|size| (size, span.clone()))),
                Err(wrong) => {
                    table.book.add(words.mistake(wrong));
                    sound = false;
                }
            }
        }
    }
    sizes.sort_by_key(|(size, span)| (*size, span.start));
    if let Some(twice) = sizes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let mistake = Mistake::at(twice[1].1.clone(), format!("the size {} is listed twice", twice[0].0));
        let mistake = if twice[0].1 == twice[1].1 { mistake } else { mistake.also(twice[0].1.clone(), "first here") };
        table.book.add(mistake.help("list every size once; use `repeats` to measure more often"));
        sound = false;
    }
    if sizes.is_empty() && sound {
        table.wrong(raw.span, "`sizes` is empty", "for example sizes = \"64..8MiB x2\"");
        sound = false;
    }
    (sizes, sound)
}

/// Ascending, unique; `None` after reporting a mistake.
pub fn read(test: &Table<'_>, kind: &Kind) -> Option<Vec<Bytes>> {
    let atomic = kind.op.is_some_and(Op::is_atomic);
    let within = super::node::size(kind.op);
    let Some(raw) = test.raw("sizes").filter(|raw| raw.own || !(atomic || within.is_some())) else {
        let preset = if let Some(size) = within {
            size
        } else if atomic || kind.metric == Some(TestMetric::Latency) {
            Bytes(8)
        } else {
            Bytes::from_kib(64)
        };
        return test.written("sizes").is_none().then(|| vec![preset]);
    };
    let (sizes, mut sound) = listed(test, raw);
    let (largest, span) = sizes.last().cloned()?;
    let add = |message: String, help: &str| test.wrong(span.clone(), message, help);
    if sizes.len() > sweep::MOST {
        add("the test has more than 1000 sizes".into(), "use larger steps or fewer sweeps");
        sound = false;
    } else if atomic && sizes.iter().any(|(size, _)| *size != Bytes(8)) {
        add("atomics always use 8 bytes".into(), "leave `sizes` out");
    } else if kind.transport == Some(Transport::Verbs)
        && kind.service == Some(Service::Ud)
        && largest > LARGEST_DATAGRAM
    {
        add(
            format!("a datagram of {largest} bytes"),
            "the service ud carries at most 4096 bytes, and no more than the path MTU",
        );
    } else if matches!(kind.transport, Some(Transport::Verbs | Transport::Nic)) && largest > LARGEST_VERBS {
        add(format!("an RDMA message of {largest} bytes"), "an RDMA message is at most 2GiB");
    }
    sound.then(|| sizes.into_iter().map(|(size, _)| size).collect())
}
