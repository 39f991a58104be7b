//! The hello, and where each request goes.

use std::{fs::File, io::BufReader, process, time::Duration};

use railgauge_wire::{Answer, Ask, Failure, Kind, PROTOCOL, Request, Stage, frame, remedy};

use super::{
    link::{End, Member},
    pipes::{self, Outlet},
    register::Register,
};
use crate::{
    bench::clock,
    collective::rank::RankAsk,
    counters,
    errand::Errands,
    facts, node, raw,
    system::tree::Tree,
    tools,
    watch::Watch,
    worker::{self, caught},
};

/// Reads requests until the controller says goodbye or is gone.
pub(super) fn answer_all(inlet: File, outlet: &Outlet) -> ! {
    let mut from = BufReader::new(inlet);
    hello(&mut from, outlet);
    let links = Register::new("link", outlet.clone());
    let members = Register::new("rank", outlet.clone());
    let (watch, errands) = (Watch::default(), Errands::default());
    loop {
        let bytes = next(&mut from);
        match frame::decode(&bytes) {
            Ok(Request { id, ask }) => answer(id, ask, outlet, &links, &members, (&watch, &errands)),
            Err(error) => {
                match frame::decode::<serde_json::Value>(&bytes).ok().and_then(|value| value["id"].as_u64()) {
                    Some(id) => outlet.reply(id, Err(refused(format!("the request is not understood: {error}")))),
                    None => pipes::lost(&format!("stdin carries something that is not a request: {error}")),
                }
            }
        }
    }
}

fn next(from: &mut BufReader<File>) -> Vec<u8> {
    match frame::bytes(from) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => pipes::lost("stdin ended without a goodbye"),
        Err(error) => pipes::lost(&format!("stdin: {error}")),
    }
}

/// The first request must be a `Hello` of the same protocol; anything else ends the agent, after an answer.
fn hello(from: &mut BufReader<File>, outlet: &Outlet) {
    let bytes = next(from);
    let value: serde_json::Value =
        frame::decode(&bytes).unwrap_or_else(|error| pipes::lost(&format!("stdin: {error}")));
    let id = value["id"].as_u64().unwrap_or_default();
    let failure = match value.pointer("/ask/Hello/protocol").and_then(serde_json::Value::as_u64) {
        Some(theirs) if theirs == u64::from(PROTOCOL) => match frame::decode(&bytes) {
            Ok(Request { ask: Ask::Hello { .. }, .. }) => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                return outlet.reply(id, Ok(Answer::Hello { protocol: PROTOCOL, version, pid: process::id() }));
            }
            Ok(_) => refused("the first request must be a hello"),
            Err(error) => refused(format!("the hello is not understood: {error}")),
        },
        Some(theirs) => Failure::new(
            Stage::Start,
            Kind::Unsupported,
            format!(
                "the controller speaks protocol {theirs}, this agent (version {}) speaks {PROTOCOL}",
                env!("CARGO_PKG_VERSION")
            ),
        )
        .remedy(remedy::REMOVE_OLD_AGENT),
        None => refused("the first request must be a hello"),
    };
    outlet.reply(id, Err(failure.clone()));
    crate::system::log!("{failure}");
    pipes::leave(2)
}

fn answer(
    id: u64,
    ask: Ask,
    outlet: &Outlet,
    links: &Register<End>,
    members: &Register<Member>,
    (watch, errands): (&Watch, &Errands),
) {
    let later = || {
        let to = outlet.clone();
        move |answer| to.reply(id, answer)
    };
    let of_rank = |link, ask: RankAsk, limit_ms| {
        let limit = Duration::from_millis(limit_ms);
        members.ask(id, link, ask.stage(), move |member, request| member.ask(ask, limit, request));
    };
    match ask {
        Ask::Hello { .. } => outlet.reply(id, Err(refused("the hello came twice"))),
        Ask::Clock => {
            outlet.reply(id, Ok(Answer::Clock { monotonic: clock::now(), realtime: clock::realtime() }));
        }
        Ask::Facts => aside(id, outlet, || Ok(Answer::Facts(Box::new(facts::here())))),
        Ask::Counters { device, port } => {
            aside(id, outlet, move || counters::read(&Tree::host(), &device, port).map(Answer::Counters));
        }
        Ask::Raw { from } => aside(id, outlet, move || raw::page(from).map(Answer::Raw)),
        Ask::Tool { tool, from } => aside(id, outlet, move || tools::page(tool, from).map(Answer::Tool)),
        Ask::Watch { ports } => {
            outlet.reply(id, watch.begin(ports).map(|()| Answer::Done));
        }
        // Taken here, so that a watch asked for next cannot be before it; written aside, since it may be long.
        Ask::Watched => match watch.take() {
            Some(seen) => aside(id, outlet, || Ok(Answer::Watched(Box::new(seen)))),
            None => outlet.reply(id, Err(refused("nothing is watched"))),
        },
        Ask::Node(spec) => aside(id, outlet, move || Ok(Answer::Node(node::run(&spec)))),
        Ask::BeginErrand { words } => errands.begin(words, later()),
        Ask::EndErrand => errands.end(later()),
        Ask::OpenMember { link, spec } => members.open(id, link, |request| Member::open(*spec, request)),
        Ask::JoinMember { link, tickets, limit_ms } => of_rank(link, RankAsk::Join(tickets), limit_ms),
        Ask::MeasureMember { link, collective, limit_ms } => of_rank(link, RankAsk::Measure(collective), limit_ms),
        Ask::Open { link, spec } => links.open(id, link, move |_| End::open(&spec)),
        Ask::Join { link, peer } => links.ask(id, link, Stage::Join, move |end, request| end.join(&peer, request)),
        Ask::Step { link, step, limit_ms } => links
            .ask(id, link, step.stage(), move |end, request| end.step(&step, Duration::from_millis(limit_ms), request)),
        Ask::Case { link, case } => {
            links.ask(id, link, Stage::Measure, move |end, request| end.case(&case, request));
        }
        Ask::Stop { link } => links.stop(id, link, End::served),
        Ask::Close { link } if members.close(id, link) || links.close(id, link) => {}
        Ask::Close { link } => links.unknown(id, link),
        Ask::Bye => {
            links.close_all();
            outlet.reply(id, Ok(Answer::Done));
            pipes::leave(0)
        }
    }
}

/// Answers on a thread of its own: the reader must never wait for a file that hangs.
fn aside(id: u64, outlet: &Outlet, work: impl FnOnce() -> Result<Answer, Failure> + Send + 'static) {
    let to = outlet.clone();
    if let Err(error) = worker::start("aside", move || to.reply(id, caught(Stage::Facts, work).flatten())) {
        outlet.reply(id, Err(refused(format!("no thread could be started: {error}"))));
    }
}

fn refused(cause: impl Into<String>) -> Failure {
    Failure::new(Stage::Converse, Kind::Internal, cause)
}
