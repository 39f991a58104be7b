use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
};

use super::host::Host;
use crate::plan::{Book, Pods, Table, Topology, Words, grammar::hostlist::expand};

/// The hosts of a plan while it is read.
#[derive(Debug, Default)]
pub struct Hosts {
    pub list: Vec<Host>,
    pub groups: BTreeMap<String, Vec<String>>,
    /// Members in the order as written, with excluded ones.
    pub(super) written: BTreeMap<String, Vec<String>>,
    pub position: HashMap<String, usize>,
    pub pods: Option<Pods>,
    pub places: BTreeMap<String, String>,
    pub topology: Option<Topology>,
    pub(super) excluded: HashSet<String>,
    pub narrowed: bool,
    pub(super) left_out: RefCell<Vec<String>>,
    /// Whether all of it could be read; if not, references to hosts are not checked.
    pub sound: bool,
}

pub fn list(table: &Table<'_>, words: &Words) -> Option<Vec<String>> {
    if !table.book.afford(0, &words.span) {
        return None;
    }
    let names = expand(&words.text).map_err(|wrong| table.book.add(words.mistake(wrong))).ok()?;
    table.book.afford(names.len(), &words.span).then_some(names)
}

pub(super) fn stranger(book: &Book<'_>, hosts: &Hosts, name: &str, span: Range<usize>) {
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
        book.wrong(span, format!("no group is called \"{name}\""), help);
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
