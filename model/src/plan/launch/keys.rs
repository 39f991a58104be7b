//! Keys of `[launch]`.

use super::Launcher;
use crate::plan::format::{Key, Section, Shape, key};

macro_rules! declare {
    ($($variant:ident $(($data:ident: $type:ident))? = $module:ident: $about:literal;)*) => {
        pub static LAUNCH: Section = Section {
            header: "[launch]",
            about: "How agents are started. A launcher is anything that gives a byte pipe to a process on a host.",
            keys: &tables_last([
                VIA,
                $($(super::$module::$type::KEY,)?)*
                IN_FLIGHT,
                RETRIES,
                TIMEOUT,
                KEEP_AGENT,
                AGENT_DIR,
                ENV,
                SEND_ENV,
            ]),
        };

        const WAYS: &str = concat!($("`", stringify!($module), "`: ", $about, " "),*).trim_ascii_end();
    };
}

launchers!(declare);

const VIA: Key = key!("via": Word(|| Launcher::WORDS.to_vec()), Required, WAYS);
const IN_FLIGHT: Key = key!("in_flight": Whole(1, 4096), Is("32"), "Hosts brought up at the same time.");
const RETRIES: Key = key!("retries": Whole(0, 100), Is("2"), "Retries for a host that does not come up.");
const TIMEOUT: Key = key!(
    "timeout": Time("100ms", "1h"), Is("\"20s\""), "Time limit of one attempt, from connecting to the agent's greeting."
);
const KEEP_AGENT: Key = key!("keep_agent": Flag, Is("false"), "Whether agents stay on the hosts after the run.");
const AGENT_DIR: Key = key!(
    "agent_dir": Text, Means("a private directory under the user's cache directory"),
        "Absolute path of the directory on the hosts that holds the agent; it must allow programs to run."
);
const ENV: Key = key!(
    "env": Environment, Means("none"),
        "Environment variables of every agent. They are stored in the run directory with the plan."
);
const SEND_ENV: Key = key!(
    "send_env": Texts, Means("none"),
        "Names of environment variables that agents get with the values they have where railgauge is started, as \
         ssh's `SendEnv`. The values are not stored."
);

/// Moves keys with tables to the end, as TOML needs them written.
const fn tables_last<const N: usize>(keys: [Key; N]) -> [Key; N] {
    let mut sorted = keys;
    let (mut to, mut tables) = (0, false);
    loop {
        let mut from = 0;
        while from < N {
            if matches!(keys[from].shape, Shape::Table(_)) == tables {
                sorted[to] = keys[from];
                to += 1;
            }
            from += 1;
        }
        if tables {
            return sorted;
        }
        tables = true;
    }
}
