//! What NCCL itself says of a group that hangs. Since 2.24 a thread of every process knows the state of all communicators of the job (RAS)
//! and answers over TCP at `NCCL_RAS_ADDR`: lines of text, `STATUS` and its report, until it closes the connection. Since 2.31
//! `DIAGNOSTICS` compares GPUs, drivers and environments of all ranks (`src/ras/client.cc` and `client_support.cc` of NCCL 2.24 to 2.32).
//!
//! NCCL's active diagnostics of 2.31 (`NCCL_RUN_DIAGNOSTICS=1`) are something else: they test peer access while a communicator is made, and
//! write to standard output. A plan can set them in `env`; they answer nothing on a hang.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use socket2::{Domain, Socket, Type};

/// NCCL's variable for the address where its thread answers; set by the agent, unless the plan does.
pub(crate) const ADDRESS: &str = "NCCL_RAS_ADDR";
/// Time for both questions. A thread waits for others of the job no longer than the second that `TIMEOUT` gives it.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);
const STATUS: &str = "CLIENT PROTOCOL 2\nTIMEOUT 1\nSTATUS\n";
const DIAGNOSTICS: &str = "CLIENT PROTOCOL 2\nTIMEOUT 1\nDIAGNOSTICS\n";
/// Most bytes of an answer that are read, and most characters that are quoted.
const MOST: usize = 1 << 16;
const QUOTED: usize = 800;

/// A port of the loopback interface that stays free for a process of this user, as NCCL shares its port (`SO_REUSEPORT`). Ranks of one
/// host would share NCCL's own default, and the question to one would be answered by another, or by one that is stopped.
pub(crate) fn reserve() -> Option<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.set_reuse_port(true).ok()?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).ok()?;
    let address = socket.local_addr().ok()?.as_socket()?;
    Some((socket, address))
}

/// What RAS at an address says of the state of the job; `None` without RAS, or if it says nothing.
pub(crate) fn said(address: &str) -> Option<String> {
    let address = address.parse().ok()?;
    let until = Instant::now() + LIMIT;
    let status = ask(address, STATUS, until).as_deref().and_then(status);
    // Afterwards: it questions the GPUs, which may be what hangs.
    let differing = ask(address, DIAGNOSTICS, until).map(|text| differing(&text)).unwrap_or_default();
    let told: Vec<String> = status.into_iter().chain(differing).collect();
    (!told.is_empty()).then(|| plain(&told.join("; ")))
}

/// The answer so far, when the time is over.
fn ask(address: SocketAddr, request: &str, until: Instant) -> Option<String> {
    let left = || Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
    let mut stream = TcpStream::connect_timeout(&address, left()?).ok()?;
    stream.set_write_timeout(left()).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
    while let Some(left) = left().filter(|_| answer.len() < MOST) {
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => answer.extend_from_slice(&chunk[..count]),
            Ok(0) | Err(_) => break,
        }
        // An older version does not know the request, and keeps the connection open.
        if answer.rsplit(|byte| *byte == b'\n').nth(1).is_some_and(|line| line.starts_with(b"ERROR")) {
            break;
        }
    }
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// The errors and warnings of a report; without any, its line for each group of equal communicators.
fn status(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_rule = |line: &str| line.len() > 2 && line.bytes().all(|byte| byte == b'=');
    let (mut part, mut troubles, mut groups) = ("", Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty() && !is_rule(line)) {
        if lines.get(at + 1).is_some_and(|next| is_rule(next)) {
            part = line;
            continue;
        }
        match part {
            "Errors" | "Warnings" => troubles.push(*line),
            _ if part.starts_with("Communicators") && line.starts_with(|c: char| c.is_ascii_digit()) => {
                groups.extend(line.split_whitespace().rev().take(2).collect::<Vec<_>>().into_iter().rev());
            }
            _ => {}
        }
    }
    if troubles.is_empty() && groups.is_empty() {
        return part.starts_with("Communicators").then(|| "it heard nothing of the communicators in time".to_owned());
    }
    Some(if troubles.is_empty() { format!("communicators {}", groups.join(" ")) } else { troubles.join("; ") })
}

/// Lines of diagnostics that are not fine: `host:pid NCCL DIAG [INFO] …`.
fn differing(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| Some(line.split_once("NCCL DIAG [INFO]")?.1.trim().to_owned())).collect()
}

fn plain(text: &str) -> String {
    let mut plain: String = text.chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(QUOTED).is_some() {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// From NVIDIA's documentation of RAS (NCCL 2.24), of a process that was stopped.
    const INCOMPLETE: &str = "Job summary\n===========\n\n  Nodes  Processes         GPUs\n(total)   per node  per process\n      4          8            1\n\n\
        Communicators... (2.05s)\n=============\n\nGroup     Comms     Nodes     Ranks    Status  Errors\n    #  in group  per comm  per node\n    \
        0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n\nErrors\n======\n\nINCOMPLETE\n  \
        Missing communicator data from 1 job process\n  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n\
        #0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 21\n\nWarnings\n========\n\n\
        TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n";

    const DIAGNOSED: &str = "h:1 NCCL DIAG === RAS Diagnostics ===\nh:1 NCCL DIAG [OK]   ECC: fine\n\
                             h:1 NCCL DIAG [INFO] CUDA driver version: mismatch\u{1b}[2J across 2 ranks\n";

    #[test]
    fn errors_are_quoted_before_the_state() {
        let told = status(INCOMPLETE).unwrap();
        assert!(
            told.starts_with("INCOMPLETE; Missing communicator data from 1 job process; Process 3487984"),
            "{told}"
        );
        assert!(told.contains("The missing rank: 21; TIMEOUT; Encountered 2"), "{told}");
        let fine = INCOMPLETE.split("Errors\n=").next().unwrap().replace("INCOMPLETE", "OK");
        assert_eq!(status(&fine).as_deref(), Some("communicators RUNNING OK"));
        assert_eq!(
            status(fine.split("\nGroup").next().unwrap()).as_deref(),
            Some("it heard nothing of the communicators in time")
        );
        assert_eq!(status("ERROR: Unknown command"), None);
    }

    /// Answers what was asked with these texts in turn; after the last one it stays silent.
    fn ras(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 64];
                let length = stream.read(&mut asked).unwrap();
                assert!(asked[..length].starts_with(b"CLIENT PROTOCOL 2\nTIMEOUT 1\n"));
                stream.write_all(b"SERVER PROTOCOL 2\nOK\n").unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
            thread::park();
        });
        address
    }

    #[test]
    fn both_questions_are_asked_within_their_time() {
        let told = said(&ras(&[INCOMPLETE, DIAGNOSED])).unwrap();
        assert!(
            told.contains("rank: 21") && told.ends_with("CUDA driver version: mismatch [2J across 2 ranks"),
            "{told}"
        );
        let older = said(&ras(&[INCOMPLETE, "ERROR: Unknown command DIAGNOSTICS\n"])).unwrap();
        assert!(older.ends_with("gathering communicator data"), "{older}");
        let begin = Instant::now();
        assert_eq!(said(&ras(&[])), None, "it accepts and is silent");
        assert!(begin.elapsed() < LIMIT * 5);
        let (reserved, address) = reserve().unwrap();
        assert_eq!(said(&address.to_string()), None, "nothing listens there");
        let again = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        again.set_reuse_port(true).unwrap();
        again.bind(&address.into()).expect("free for NCCL");
        drop(reserved);
        assert_eq!((said("nowhere"), said(":28028")), (None, None));
    }

    #[test]
    fn quotes_are_bounded() {
        assert_eq!(plain(&"x\n".repeat(QUOTED)).chars().count(), QUOTED + 1);
    }
}
