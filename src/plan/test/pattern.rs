//! `pattern`: who talks to whom.

use std::collections::HashSet;

use crate::plan::{
    hosts::Hosts,
    mistake::Mistake,
    model::Pattern,
    table::{At, Table, Words, texts_of},
};

/// Patterns: their names and what they do.
pub const NAMES: &[(&str, &str)] = &[
    ("tournament", "Every pair once, by the circle method: in a round every host is busy with another peer."),
    ("random", "`rounds` rounds of the tournament, chosen by the seed."),
    ("ring", "Each host to the next, the last to the first."),
    ("neighbours", "First with second, third with fourth, and so on; an even number of hosts."),
    ("one-to-many", "`from` to every other host, one at a time."),
    ("many-to-one", "Every other host to `to`, one at a time."),
    ("between", "Every host of one group of `between` with every host of the other."),
    ("pairs", "The `pairs`, source first."),
];

/// Keys that belong to one pattern each.
const OWN_KEYS: &[(&str, &str)] =
    &[("rounds", "random"), ("from", "one-to-many"), ("to", "many-to-one"), ("between", "between"), ("pairs", "pairs")];

/// Reads the pattern of a test whose hosts are known; `None` after saying what is wrong.
pub fn read(test: &Table<'_>, hosts: &Hosts, taking_part: &[String]) -> Option<Pattern> {
    let pattern = test.word("pattern")?;
    for (key, wanted) in OWN_KEYS {
        if let Some(span) = test.name_span(key).filter(|_| *wanted != pattern.value) {
            let mut mistake = Mistake::at(span, format!("`{key}` has no meaning with the pattern {}", pattern.value));
            if pattern.own {
                mistake = mistake.also(pattern.span.clone(), "the pattern");
            }
            test.book.add(mistake.help(format!("leave it out, or say pattern = \"{wanted}\"")));
        }
    }
    if let Some((key, _)) = OWN_KEYS.iter().find(|(_, name)| *name == pattern.value)
        && test.raw(key).is_none()
    {
        if test.written(key).is_none() {
            let message = format!("the pattern {} needs `{key}`", pattern.value);
            let example = match *key {
                "rounds" => "rounds = 6",
                "between" => "between = [\"rack1\", \"rack2\"]",
                "pairs" => "pairs = [[\"a\", \"b\"]]",
                key => &format!("{key} = \"gpu001\""),
            };
            test.book.add(Mistake::at(pattern.span, message).help(format!("for example {example}")));
        }
        return None;
    }
    let few = || {
        let message = format!("the pattern {} makes no pair of {}", pattern.value, counted(taking_part));
        test.book.add(Mistake::at(pattern.span.clone(), message).help("a pair needs two hosts: add hosts"));
    };
    let enough = taking_part.len() >= 2;
    match pattern.value {
        "random" => {
            let rounds = test.whole::<u32>("rounds")?;
            let all = taking_part.len().div_ceil(2) * 2 - usize::from(!taking_part.is_empty());
            if enough && rounds.value as usize > all {
                let message = format!("a tournament of {} has only {all} rounds", counted(taking_part));
                let help = format!("at most rounds = {all}; pattern = \"tournament\" runs all of them");
                test.book.add(Mistake::at(rounds.span, message).help(help));
            }
            enough.then_some(Pattern::Random(rounds.value)).or_else(|| {
                few();
                None
            })
        }
        "neighbours" if enough && taking_part.len() % 2 == 1 => {
            let left_over = &taking_part[taking_part.len() - 1];
            let message = format!("{left_over} has no neighbour: {} is an odd number", counted(taking_part));
            let help = format!("leave {left_over} out, add a host, or take the pattern ring");
            test.book.add(Mistake::at(pattern.span, message).help(help));
            None
        }
        "one-to-many" => one(test, "from", hosts, taking_part).map(Pattern::OneToMany).filter(|_| {
            enough || {
                few();
                false
            }
        }),
        "many-to-one" => one(test, "to", hosts, taking_part).map(Pattern::ManyToOne).filter(|_| {
            enough || {
                few();
                false
            }
        }),
        "between" => between(test, hosts, taking_part),
        "pairs" => pairs(test, hosts, taking_part),
        name => {
            if !enough {
                few();
                return None;
            }
            Some(match name {
                "ring" => Pattern::Ring,
                "neighbours" => Pattern::Neighbours,
                _ => Pattern::Tournament,
            })
        }
    }
}

fn counted(hosts: &[String]) -> String {
    if hosts.len() == 1 { format!("1 host ({})", hosts[0]) } else { format!("{} hosts", hosts.len()) }
}

/// One host that takes part.
fn one(test: &Table<'_>, key: &str, hosts: &Hosts, taking_part: &[String]) -> Option<String> {
    let host = test.text(key)?;
    takes_part(test, &host.value, host.span.clone(), hosts, taking_part).then_some(host.value)
}

fn takes_part(
    test: &Table<'_>,
    host: &str,
    span: std::ops::Range<usize>,
    hosts: &Hosts,
    taking_part: &[String],
) -> bool {
    let all = !hosts.position.contains_key(host);
    if !hosts.sound || taking_part.iter().any(|name| name == host) {
        return true;
    }
    let message = match all {
        true => format!("{host} is not among the plan's hosts"),
        false => format!("{host} is not among the hosts of this test"),
    };
    let near = crate::plan::wrong::nearest(host, taking_part.iter().map(String::as_str));
    let help = match near {
        Some(near) if all => format!("did you mean {near}?"),
        _ => "name one host that takes part, or add it to `hosts`".into(),
    };
    test.book.add(Mistake::at(span, message).help(help));
    false
}

fn between(test: &Table<'_>, hosts: &Hosts, taking_part: &[String]) -> Option<Pattern> {
    let At { value: two, span, .. } = test.texts("between")?;
    let [one, other] = two.as_slice() else { return None };
    let mut known = true;
    for name in [one, other] {
        match hosts.groups.get(&name.text) {
            None => {
                let near = crate::plan::wrong::nearest(&name.text, hosts.groups.keys().map(String::as_str));
                let help = match near {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "define it in [hosts.groups]".into(),
                };
                let mistake = Mistake::at(name.span.clone(), format!("there is no group \"{}\"", name.text));
                test.book.add(mistake.help(help));
                known = false;
            }
            Some(members) if !members.iter().any(|member| taking_part.contains(member)) && hosts.sound => {
                let message = format!("no host of the group {} takes part in this test", name.text);
                test.book.add(
                    Mistake::at(name.span.clone(), message).help("add the group to `hosts`, or leave `hosts` out"),
                );
                known = false;
            }
            Some(_) => {}
        }
    }
    let (first, second) = (hosts.groups.get(&one.text)?, hosts.groups.get(&other.text)?);
    let first: HashSet<&String> = first.iter().collect();
    if let Some(shared) = second.iter().find(|name| first.contains(name)) {
        let message = format!("{shared} is in both groups: it cannot talk to itself");
        test.book.add(Mistake::at(span, message).help("let the two groups share no host"));
        return None;
    }
    known.then(|| Pattern::Between(one.text.clone(), other.text.clone()))
}

fn pairs(test: &Table<'_>, hosts: &Hosts, taking_part: &[String]) -> Option<Pattern> {
    let raw = test.raw("pairs")?;
    let mut list: Vec<(String, String)> = Vec::new();
    let mut seen = HashSet::new();
    let mut sound = true;
    for pair in raw.value.as_array()? {
        let ends: Vec<Words> = texts_of(test.book, pair.get_ref(), pair.span());
        let [from, to] = ends.as_slice() else { continue };
        for end in [from, to] {
            sound &= takes_part(test, &end.text, end.span.clone(), hosts, taking_part);
        }
        if from.text == to.text {
            let mistake = Mistake::at(pair.span(), format!("{} cannot be its own peer", from.text));
            test.book.add(mistake.help("name two hosts"));
            sound = false;
        } else if !seen.insert((from.text.clone(), to.text.clone())) {
            let mistake = Mistake::at(pair.span(), format!("the pair {} to {} is listed twice", from.text, to.text));
            test.book.add(mistake.help("list it once; `repeats` measures more often"));
            sound = false;
        }
        list.push((from.text.clone(), to.text.clone()));
    }
    if list.is_empty() {
        test.book.add(Mistake::at(raw.span, "`pairs` is empty").help("for example pairs = [[\"a\", \"b\"]]"));
        return None;
    }
    sound.then_some(Pattern::Pairs(list))
}
