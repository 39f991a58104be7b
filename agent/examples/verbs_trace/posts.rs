//! What was posted to a queue pair and taken from a completion queue, in numbers: a trace has the length of what is
//! different, not of the run.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::names;

/// What two requests have in common when they are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub opcode: u32,
    /// `enum ibv_send_flags`; the builder's inline payload is [`Shape::INLINE`] too.
    pub flags: u32,
    pub elements: u32,
    pub length: u64,
    /// Operand of an atomic: what is added or compared, and what is swapped in.
    pub operands: Option<(u64, u64)>,
    pub immediate: bool,
}

impl Shape {
    pub const SIGNALED: u32 = 1 << 1;
    pub const INLINE: u32 = 1 << 3;
}

/// One send request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub shape: Shape,
    pub local: u64,
    /// The peer's address and key, where the operation has one.
    pub remote: Option<(u64, u32)>,
    /// The peer's queue pair and key of a datagram.
    pub datagram: Option<(u32, u32)>,
}

/// Distinct values that a histogram keeps; more are counted as `more`.
const KEPT: usize = 16;

#[derive(Debug, Default, Clone)]
pub struct Histogram(BTreeMap<i64, u64>, u64);

impl Histogram {
    pub fn add(&mut self, value: i64) {
        let room = self.0.len() < KEPT;
        match self.0.get_mut(&value) {
            Some(count) => *count += 1,
            None if room => drop(self.0.insert(value, 1)),
            None => self.1 += 1,
        }
    }

    fn value(&self) -> Value {
        let mut map: serde_json::Map<_, _> = self.0.iter().map(|(k, n)| (k.to_string(), json!(n))).collect();
        if self.1 > 0 {
            map.insert("more".to_owned(), json!(self.1));
        }
        Value::Object(map)
    }
}

/// What one queue pair was given.
#[derive(Debug, Default)]
pub struct Posts {
    api: &'static str,
    shapes: Vec<(Shape, u64)>,
    lists: Histogram,
    /// Requests from one that completes to the next.
    intervals: Histogram,
    local_steps: Histogram,
    remote_steps: Histogram,
    keys: Vec<u32>,
    datagrams: Vec<(u32, u32)>,
    last: Option<(u64, Option<u64>)>,
    silent: i64,
    /// Numbers of the requests that will complete and have not.
    pending: VecDeque<u64>,
    posted: u64,
    completed: u64,
    most_in_flight: u64,
    receives: u64,
    received: u64,
    most_receives: u64,
    /// Receives posted when the first request was sent or the first message taken.
    first_receives: Option<u64>,
    receive_shapes: Vec<((u32, u64), u64)>,
    receive_lists: Histogram,
}

/// Counts `key` in order of first appearance.
fn count<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}

/// Keeps a few distinct values.
fn keep<T: PartialEq>(kept: &mut Vec<T>, value: T) {
    if kept.len() < KEPT && !kept.contains(&value) {
        kept.push(value);
    }
}

impl Posts {
    pub fn any(&self) -> bool {
        self.posted > 0 || self.receives > 0
    }

    /// One call that handed over `requests`.
    pub fn send(&mut self, api: &'static str, requests: &[Request]) {
        self.api = api;
        self.first_receives.get_or_insert(self.receives);
        self.lists.add(requests.len() as i64);
        for request in requests {
            count(&mut self.shapes, request.shape);
            let remote = request.remote.map(|(address, _)| address);
            if let Some((local, before)) = self.last {
                self.local_steps.add(request.local.wrapping_sub(local).cast_signed());
                if let Some((now, before)) = remote.zip(before) {
                    self.remote_steps.add(now.wrapping_sub(before).cast_signed());
                }
            }
            self.last = Some((request.local, remote));
            if let Some((_, key)) = request.remote {
                keep(&mut self.keys, key);
            }
            if let Some(to) = request.datagram {
                keep(&mut self.datagrams, to);
            }
            self.posted += 1;
            self.silent += 1;
            if request.shape.flags & Shape::SIGNALED != 0 {
                self.intervals.add(std::mem::take(&mut self.silent));
                self.pending.push_back(self.posted);
            }
        }
        self.most_in_flight = self.most_in_flight.max(self.posted - self.completed);
    }

    /// One call that handed over receives of so many elements and bytes.
    pub fn receive(&mut self, receives: &[(u32, u64)]) {
        self.receive_lists.add(receives.len() as i64);
        for shape in receives {
            count(&mut self.receive_shapes, *shape);
        }
        self.receives += receives.len() as u64;
        self.most_receives = self.most_receives.max(self.receives - self.received);
    }

    /// The program has taken a completion.
    pub fn complete(&mut self, of_receive: bool) {
        if of_receive {
            self.first_receives.get_or_insert(self.receives);
            self.received += 1;
        } else if let Some(number) = self.pending.pop_front() {
            self.completed = number;
        }
    }

    pub fn line(&self, number: u32) -> Value {
        let shapes: Vec<_> = self.shapes.iter().map(|(shape, count)| of_shape(shape, *count)).collect();
        let receives: Vec<_> = (self.receive_shapes.iter())
            .map(|((elements, length), count)| json!({"num_sge": elements, "length": length, "count": count}))
            .collect();
        json!({
            "call": "posts", "qp_num": number, "api": self.api, "sends": shapes, "lists": self.lists.value(),
            "intervals": self.intervals.value(), "local_steps": self.local_steps.value(),
            "remote_steps": self.remote_steps.value(), "rkeys": self.keys, "datagrams": self.datagrams,
            "most_in_flight": self.most_in_flight, "unsignaled_at_end": self.silent,
            "receives": receives, "receive_lists": self.receive_lists.value(), "most_receives": self.most_receives,
            "first_receives": self.first_receives,
        })
    }
}

fn of_shape(shape: &Shape, count: u64) -> Value {
    json!({
        "opcode": names::opcode(shape.opcode), "send_flags": names::send_flags(shape.flags), "num_sge": shape.elements,
        "length": shape.length, "imm": shape.immediate, "operands": shape.operands, "count": count,
    })
}

/// How one completion queue was asked.
#[derive(Debug, Default)]
pub struct Completions {
    entries: Histogram,
    notify: Histogram,
    acknowledged: Histogram,
    events: u64,
    failed: Histogram,
}

impl Completions {
    /// A poll for so many entries.
    pub fn poll(&mut self, entries: i64) {
        self.entries.add(entries);
    }

    /// A completion with another status than success.
    pub fn failed(&mut self, status: i64) {
        self.failed.add(status);
    }

    pub fn notify(&mut self, solicited_only: i64) {
        self.notify.add(solicited_only);
    }

    pub fn event(&mut self) {
        self.events += 1;
    }

    pub fn acknowledge(&mut self, events: i64) {
        self.acknowledged.add(events);
    }

    pub fn line(&self, name: &str) -> Value {
        json!({
            "call": "completions", "cq": name, "poll_entries": self.entries.value(), "notify": self.notify.value(),
            "acknowledged": self.acknowledged.value(), "events": self.events, "failed": self.failed.value(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(local: u64, flags: u32) -> Request {
        let shape = Shape { opcode: 0, flags, elements: 1, length: 8, operands: None, immediate: false };
        Request { shape, local, remote: Some((local + 4096, 7)), datagram: None }
    }

    #[test]
    fn a_loop_becomes_a_few_numbers() {
        let mut posts = Posts::default();
        posts.receive(&[(1, 8); 4]);
        for round in 0..100 {
            let flags = if round % 4 == 3 { Shape::SIGNALED } else { 0 };
            posts.send("post_send", &[write(64 * (round % 2), 0), write(64 * (round % 2), flags)]);
            if flags != 0 {
                posts.complete(false);
            }
        }
        let line = posts.line(9);
        assert_eq!(line["lists"], json!({"2": 100}));
        assert_eq!(line["intervals"], json!({"8": 25}));
        assert_eq!(line["most_in_flight"], 8);
        assert_eq!(line["local_steps"], json!({"0": 100, "64": 50, "-64": 49}));
        assert_eq!((line["most_receives"].as_u64(), line["first_receives"].as_u64()), (Some(4), Some(4)));
        let [silent, signaled] = &line["sends"].as_array().unwrap()[..] else { panic!("{line}") };
        assert_eq!((silent["count"].as_u64(), signaled["count"].as_u64()), (Some(175), Some(25)));
        assert_eq!(signaled["send_flags"], json!(["SIGNALED"]));
    }

    #[test]
    fn a_histogram_stays_small() {
        let mut histogram = Histogram::default();
        (0..100).for_each(|value| histogram.add(value));
        assert_eq!(histogram.value().as_object().unwrap().len(), KEPT + 1);
        assert_eq!(histogram.value()["more"], 84);
    }
}
