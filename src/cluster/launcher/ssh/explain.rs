//! Which of ssh's errors may pass by themselves, and the commands for host keys. The texts are those of OpenSSH 7.4 to 10.

use std::path::Path;

use railgauge_model::border::text::quoted;
use railgauge_wire::{Kind, Stage, remedy};

use crate::cluster::Trouble;

/// Words of an error that may pass by itself.
const PASSING: [&str; 9] = [
    "temporary failure",
    "connection refused",
    "no route to host",
    "network is unreachable",
    "host is down",
    "timed out",
    "_exchange_identification",
    "connection reset",
    "connection closed",
];
/// Words of an error that does not, whatever follows it: a jump host that refuses also closes the connection.
const LASTING: [&str; 2] = ["permission denied", "jumphost loop"];

pub(super) const NO_PEER: &str = "UNKNOWN port 65535";

pub(super) fn connect(text: &str, address: &str, known_hosts: Option<&Path>) -> Trouble {
    if let Some(trouble) = host_key(text, address, known_hosts) {
        return trouble;
    }
    let cause = format!("ssh to {address}: {}", one_line(text));
    let text = text.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let passing = says(&PASSING) && !says(&LASTING);
    let kind = if passing { Kind::Lost } else { Kind::Configuration };
    let remedy = remedy::SSH_BY_HAND.with([("address", address)]);
    Trouble { passing, ..Trouble::lasting(Stage::Connect, kind, cause).remedy(remedy) }
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('@')).collect();
    match lines.len() {
        0 => "it ended without a word".to_owned(),
        count => lines[count.saturating_sub(3)..].join(" / "),
    }
}

/// Unknown and changed host keys: trusting them is the user's decision, so the exact commands are shown and none is run.
fn host_key(text: &str, address: &str, known_hosts: Option<&Path>) -> Option<Trouble> {
    let lasting = |cause: String| Trouble::lasting(Stage::Connect, Kind::Configuration, cause);
    let file = known_hosts.map_or_else(|| "~/.ssh/known_hosts".to_owned(), |file| file.display().to_string());
    // "No ED25519 host key is known for [10.0.0.1]:2222 and you have requested strict checking."
    if let Some((_, rest)) = text.split_once("host key is known for ") {
        let name = rest.split_whitespace().next().unwrap_or_default();
        let cause = format!("ssh does not know the host key of {name}");
        let (host, port) = host_and_port(name);
        let values = [("host", host), ("port", port), ("file", &*file)];
        return Some(lasting(cause).remedy(remedy::ACCEPT_HOST_KEY.with(values)));
    }
    // "Host key for [10.0.0.1]:2222 has changed and you have requested strict checking."
    if let Some((_, rest)) = text.split_once("Host key for ")
        && rest.contains("has changed")
    {
        let name = rest.split_whitespace().next().unwrap_or_default();
        // "Offending ED25519 key in /root/.ssh/known_hosts:3"
        let offending =
            text.lines().find(|line| line.starts_with("Offending")).and_then(|line| line.split_once(" in "));
        let file = offending.and_then(|(_, place)| place.trim().rsplit_once(':')).map_or(&*file, |(file, _line)| file);
        let cause = format!("the host key of {name} is not the one in {}", quoted(file));
        let (host, port) = host_and_port(name);
        let values = [("name", name), ("host", host), ("port", port), ("file", file)];
        return Some(lasting(cause).remedy(remedy::REPLACE_HOST_KEY.with(values)));
    }
    // A jump host's key (its ssh does not say which), a revoked key, a host certificate that does not fit, …
    text.to_lowercase().contains("host key verification failed").then(|| {
        let trouble = lasting(format!("ssh does not trust the host key: {}", one_line(text)));
        if text.contains(NO_PEER) {
            return trouble.remedy(remedy::ACCEPT_JUMP_KEY);
        }
        trouble.remedy(remedy::SSH_BY_HAND.with([("address", address)]))
    })
}

fn host_and_port(name: &str) -> (&str, &str) {
    name.strip_prefix('[').and_then(|rest| rest.split_once("]:")).unwrap_or((name, "22"))
}

#[cfg(test)]
mod tests {
    use railgauge_wire::remedy::Place;

    use super::*;

    fn told(text: &str) -> Trouble {
        connect(text, "gpu1.example", None)
    }

    fn remedy(trouble: &Trouble) -> &str {
        trouble.failure.remedy.as_ref().map_or("none", |remedy| &remedy.id)
    }

    fn commands_here(trouble: &Trouble) -> Vec<String> {
        let commands = trouble.failure.remedy.iter().flat_map(|remedy| remedy.commands());
        commands.filter(|one| one.on == Place::Controller).map(|one| one.command).collect()
    }

    #[test]
    fn an_unknown_host_key_says_how_to_accept_it() {
        let trouble = told(
            "No ED25519 host key is known for [127.0.0.1]:22022 and you have requested strict checking.\r\nHost key \
             verification failed.",
        );
        assert_eq!(trouble.failure.cause, "ssh does not know the host key of [127.0.0.1]:22022");
        assert_eq!(remedy(&trouble), "accept-host-key");
        assert_eq!(commands_here(&trouble), ["ssh-keyscan -p 22022 127.0.0.1 >> ~/.ssh/known_hosts"]);
        assert!(!trouble.passing);
        let text = "No RSA host key is known for gpu1 and you have requested strict checking.";
        let trouble = connect(text, "gpu1", Some(Path::new("/tmp/my hosts")));
        assert_eq!(commands_here(&trouble), ["ssh-keyscan -p 22 gpu1 >> '/tmp/my hosts'"]);
    }

    #[test]
    fn a_changed_host_key_says_how_to_forget_the_old_one() {
        let trouble = told(
            "@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@@@@@\r\nIT IS POSSIBLE THAT \
             SOMEONE IS DOING SOMETHING NASTY!\r\nOffending ED25519 key in /root/.ssh/known_hosts:3\r\n  remove \
             with:\r\n  ssh-keygen -f \"/root/.ssh/known_hosts\" -R \"[127.0.0.1]:22022\"\r\nHost key for \
             [127.0.0.1]:22022 has changed and you have requested strict checking.\r\nHost key verification failed.",
        );
        assert_eq!(trouble.failure.cause, "the host key of [127.0.0.1]:22022 is not the one in /root/.ssh/known_hosts");
        let forget = "ssh-keygen -R '[127.0.0.1]:22022' -f /root/.ssh/known_hosts";
        let accept = "ssh-keyscan -p 22022 127.0.0.1 >> /root/.ssh/known_hosts";
        assert_eq!(commands_here(&trouble), [forget, accept]);
        assert!(!trouble.passing);
    }

    #[test]
    fn only_what_may_pass_by_itself_is_tried_again() {
        for (text, passing) in [
            ("connect to host 10.0.0.9 port 22: Connection refused", true),
            ("Connection timed out during banner exchange\r\nConnection to 10.0.0.9 port 22 timed out", true),
            ("connect to host 10.0.0.9 port 22: No route to host", true),
            ("kex_exchange_identification: Connection closed by remote host", true),
            ("connect to host bastion port 22: Connection refused\r\nConnection closed by UNKNOWN port 65535", true),
            ("Could not resolve hostname gpu1: Temporary failure in name resolution", true),
            ("Could not resolve hostname gpu1: Name or service not known", false),
            ("op@bastion: Permission denied (publickey).\r\nConnection closed by UNKNOWN port 65535", false),
            ("Unable to negotiate with 10.0.0.9 port 22: no matching host key type found. Their offer: ssh-rsa", false),
            ("/home/u/.ssh/config: line 3: Bad configuration option: foo", false),
            ("something nobody has seen", false),
        ] {
            let trouble = told(text);
            assert_eq!(trouble.failure.stage, Stage::Connect);
            assert!(trouble.failure.cause.contains("gpu1.example"), "{trouble:?}");
            assert_eq!((trouble.passing, remedy(&trouble)), (passing, "ssh-by-hand"), "{trouble:?}");
        }
    }
}
