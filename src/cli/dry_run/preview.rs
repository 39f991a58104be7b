//! What a plan would do, as data: the JSON of `railgauge run --dry-run --json`, and what its text is written from.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use railgauge_model::{
    plan::{
        Plan,
        model::{Rails, Soak, Test},
    },
    schedule::{Cell, Flow, Inventory, OVERHEAD, Round, Schedule, Time, Volume},
};
use railgauge_wire::{GigabitsPerSecond, Transport};
use serde::Serialize;

use crate::run::order;

/// Version of the document.
const VERSION: u32 = 3;

/// What a plan would do.
#[derive(Debug, Serialize)]
pub(super) struct Preview<'a> {
    /// Version of this document.
    pub version: u32,
    /// Name of the plan.
    pub plan: &'a str,
    /// Its seed.
    pub seed: u64,
    /// Rate of every link, as given with `--link-rate`.
    pub link_rate_gbps: Option<GigabitsPerSecond>,
    /// Time assumed for one case in addition to warm-up and window.
    pub overhead_seconds: f64,
    /// Rounds of all tests, each counted once.
    pub rounds: u64,
    /// Cases of all tests.
    pub cases: u64,
    /// Cases times repeats.
    pub measurements: u64,
    /// How long the tests take once the agents run.
    pub seconds: Seconds,
    /// What may follow them, as the end of a sentence.
    #[serde(skip)]
    pub then_suspects: String,
    /// The soak after them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<&'a Soak>,
    /// Hosts in the plan's order.
    pub hosts: Vec<HostPreview<'a>>,
    /// Tests in the plan's order.
    pub tests: Vec<TestPreview<'a>>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A time in seconds.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Seconds {
    /// With every window as short as it may be.
    pub at_least: f64,
    /// With every window as long as it may be; null if a number of iterations is its length, or the rate of its links is unknown.
    pub longest_windows: Option<f64>,
    /// The same in words.
    #[serde(skip)]
    pub words: String,
}

/// Payload bytes, both directions together, without headers.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Bytes {
    /// Whether the plan fixes the number: `at_most` is then exact.
    pub exact: bool,
    /// Upper bound; null if it takes a link rate and none is given, and for collectives: their algorithm decides.
    pub at_most: Option<u128>,
}

/// One host.
#[derive(Debug, Serialize)]
pub(super) struct HostPreview<'a> {
    /// Name.
    pub name: &'a str,
    /// What the launcher connects to.
    pub address: &'a str,
    /// RDMA devices the plan lists; null if the agent finds them.
    pub verbs_rails: Option<u32>,
    /// TCP addresses or interfaces the plan lists; null if the agent finds them.
    pub tcp_rails: Option<u32>,
    /// Links it is an end of and groups it is in, in all tests.
    pub links: u64,
    /// What passes them.
    pub bytes: Bytes,
}

/// One test: its fields as the journal has them, and what is computed from them.
#[derive(Debug, Serialize)]
pub(super) struct TestPreview<'a> {
    /// The test.
    #[serde(flatten)]
    pub test: &'a Test,
    /// What is measured on each link, in the order in which it runs.
    pub cells: &'a [Cell],
    /// Links or groups, each in one round.
    pub links: u64,
    /// Cases: links times cells.
    pub cases: u64,
    /// Cases times repeats.
    pub measurements: u64,
    /// Those of them that do not fit the `at_most` of the plan.
    pub left_out: u64,
    /// How long it takes.
    pub seconds: Seconds,
    /// What passes each of its links.
    pub bytes_per_link: Bytes,
    /// The rounds.
    pub rounds: Vec<&'a Round>,
}

impl<'a> Preview<'a> {
    /// What `schedule` means for `plan`.
    pub(super) fn new(
        plan: &'a Plan,
        inventory: &Inventory,
        schedule: &'a Schedule,
        link_rate_gbps: Option<GigabitsPerSecond>,
    ) -> Self {
        let bytes = |load: Load| load.bytes(link_rate_gbps);
        let mut at_host: HashMap<&str, (u64, Load)> = HashMap::new();
        let times = schedule.times(plan, link_rate_gbps);
        let left_out = order::left_out(plan, schedule, link_rate_gbps);
        let mut tests = Vec::with_capacity(plan.tests.len());
        for (index, (test, (cells, time))) in plan.tests.iter().zip(schedule.cells.iter().zip(&times)).enumerate() {
            let rounds: Vec<&Round> = schedule.rounds.iter().filter(|round| round.test == index).collect();
            let load = Load::of_link(test, cells);
            for round in &rounds {
                load_hosts(&mut at_host, &round.flows, load);
            }
            let links = rounds.iter().map(|round| round.flows.len() as u64).sum::<u64>();
            let cases = links * cells.len() as u64;
            tests.push(TestPreview {
                test,
                cells,
                links,
                cases,
                measurements: cases * u64::from(test.repeats),
                left_out: left_out[index],
                seconds: Seconds::new(*time, time.to_string()),
                bytes_per_link: bytes(load),
                rounds,
            });
        }
        let hosts = plan.hosts.iter().map(|host| {
            let (links, load) = at_host.remove(host.name.as_str()).unwrap_or_default();
            HostPreview {
                name: &host.name,
                address: &host.address,
                verbs_rails: inventory.get(&host.name, Transport::Verbs),
                tcp_rails: inventory.get(&host.name, Transport::Tcp),
                links,
                bytes: bytes(load),
            }
        });
        let total = plan.within(times.into_iter().sum(), Duration::ZERO);
        Self {
            version: VERSION,
            plan: &plan.name,
            seed: plan.seed,
            link_rate_gbps,
            overhead_seconds: OVERHEAD.as_secs_f64(),
            rounds: schedule.rounds.len() as u64,
            cases: schedule.case_count(),
            measurements: tests.iter().map(|test| test.measurements).sum(),
            seconds: Seconds::new(total, plan.takes(total, link_rate_gbps)),
            then_suspects: plan.then_suspects(),
            soak: plan.soak.as_ref(),
            hosts: hosts.collect(),
            notes: notes(plan, inventory, schedule),
            tests,
        }
    }
}

/// What passes a link or a host; `None` if unknown before the run.
#[derive(Clone, Copy)]
struct Load(Option<Volume>);

impl Default for Load {
    fn default() -> Self {
        Self(Some(Volume::default()))
    }
}

impl Load {
    fn of_link(test: &Test, cells: &[Cell]) -> Self {
        // Within a host nothing passes a link.
        if test.transport.is_within_host() {
            return Self::default();
        }
        Self(test.collective.is_none().then(|| Volume::of_link(test, cells)))
    }

    /// The part that does not depend on how long something flows: what a further flow adds to a port that is busy.
    fn counted(self) -> Self {
        Self(self.0.map(|volume| Volume { flowing: 0, ..volume }))
    }

    fn add(&mut self, more: Self) {
        self.0 = self.0.zip(more.0).map(|(mut sum, more)| {
            sum += more;
            sum
        });
    }

    fn bytes(self, link_rate_gbps: Option<GigabitsPerSecond>) -> Bytes {
        Bytes {
            exact: self.0.is_some_and(Volume::is_exact),
            at_most: self.0.and_then(|volume| volume.at_most(link_rate_gbps)),
        }
    }
}

/// Adds the flows of one round to their hosts.
fn load_hosts<'a>(at_host: &mut HashMap<&'a str, (u64, Load)>, flows: &'a [Flow], load: Load) {
    let mut add = |host: &'a str, load| {
        let (links, sum) = at_host.entry(host).or_default();
        *links += 1;
        sum.add(load);
    };
    // Flows that share a port share what it can carry in each direction.
    let mut busy = HashSet::new();
    for flow in flows {
        if !flow.members.is_empty() {
            flow.hosts().into_iter().for_each(|host| add(host, load));
            continue;
        }
        for end in [(&flow.from, true), (&flow.to, false)] {
            add(&end.0.host, if busy.insert(end) { load } else { load.counted() });
        }
    }
}

impl Seconds {
    fn new(time: Time, words: String) -> Self {
        Self {
            at_least: time.at_least.as_secs_f64(),
            longest_windows: time.at_most.map(|time| time.as_secs_f64()),
            words,
        }
    }
}

/// The schedule's notes, and which counts of rails are not known yet.
fn notes(plan: &Plan, inventory: &Inventory, schedule: &Schedule) -> Vec<String> {
    let open = |test: &&Test| {
        let all = !matches!(test.rails, Rails::Only(_));
        // Over TCP an agent takes one address unless the plan lists more; RDMA devices it takes all. Of other parts of hosts no plan
        // lists what there is.
        let unknown = |host: &String| inventory.get(host, Transport::Verbs).is_none();
        match test.transport {
            Transport::Verbs | Transport::Nic => all && test.hosts.iter().any(unknown),
            transport => all && transport.is_within_host(),
        }
    };
    let open: Vec<String> = plan.tests.iter().filter(open).map(|test| format!("`{}`", test.name)).collect();
    let mut notes: Vec<String> = schedule.notes.iter().map(|note| note.text.clone()).collect();
    if !open.is_empty() {
        let (test, its) = if open.len() == 1 { ("test", "its") } else { ("tests", "their") };
        notes.push(format!(
            "{test} {}: the plan does not list the devices of all {its} hosts; where agents find several rails, the \
             run has more cases than are listed here",
            open.join(", "),
        ));
    }
    notes
}
