//! The webhook, and what keeps a faulty node out of service: taken from docs/watch.md and run as shown there.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::Command,
    thread,
};

use super::{Machine, Scenario, block, followed_up};
use crate::skip::skipped;

/// A cluster on the day before yesterday whose first host has this name.
fn recent(name: &str) -> Scenario {
    let yesterday = jiff::Zoned::now().date().saturating_sub(jiff::Span::new().days(2));
    Scenario { sizes: vec![1 << 20], first: yesterday, odd_name: Some(name.to_owned()), ..Scenario::healthy(8, 2) }
}

fn this_machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim().split('.').next().unwrap().to_owned()
}

/// A run that names this host as faulty.
fn blames(name: &str) -> String {
    let slow = Scenario { slow: Some(0), ..recent(name) };
    followed_up(&slow, &slow).0
}

/// Keys of idempotency and bodies of so many posts.
fn posts(listener: TcpListener, posts: usize) -> Vec<(String, String)> {
    let post = |_| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut key, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("idempotency-key") => key = value.to_owned(),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
                Some(_) => {}
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        (key, String::from_utf8(body).unwrap())
    };
    (0..posts).map(post).collect()
}

#[test]
fn a_repeated_message_has_the_key_of_the_first_and_a_new_run_another() {
    if Command::new("curl").arg("--version").output().is_err() {
        skipped("curl is not installed");
        return;
    }
    let machine = Machine::new();
    machine.add("runs", &blames("gpu001"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = machine.here(&block("Idempotency-Key"));
    let line = format!("WEBHOOK=http://{}/hook\n{line}", listener.local_addr().unwrap());
    let receiver = thread::spawn(move || posts(listener, 3));
    let post = || {
        let sent = machine.sh(&line);
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    };
    post();
    post();
    fs::create_dir(machine.at("runs/later")).unwrap();
    let later = Scenario { day: 1, ..recent("gpu001") };
    fs::write(machine.at("runs/later/records.jsonl"), later.jsonl()).unwrap();
    post();
    let [first, again, later]: [_; 3] = receiver.join().unwrap().try_into().unwrap();
    assert_eq!(first, again);
    assert!(first.0.len() == 64 && first.0.chars().all(|c| c.is_ascii_hexdigit()), "{first:?}");
    assert_ne!(first.0, later.0);
    let message: serde_json::Value = serde_json::from_str(&first.1).unwrap();
    assert_eq!(message["state"], "critical", "{message}");
}

#[test]
fn only_a_host_that_was_measured_as_good_passes_the_gates() {
    let (machine, host) = (Machine::new(), this_machine());
    let scontrol = machine.at("bin/scontrol");
    fs::write(&scontrol, format!("#!/bin/sh\necho \"$@\" >> {}\n", machine.at("told").display())).unwrap();
    fs::set_permissions(&scontrol, fs::Permissions::from_mode(0o755)).unwrap();
    let program = machine.here(&block("State=DRAIN"));
    let resume = machine.here(&block("State=RESUME")).replace("gpu005", &host);
    let probe = block("readinessProbe");
    let probe = machine.here(probe.split('\'').nth(1).unwrap());
    // The codes of the health check, the gate and the probe, and what was done in Slurm.
    let codes = || {
        let _ = fs::remove_file(machine.at("told"));
        let probe = format!("NODE_NAME={host}\n{probe}");
        let codes = [&program, &resume, &probe]
            .map(|line| machine.sh(&line.replace("railgauge status", "railgauge status --max-age 72h")).status.code());
        (codes[1..].to_vec(), fs::read_to_string(machine.at("told")).unwrap_or_default())
    };
    assert_eq!(codes(), (vec![Some(3), Some(3)], String::new()), "no run");
    machine.add("runs", &blames(&host));
    let drained = format!("update NodeName={host} State=DRAIN Reason=railgauge: faulty\n");
    assert_eq!(codes(), (vec![Some(1), Some(1)], drained));
    fs::create_dir(machine.at("runs/later")).unwrap();
    let repaired = Scenario { day: 1, ..recent(&host) };
    fs::write(machine.at("runs/later/records.jsonl"), repaired.jsonl()).unwrap();
    assert_eq!(codes(), (vec![Some(0), Some(0)], format!("update NodeName={host} State=RESUME\n")));
}
