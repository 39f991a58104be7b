//! `places` of `[hosts]`: rack and slot of each host. Either in the plan as folded hostlists and places, or in a file with a line
//! `host,rack,slot` per host.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::PathBuf,
};

use super::known::{Hosts, stranger};
use crate::{
    border::{text::has_printable_lines, wrong::Wrong},
    plan::{
        At, Mistake, Place, Table, Words,
        count::count,
        grammar::hostlist::{expand, fold},
    },
};

/// Longest name of a rack or a slot in bytes: what a label holds.
const LONGEST: usize = 64;
const BETWEEN: char = '/';

/// `rack12/u07` by host name. Hosts without a place are omitted.
pub(super) fn read(table: &Table<'_>, hosts: &Hosts) -> BTreeMap<String, String> {
    let Some(raw) = table.raw("places") else { return BTreeMap::new() };
    match raw.value.as_table() {
        Some(entries) => {
            let mut said: HashMap<String, (String, Range<usize>)> = HashMap::new();
            // In the order as written: the second of two is the mistake.
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(name, _)| name.span().start);
            for (name, value) in entries {
                let Some(words) = Words::new(table.book, value.get_ref(), value.span()) else { continue };
                let Some(names) = hosts_of(table, hosts, name.get_ref(), name.span()) else { continue };
                let Some(places) = places(table, &words, names.len()) else { continue };
                for (host, place) in names.into_iter().zip(places) {
                    if let Some((_, first)) = said.get(&host) {
                        let mistake = Mistake::at(name.span(), format!("the place of {host} is given twice"));
                        table.book.add(mistake.also(first.clone(), "first here").help("give every host one place"));
                        break;
                    }
                    said.insert(host, (place, name.span()));
                }
            }
            of_plan(hosts, said.into_iter().map(|(host, (place, _))| (host, place)))
        }
        None => match table.path("places") {
            Some(path) => {
                let found = of_plan(hosts, from_file(table, &path).into_iter());
                lacking(table, hosts, &found, path.span);
                found
            }
            None => BTreeMap::new(),
        },
    }
}

fn lacking(table: &Table<'_>, hosts: &Hosts, found: &BTreeMap<String, String>, span: Range<usize>) {
    let names = hosts.list.iter().map(|host| host.name.as_str());
    let lacking: Vec<&str> = names.filter(|name| !found.contains_key(*name)).collect();
    if !lacking.is_empty() {
        let message = format!("the file of places says nothing of {}", count(lacking.len(), "host"));
        let help = format!("their places are not known: {}", fold(lacking));
        table.book.note(Mistake::at(span, message).help(help));
    }
}

fn of_plan(hosts: &Hosts, all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    all.filter(|(host, _)| hosts.position.contains_key(host)).collect()
}

/// The hosts of an entry: a group, or a hostlist. `None` after reporting what is wrong with it.
fn hosts_of(table: &Table<'_>, hosts: &Hosts, name: &str, span: Range<usize>) -> Option<Vec<String>> {
    // Places follow the order in which the plan writes a group or a hostlist.
    if let Some(members) = hosts.written.get(name) {
        return Some(members.clone());
    }
    let names = match expand(name) {
        Ok(names) => names,
        Err(wrong) => {
            return table.reject(span, wrong.message, wrong.help);
        }
    };
    if !table.book.afford(names.len(), &span) {
        return None;
    }
    let known = |host: &String| hosts.position.contains_key(host) || hosts.excluded.contains(host);
    if let Some(host) = names.iter().find(|host| !known(host)).filter(|_| hosts.sound) {
        stranger(table.book, hosts, host, span);
        return None;
    }
    Some(names)
}

/// The places of this many hosts: one for all, or one each. `None` after reporting what is wrong.
fn places(table: &Table<'_>, words: &Words, hosts: usize) -> Option<Vec<String>> {
    let (rack, slot) = words.text.split_once(BETWEEN).unwrap_or((&words.text, ""));
    let mut parts = Vec::new();
    for part in [rack, slot] {
        let expanded = if part.contains('[') { expand(part) } else { Ok(vec![part.trim().to_owned()]) };
        match expanded {
            Ok(list) if list.len() == 1 || list.len() == hosts => parts.push(list),
            Ok(list) => {
                let message = format!("\"{part}\" stands for {} and these are {hosts} hosts", list.len());
                let help = "give one place for all of them, or a range with as many as there are hosts";
                return table.reject(words.span.clone(), message, help);
            }
            Err(wrong) => {
                return table.reject(words.span.clone(), wrong.message, wrong.help);
            }
        }
    }
    let of = |part: usize, at: usize| parts[part].get(at).or(parts[part].first()).map_or("", String::as_str);
    let made: Result<_, Wrong> = (0..hosts).map(|at| place(of(0, at), of(1, at))).collect();
    made.map_err(|wrong| table.wrong(words.span.clone(), wrong.message, wrong.help)).ok()
}

fn place(rack: &str, slot: &str) -> Result<String, Wrong> {
    let wrong = |message| Err(Wrong::new(0..0, message, "for example \"rack12/u07\", or \"rack12\""));
    for (part, what) in [(rack, "rack"), (slot, "slot")] {
        if part.len() > LONGEST {
            return wrong(format!("the name of a {what} is longer than {LONGEST} bytes"));
        }
        if !has_printable_lines(part) || part.contains([BETWEEN, '\n', '\t']) {
            return wrong(format!("the name of a {what} has a character that none has"));
        }
    }
    match (rack.is_empty(), slot.is_empty()) {
        (true, _) => wrong("the rack has no name".to_owned()),
        (false, true) => Ok(rack.to_owned()),
        (false, false) => Ok(format!("{rack}{BETWEEN}{slot}")),
    }
}

/// Places of a file with a line `host,rack,slot` per host; `#` begins a comment, and the slot is optional. A file of a whole site may have
/// other hosts.
fn from_file(table: &Table<'_>, path: &At<PathBuf>) -> Vec<(String, String)> {
    let book = table.book;
    let Some((source, lines)) = book.lines(path, "the file of places") else { return Vec::new() };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut first: HashMap<String, Range<usize>> = HashMap::new();
    for (at, row) in lines {
        // A header line is optional.
        if found.is_empty() && row.replace(' ', "").eq_ignore_ascii_case("host,rack,slot") {
            continue;
        }
        let wrong = |message: String| {
            let help = "each line is host,rack,slot, such as gpu001,rack12,u07; the slot may be left out";
            book.add(Mistake::in_source(source, at.clone(), message).help(help));
        };
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        let (host, rack, slot) = match cells.as_slice() {
            [host, rack] => (*host, *rack, ""),
            [host, rack, slot] => (*host, *rack, *slot),
            _ => {
                wrong(format!("this line has {} columns, and 2 or 3 are expected", cells.len()));
                continue;
            }
        };
        // A hostlist may contain commas.
        match expand(host).as_deref() {
            Ok([only]) if only == host => {}
            _ => {
                wrong("the first column is not the name of a host".to_owned());
                continue;
            }
        }
        if cells.iter().any(|cell| cell.contains('"')) {
            wrong("quotes are not read here".to_owned());
            continue;
        }
        match place(rack, slot) {
            Ok(place) => {
                if let Some(earlier) = first.insert(host.to_owned(), at.clone()) {
                    let mut mistake =
                        Mistake::in_source(source, at.clone(), format!("the place of {host} is given twice"));
                    mistake.also.push((Place { source, span: earlier.into() }, "first here".into()));
                    book.add(mistake.help("give every host one place"));
                    continue;
                }
                found.push((host.to_owned(), place));
            }
            Err(why) => wrong(why.message),
        }
    }
    found
}
