//! Converts the content of files to an imported run: a plan that would measure the same kind of thing, cases and values.

use std::{collections::HashMap, path::Path, sync::Arc};

use railgauge_model::{
    journal::event::{Case, Imported, ImportedFile, ImportedValue},
    plan::{self, Plan, model::Test},
    schedule::{Cell, Flow, Port},
};
use railgauge_wire::{CollectiveOptions, Op, TestMetric, Transport, WriteLatency};

use super::{ImportError, Kind, Output, Said};

/// Only what every plan has is kept of this one.
const BASE: &str = "name = \"imported\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a\", \"b\"]\n[[test]]\nname = \"a\"\n\
                    transport = \"tcp\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\npattern = \"tournament\"\n";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    pub from: Option<Port>,
    pub to: Option<Port>,
    pub test: Option<String>,
    pub op: Option<Op>,
    pub tool_version: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub name: String,
    pub sha256: String,
    pub outputs: Vec<Output>,
}

/// The run of these files. `run_id` is its name and `version` that of railgauge.
///
/// # Errors
/// Something needed is neither in a file nor given, or contradicts what was given.
pub fn imported(run_id: &str, version: &str, sources: &[Source], given: &Given) -> Result<Imported, ImportError> {
    let mut making = Making { plan: base()?, cases: Vec::new(), known: HashMap::new(), values: Vec::new() };
    let mut files = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        if let Some(same) = sources[..number].iter().find(|other| other.sha256 == source.sha256) {
            let what = format!("it holds the same bytes as {}, and would count twice: give one of them", same.name);
            return Err(ImportError::new(&source.name, 1, what));
        }
        let mut tools: Vec<String> = Vec::new();
        let mut notes: Vec<String> = Vec::new();
        for output in &source.outputs {
            let mut output = output.clone();
            let first = output.said.first().map_or(1, |said| said.line);
            output.version = one_of(source, first, "--tool-version", output.version, given.tool_version.clone())?;
            if output.version.is_none() {
                output.notes.push("the file does not name the version of the tool".to_owned());
            }
            making.take(files.len(), source, &output, given)?;
            tools.push(output.name());
            notes.extend(output.notes);
        }
        tools.dedup();
        notes.sort();
        notes.dedup();
        let tool = tools.join(", ");
        files.push(ImportedFile { name: source.name.clone(), sha256: source.sha256.clone(), tool, notes });
    }
    let Making { mut plan, cases, values, .. } = making;
    plan.name = run_id.to_owned();
    plan.description = "imported: this plan was not run".to_owned();
    Ok(Imported { run_id: run_id.to_owned(), version: version.to_owned(), plan: Box::new(plan), files, cases, values })
}

fn base() -> Result<Plan, ImportError> {
    let parsed = plan::parse("imported", BASE, Path::new(""));
    parsed
        .map(|(plan, _)| plan)
        .map_err(|mistakes| ImportError::malformed("railgauge", 1, "its own plan", &mistakes.render(false)))
}

struct Making {
    plan: Plan,
    cases: Vec<Case>,
    known: HashMap<(String, Flow, Cell), u64>,
    values: Vec<ImportedValue>,
}

impl Making {
    fn take(&mut self, file: usize, source: &Source, output: &Output, given: &Given) -> Result<(), ImportError> {
        for said in &output.said {
            let case = self.case(source, output, said, given)?;
            self.values.push(ImportedValue {
                file,
                line: said.line,
                case,
                metric: said.metric,
                written: said.written.clone(),
                multiply: said.scale.0,
                divide: said.scale.1,
                transport: output.carrier.clone(),
                link_layer: output.link_layer.clone(),
                device: output.device.clone(),
                error: said.error.clone(),
                wrong: said.wrong,
            });
        }
        Ok(())
    }

    fn case(&mut self, source: &Source, output: &Output, said: &Said, given: &Given) -> Result<u64, ImportError> {
        let (name, line, kind) = (source.name.as_str(), said.line, said.kind);
        let op = one_of(source, line, "--op", kind.op, given.op)?;
        let op = op.ok_or_else(|| {
            ImportError::needs(name, line, "which operation this is", "--op, such as --op all_reduce")
        })?;
        let flow = flow(source, output, said, given)?;
        let cell = Cell {
            op,
            metric: kind.metric,
            transport: kind.transport,
            service: kind.service,
            memory: kind.memory,
            size: said.size,
            qps: kind.qps,
            only: None,
            neighbours: None,
            applied: None,
            manner: kind.elements.map(|elements| {
                Box::new(CollectiveOptions {
                    datatype: elements.datatype,
                    reduction: elements.reduction.filter(|_| op.reduces()),
                    in_place: elements.in_place,
                    graph: false,
                    ranks_per_host: per_host(&flow),
                    algorithm: None,
                    env: Default::default(),
                    training: None,
                })
            }),
        };
        let test = self.test(source, output, line, kind, &cell, &flow, given)?;
        let next = self.cases.len() as u64;
        let id = *self.known.entry((test.clone(), flow.clone(), cell.clone())).or_insert(next);
        if id == next {
            self.cases.push(Case { id, test: test.into(), round: 0, flow, cell: Arc::new(cell) });
        }
        Ok(id)
    }

    #[allow(clippy::too_many_arguments, reason = "all of it decides which test it is")]
    fn test(
        &mut self,
        source: &Source,
        output: &Output,
        line: u64,
        kind: Kind,
        cell: &Cell,
        flow: &Flow,
        given: &Given,
    ) -> Result<String, ImportError> {
        let tool = output.tool.split(' ').next().unwrap_or_default().to_lowercase();
        let both = if kind.bidirectional { "-both-ways" } else { "" };
        let own = format!("{tool}-{}-{}{both}", cell.op.word().replace('_', "-"), cell.metric);
        let name = given.test.clone().unwrap_or(own);
        if self.cases.is_empty() {
            self.plan.tests.truncate(1);
            self.plan.tests.iter_mut().for_each(|test| *test = of_cell(test, &name, kind, cell));
            let host = self.plan.hosts.first().cloned();
            self.plan.hosts = flow.hosts().iter().filter_map(|name| named(host.as_ref(), name)).collect();
        }
        for host in flow.hosts() {
            if !self.plan.hosts.iter().any(|known| known.name == **host) {
                let made = named(self.plan.hosts.first(), host);
                self.plan.hosts.extend(made);
            }
        }
        let pattern = self.plan.tests.first().cloned();
        if !self.plan.tests.iter().any(|test| test.name == name) {
            self.plan.tests.extend(pattern.map(|pattern| of_cell(&pattern, &name, kind, cell)));
        }
        let Some(test) = self.plan.tests.iter_mut().find(|test| test.name == name) else { return Ok(name) };
        let same = (test.op, test.metric, test.bidirectional) == (cell.op, cell.metric, kind.bidirectional)
            && (test.transport, test.service, test.memory) == (cell.transport, cell.service, cell.memory);
        if !same {
            let what = format!(
                "`{name}` has results of {} {} already, and this is another kind of test: import it by itself",
                test.op, test.metric
            );
            return Err(ImportError::new(&source.name, line, what));
        }
        if let Err(at) = test.sizes.binary_search(&cell.size) {
            test.sizes.insert(at, cell.size);
        }
        if let Err(at) = test.qps.binary_search(&cell.qps) {
            test.qps.insert(at, cell.qps);
        }
        for host in flow.hosts() {
            if !test.hosts.iter().any(|known| **known == **host) {
                test.hosts.push(host.to_string());
            }
        }
        Ok(name)
    }
}

fn one_of<T: PartialEq + std::fmt::Display>(
    source: &Source,
    line: u64,
    option: &str,
    said: Option<T>,
    given: Option<T>,
) -> Result<Option<T>, ImportError> {
    match (said, given) {
        (Some(said), Some(given)) if said != given => {
            let what = format!("the file says {said}, and {option} {given}");
            Err(ImportError::new(&source.name, line, what))
        }
        (said, given) => Ok(said.or(given)),
    }
}

fn named(like: Option<&plan::model::Host>, name: &str) -> Option<plan::model::Host> {
    let mut host = like?.clone();
    (host.name, host.address) = (name.to_owned(), name.to_owned());
    Some(host)
}

fn of_cell(like: &Test, name: &str, kind: Kind, cell: &Cell) -> Test {
    let mut test = like.clone();
    test.name = name.to_owned();
    (test.op, test.metric, test.transport, test.service) = (cell.op, cell.metric, cell.transport, cell.service);
    (test.memory, test.bidirectional) = (cell.memory, kind.bidirectional);
    (test.sizes, test.qps, test.hosts) = (vec![cell.size], vec![cell.qps], Vec::new());
    // ib_write_lat polls the last byte in memory.
    let times_writes = (cell.op, cell.metric) == (Op::Write, TestMetric::Latency) && cell.transport == Transport::Verbs;
    test.knobs.write_latency = times_writes.then_some(WriteLatency::Poll);
    test
}

fn per_host(flow: &Flow) -> u32 {
    let most = flow.members.iter().map(|port| port.rail.saturating_add(1)).max();
    most.unwrap_or(1)
}

fn flow(source: &Source, output: &Output, said: &Said, given: &Given) -> Result<Flow, ImportError> {
    let need = |what: &str, option: &str| ImportError::needs(&source.name, said.line, what, option);
    let contradicts = |what: &str| Err(ImportError::new(&source.name, said.line, what));
    if said.kind.elements.is_none() {
        let [from, to] = &output.ends;
        let end = |given: &Option<Port>, said: &Option<String>| {
            given.clone().or_else(|| said.as_ref().map(|host| Port::new(host.as_str(), 0)))
        };
        let from = end(&given.from, from).ok_or_else(|| need("which host sends", "--from HOST or HOST:RAIL"))?;
        let to = end(&given.to, to).ok_or_else(|| need("which host receives", "--to HOST or HOST:RAIL"))?;
        // Some tools name both ends of a loopback alike; given by hand it is an error.
        if given.from.is_some() && given.from == given.to {
            return contradicts(
                "--from and --to are the same end: give two hosts, or two rails of one as HOST:0 and HOST:1",
            );
        }
        return Ok(Flow::pair(from, to));
    }
    if given.from.is_some() || given.to.is_some() {
        return contradicts("this is a collective, and --from and --to are for pairs");
    }
    let mut used: HashMap<&str, u32> = HashMap::new();
    let mut members: Vec<Port> = Vec::new();
    for host in output.ranks.iter().map(String::as_str) {
        let rail = used.entry(host).or_insert(0);
        members.push(Port::new(Arc::<str>::from(host), *rail));
        *rail = rail.saturating_add(1);
    }
    match members.as_slice() {
        [first, .., last] => {
            Ok(Flow { from: first.clone(), to: last.clone(), members: members.iter().cloned().collect() })
        }
        _ => {
            let known = "a collective has two ranks at least";
            Err(ImportError::unsupported(&source.name, said.line, "a collective of one rank", known))
        }
    }
}
