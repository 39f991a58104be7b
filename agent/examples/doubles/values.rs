//! Values that a double of NVML or AMD SMI tells, and what the environment makes of them: words `NAME=NUMBER`, or `d1:NAME=NUMBER` for one
//! of the GPUs. `NAME=+NUMBER` grows by so much at each question, `NAME=none` is not told.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Bus numbers of the GPUs.
pub const BUSES: [u64; 2] = [0xd0, 0xd1];

/// How often each value was asked for, by bus and name.
pub static ASKED: Mutex<BTreeMap<(u64, String), u64>> = Mutex::new(BTreeMap::new());

/// A value of a GPU; `None` where it does not tell.
pub fn value(bus: u64, name: &str) -> Option<u64> {
    let words = std::env::var(crate::WORDS).unwrap_or_default();
    let own = format!("{bus:x}:{name}");
    let set = |wanted: &str| {
        let mut pairs = words.split_whitespace().filter_map(|word| word.split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
    };
    let usual = crate::USUAL.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let Some(text) = set(&own).or_else(|| set(name)) else { return usual };
    let mut asked = ASKED.lock();
    let times = asked.entry((bus, name.to_owned())).or_default();
    *times += 1;
    match text.strip_prefix('+') {
        Some(step) => Some(usual.unwrap_or(0) + step.parse::<u64>().ok()? * *times),
        None => text.parse().ok(),
    }
}
