//! `[test.expect.source]`: where a limit was published.

use super::sizes;
use crate::plan::{
    Section, Table,
    format::keys,
    grammar::hostlist,
    source::{Source, Statistic},
};

pub static SOURCE: Section = Section {
    header: "[test.expect.source]",
    about: "Where a limit was published, and for what. A value of another scale, size or statistic is not judged by it: the \
            expectation is then inconclusive, and `check` says so before. A limit of your own has no source.",
    keys: keys! {
        "system": Text, Required, "What was measured: `\"AWS p5.48xlarge\"`.";
        "url": Text, Required, "Where the figure is.";
        "hosts": Whole(1, hostlist::MOST as u64), Required,
            "Hosts that worked together (a pair has 2), or those of a collective's group.";
        "gpus": Whole(1, 65_536), Means("not of GPUs"), "GPUs (ranks) on all of these hosts.";
        "sizes": Sizes, Required, "The published sizes.";
        "statistic": Word(Statistic::all_words), Required,
            "`\"mean-of-sizes\"`: mean of the values of all sizes (\"Avg bus bandwidth\" of nccl-tests); each group \
             of hosts is judged by it.";
    },
};

pub fn read(expect: &Table<'_>) -> Option<Source> {
    expect.written("source")?;
    let table = expect.table("source");
    let sizes = table.raw("sizes").map(|raw| sizes::listed(&table, raw));
    Some(Source {
        system: table.text("system")?.value,
        url: table.text("url")?.value,
        hosts: table.whole("hosts")?.value,
        gpus: table.whole("gpus").map(|at| at.value),
        sizes: sizes?.0.into_iter().map(|(size, _)| size).collect(),
        statistic: table.term("statistic", Statistic::from_word)?.value,
    })
}
