use std::{collections::HashMap, ops::Range};

use super::known::Hosts;
use crate::plan::{Host, Launch, Mistake, Table, launch::judge_argument};

pub fn read(table: &Table<'_>, hosts: &mut Hosts, launch: &Launch) {
    let devices = ports(table, "devices");
    let tcp = ports(table, "tcp");
    for host in &mut hosts.list {
        host.devices.clone_from(&devices);
        host.tcp.clone_from(&tcp);
    }
    let mut set: HashMap<(usize, &str), Range<usize>> = HashMap::new();
    for entry in table.tables("override") {
        let Some(words) = entry.texts("match") else { continue };
        let Some(names) = hosts.select(&entry, &words.value) else { continue };
        if names.is_empty() {
            let help = "all its hosts are excluded: remove the override";
            entry.wrong(words.span.clone(), "this override matches no host", help);
        }
        let matched: Vec<usize> = names.iter().filter_map(|name| hosts.position.get(name)).copied().collect();
        let set_over = over(&entry, matched.len(), launch);
        for index in matched {
            for key in ["address", "user", "port", "devices", "tcp"] {
                let Some(span) = entry.written(key) else { continue };
                if let Some(earlier) = set.insert((index, key), span.clone())
                    && earlier != span
                {
                    let message = format!("`{key}` of {} is set twice", hosts.list[index].name);
                    let mistake = Mistake::at(span, message).also(earlier, "first here");
                    entry
                        .book
                        .add(mistake.help("match the host with only one override, or set the key in only one of them"));
                }
            }
            set_over(&mut hosts.list[index]);
        }
    }
    one_host_each(table, hosts, launch, |index| set.get(&(index, "address")).cloned());
}

/// Reports hosts that the launcher would find at one address: one machine would be measured as two. `written` is where a host's address is
/// in the plan.
fn one_host_each(table: &Table<'_>, hosts: &Hosts, launch: &Launch, written: impl Fn(usize) -> Option<Range<usize>>) {
    let by_address = launch.via.way().is_found_by_address;
    let mut first: HashMap<(&str, Option<u16>), usize> = HashMap::new();
    for (index, host) in hosts.list.iter().enumerate().filter(|_| by_address) {
        let known = *first.entry((&host.address, host.port)).or_insert(index);
        // Names are different, so one of the two addresses is written; one override for both has been reported.
        let (here, there) = (written(index), written(known));
        let Some(span) = here.clone().or(there.clone()).filter(|_| here != there) else { continue };
        let message = format!("{} and {} have the same address: {}", hosts.list[known].name, host.name, host.address);
        let help = "one host under two names would be measured as two hosts: give each its own address or `port`";
        table.wrong(span, message, help);
    }
}

/// What an override sets, as a function that sets it.
fn over(entry: &Table<'_>, matched: usize, launch: &Launch) -> impl Fn(&mut Host) + use<> {
    for key in ["user", "port"] {
        if let Some(span) = entry.name_span(key).filter(|_| !launch.via.way().uses.contains(&key)) {
            let help = format!("leave it out: it is used by via = \"ssh\", and by a command that contains {{{key}}}");
            entry.wrong(span, format!("nothing uses `{key}`"), help);
        }
    }
    let address = entry.text("address");
    if let Some(address) = &address {
        let host_name = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
        if !address.value.chars().all(host_name) || address.value.starts_with('-') {
            let help = "write a name, an IPv4 address or an IPv6 address without brackets";
            entry.wrong(address.span.clone(), format!("\"{}\" is not an address", address.value), help);
        } else if matched > 1 {
            let help = "hosts with the same address would all be the same host: match a single host";
            entry.wrong(address.span.clone(), format!("one address for {matched} hosts"), help);
        }
    }
    judge_argument(entry, "user");
    let (user, port) = (entry.text("user"), entry.whole("port"));
    let [devices, tcp] = ["devices", "tcp"].map(|key| entry.written(key).map(|_| ports(entry, key)));
    move |host| {
        if let Some(address) = &address {
            host.address.clone_from(&address.value);
        }
        host.user = user.as_ref().map(|at| at.value.clone()).or(host.user.take());
        host.port = port.as_ref().map(|at| at.value).or(host.port);
        for (own, set) in [(&mut host.devices, &devices), (&mut host.tcp, &tcp)] {
            set.iter().for_each(|set| own.clone_from(set));
        }
    }
}

/// `mlx5_0:1` is `mlx5_0`.
fn rail<'t>(key: &str, text: &'t str) -> &'t str {
    if key == "devices" { text.strip_suffix(":1").unwrap_or(text) } else { text }
}

/// Device or interface names in rail order, unique.
fn ports(table: &Table<'_>, key: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for words in table.texts(key).map(|at| at.value).unwrap_or_default() {
        let simple = |c: char| c.is_ascii_alphanumeric() || "._-:@".contains(c);
        if words.text.is_empty() || words.text.starts_with('-') || !words.text.chars().all(simple) {
            let help = "for example \"mlx5_0\", \"mlx5_0:2\", \"eth0\", \"10.0.0.1\" or \"fd00::1\"";
            table.wrong(words.span.clone(), format!("\"{}\" is not a device, interface or address", words.text), help);
        } else if list.iter().any(|known| rail(key, known) == rail(key, &words.text)) {
            let message = format!("{} is listed twice in `{key}`", words.text);
            table.wrong(words.span.clone(), message, "a device is one rail: list it once");
        }
        list.push(words.text);
    }
    list
}
