use std::collections::BTreeSet;

use super::{Hosts, list, stranger};
use crate::plan::read::{Table, texts_of};

pub fn read(table: &Table<'_>, hosts: &mut Hosts) {
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
