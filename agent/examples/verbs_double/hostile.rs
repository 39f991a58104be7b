//! Misbehaviour on request: `VERBS_DOUBLE_HOSTILE`, a list of words with commas between them.

use std::time::Duration;

/// How a process's devices misbehave.
#[derive(Debug, Default, Clone)]
pub struct Hostile {
    /// `last-byte-first` or `last-byte-first=N`: the last byte of what a peer writes is placed before the others, but of the
    /// first N writes.
    pub last_byte_first: Option<u64>,
    /// `ack-before-data`: a peer's request on a connection is complete before its bytes are placed.
    pub ack_before_data: bool,
    /// `late-completions`: every completion comes milliseconds after the work.
    pub late_completions: bool,
    /// `reordered-completions`: completions of datagrams come out of order, as those of SRD do.
    pub reordered_completions: bool,
    /// `cq-overrun=N`: every completion queue takes N entries and overruns at the next.
    pub overrun_after: Option<u64>,
    /// `port-down-after=N`: the port goes down N ms after the first request was posted; the tree says so, too.
    pub port_down_after: Option<Duration>,
    /// `wrong-byte=N`: every Nth payload that a peer sends here has a flipped bit in its middle.
    pub wrong_byte: Option<u64>,
    /// `event=NAME@N`: an asynchronous event N ms after the first request was posted.
    pub event: Option<Event>,
    /// `late-events`: an event about a queue pair comes a little after the completions that it explains.
    pub late_events: bool,
    /// `grh-dropped`: where the port wants a global route header, a path without one is taken and leads nowhere.
    pub grh_dropped: bool,
    /// `lost-datagrams`: no datagram arrives.
    pub lost_datagrams: bool,
    /// `counters-stuck`: no counter in the tree moves.
    pub counters_stuck: bool,
}

/// An asynchronous event that was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub kind: i32,
    pub after: Duration,
    /// Whether what it tells of really changes: else the same is given again, as subnet managers do.
    pub changes: bool,
}

/// How late completions are.
pub const LATE: Duration = Duration::from_millis(3);

/// How long bytes are held back from their place, where their order is wrong: a thread that polls on a busy machine must see it.
pub const HELD: Duration = Duration::from_millis(20);

/// How long they come after the completion of their request: longer than a word by way of the controller.
pub const BEHIND: Duration = Duration::from_millis(30);

/// `enum ibv_event_type` of <infiniband/verbs.h>.
pub mod event {
    pub const CQ_ERR: i32 = 0;
    pub const QP_FATAL: i32 = 1;
    pub const QP_ACCESS_ERR: i32 = 3;
    pub const DEVICE_FATAL: i32 = 8;
    pub const PORT_ACTIVE: i32 = 9;
    pub const PORT_ERR: i32 = 10;
    pub const LID_CHANGE: i32 = 11;
    pub const PKEY_CHANGE: i32 = 12;
    pub const SM_CHANGE: i32 = 13;
    pub const GID_CHANGE: i32 = 18;
}

/// Events that can be asked for, and whether something changes with them.
const EVENTS: [(&str, i32, bool); 11] = [
    ("qp-fatal", event::QP_FATAL, false),
    ("device-fatal", event::DEVICE_FATAL, false),
    ("port-active", event::PORT_ACTIVE, false),
    ("port-err", event::PORT_ERR, false),
    ("lid-change", event::LID_CHANGE, false),
    ("new-lid", event::LID_CHANGE, true),
    ("pkey-change", event::PKEY_CHANGE, false),
    ("lost-pkey", event::PKEY_CHANGE, true),
    ("sm-change", event::SM_CHANGE, false),
    ("gid-change", event::GID_CHANGE, false),
    ("lost-gid", event::GID_CHANGE, true),
];

impl Hostile {
    /// Reads the list.
    ///
    /// # Errors
    /// A word that is none, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut hostile = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let number =
                || value.parse::<u64>().map_err(|_| format!("VERBS_DOUBLE_HOSTILE: {word}: a number is wanted"));
            match name {
                "last-byte-first" if value.is_empty() => hostile.last_byte_first = Some(0),
                "last-byte-first" => hostile.last_byte_first = Some(number()?),
                "ack-before-data" => hostile.ack_before_data = true,
                "late-completions" => hostile.late_completions = true,
                "reordered-completions" => hostile.reordered_completions = true,
                "cq-overrun" => hostile.overrun_after = Some(number()?),
                "port-down-after" => hostile.port_down_after = Some(Duration::from_millis(number()?)),
                "wrong-byte" => hostile.wrong_byte = Some(number()?.max(1)),
                "late-events" => hostile.late_events = true,
                "grh-dropped" => hostile.grh_dropped = true,
                "lost-datagrams" => hostile.lost_datagrams = true,
                "counters-stuck" => hostile.counters_stuck = true,
                "event" => hostile.event = Some(event_at(value)?),
                _ => return Err(format!("VERBS_DOUBLE_HOSTILE: {word} is unknown")),
            }
        }
        Ok(hostile)
    }
}

fn event_at(value: &str) -> Result<Event, String> {
    let (name, after) = value.split_once('@').unwrap_or((value, "0"));
    let known = EVENTS.iter().find(|(known, ..)| *known == name);
    let after = after.parse().map_err(|_| format!("VERBS_DOUBLE_HOSTILE: event={value}: a number of ms is wanted"));
    let (_, kind, changes) = known.ok_or_else(|| format!("VERBS_DOUBLE_HOSTILE: event {name} is unknown"))?;
    Ok(Event { kind: *kind, after: Duration::from_millis(after?), changes: *changes })
}
