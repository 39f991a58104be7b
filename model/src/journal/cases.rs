//! Cases, and how they are written in a line of the journal. A million cases repeat a few tests, cells and ports, so each of these is written once,
//! and a case is a row of indices.
//!
//! ```json
//! {"first":0,"tests":["bw"],"cells":[{…}],"ports":[{"host":"a","rail":0},{"host":"b","rail":0}],"rows":[[0,0,0,0,1]]}
//! ```
//! A row is test, round, cell, sending port, receiving port and, for a collective, the ports of all ranks. Row `i` is case `first + i`.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use railgauge_wire::CollectiveOptions;

use crate::plan::{Plan, limits::MEASUREMENTS};
use crate::schedule::{CaseIndex, Cell, Flow, Port, Schedule};

/// Most bytes of names and settings of all cases; ten million cases with names of 64 bytes have 0.64 GB.
const MOST_BYTES: u64 = 1 << 30;

/// The identity of a case: equal cases of two runs are comparable.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Number in the run, from 0 in the schedule's order.
    pub id: u64,
    /// Shared: a test has thousands of cases.
    pub test: Arc<str>,
    pub round: u32,
    pub flow: Flow,
    /// Shared: every flow of a test runs all of its cells.
    pub cell: Arc<Cell>,
}

impl Case {
    pub fn planned(plan: &Plan, schedule: &Schedule) -> Vec<Self> {
        let names: Vec<Arc<str>> = plan.tests.iter().map(|test| test.name.as_str().into()).collect();
        let mut cells: HashMap<*const Cell, Arc<Cell>> = HashMap::new();
        let case = |place: CaseIndex| {
            let (round, flow, cell) = schedule.resolve(place)?;
            let test = Arc::clone(names.get(round.test)?);
            let cell = cells.entry(cell).or_insert_with(|| Arc::new(cell.clone()));
            Some(Self { id: place.id, test, round: round.number, flow: flow.clone(), cell: Arc::clone(cell) })
        };
        schedule.cases().filter_map(case).collect()
    }

    /// The cases whose flows carry the traffic of a soak by this test: largest size, most queue pairs.
    pub fn of_soak<'c>(cases: &'c [Self], test: &str) -> Vec<&'c Self> {
        let of_test = || cases.iter().filter(|case| *case.test == *test);
        let cell = |case: &Self| (case.cell.size, case.cell.qps);
        let most = of_test().map(cell).max();
        of_test().filter(|case| Some(cell(case)) == most).collect()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<T, C, P> {
    first: u64,
    tests: Vec<T>,
    cells: Vec<C>,
    ports: Vec<P>,
    /// Five numbers or more.
    rows: Vec<Vec<u32>>,
    /// Only where the numbers do not follow one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ids: Vec<u64>,
}

struct Numbered<'c, T: ?Sized> {
    places: HashMap<&'c T, u32>,
    all: Vec<&'c T>,
}

impl<'c, T: Eq + Hash + ?Sized> Numbered<'c, T> {
    fn new() -> Self {
        Self { places: HashMap::new(), all: Vec::new() }
    }

    fn place(&mut self, of: &'c T) -> u32 {
        let all = &mut self.all;
        *self.places.entry(of).or_insert_with(|| {
            all.push(of);
            // Never fails: a run has at most `plan::limits::MEASUREMENTS` cases.
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

pub fn serialize<S: Serializer>(cases: &[Case], serializer: S) -> Result<S::Ok, S::Error> {
    let first = cases.first().map_or(0, |case| case.id);
    let follow = (first..).zip(cases).all(|(id, case)| case.id == id);
    let ids = if follow { Vec::new() } else { cases.iter().map(|case| case.id).collect() };
    let (mut tests, mut cells, mut ports) = (Numbered::<str>::new(), Numbered::<Cell>::new(), Numbered::new());
    let mut rows = Vec::with_capacity(cases.len());
    for Case { id: _, test, round, flow: Flow { from, to, members }, cell } in cases {
        let mut row = vec![tests.place(test), *round, cells.place(cell), ports.place(from), ports.place(to)];
        row.extend(members.iter().map(|port| ports.place(port)));
        rows.push(row);
    }
    Table { first, tests: tests.all, cells: cells.all, ports: ports.all, rows, ids }.serialize(serializer)
}

/// # Errors
/// It is not a table of cases, or a row has an index outside its tables.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Case>, D::Error> {
    let table = Table::deserialize(deserializer)?;
    // A row is short but its case is not: the author of the file must not choose how much memory that takes.
    if table.rows.len() as u64 > MEASUREMENTS {
        let words = format!("{} cases, and a run has at most {MEASUREMENTS}", table.rows.len());
        return Err(de::Error::custom(words));
    }
    if table.weight() > MOST_BYTES {
        return Err(de::Error::custom("its cases repeat longer names and settings than those of any run"));
    }
    if table.first.checked_add(MEASUREMENTS).is_none() {
        return Err(de::Error::custom(format!("the first case has number {}", table.first)));
    }
    let tests: Vec<Arc<str>> = table.tests.into_iter().map(Arc::from).collect();
    let cells: Vec<Arc<Cell>> = table.cells.into_iter().map(Arc::new).collect();
    let mut cases = Vec::with_capacity(table.rows.len());
    for (at, row) in table.rows.iter().enumerate() {
        let id = table.ids.get(at).copied().unwrap_or(table.first + at as u64);
        let [test, round, cell, from, to, members @ ..] = row.as_slice() else {
            return Err(de::Error::custom(format!("case {id} has {} numbers, and five are needed", row.len())));
        };
        let port = |number: u32| place(&table.ports, number, id, "port");
        let case = || {
            let members = members.iter().map(|member| port(*member)).collect::<Result<_, _>>()?;
            let flow = Flow { from: port(*from)?, to: port(*to)?, members };
            let (test, cell) = (place(&tests, *test, id, "test")?, place(&cells, *cell, id, "cell")?);
            Ok(Case { id, test, round: *round, flow, cell })
        };
        cases.push(case().map_err(|wrong: NoPlace| de::Error::custom(wrong))?);
    }
    Ok(cases)
}

impl Table<String, Cell, Port> {
    fn weight(&self) -> u64 {
        let of_cell = |cell: &Cell| {
            let manner = cell.manner.as_ref().map_or(0, |manner| {
                let env = manner.env.iter().map(|(name, value)| name.len() + value.len());
                size_of::<CollectiveOptions>() + env.sum::<usize>()
            });
            manner + cell.applied.as_ref().map_or(0, |value| value.len())
        };
        let (tests, cells): (Vec<usize>, Vec<usize>) =
            (self.tests.iter().map(String::len).collect(), self.cells.iter().map(of_cell).collect());
        let of = |all: &[usize], place: u32| all.get(place as usize).copied().unwrap_or(0) as u64;
        let part = |row: &[u32], at: usize| row.get(at).copied().unwrap_or(u32::MAX);
        let of_row = |row: &Vec<u32>| of(&tests, part(row, 0)).saturating_add(of(&cells, part(row, 2)));
        self.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(of_row(row)))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("case {case} has {what} {place} of {of}")]
struct NoPlace {
    case: u64,
    what: &'static str,
    place: u32,
    of: usize,
}

fn place<T: Clone>(all: &[T], place: u32, case: u64, what: &'static str) -> Result<T, NoPlace> {
    let found = usize::try_from(place).ok().and_then(|at| all.get(at));
    found.cloned().ok_or(NoPlace { case, what, place, of: all.len() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        journal::event::Event,
        plan::parse,
        schedule::{Inventory, schedule},
    };

    fn cases(text: &str) -> Vec<Case> {
        let text = format!("name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[1-6]\"] }}\n{text}");
        let plan = parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
        Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap())
    }

    fn pairs() -> Vec<Case> {
        cases(
            "[[test]]\nname = \"bw\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"1KiB\", \"1MiB\"]\n\
             [[test]]\nname = \"lat\"\nop = \"send\"\nmetric = \"latency\"\ntransport = \"tcp\"\nsizes = \"8\"\n",
        )
    }

    fn told(cases: &[Case]) -> Value {
        serde_json::to_value(Event::Planned { cases: cases.to_vec() }).unwrap()["Planned"]["cases"].take()
    }

    fn read(cases: &Value) -> Result<Vec<Case>, String> {
        match serde_json::from_value(json!({ "Planned": { "cases": cases } })).map_err(|error| error.to_string())? {
            Event::Planned { cases } => Ok(cases),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let groups = "[[test]]\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"1KiB\", \"1MiB\"]\n\
                      groups = \"pairs\"\n";
        for all in [pairs(), cases(groups), pairs().split_off(7), Vec::new()] {
            assert!(told(&all).is_object());
            assert_eq!(read(&told(&all)).unwrap(), all);
        }
    }

    #[test]
    fn names_stand_there_once() {
        let table = told(&pairs());
        let lengths = ["tests", "cells", "ports"].map(|key| table[key].as_array().unwrap().len());
        assert_eq!(lengths, [2, 3, 6]);
        assert_eq!(table["rows"].as_array().unwrap().len(), pairs().len());
    }

    /// A reader reports such numbers as invalid, so it must receive them.
    #[test]
    fn numbers_that_do_not_follow_one_another_are_kept() {
        let mut all = pairs();
        all[3].id = 77;
        assert_eq!(read(&told(&all)).unwrap(), all);
    }

    #[test]
    fn places_that_are_none_are_refused() {
        let table = told(&pairs());
        for (at, word) in [(0, "test 99 of 2"), (2, "cell 99 of 3"), (3, "port 99 of 6"), (4, "port 99 of 6")] {
            let mut wrong = table.clone();
            wrong["rows"][1][at] = json!(99);
            let error = read(&wrong).unwrap_err();
            assert!(error.contains(word) && error.contains("case 1 "), "{error}");
        }
        for row in [json!([0, 0, 0, 0]), json!([0, 0, 0, 0, -1]), json!([0, 0, 0, 0, 1, 99]), json!("x")] {
            let mut wrong = table.clone();
            wrong["rows"][1] = row;
            assert!(read(&wrong).is_err());
        }
        let mut heavy = table.clone();
        heavy["tests"][0] = json!("x".repeat(1 << 20));
        heavy["rows"] = vec![json!([0, 0, 0, 0, 1]); 1100].into();
        assert!(read(&heavy).unwrap_err().contains("longer names"));
        let mut far = table;
        far["first"] = json!(u64::MAX);
        assert!(read(&far).is_err());
    }
}
