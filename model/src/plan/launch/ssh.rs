//! `[launch.ssh]`: what ssh is told.

use std::ops::Range;

use crate::plan::{
    mistakes::Mistake,
    model::{HostKeys, Ssh},
    read::Table,
};

/// Reads the table.
pub fn read(table: &Table<'_>) -> Ssh {
    let harmless = |name: &str| {
        let text = table.text(name)?;
        if !text.value.starts_with('-') && !text.value.contains(char::is_whitespace) {
            return Some(text.value);
        }
        table.book.add(not_an_argument(&text.value, text.span));
        None
    };
    let jump = table.texts("jump").map(|list| list.value).unwrap_or_default();
    for hop in &jump {
        let bad = hop.text.is_empty() || hop.text.starts_with('-') || hop.text.contains([',', ' ', '\t', '\n', '\0']);
        if bad {
            let mistake = Mistake::at(hop.span.clone(), format!("\"{}\" is not a jump host", hop.text));
            table.book.add(mistake.help("each element is one hop: [user@]host[:port]"));
        }
    }
    Ssh {
        config: table.path("config").map(|at| at.value),
        user: harmless("user"),
        port: table.whole("port").map(|at| at.value),
        identity: table.path("identity").map(|at| at.value),
        jump: jump.into_iter().map(|hop| hop.text).collect(),
        host_keys: match table.word("host_keys").map(|at| at.value) {
            Some("accept-new") => HostKeys::AcceptNew,
            _ => HostKeys::Strict,
        },
        known_hosts: table.path("known_hosts").map(|at| at.value),
    }
}

/// What would be taken for an option, or for two arguments, by the program it is given to.
pub fn not_an_argument(text: &str, span: Range<usize>) -> Mistake {
    Mistake::at(span, format!("\"{text}\" cannot be passed to ssh")).help("it must not begin with `-` or hold spaces")
}
