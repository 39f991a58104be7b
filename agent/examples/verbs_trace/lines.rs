//! The file that is written: one JSON object a line, in the order of the calls.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::Write,
    sync::OnceLock,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::posts::{Completions, Posts};

/// What has been seen and is not written yet.
#[derive(Default)]
pub struct State {
    /// Short names of live objects, by address.
    named: HashMap<usize, String>,
    /// Objects of each kind so far.
    counts: HashMap<&'static str, u32>,
    /// By the number of the queue pair.
    pub posts: HashMap<u32, Posts>,
    /// By the name of the completion queue.
    pub completions: HashMap<String, Completions>,
}

impl State {
    /// Names a new object: its kind and how many of that kind there were.
    pub fn name(&mut self, kind: &'static str, address: usize) -> String {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("{kind}{count}");
        self.named.insert(address, name.clone());
        name
    }

    /// The name of an object, `null` for none.
    pub fn named(&self, address: usize) -> Value {
        self.named.get(&address).map_or(Value::Null, |name| json!(name))
    }

    /// Forgets an object, whose address may become another's.
    pub fn gone(&mut self, address: usize) -> Option<String> {
        self.named.remove(&address)
    }
}

pub fn state() -> &'static Mutex<State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(|| Mutex::new(State::default()))
}

fn file() -> Option<&'static Mutex<File>> {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os("VERBS_TRACE")?;
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = file.inspect_err(|error| eprintln!("verbs_trace: {}: {error}", path.display())).ok()?;
        // Several processes may write one file one after the other: the last one counts.
        let program = std::env::args().next();
        let begun = writeln!(file, "{}", json!({"call": "begin", "program": program, "pid": std::process::id()}));
        begun.inspect_err(|error| eprintln!("verbs_trace: {}: {error}", path.display())).ok()?;
        // SAFETY: the function takes nothing and returns nothing.
        unsafe { libc::atexit(at_exit) };
        Some(Mutex::new(file))
    })
    .as_ref()
}

/// Writes one line.
pub fn write(line: &Value) {
    if let Some(file) = file()
        && let Err(error) = writeln!(file.lock(), "{line}")
    {
        eprintln!("verbs_trace: {error}");
    }
}

/// Writes what was posted to a queue pair, and forgets it.
pub fn flush_posts(number: u32) {
    let posts = state().lock().posts.remove(&number);
    if let Some(posts) = posts.filter(Posts::any) {
        write(&posts.line(number));
    }
}

/// Writes what was taken from a completion queue, and forgets it.
pub fn flush_completions(name: &str) {
    let completions = state().lock().completions.remove(name);
    if let Some(completions) = completions {
        write(&completions.line(name));
    }
}

/// A program may end without destroying anything.
extern "C" fn at_exit() {
    let (numbers, names): (Vec<_>, Vec<_>) = {
        let state = state().lock();
        (state.posts.keys().copied().collect(), state.completions.keys().cloned().collect())
    };
    numbers.into_iter().for_each(flush_posts);
    names.iter().for_each(|name| flush_completions(name));
}
