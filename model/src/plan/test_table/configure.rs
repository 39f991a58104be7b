//! `[test.configure]`: commands that change the cluster for a test, and take that back.

use std::time::Duration;

use super::members::Members;
use crate::plan::{
    command,
    format::{Preset, Section, Shape, key},
    model::Configure,
    read::Table,
};

/// Keys of `[test.configure]`.
pub static CONFIGURE: Section = Section {
    header: "[test.configure]",
    about: "Commands of this machine that make the cluster what the test wants. `apply` runs before its rounds, `undo` before \
            anything else is measured and at the end, interrupted or not. A command that says `{host}` (or `{name}`, \
            `{user}`, `{port}`) runs once for every host of the test, `in_flight` at the same time; another runs once. No \
            shell takes part.",
    keys: &[
        key(
            "apply",
            Shape::Command,
            Preset::Required,
            "What makes the change, for example `ssh {host} sudo sysctl -qw net.ipv4.tcp_congestion_control=bbr`. Any exit \
             status but 0 is a failure: the round is then not measured.",
        ),
        key(
            "undo",
            Shape::Command,
            Preset::Required,
            "Undoes the change, even if `apply` failed half way. While it fails, nothing else is measured.",
        ),
        key("timeout", Shape::Time("100ms", "1h"), Preset::Value("\"1min\""), "Time for either of them at one host."),
    ],
};

/// Reads the table; `None` where it is not there, or after saying what is wrong.
pub fn read(test: &Table<'_>, members: Option<&Members<'_>>) -> Option<Configure> {
    test.written("configure")?;
    let table = test.table("configure");
    let [apply, undo] = ["apply", "undo"].map(|key| {
        let words = command::read(&table, key, "ssh {host} sudo mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0");
        if let Some(members) = members {
            let hosts = members.hosts.list.iter().filter(|host| members.has(&host.name));
            command::judge(&table, key, &words, hosts);
        }
        words
    });
    let timeout = Duration::from(table.time("timeout")?.value);
    (!apply.is_empty() && !undo.is_empty()).then_some(Configure { apply, undo, timeout })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::plan::{Mistakes, Plan, parse};

    fn read(configure: &str) -> Result<Plan, Mistakes> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a[1-2]\"] }\n\
                    [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n[test.configure]\n";
        parse("p.toml", &format!("{head}{configure}"), Path::new("")).map(|(plan, _)| plan)
    }

    #[test]
    fn commands_are_words() {
        let plan = read("apply = \"ssh {host} 'a b'\"\nundo = [\"ssh\", \"{host}\"]\n").unwrap();
        let configure = plan.tests[0].configure.as_ref().unwrap();
        assert_eq!(configure.apply, ["ssh", "{host}", "a b"]);
        assert_eq!(configure.undo, ["ssh", "{host}"]);
        assert_eq!(configure.timeout.as_secs(), 60);
    }

    #[test]
    fn what_cannot_be_run_or_taken_back_is_said() {
        for (configure, words) in [
            ("apply = \"true\"\n", "`undo` is missing in [test.configure]"),
            ("apply = \"\"\nundo = \"true\"\n", "`apply` is empty"),
            ("apply = \"ssh {hots}\"\nundo = \"true\"\n", "no placeholder `{hots}`"),
            ("apply = \"ssh {user}@{host}\"\nundo = \"true\"\n", "a1 has no user"),
            ("apply = \"a 'b\"\nundo = \"true\"\n", "quote"),
        ] {
            let mistakes = read(configure).unwrap_err().to_string();
            assert!(mistakes.contains(words), "{configure}: {mistakes}");
        }
    }
}
