//! `[[interleave]]`: two tests measured alternately, so that drift cancels.

use super::{Pattern, Section, Table, Test, format::keys, model::Interleave};

pub static INTERLEAVE: Section = Section {
    header: "[[interleave]]",
    about: "Two tests that are measured in turn and compared in the report: knobs, environments, services, transports, or what \
            `configure` changes. Every block measures every round in the order A B B A or B A A B, by a coin that the \
            plan's `seed` throws: what drifts slowly cancels, and the order says nothing. Both tests need the same hosts, \
            pattern, rails, metric and sizes, and as many `qps` or combinations of `env`, `datatype` and `reduction`; their \
            `repeats` are twice the blocks.",
    keys: keys! {
        "a": Text, Required, "Name of the first test, before the change.";
        "b": Text, Required, "Name of the second test, after the change.";
        "blocks": Whole(6, 1000), Is("8"),
            "Number of blocks; each measures both tests twice.";
    },
};

/// Reads the tables and sets the repeats of the tests they name. `tests` are in the plan's order.
pub fn read(top: &Table<'_>, tests: &mut [Test]) -> Vec<Interleave> {
    let mut found: Vec<Interleave> = Vec::new();
    for table in top.tables("interleave") {
        let (Some(a), Some(b)) = (table.text("a"), table.text("b")) else { continue };
        let blocks = table.whole("blocks").map_or(8, |at| at.value);
        let mut places = Vec::new();
        for name in [&a, &b] {
            let place = tests.iter().position(|test| test.name == name.value);
            let taken = found.iter().any(|other| [&other.a, &other.b].contains(&&name.value));
            match place {
                None => {
                    let message = format!("the plan has no test `{}`", name.value);
                    table.wrong(name.span.clone(), message, "name two tests of the plan");
                }
                Some(_) if taken => {
                    let message = format!("`{}` is interleaved twice", name.value);
                    table.wrong(name.span.clone(), message, "copy the test under another name");
                }
                Some(place) => places.push(place),
            }
        }
        let &[first, second] = places.as_slice() else { continue };
        if first == second {
            let message = "a test cannot be interleaved with itself";
            table.wrong(b.span.clone(), message, "to see the noise, copy the test under another name");
            continue;
        }
        if let Some(place) = [first, second].into_iter().find(|place| !tests[*place].values().is_empty()) {
            let (name, span) = if place == first { (&a.value, &a.span) } else { (&b.value, &b.span) };
            let message = format!("`{name}` has values in its `configure`");
            table.wrong(span.clone(), message, "they are measured in turn anyway: leave one of both out");
            continue;
        }
        if let Some(what) = unlike(&tests[first], &tests[second]) {
            let message = format!("`{}` and `{}` differ in {what}", a.value, b.value);
            table.wrong(b.span.clone(), message, "only links, sizes and metrics that both tests have can be compared");
            continue;
        }
        for place in [first, second] {
            if let Some(span) = top.tables("test").get(place).and_then(|test| test.written("repeats")) {
                let message = "`repeats` cannot be set for an interleaved test";
                table.wrong(span, message, "leave it out: `blocks` sets how often it is measured");
            }
            tests[place].repeats = 2 * blocks;
        }
        found.push(Interleave { a: a.value, b: b.value, blocks });
    }
    found
}

fn unlike(a: &Test, b: &Test) -> Option<&'static str> {
    let matrix = |test: &Test| {
        let collective = test.collective.as_ref();
        (test.qps.len(), collective.map(|c| (c.env.len(), c.datatypes.len(), c.reductions.len())))
    };
    let ranks = |test: &Test| test.collective.as_ref().map(|c| (c.grouping, c.ranks_per_host));
    let differences = [
        (a.hosts != b.hosts, "their hosts"),
        (a.pattern != b.pattern || ranks(a) != ranks(b), "their pairs"),
        (a.rails != b.rails, "their rails"),
        (a.metric != b.metric, "their metric"),
        (a.sizes != b.sizes, "their sizes"),
        (a.bidirectional != b.bidirectional, "their direction"),
        (matrix(a) != matrix(b), "their number of combinations"),
        (matches!(a.pattern, Pattern::AtOnce(_)), "how their flows share NICs"),
    ];

    differences.into_iter().find_map(|(differ, what)| differ.then_some(what))
}
