//! Stands in for the agent in tests of the controller's `cluster`: speaks the protocol, measures nothing, and goes
//! wrong in the way the environment variable `FAKE` names:
//!
//! | `FAKE` | does |
//! | --- | --- |
//! | (not set) | answers the greeting, facts, clock and goodbye; ends with its standard input |
//! | `skew` | speaks another protocol |
//! | `silent` | never greets |
//! | `mute` | answers the greeting only |
//! | `stubborn` | does not end with its standard input nor on goodbye |
//! | `dies` | ends with status 3 and last words when asked for facts |
//! | `babbles` | sends bytes that are no frame when asked for facts |
#![allow(clippy::unwrap_used, reason = "a panic is this program's way to fail a test")]

use std::{
    io::Write,
    process::exit,
    thread::sleep,
    time::{Duration, SystemTime},
};

use railgauge_wire::{
    PROTOCOL,
    facts::HostFacts,
    frame,
    message::{Answer, Ask, FromAgent, Request},
    unit::Nanoseconds,
};

fn main() {
    let fake = std::env::var("FAKE").unwrap_or_default();
    let (mut from, mut to) = (std::io::stdin().lock(), std::io::stdout().lock());
    eprintln!("fake agent {} started", std::process::id());
    if fake == "silent" {
        sleep(Duration::from_secs(60));
    }
    to.write_all(frame::MAGIC).unwrap();
    to.flush().unwrap();
    while let Ok(Some(Request { id, ask })) = frame::read::<Request>(&mut from) {
        let bye = ask == Ask::Bye;
        let answer = match ask {
            Ask::Hello { .. } => Answer::Hello {
                protocol: if fake == "skew" { PROTOCOL + 1 } else { PROTOCOL },
                version: "0.0.0-fake".to_owned(),
                pid: std::process::id(),
            },
            _ if fake == "mute" => continue,
            Ask::Facts if fake == "dies" => {
                eprintln!("the fake agent was told to die");
                exit(3);
            }
            Ask::Facts if fake == "babbles" => {
                to.write_all(b"this is no frame at all").unwrap();
                to.flush().unwrap();
                continue;
            }
            Ask::Facts => Answer::Facts(Box::new(HostFacts {
                hostname: std::env::var("NAME").unwrap_or_default(),
                ..HostFacts::default()
            })),
            Ask::Clock => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
                Answer::Clock { monotonic: Nanoseconds(now), realtime: Nanoseconds(now) }
            }
            _ => Answer::Done,
        };
        frame::write(&mut to, &FromAgent::Reply { id, outcome: Ok(answer) }).unwrap();
        if bye && fake != "stubborn" {
            return;
        }
    }
    if fake == "stubborn" {
        sleep(Duration::from_secs(60));
    }
}
