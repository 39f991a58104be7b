mod host;
mod keys;
mod known;
mod kubectl;
mod places;
mod slurm;
mod special;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
    path::PathBuf,
};

use super::{
    At, Book, Launch, Launcher, Mistake, Place, Table,
    grammar::hostlist::{self, expand},
    read::texts_of,
};

pub use host::{Host, Unlike, again};
pub use keys::HOSTS;
use known::stranger;
pub use known::{Hosts, list};
pub use kubectl::wanted as wanted_pods;
pub use slurm::topology as of_slurm;

pub fn read(table: &Table<'_>, there: bool, launch: &Launch) -> Hosts {
    let mut hosts = Hosts { sound: true, ..Hosts::default() };
    if !there {
        hosts.sound = false;
        return hosts;
    }
    let mut named: Vec<(String, usize, Range<usize>)> = Vec::new();
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
        match table.path("file").map(|path| from_file(table.book, &path)) {
            Some((names, sound)) => {
                named.extend(names);
                hosts.sound &= sound;
            }
            None => hosts.sound = false,
        }
    }
    kubectl::judge(table, launch, !named.is_empty(), &mut hosts);
    let is_kubectl = matches!(launch.via, Launcher::Kubectl(_));
    if named.is_empty() && hosts.sound {
        named = match is_kubectl && table.written("slurm").is_none() {
            true => kubectl::pods(table, &mut hosts),
            false => slurm::nodes(table, launch, &mut hosts),
        };
    } else {
        slurm::refuse_beside_names(table);
    }
    unique(table, &mut hosts, named);
    if hosts.pods.is_some() {
        kubectl::addresses(table, &mut hosts);
    }
    exclude(table, &mut hosts);
    if hosts.sound && hosts.list.is_empty() {
        let span = table.written("names").or(table.written("file")).unwrap_or(table.span.clone());
        let help = "name at least two hosts: names = \"gpu[001-032]\", or file = \"hosts.txt\"";
        table.wrong(span, "the plan has no hosts", help);
        hosts.sound = false;
    }
    hosts.position = hosts.list.iter().enumerate().map(|(index, host)| (host.name.clone(), index)).collect();
    groups(table, &mut hosts);
    slurm::switches(table, launch, &mut hosts);
    special::read(table, &mut hosts, launch);
    hosts.places = places::read(table, &hosts);
    hosts
}

fn unique(table: &Table<'_>, hosts: &mut Hosts, named: Vec<(String, usize, Range<usize>)>) {
    let mut first: HashMap<String, (usize, Range<usize>)> = HashMap::new();
    let mut said = HashSet::new();
    for (name, source, span) in named {
        if let Some((earlier, at)) = first.get(&name) {
            // One mistake per pair of places: overlapping ranges share many names.
            if said.insert((*earlier, at.start, source, span.start)) {
                let mut mistake = Mistake::in_source(source, span.clone(), format!("the host {name} is listed twice"));
                if (*earlier, at) != (source, &span) {
                    mistake.also.push((Place { source: *earlier, span: at.clone().into() }, "first here".into()));
                }
                table.book.add(mistake.help("list every host once"));
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
                stranger(table.book, hosts, &name, words.span.clone());
                break;
            }
            hosts.excluded.insert(name);
        }
    }
    hosts.list.retain(|host| !hosts.excluded.contains(&host.name));
}

/// Names of the file with their places, and whether that is all of them; mistakes have been reported.
fn from_file(book: &Book<'_>, path: &At<PathBuf>) -> (Vec<(String, usize, Range<usize>)>, bool) {
    let Some((source, lines)) = book.lines(path, "the host file") else { return (Vec::new(), false) };
    let (mut names, mut sound) = (Vec::new(), true);
    for (at, list) in lines {
        match expand(&list) {
            Ok(some) => names.extend(some.into_iter().map(|name| (name, source, at.clone()))),
            Err(wrong) => {
                book.add(Mistake::wrong(source, at.start, wrong));
                sound = false;
            }
        }
    }
    if sound && names.is_empty() {
        book.wrong(path.span.clone(), "the host file lists no hosts", "write one hostlist on each line");
        sound = false;
    }
    (names, sound)
}

fn groups(table: &Table<'_>, hosts: &mut Hosts) {
    let Some(raw) = table.raw("groups") else { return };
    let mut sound = hosts.sound;
    for (name, value) in raw.value.as_table().into_iter().flatten() {
        let group = name.get_ref().as_ref();
        let simple = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if group.is_empty() || !group.chars().all(simple) || group.starts_with('-') {
            let message = format!("`{group}` is not a valid group name");
            table.wrong(name.span(), message, "use letters, digits, `.`, `_` and `-`");
        }
        if hosts.position.contains_key(group) {
            table.wrong(name.span(), format!("`{group}` is the name of both a group and a host"), "rename the group");
        }
        // Positions: in the plan's order whatever the order here.
        let mut members = BTreeSet::new();
        let mut written = Vec::new();
        for words in texts_of(table.book, value.get_ref(), value.span()) {
            let Some(names) = list(table, &words) else {
                sound = false;
                continue;
            };
            for member in names {
                written.push(member.clone());
                if let Some(position) = hosts.position.get(&member) {
                    if !members.insert(*position) {
                        let message = format!("{member} is listed twice in the group {group}");
                        table.wrong(words.span.clone(), message, "name every member once");
                        break;
                    }
                } else if !hosts.excluded.contains(&member) && hosts.sound {
                    stranger(table.book, hosts, &member, words.span.clone());
                    break;
                }
            }
        }
        let members: Vec<String> = members.into_iter().map(|position| hosts.list[position].name.clone()).collect();
        hosts.groups.insert(group.to_owned(), members);
        hosts.written.insert(group.to_owned(), written);
    }
    hosts.sound = sound;
}
