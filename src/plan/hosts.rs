//! `[hosts]`: which hosts take part, in groups, with what is special about some of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    host_file,
    hostlist::{self, expand},
    keys::{Key, Preset, Section, Shape},
    mistake::Mistake,
    model::{Host, Launch, Launcher},
    table::{Table, Words, wrong_in},
    wrong::nearest,
};

/// Keys of `[hosts]`.
pub static HOSTS: Section = Section {
    path: "hosts",
    about: "Which hosts take part: `names`, `file`, or both.",
    keys: &[
        Key {
            name: "names",
            shape: Shape::Hosts,
            preset: Preset::Words("none"),
            about: "Host names, with ranges as Slurm and pdsh write them: `\"gpu[001-032,040]\"`. Every name once.",
            peers: "",
        },
        Key {
            name: "file",
            shape: Shape::Path,
            preset: Preset::Words("none"),
            about: "A file with one hostlist on each line; `#` begins a comment. A relative path starts from the plan's directory.",
            peers: "",
        },
        Key {
            name: "exclude",
            shape: Shape::Hosts,
            preset: Preset::Words("none"),
            about: "Hosts that are left out, also from groups.",
            peers: "",
        },
        Key {
            name: "groups",
            shape: Shape::Groups,
            preset: Preset::Words("none"),
            about: "Named groups of hosts: `rack1 = \"gpu[001-016]\"`. A group cannot be called like a host.",
            peers: "",
        },
        Key {
            name: "devices",
            shape: Shape::Texts,
            preset: Preset::Words("found by the agent: every active port"),
            about: "RDMA devices to use on every host, in rail order; `mlx5_0:2` is port 2.",
            peers: "perftest `--ib-dev`, `--ib-port`; `NCCL_IB_HCA`",
        },
        Key {
            name: "tcp",
            shape: Shape::Texts,
            preset: Preset::Words("found by the agent"),
            about: "Network interfaces or addresses for TCP on every host, in rail order. Addresses differ between hosts: give them in `[[hosts.override]]`.",
            peers: "`NCCL_SOCKET_IFNAME`",
        },
        Key {
            name: "override",
            shape: Shape::Tables(&OVERRIDE),
            preset: Preset::Words("none"),
            about: "What is special about some hosts.",
            peers: "",
        },
    ],
};

/// Keys of `[[hosts.override]]`.
pub static OVERRIDE: Section = Section {
    path: "hosts.override",
    about: "What is special about the hosts it matches. No key may be set twice for one host.",
    keys: &[
        Key {
            name: "match",
            shape: Shape::Hosts,
            preset: Preset::Required,
            about: "Hosts or groups it is about.",
            peers: "",
        },
        Key {
            name: "address",
            shape: Shape::Text,
            preset: Preset::Words("the host's name"),
            about: "What the launcher connects to: a name or an IPv4 or IPv6 address. For one host only.",
            peers: "",
        },
        Key {
            name: "user",
            shape: Shape::Text,
            preset: Preset::Words("that of `[launch.ssh]`"),
            about: "Login name; only with `via = \"ssh\"`.",
            peers: "",
        },
        Key {
            name: "port",
            shape: Shape::Whole(1, 65_535),
            preset: Preset::Words("that of `[launch.ssh]`"),
            about: "Port of sshd; only with `via = \"ssh\"`.",
            peers: "",
        },
        Key {
            name: "devices",
            shape: Shape::Texts,
            preset: Preset::Words("that of `[hosts]`"),
            about: "RDMA devices to use, in rail order.",
            peers: "perftest `--ib-dev`, `--ib-port`; `NCCL_IB_HCA`",
        },
        Key {
            name: "tcp",
            shape: Shape::Texts,
            preset: Preset::Words("that of `[hosts]`"),
            about: "Network interfaces or addresses for TCP, in rail order.",
            peers: "`NCCL_SOCKET_IFNAME`",
        },
    ],
};

/// What `[hosts]` came to.
#[derive(Debug, Default)]
pub struct Hosts {
    /// Hosts in the plan's order.
    pub list: Vec<Host>,
    /// Groups, members in the plan's order.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Positions in `list`, by name.
    pub position: HashMap<String, usize>,
    /// Names that were excluded.
    excluded: HashSet<String>,
    /// Whether all of it could be read; if not, what refers to hosts is not judged.
    pub sound: bool,
}

/// Reads `[hosts]`.
pub fn read(table: &Table<'_>, there: bool, launch: &Launch) -> Hosts {
    let mut hosts = Hosts { sound: true, ..Hosts::default() };
    if !there {
        hosts.sound = false;
        return hosts;
    }
    let mut named: Vec<(String, usize, std::ops::Range<usize>)> = Vec::new();
    match table.raw("names").is_some() {
        true => {
            for words in table.texts("names").map(|list| list.value).unwrap_or_default() {
                match list(table, &words) {
                    Some(names) => named.extend(names.into_iter().map(|name| (name, 0, words.span.clone()))),
                    None => hosts.sound = false,
                }
            }
        }
        false => hosts.sound &= table.written("names").is_none(),
    }
    if table.written("file").is_some() {
        match table.path("file").map(|path| host_file::read(table.book, &path)) {
            Some(Some(names)) => named.extend(names),
            _ => hosts.sound = false,
        }
    }
    unique(table, &mut hosts, named);
    exclude(table, &mut hosts);
    if hosts.sound && hosts.list.is_empty() {
        let span = table.written("names").or(table.written("file")).unwrap_or(table.span.clone());
        let help = "name at least two hosts: names = \"gpu[001-032]\", or file = \"hosts.txt\"";
        table.book.add(Mistake::at(span, "the plan has no hosts").help(help));
        hosts.sound = false;
    }
    hosts.position = hosts.list.iter().enumerate().map(|(index, host)| (host.name.clone(), index)).collect();
    groups(table, &mut hosts);
    defaults_and_overrides(table, &mut hosts, launch);
    hosts
}

/// Names of a hostlist, or `None` after saying what is wrong with it.
fn list(table: &Table<'_>, words: &Words) -> Option<Vec<String>> {
    expand(&words.text).map_err(|wrong| table.book.add(wrong_in(table.book, &words.span, words.start, wrong))).ok()
}

fn unique(table: &Table<'_>, hosts: &mut Hosts, named: Vec<(String, usize, std::ops::Range<usize>)>) {
    let mut first: HashMap<String, (usize, std::ops::Range<usize>)> = HashMap::new();
    let mut said = HashSet::new();
    for (name, source, span) in named {
        if let Some((earlier, at)) = first.get(&name) {
            // One mistake for each pair of places: overlapping ranges share many names.
            if said.insert((*earlier, at.start, source, span.start)) {
                let mut mistake = Mistake::in_source(source, span.clone(), format!("the host {name} is named twice"));
                if (*earlier, at) != (source, &span) {
                    mistake.also.push((
                        super::mistake::Place { source: *earlier, span: at.clone().into() },
                        "first here".into(),
                    ));
                }
                table.book.add(mistake.help("name every host once: leave one of them out"));
            }
            continue;
        }
        if hosts.list.len() == hostlist::MOST {
            let help = format!("a plan has at most {} hosts", hostlist::MOST);
            table.book.add(Mistake::in_source(source, span, "too many hosts").help(help));
            hosts.sound = false;
            return;
        }
        first.insert(name.clone(), (source, span));
        hosts.list.push(Host { address: name.clone(), name, user: None, port: None, devices: vec![], tcp: vec![] });
    }
}

fn exclude(table: &Table<'_>, hosts: &mut Hosts) {
    let known: HashSet<String> = hosts.list.iter().map(|host| host.name.clone()).collect();
    for words in table.texts("exclude").map(|list| list.value).unwrap_or_default() {
        let Some(names) = list(table, &words) else { continue };
        for name in names {
            if !known.contains(&name) && hosts.sound {
                table.book.add(stranger(hosts, &name, &words));
                break;
            }
            hosts.excluded.insert(name);
        }
    }
    hosts.list.retain(|host| !hosts.excluded.contains(&host.name));
}

fn groups(table: &Table<'_>, hosts: &mut Hosts) {
    let Some(raw) = table.raw("groups") else { return };
    for (name, value) in raw.value.as_table().into_iter().flatten() {
        let group = name.get_ref().as_ref();
        let simple = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if group.is_empty() || !group.chars().all(simple) || group.starts_with('-') {
            let mistake = Mistake::at(name.span(), format!("`{group}` cannot name a group"));
            table.book.add(mistake.help("use letters, digits, `.`, `_` and `-`"));
        }
        if hosts.position.contains_key(group) {
            let mistake = Mistake::at(name.span(), format!("`{group}` is a group and a host"));
            table.book.add(mistake.help("call the group something else"));
        }
        let mut members = HashSet::new();
        for words in super::table::texts_of(table.book, value.get_ref(), value.span()) {
            let Some(names) = list(table, &words) else {
                hosts.sound = false;
                continue;
            };
            for member in names {
                if hosts.position.contains_key(&member) {
                    if !members.insert(member.clone()) {
                        let mistake =
                            Mistake::at(words.span.clone(), format!("{member} is twice in the group {group}"));
                        table.book.add(mistake.help("name every member once"));
                        break;
                    }
                } else if !hosts.excluded.contains(&member) && hosts.sound {
                    table.book.add(stranger(hosts, &member, &words));
                    break;
                }
            }
        }
        let in_order = hosts.list.iter().map(|host| &host.name).filter(|name| members.contains(*name)).cloned();
        let members: Vec<String> = in_order.collect();
        hosts.groups.insert(group.to_owned(), members);
    }
}

fn stranger(hosts: &Hosts, name: &str, words: &Words) -> Mistake {
    let mistake = Mistake::at(words.span.clone(), format!("{name} is not among the plan's hosts"));
    match nearest(name, hosts.list.iter().map(|host| host.name.as_str()).chain(hosts.groups.keys().map(String::as_str)))
    {
        Some(near) => mistake.help(format!("did you mean {near}?")),
        None => mistake.help("add it to `names` in [hosts], or leave it out here"),
    }
}

impl Hosts {
    /// Hosts that some groups and hostlists stand for, in the plan's order, each once. `None` after saying which of
    /// them is unknown.
    pub fn select(&self, table: &Table<'_>, words: &[Words]) -> Option<Vec<String>> {
        let mut chosen = HashSet::new();
        let mut sound = self.sound;
        for words in words {
            if let Some(members) = self.groups.get(&words.text) {
                chosen.extend(members.iter().cloned());
                continue;
            }
            let Some(names) = list(table, words) else {
                sound = false;
                continue;
            };
            for name in names {
                if let Some(members) = self.groups.get(&name) {
                    chosen.extend(members.iter().cloned());
                } else if self.position.contains_key(&name) {
                    chosen.insert(name);
                } else if self.sound && !self.excluded.contains(&name) {
                    table.book.add(stranger(self, &name, words));
                    sound = false;
                    break;
                }
            }
        }
        let in_order = self.list.iter().map(|host| &host.name).filter(|name| chosen.contains(*name)).cloned();
        sound.then(|| in_order.collect())
    }
}

fn defaults_and_overrides(table: &Table<'_>, hosts: &mut Hosts, launch: &Launch) {
    let devices = ports(table, "devices");
    let tcp = ports(table, "tcp");
    for host in &mut hosts.list {
        host.devices.clone_from(&devices);
        host.tcp.clone_from(&tcp);
    }
    let mut set: HashMap<(usize, &str), std::ops::Range<usize>> = HashMap::new();
    for entry in table.tables("override") {
        let Some(words) = entry.texts("match") else { continue };
        let Some(names) = hosts.select(&entry, &words.value) else { continue };
        if names.is_empty() {
            let help = "all hosts it names are excluded: leave the override out";
            entry.book.add(Mistake::at(words.span.clone(), "this override matches no host").help(help));
        }
        let matched: Vec<usize> = names.iter().filter_map(|name| hosts.position.get(name)).copied().collect();
        let over = Override::read(&entry, matched.len(), launch);
        for index in matched {
            for key in ["address", "user", "port", "devices", "tcp"] {
                let Some(span) = entry.written(key) else { continue };
                if let Some(earlier) = set.insert((index, key), span.clone())
                    && earlier != span
                {
                    let message = format!("`{key}` of {} is set twice", hosts.list[index].name);
                    let mistake = Mistake::at(span, message).also(earlier, "first here");
                    entry.book.add(mistake.help("let only one override match the host, or set the key in one of them"));
                }
            }
            over.apply(&mut hosts.list[index]);
        }
    }
}

/// What one `[[hosts.override]]` sets.
struct Override {
    address: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    devices: Option<Vec<String>>,
    tcp: Option<Vec<String>>,
}

impl Override {
    fn read(entry: &Table<'_>, matched: usize, launch: &Launch) -> Self {
        for key in ["user", "port"] {
            if let Some(span) = entry.name_span(key).filter(|_| !matches!(launch.via, Launcher::Ssh(_))) {
                let mistake = Mistake::at(span, format!("`{key}` has a meaning only with via = \"ssh\""));
                entry.book.add(mistake.help("leave it out"));
            }
        }
        let address = entry.text("address");
        if let Some(address) = &address {
            let host_name = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
            if !address.value.chars().all(host_name) || address.value.starts_with('-') {
                let mistake = Mistake::at(address.span.clone(), format!("\"{}\" is no address", address.value));
                entry.book.add(mistake.help("write a name, an IPv4 address or an IPv6 address without brackets"));
            } else if matched > 1 {
                let mistake = Mistake::at(address.span.clone(), format!("one address for {matched} hosts"));
                entry.book.add(mistake.help("two hosts at one address would be measured as one: match one host"));
            }
        }
        let user = entry.text("user");
        if let Some(user) = &user
            && (user.value.starts_with('-') || user.value.contains(char::is_whitespace))
        {
            entry.book.add(super::launch::not_an_argument(&user.value, user.span.clone()));
        }
        Self {
            address: address.map(|at| at.value),
            user: user.map(|at| at.value),
            port: entry.whole("port").map(|at| at.value),
            devices: entry.written("devices").map(|_| ports(entry, "devices")),
            tcp: entry.written("tcp").map(|_| ports(entry, "tcp")),
        }
    }

    fn apply(&self, host: &mut Host) {
        if let Some(address) = &self.address {
            host.address.clone_from(address);
        }
        host.user = self.user.clone().or(host.user.take());
        host.port = self.port.or(host.port);
        if let Some(devices) = &self.devices {
            host.devices.clone_from(devices);
        }
        if let Some(tcp) = &self.tcp {
            host.tcp.clone_from(tcp);
        }
    }
}

/// Device or interface names in rail order, each once.
fn ports(table: &Table<'_>, key: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for words in table.texts(key).map(|at| at.value).unwrap_or_default() {
        let simple = |c: char| c.is_ascii_alphanumeric() || "._-:@%".contains(c);
        if words.text.is_empty() || words.text.starts_with('-') || !words.text.chars().all(simple) {
            let mistake =
                Mistake::at(words.span.clone(), format!("\"{}\" is no device, interface or address", words.text));
            table.book.add(mistake.help("for example \"mlx5_0\", \"mlx5_0:2\", \"eth0\" or \"10.0.0.1\""));
        } else if list.contains(&words.text) {
            let mistake = Mistake::at(words.span.clone(), format!("{} is listed twice in `{key}`", words.text));
            table.book.add(mistake.help("a device is one rail: list it once"));
        }
        list.push(words.text);
    }
    list
}
