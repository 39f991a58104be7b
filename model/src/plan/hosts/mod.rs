mod again;
mod file;
mod group;
mod keys;
mod kubectl;
mod places;
mod slurm;
mod special;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
};

use super::{
    grammar::hostlist::{self, expand},
    mistakes::{Mistake, Place},
    model::{Host, Launch, Launcher, Pods, Topology},
    read::{Book, Table, Words},
};

pub use again::{Unlike, again};
pub use keys::HOSTS;
pub use kubectl::wanted as wanted_pods;
pub use slurm::topology as of_slurm;

#[derive(Debug, Default)]
pub struct Hosts {
    pub list: Vec<Host>,
    pub groups: BTreeMap<String, Vec<String>>,
    /// Members in the order as written, with excluded ones.
    written: BTreeMap<String, Vec<String>>,
    pub position: HashMap<String, usize>,
    pub pods: Option<Pods>,
    pub places: BTreeMap<String, String>,
    pub topology: Option<Topology>,
    excluded: HashSet<String>,
    pub narrowed: bool,
    left_out: RefCell<Vec<String>>,
    /// Whether all of it could be read; if not, references to hosts are not checked.
    pub sound: bool,
}

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
        match table.path("file").map(|path| file::read(table.book, &path)) {
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
    group::read(table, &mut hosts);
    slurm::switches(table, launch, &mut hosts);
    special::read(table, &mut hosts, launch);
    hosts.places = places::read(table, &hosts);
    hosts
}

pub fn list(table: &Table<'_>, words: &Words) -> Option<Vec<String>> {
    if !table.book.afford(0, &words.span) {
        return None;
    }
    let names = expand(&words.text).map_err(|wrong| table.book.add(words.mistake(wrong))).ok()?;
    table.book.afford(names.len(), &words.span).then_some(names)
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

fn stranger(book: &Book<'_>, hosts: &Hosts, name: &str, span: Range<usize>) {
    let groups = hosts.groups.keys().map(String::as_str);
    let help = match book.nearest_host(name, hosts.list.iter().map(|host| host.name.as_str()).chain(groups)) {
        Some(near) => format!("did you mean {near}?"),
        None => "add it to `names` in [hosts], or leave it out here".into(),
    };
    book.wrong(span, format!("the plan has no host {name}"), help);
}

impl Hosts {
    /// Keeps only these hosts; the others are then excluded. A group may become empty.
    pub fn only(&mut self, names: &[String]) {
        let chosen: HashSet<&str> = names.iter().map(String::as_str).collect();
        let (kept, gone): (Vec<Host>, Vec<Host>) =
            std::mem::take(&mut self.list).into_iter().partition(|host| chosen.contains(host.name.as_str()));
        self.narrowed = !gone.is_empty();
        self.excluded.extend(gone.into_iter().map(|host| host.name));
        self.list = kept;
        self.places.retain(|name, _| chosen.contains(name.as_str()));
        self.position = self.list.iter().enumerate().map(|(index, host)| (host.name.clone(), index)).collect();
        for members in self.groups.values_mut() {
            members.retain(|name| chosen.contains(name.as_str()));
        }
    }

    pub fn leave_out(&self, what: String) {
        self.left_out.borrow_mut().push(what);
    }

    pub fn take_left_out(&self) -> Vec<String> {
        self.left_out.take()
    }

    pub fn no_group(&self, book: &Book<'_>, name: &str, span: Range<usize>) {
        let help = match book.nearest(name, self.groups.keys().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "define it in [hosts.groups]".into(),
        };
        book.wrong(span, format!("there is no group \"{name}\""), help);
    }

    /// Also excluded hosts.
    pub fn everyone(&self) -> Vec<String> {
        let mut names: Vec<String> = self.list.iter().map(|host| host.name.clone()).collect();
        names.extend(self.excluded.iter().cloned());
        names
    }

    /// Hosts of some groups and hostlists, in the plan's order, unique. `None` after reporting what is wrong with them.
    pub fn select(&self, table: &Table<'_>, words: &[Words]) -> Option<Vec<String>> {
        let book = table.book;
        let mut chosen: BTreeSet<usize> = BTreeSet::new();
        let mut sound = self.sound;
        let mut take = |members: &[String], span: &Range<usize>| {
            let fits = book.afford(members.len(), span);
            if fits {
                chosen.extend(members.iter().filter_map(|name| self.position.get(name)));
            }
            fits
        };
        for words in words {
            if let Some(members) = self.groups.get(&words.text) {
                sound &= take(members, &words.span);
                continue;
            }
            let Some(names) = list(table, words) else {
                sound = false;
                continue;
            };
            for name in names {
                if let Some(members) = self.groups.get(&name) {
                    sound &= take(members, &words.span);
                } else if self.position.contains_key(&name) {
                    sound &= take(&[name], &words.span);
                } else if self.sound && !self.excluded.contains(&name) {
                    stranger(book, self, &name, words.span.clone());
                    sound = false;
                    break;
                }
            }
        }
        sound.then(|| chosen.into_iter().map(|position| self.list[position].name.clone()).collect())
    }
}
