use std::collections::HashSet;

use super::{
    at_once,
    members::{Members, one, takes_part, two_groups},
};
use crate::plan::{At, Mistake, OnFabric, Pattern, Table, Words, count::count, format::one_of, read::texts_of};

pub const NAMES: &[(&str, &str)] = &[
    ("tournament", "Every pair once, by the circle method: in a round every host is busy with another peer."),
    ("random", "`rounds` different rounds of the tournament, chosen by the seed."),
    ("ring", "Each host to the next, the last to the first."),
    ("neighbours", "First with second, third with fourth, and so on; an even number of hosts."),
    ("one-to-many", "`from` to every other host, one at a time."),
    ("many-to-one", "Every other host to `to`, one at a time."),
    ("between", "Every host of one group of `between` with every host of the other."),
    ("pairs", "The `pairs`, source first; as many at once as share no host."),
    ("incast", "At once: every other host to `to`; without `to` to each host in turn."),
    ("outcast", "At once: `from` to every other host; without `from` from each host in turn."),
    ("all-to-all", "At once: every host to every other."),
    ("ring-at-once", "At once: each host to the next, the last to the first."),
    ("permutation", "At once: each host to another one, chosen by the seed; `rounds` times (1)."),
    (
        "bisection",
        "At once: pairs across a cut, in both directions. The cut halves the hosts by the seed, `rounds` times (1), \
         or lies between the two groups of `between`.",
    ),
    (
        "victim",
        "At once: a flow alone, then the same flow while all other hosts send to `to`, which is none of its ends. Flow and \
         host are chosen by the seed, `rounds` times (1), unless `victim` and `to` name them. At least five hosts.",
    ),
    ("same-leaf", "NIC ports below one leaf switch with each other: all pairs, or `rounds`. Needs [topology]."),
    (
        "cross-leaf",
        "NIC ports below different leaf switches: as many rounds as let every two leaves meet, or `rounds`. Needs [topology].",
    ),
    (
        "cover-links",
        "The fewest rounds found in which every link between switches carries `links_loaded` percent of its rate. Needs \
         [topology].",
    ),
];

/// Key, the pattern that needs it, others that may have it, and an example.
const OWN_KEYS: &[(&str, &str, &[&str], &str)] = &[
    ("rounds", "random", &["permutation", "bisection", "victim", "same-leaf", "cross-leaf"], "rounds = 6"),
    ("from", "one-to-many", &["outcast"], "from = \"gpu001\""),
    ("to", "many-to-one", &["incast", "victim"], "to = \"gpu001\""),
    ("between", "between", &["bisection"], "between = [\"rack1\", \"rack2\"]"),
    ("links_loaded", "cover-links", &[], "links_loaded = 80"),
    ("victim", "victim", &[], "victim = [\"gpu001\", \"gpu002\"]"),
    ("pairs", "pairs", &[], "pairs = [[\"gpu001\", \"gpu002\"]]"),
];

const DRAWN: &str = "victim";

pub fn own_names() -> impl Iterator<Item = &'static str> {
    OWN_KEYS.iter().map(|(name, ..)| *name)
}

pub fn read(test: &Table<'_>, members: Option<&Members<'_>>) -> Option<Pattern> {
    let pattern = test.word("pattern")?;
    own_keys(test, &pattern)?;
    let members = members?;
    match pattern.value {
        "between" => return two_groups(test, members).map(|(one, other)| Pattern::Between(one, other)),
        "pairs" => return pairs(test, members),
        _ => {}
    }
    let hosts = &members.list;
    let counted = match hosts.as_slice() {
        [host] => format!("{} ({host})", count(1, "host")),
        _ => count(hosts.len(), "host"),
    };
    let wrong = |message: String, help: String| test.reject(pattern.span.clone(), message, help);
    if hosts.len() < 2 {
        let message = format!("the pattern {} has no pairs with {counted}", pattern.value);
        return wrong(message, "a pair needs two hosts: add hosts".into());
    }
    match pattern.value {
        "random" => {
            let rounds = test.whole::<u32>("rounds")?;
            // The circle method needs n - 1 rounds for an even number of hosts, and n for an odd one.
            let all = hosts.len().div_ceil(2) * 2 - 1;
            if members.hosts.narrowed && rounds.value as usize > all {
                return Some(Pattern::Tournament);
            }
            if rounds.value as usize > all {
                let message = format!("all pairs of {counted} meet in {}", count(all, "round"));
                let help = format!("at most rounds = {all}; pattern = \"tournament\" runs every pair");
                return test.reject(rounds.span, message, help);
            }
            Some(Pattern::Random(rounds.value))
        }
        "ring" => Some(Pattern::Ring),
        "neighbours" => match hosts.chunks(2).last() {
            Some([left_over]) => {
                let message = format!("{left_over} has no neighbour: {counted} is an odd number");
                wrong(message, format!("leave {left_over} out, add a host, or use the pattern ring"))
            }
            _ => Some(Pattern::Neighbours),
        },
        "one-to-many" => one(test, "from", members).map(Pattern::OneToMany),
        "many-to-one" => one(test, "to", members).map(Pattern::ManyToOne),
        "tournament" => Some(Pattern::Tournament),
        "same-leaf" | "cross-leaf" | "cover-links" => on_fabric(test, &pattern, members).map(Pattern::Fabric),
        _ => at_once::read(test, pattern.value, members).map(Pattern::AtOnce),
    }
}

fn on_fabric(test: &Table<'_>, pattern: &At<&'static str>, members: &Members<'_>) -> Option<OnFabric> {
    if members.hosts.topology.is_none() {
        let message =
            format!("the pattern {} needs to know the switches, and the plan has no [topology]", pattern.value);
        let help = "add for example [topology] with slurm = \"/etc/slurm/topology.conf\"; in an allocation of Slurm with a topology plugin \
                    via = \"slurm\" needs none";
        return test.reject(pattern.span.clone(), message, help);
    }
    let rounds = || if test.has("rounds") { test.whole::<u32>("rounds").map(|at| Some(at.value)) } else { Some(None) };
    Some(match pattern.value {
        "same-leaf" => OnFabric::SameLeaf(rounds()?),
        "cross-leaf" => OnFabric::CrossLeaf(rounds()?),
        _ => OnFabric::CoverLinks(test.percent("links_loaded")?.value),
    })
}

/// `None` after reporting that the pattern's own key is missing. Also reports keys of other patterns, except those of `[defaults]`.
fn own_keys(test: &Table<'_>, pattern: &At<&'static str>) -> Option<()> {
    let mut complete = Some(());
    for (name, owner, guests, example) in OWN_KEYS {
        if guests.contains(&pattern.value) {
            continue;
        }
        if *owner == pattern.value {
            if !test.has(name) && *owner != DRAWN {
                let message = format!("the pattern {owner} needs `{name}`");
                test.wrong(pattern.span.clone(), message, format!("for example {example}"));
                complete = None;
            }
        } else if let Some(span) = test.name_span(name) {
            let mut mistake = Mistake::at(span, format!("`{name}` does not apply with the pattern {}", pattern.value));
            if pattern.own {
                mistake = mistake.also(pattern.span.clone(), "the pattern");
            }
            let owners: Vec<&str> = [owner].into_iter().chain(*guests).copied().collect();
            test.book.add(mistake.help(format!("leave it out, or set pattern = {}", one_of(&owners))));
        }
    }
    complete
}

fn pairs(test: &Table<'_>, members: &Members<'_>) -> Option<Pattern> {
    let raw = test.raw("pairs")?;
    let mut list: Vec<(String, String)> = Vec::new();
    let mut seen = HashSet::new();
    let mut sound = true;
    let mut absent = 0;
    for pair in raw.value.as_array()? {
        let ends: Vec<Words> = texts_of(test.book, pair.get_ref(), pair.span());
        let [from, to] = ends.as_slice() else { continue };
        if members.hosts.narrowed && !(members.has(&from.text) && members.has(&to.text)) {
            absent += 1;
            continue;
        }
        for end in [from, to] {
            sound &= takes_part(test, &end.text, end.span.clone(), members);
        }
        let pair_of = (from.text.clone(), to.text.clone());
        let wrong = if from.text == to.text {
            Some((format!("{} cannot be its own peer", from.text), "name two hosts"))
        } else if !seen.insert(pair_of.clone()) {
            let message = format!("the pair {} to {} is listed twice", from.text, to.text);
            Some((message, "list it once; use `repeats` to measure more often"))
        } else {
            None
        };
        if let Some((message, help)) = wrong {
            test.wrong(pair.span(), message, help);
            sound = false;
        }
        list.push(pair_of);
    }
    if list.is_empty() && members.hosts.narrowed {
        test.book.add(Mistake::at(raw.span, "none of its pairs has both hosts"));
        return None;
    }
    if list.is_empty() {
        return test.reject(raw.span, "`pairs` is empty", "for example pairs = [[\"gpu001\", \"gpu002\"]]");
    }
    if absent > 0 {
        members.hosts.leave_out(format!("{absent} of its {}", count(absent + list.len(), "pair")));
    }
    sound.then_some(Pattern::Pairs(list))
}
