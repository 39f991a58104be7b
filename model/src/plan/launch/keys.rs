//! Keys of `[launch]` and `[launch.ssh]`.

use crate::plan::format::{Preset, Section, Shape, key};

/// Keys of `[launch]`.
pub static LAUNCH: Section = Section {
    header: "[launch]",
    about: "How agents are started. A launcher is anything that gives a byte pipe to a process on a host.",
    keys: &[
        key(
            "via",
            Shape::Word(|| vec!["local", "ssh", "command"]),
            Preset::Required,
            "`local`: every host is a process on this machine. `ssh`: OpenSSH, with your ssh_config. `command`: \
             the words of `command`, then the agent's command line.",
        ),
        key(
            "command",
            Shape::Command,
            Preset::Words("required with `via = \"command\"`"),
            "A command that runs what follows it on a host; `{host}` stands for the host's address, `{name}`, \
             `{user}` and `{port}` for what the plan says of it. A text is split into words like a shell splits \
             it, quotes honoured, but no shell runs it.",
        ),
        key("in_flight", Shape::Whole(1, 4096), Preset::Value("32"), "Hosts brought up at the same time."),
        key("retries", Shape::Whole(0, 100), Preset::Value("2"), "Further tries for a host that does not come up."),
        key(
            "timeout",
            Shape::Time("100ms", "1h"),
            Preset::Value("\"20s\""),
            "Time for one try, from connecting to the agent's greeting.",
        ),
        key("keep_agent", Shape::Flag, Preset::Value("false"), "Whether agents stay on the hosts after the run."),
        key(
            "agent_dir",
            Shape::Text,
            Preset::Words("a private directory under the user's cache directory"),
            "Absolute path of the directory on the hosts that holds the agent; it must allow programs to run.",
        ),
        key(
            "env",
            Shape::Environment,
            Preset::Words("none"),
            "Environment variables of every agent. They stand in the run directory with the plan.",
        ),
        key(
            "send_env",
            Shape::Texts,
            Preset::Words("none"),
            "Names of environment variables that agents get with the values they have where railgauge is started, as ssh's \
             `SendEnv`. The values are written nowhere.",
        ),
        key(
            "ssh",
            Shape::Table(&SSH),
            Preset::Words("what your ssh_config says"),
            "What ssh is told; only with `via = \"ssh\"`.",
        ),
    ],
};

/// Keys of `[launch.ssh]`.
pub static SSH: Section = Section {
    header: "[launch.ssh]",
    about: "What ssh is told; everything not said here comes from your ssh_config. Only with `via = \"ssh\"`.",
    keys: &[
        key(
            "config",
            Shape::Path,
            Preset::Words("`~/.ssh/config`"),
            "Another ssh_config (`ssh -F`); a relative path starts from the plan's directory.",
        ),
        key("user", Shape::Text, Preset::Words("ssh's"), "Login name."),
        key("port", Shape::Whole(1, 65_535), Preset::Words("ssh's"), "Port of sshd."),
        key(
            "identity",
            Shape::Path,
            Preset::Words("ssh's"),
            "Private key file (`ssh -i`); a relative path starts from the plan's directory.",
        ),
        key(
            "jump",
            Shape::Texts,
            Preset::Words("none"),
            "Jump hosts, first hop first (`ssh -J`): `[user@]host[:port]`.",
        ),
        key(
            "host_keys",
            Shape::Word(|| vec!["strict", "accept-new"]),
            Preset::Value("\"strict\""),
            "`strict`: an unknown or changed host key is an error. `accept-new`: unknown keys are added, a \
             changed key is an error.",
        ),
        key(
            "known_hosts",
            Shape::Path,
            Preset::Words("`~/.ssh/known_hosts`"),
            "Another known_hosts file; a relative path starts from the plan's directory.",
        ),
    ],
};
