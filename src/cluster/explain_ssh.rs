//! What ssh says when it does not get through, turned into a cause and a next step. ssh's texts are those of OpenSSH
//! 7.4 to 10; they are not promised to stay, so an unknown one is passed on as it is.

use std::path::Path;

use railgauge_wire::failure::{Kind, Stage};

use super::trouble::Trouble;
use crate::border::text::quoted;

/// A known text: one of `parts` occurs, ignoring case.
struct Sign {
    parts: &'static [&'static str],
    kind: Kind,
    passing: bool,
    help: &'static str,
}

/// The first match counts: causes go before their consequences (a jump host that refuses also closes the connection).
const SIGNS: &[Sign] = &[
    Sign {
        parts: &["temporary failure in name resolution"],
        kind: Kind::Configuration,
        passing: true,
        help: "the name server did not answer: see /etc/resolv.conf here, or give the host an address in the plan",
    },
    Sign {
        parts: &["could not resolve hostname", "no address associated with hostname"],
        kind: Kind::Configuration,
        passing: false,
        help: "the name is unknown here: give the host an `address` in the plan, or name it in ssh_config or /etc/hosts",
    },
    Sign {
        parts: &["identity file", "unprotected private key file", "load key"],
        kind: Kind::Configuration,
        passing: false,
        help: "see that the key file of launch.ssh exists, is yours, and has mode 600",
    },
    Sign {
        parts: &["too many authentication failures"],
        kind: Kind::Configuration,
        passing: false,
        help: "ssh offered too many keys: name the right one in launch.ssh, key `identity`",
    },
    Sign {
        parts: &["permission denied"],
        kind: Kind::Configuration,
        passing: false,
        help: "the host takes none of your keys for this user: see launch.ssh `user` and `identity`, `ssh-add -l` \
               here, and ~/.ssh/authorized_keys there (railgauge never asks for a password)",
    },
    Sign {
        parts: &["bad configuration option", "can't open user config file", "bad owner or permissions"],
        kind: Kind::Configuration,
        passing: false,
        help: "put your ssh_config right, or name another in launch.ssh, key `config`",
    },
    Sign {
        parts: &["no matching"],
        kind: Kind::Configuration,
        passing: false,
        help: "ssh here and sshd there share no such algorithm: allow one in ssh_config (KexAlgorithms, \
               HostKeyAlgorithms, Ciphers)",
    },
    Sign {
        parts: &["jumphost loop"],
        kind: Kind::Configuration,
        passing: false,
        help: "the host is its own jump host: take it out of launch.ssh `jump` or of ProxyJump in ssh_config",
    },
    Sign {
        parts: &["path too long", "unix_listener"],
        kind: Kind::Configuration,
        passing: false,
        help: "ssh cannot make its control socket here: set TMPDIR to a short path on a local file system",
    },
    Sign {
        parts: &["connection refused"],
        kind: Kind::Lost,
        passing: true,
        help: "nothing listens on that port: see that the host is up, that its sshd runs, and that the port is right",
    },
    Sign {
        parts: &["no route to host", "network is unreachable", "host is down"],
        kind: Kind::Lost,
        passing: true,
        help: "the network does not lead there from here: see the address, the routes and the host's power",
    },
    Sign {
        parts: &["timed out", "timeout"],
        kind: Kind::Lost,
        passing: true,
        help: "the host does not answer: see that it is up and not hung, and that no firewall drops the connection",
    },
    Sign {
        parts: &["kex_exchange_identification", "ssh_exchange_identification", "connection reset", "connection closed"],
        kind: Kind::Lost,
        passing: true,
        help: "something answered and hung up before the handshake was over: its sshd is down behind a forwarder, or \
               too many connections came at once (MaxStartups there; lower launch.in_flight)",
    },
];

/// What ssh says of a peer behind a jump host or proxy command that closed the connection.
pub(crate) const NO_PEER: &str = "UNKNOWN port 65535";

/// Why a connection failed. `text` is ssh's, `known_hosts` the plan's file for host keys.
pub(crate) fn connect(text: &str, address: &str, known_hosts: Option<&Path>) -> Trouble {
    if let Some(trouble) = host_key(text, known_hosts) {
        return trouble;
    }
    let lower = text.to_lowercase();
    let cause = format!("ssh to {address}: {}", one_line(text));
    match SIGNS.iter().find(|sign| sign.parts.iter().any(|part| lower.contains(part))) {
        Some(sign) if sign.passing => Trouble::passing(Stage::Connect, sign.kind, cause).help(sign.help),
        Some(sign) => Trouble::lasting(Stage::Connect, sign.kind, cause).help(sign.help),
        None => Trouble::lasting(Stage::Connect, Kind::Lost, cause).help("`ssh -v` to the host by hand tells more"),
    }
}

/// The last three lines as one, without ssh's decoration.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('@')).collect();
    match lines.len() {
        0 => "it ended without a word".to_owned(),
        count => lines[count.saturating_sub(3)..].join(" / "),
    }
}

/// Unknown and changed host keys: the one case in which the next step is a matter of trust, so the exact commands are
/// told and none is run.
fn host_key(text: &str, known_hosts: Option<&Path>) -> Option<Trouble> {
    let lasting = |cause: String| Trouble::lasting(Stage::Connect, Kind::Configuration, cause);
    let given = known_hosts.map(|file| quoted(&file.display().to_string()));
    let file = given.clone().unwrap_or_else(|| "~/.ssh/known_hosts".to_owned());
    // "No ED25519 host key is known for [10.0.0.1]:2222 and you have requested strict checking."
    if let Some((_, rest)) = text.split_once("host key is known for ") {
        let name = rest.split_whitespace().next().unwrap_or_default();
        let cause = format!("ssh does not know the host key of {name}");
        return Some(lasting(cause).help(format!(
            "compare the key with the host's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there) and accept \
             it with `{} >> {file}`; or say host_keys = \"accept-new\" in [launch.ssh]",
            scan(name)
        )));
    }
    // "Host key for [10.0.0.1]:2222 has changed and you have requested strict checking."
    if let Some((_, rest)) = text.split_once("Host key for ")
        && rest.contains("has changed")
    {
        let name = rest.split_whitespace().next().unwrap_or_default();
        // "Offending ED25519 key in /root/.ssh/known_hosts:3"
        let offending =
            text.lines().find(|line| line.starts_with("Offending")).and_then(|line| line.split_once(" in "));
        let file =
            offending.and_then(|(_, place)| place.trim().rsplit_once(':')).map_or(file, |(file, _line)| quoted(file));
        let cause = format!("the host key of {name} is not the one in {file}");
        return Some(lasting(cause).help(format!(
            "if the host was installed anew, and only then, forget the old key and accept the new one: `ssh-keygen -R \
             {} -f {file}`, then `{} >> {file}`; if not, somebody else may be answering",
            quoted(name),
            scan(name)
        )));
    }
    // A jump host's key (its ssh does not tell which), a revoked key, a host certificate that does not fit, …
    text.to_lowercase().contains("host key verification failed").then(|| {
        let trouble = lasting(format!("ssh does not trust the host key: {}", one_line(text)));
        if text.contains(NO_PEER) {
            return trouble.help(
                "it is the jump host's key: `ssh` to the jump host by hand and accept it there; what ssh knows of jump \
                 hosts comes from your ssh_config",
            );
        }
        trouble.help("`ssh` to the host by hand: it tells which key it is about")
    })
}

/// `ssh-keyscan` for a name as ssh writes it into known_hosts: `host` or `[host]:port`.
fn scan(name: &str) -> String {
    match name.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some((host, port)) => format!("ssh-keyscan -p {} {}", quoted(port), quoted(host)),
        None => format!("ssh-keyscan {}", quoted(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Trouble {
        connect(text, "gpu1.example", None)
    }

    #[test]
    fn an_unknown_host_key_says_how_to_accept_it() {
        let trouble = told(
            "No ED25519 host key is known for [127.0.0.1]:22022 and you have requested strict checking.\r\nHost key \
             verification failed.",
        );
        assert_eq!(trouble.failure.cause, "ssh does not know the host key of [127.0.0.1]:22022");
        assert!(trouble.failure.help.contains("`ssh-keyscan -p 22022 127.0.0.1 >> ~/.ssh/known_hosts`"), "{trouble:?}");
        assert!(trouble.failure.help.contains("accept-new"));
        assert!(!trouble.passing);
        let text = "No RSA host key is known for gpu1 and you have requested strict checking.";
        let trouble = connect(text, "gpu1", Some(Path::new("/tmp/my hosts")));
        assert!(trouble.failure.help.contains("`ssh-keyscan gpu1 >> '/tmp/my hosts'`"), "{trouble:?}");
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
        let help = "`ssh-keygen -R '[127.0.0.1]:22022' -f /root/.ssh/known_hosts`";
        assert!(trouble.failure.help.contains(help), "{trouble:?}");
        assert!(!trouble.passing);
    }

    #[test]
    fn known_texts_are_told_apart() {
        // (ssh's text, whether another try may help, a word of the help)
        let cases = [
            ("connect to host 10.0.0.9 port 22: Connection refused", true, "listens"),
            ("connect to host 10.0.0.9 port 22: Connection timed out", true, "does not answer"),
            ("Connection timed out during banner exchange\r\nConnection to 10.0.0.9 port 22 timed out", true, "answer"),
            ("connect to host 10.0.0.9 port 22: No route to host", true, "does not lead there"),
            (
                "kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 127.0.0.1 port 22",
                true,
                "MaxStartups",
            ),
            ("kex_exchange_identification: Connection closed by remote host", true, "MaxStartups"),
            ("root@10.0.0.9: Permission denied (publickey).", false, "none of your keys"),
            (
                "Warning: Identity file /x not accessible: No such file or directory.\r\nroot@h: Permission denied (publickey).",
                false,
                "key file",
            ),
            ("Could not resolve hostname gpu1: Name or service not known", false, "unknown here"),
            ("Could not resolve hostname gpu1: Temporary failure in name resolution", true, "name server"),
            (
                "connect to host bastion port 22: Connection refused\r\nConnection closed by UNKNOWN port 65535",
                true,
                "listens",
            ),
            (
                "Unable to negotiate with 10.0.0.9 port 22: no matching host key type found. Their offer: ssh-rsa",
                false,
                "algorithm",
            ),
            ("/home/u/.ssh/config: line 3: Bad configuration option: foo", false, "ssh_config"),
            ("something nobody has seen", false, "ssh -v"),
        ];
        for (text, passing, word) in cases {
            let trouble = told(text);
            assert_eq!(trouble.failure.stage, Stage::Connect);
            assert!(trouble.failure.cause.contains("gpu1.example"), "{trouble:?}");
            assert_eq!(trouble.passing, passing, "{trouble:?}");
            assert!(trouble.failure.help.contains(word), "{trouble:?}");
        }
    }
}
