//! Reads a file as a journal, and decodes its lines one by one.

use std::{
    collections::HashSet,
    fs::TryLockError,
    io::{BufRead, BufReader},
    path::Path,
    sync::Arc,
};

use foldhash::HashMap;
use jiff::Timestamp;

use super::{
    Contradiction, Damage, HostUp, Journal, JournalEnd, JournalError, Seen, Try, losses::Losses, structure::Structure,
    times, tools,
};
use crate::parallel;
use railgauge_model::{
    border::facts,
    files,
    journal::{
        event::{Case, Change, Event, Line, LinkRecord},
        line::{self, LineError, Numbered, Tail},
    },
    plan::limits,
};
use railgauge_wire::Bytes;

/// # Errors
/// The file cannot be read, is empty, lost its first line, holds a whole line that is not ours, or has another version.
pub fn read(path: &Path) -> Result<Journal, JournalError> {
    let unreadable = |cause| JournalError::Unreadable { path: path.to_owned(), cause };
    let file = files::open(path).map_err(unreadable)?;
    // The writer holds the lock (see run::journal). File systems without locks return another error.
    let written = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut journal = parse(BufReader::with_capacity(1 << 20, file), path)?;
    if written && journal.end == JournalEnd::Broken {
        journal.end = JournalEnd::Running;
    }
    // Valid times depend on the current day, so lines are decoded without a clock.
    let now = Timestamp::now();
    let last = usize::try_from(journal.tail.next.saturating_sub(1)).unwrap_or(usize::MAX);
    let times = [(1, &journal.time.0), (last, &journal.time.1)];
    let wrong = |(line, at): (usize, &String)| {
        Some(Contradiction { line, what: times::wrong(at.parse().ok()?, now)?, by_clock: true })
    };
    let first = times.into_iter().find_map(wrong);
    journal.contradictions.extend(first);
    Ok(journal)
}

/// `path` is for errors.
///
/// # Errors
/// Those of [`read`].
pub fn parse(mut from: impl BufRead, path: &Path) -> Result<Journal, JournalError> {
    let mut reader = Reader::new(path);
    let (mut lines, mut ends) = (Vec::new(), Vec::new());
    let mut is_over = false;
    // Stop at the end that the file had once the run was over: later lines are for the next reader.
    while !is_over {
        lines.clear();
        ends.clear();
        while !is_over && lines.len() < BYTES_AT_ONCE && ends.len() < LINES_AT_ONCE {
            let got = from
                .read_until(b'\n', &mut lines)
                .map_err(|cause| JournalError::Unreadable { path: path.to_owned(), cause })?;
            is_over = got == 0;
            if !is_over {
                ends.push(lines.len());
            }
        }
        let mut begin = 0;
        let lines = ends.iter().map(|&end| &lines[std::mem::replace(&mut begin, end)..end]);
        reader.lines(&lines.collect::<Vec<_>>())?;
    }
    reader.finish()
}

/// Bytes of lines read before several threads decode them.
const BYTES_AT_ONCE: usize = 1 << 23;
/// Limit for short lines: each takes memory of its own until it is decoded.
const LINES_AT_ONCE: usize = 1 << 14;

struct Reader<'p> {
    path: &'p Path,
    number: usize,
    last: u64,
    /// Name of the run in the first event read.
    run: Option<String>,
    tail: Tail,
    /// The first unreadable line since the last event, and why.
    unread: Option<(usize, &'static str)>,
    /// Why the first line could not be read.
    headless: Option<&'static str>,
    journal: Option<Journal>,
    links: HashMap<String, Arc<LinkRecord>>,
    told: HashMap<u64, Arc<LinkRecord>>,
    damage: Vec<Damage>,
    structure: Structure,
    losses: Losses,
    torn: Option<usize>,
}

impl<'p> Reader<'p> {
    fn new(path: &'p Path) -> Self {
        Self {
            path,
            number: 0,
            last: 0,
            run: None,
            tail: Tail::before(String::new()),
            unread: None,
            headless: None,
            journal: None,
            links: HashMap::default(),
            told: HashMap::default(),
            damage: Vec::new(),
            structure: Structure::default(),
            losses: Losses::default(),
            torn: None,
        }
    }

    fn foreign(&self, cause: impl Into<String>) -> JournalError {
        JournalError::Foreign { path: self.path.to_owned(), line: self.number, cause: cause.into() }
    }

    fn lines(&mut self, mut lines: &[&[u8]]) -> Result<(), JournalError> {
        // The first readable line names the run.
        while self.run.is_none()
            && let Some((first, rest)) = lines.split_first()
        {
            self.line(first, line::decode(first, None))?;
            lines = rest;
        }
        let run = self.run.as_deref();
        let decoded = parallel::map(lines, |line| line::decode(line, run));
        lines.iter().zip(decoded).try_for_each(|(line, read)| self.line(line, read))
    }

    fn line(&mut self, bytes: &[u8], read: Result<Numbered, LineError>) -> Result<(), JournalError> {
        self.number += 1;
        let is_ended = bytes.ends_with(b"\n");
        if bytes.iter().all(u8::is_ascii_whitespace) {
            self.tail.length += if is_ended { Bytes::of(bytes.len()) } else { Bytes::ZERO };
            return Ok(());
        }
        // A line cut off by a crash was never whole: the next process removes it.
        if is_ended || read.is_ok() {
            self.tail.length += Bytes::of(bytes.len());
            self.tail.unended = !is_ended;
        }
        match read {
            Ok(read) => self.numbered(read),
            Err(LineError::Version(found)) => {
                Err(JournalError::Version { path: self.path.to_owned(), line: self.number, found })
            }
            Err(LineError::Unknown(why)) => Err(self.foreign(why)),
            Err(LineError::Damaged(_)) if !is_ended => {
                self.torn = Some(self.number);
                Ok(())
            }
            Err(LineError::Damaged(why)) => {
                self.unread.get_or_insert((self.number, why));
                if self.number == 1 {
                    self.headless = Some(why);
                }
                Ok(())
            }
        }
    }

    /// An event, unless it is in an impossible position.
    fn numbered(&mut self, read: Numbered) -> Result<(), JournalError> {
        self.run.get_or_insert(read.run);
        self.missing(read.n);
        if read.n <= self.last {
            let what = format!("line {} of the run is after line {}", read.n, self.last);
            self.damage.push(Damage { line: self.number, what, numbers: None, healed: false });
            return Ok(());
        }
        self.last = read.n;
        let is_start = matches!(read.line.event, Event::Started { .. });
        if self.journal.is_none() && !is_start && (read.n > 1 || self.headless.is_some()) {
            self.headless.get_or_insert("it is missing");
            return Ok(());
        }
        if let Event::Resumed { unread } = &read.line.event {
            self.heal(unread);
        }
        self.event(read.line)
    }

    /// Notes what is between the last event and the one with number `next`.
    fn missing(&mut self, next: u64) {
        let unread = self.unread.take();
        let numbers = (next > self.last + 1).then(|| (self.last + 1, next - 1));
        let what = match (unread, numbers) {
            (None, None) => return,
            (Some((_, why)), _) => why.to_owned(),
            (None, Some((first, last))) if first == last => "a line is missing before it".to_owned(),
            (None, Some((first, last))) => format!("{} lines are missing before it", last - first + 1),
        };
        let line = unread.map_or(self.number, |(line, _)| line);
        self.structure.gap();
        self.damage.push(Damage { line, what, numbers, healed: false });
    }

    fn lost(&mut self, what: &str) {
        // One damaged line may invalidate many others: consecutive ones are one damage.
        if let Some(Damage { what: before, numbers: Some((_, last)), .. }) = self.damage.last_mut()
            && before == what
            && *last + 1 == self.last
        {
            *last = self.last;
            return;
        }
        let numbers = Some((self.last, self.last));
        self.damage.push(Damage { line: self.number, what: what.to_owned(), numbers, healed: false });
    }

    fn heal(&mut self, unread: &[(u64, u64)]) {
        let unread: HashSet<&(u64, u64)> = unread.iter().collect();
        for damage in &mut self.damage {
            damage.healed |= damage.numbers.is_some_and(|numbers| unread.contains(&numbers));
        }
    }

    fn event(&mut self, line: Line) -> Result<(), JournalError> {
        let Some(journal) = &mut self.journal else {
            if let Event::Imported(imported) = &line.event {
                return Err(JournalError::Imported { path: self.path.to_owned(), tools: tools(imported) });
            }
            let Event::Started { run_id, plan_hash, resolved, version, controller, launcher, .. } = line.event else {
                return Err(self.foreign("the first event of a journal is `Started`"));
            };
            if let Some(what) = limits::beyond(&resolved) {
                return Err(self.foreign(what));
            }
            let time = (line.at.clone(), line.at);
            let journal = Journal { run_id, plan_hash, version, controller, launcher, time, ..Journal::of(*resolved) };
            self.structure.begin(&journal, self.number);
            self.journal = Some(journal);
            return Ok(());
        };
        if let Event::HostUp { host, facts, .. } = &line.event
            && let Some(what) = facts::too_many(facts)
        {
            let what = format!("host `{host}`: {what}");
            return Err(self.foreign(what));
        }
        if !self.structure.admits(journal, self.number, &line.at, &line.event) {
            return Ok(());
        }
        journal.time.1 = line.at;
        match line.event {
            Event::Started { .. } => return Err(self.foreign("a second `Started`: two runs in one file")),
            Event::Imported(_) => return Err(self.foreign("an imported run inside of another one")),
            Event::HostUp { host, facts, clock, wall } => {
                if let Some(failure) = journal.lost.remove(&host) {
                    self.losses.back(&host, times::since_1970(&journal.time.1));
                    journal.notes.push((host.clone(), format!("was lost ({}) and came back", failure.unnamed())));
                }
                let mut facts = *facts;
                // Decoding a list allocates room for three more than there are.
                facts.rdma.iter_mut().for_each(|device| device.ports.shrink_to_fit());
                journal.hosts.insert(host, HostUp { facts, clock, wall });
            }
            Event::HostLost { host, failure } => {
                let failure = failure.at(&host);
                // A host that a later process does not reach either has been lost since the first.
                if !journal.lost.contains_key(&host) {
                    self.losses.lost(&host, &failure, times::since_1970(&journal.time.1));
                }
                journal.lost.insert(host, failure);
            }
            Event::Planned { cases } => {
                if let Some(case) = cases.iter().enumerate().find(|(index, case)| case.id != *index as u64) {
                    return Err(self.foreign(format!("case {} is at place {} of the plan", case.1.id, case.0)));
                }
                if !cases.is_empty() && !journal.further.is_empty() {
                    return Err(self.foreign("cases are planned whose numbers further cases have"));
                }
                // Most runs try each case once; without the memory the list grows on demand.
                let _ = journal.tries.try_reserve_exact(cases.len());
                journal.cases = cases;
            }
            Event::Confirming { cases, links } => {
                if !self.damage.is_empty() && planned_behind(journal, &cases) {
                    self.lost("further cases behind others that are lost");
                    return Ok(());
                }
                let first = journal.cases.len() + journal.further.len();
                if let Some((place, case)) = (first..).zip(&cases).find(|(place, case)| case.id != *place as u64) {
                    return Err(self.foreign(format!("further case {} is at place {place}", case.id)));
                }
                let planned = |case: &&Case| journal.plan.tests.iter().any(|test| *test.name == *case.test);
                if let Some(case) = cases.iter().find(|case| !planned(case)) {
                    let test = &case.test;
                    return Err(self.foreign(format!("a further case of test `{test}`, which the plan does not have")));
                }
                if links {
                    journal.for_links.extend(cases.iter().map(|case| case.id));
                }
                journal.further.extend(cases);
            }
            Event::Outcome(outcome) => {
                let known = (journal.cases.len() + journal.further.len()) as u64;
                if !self.damage.is_empty() && outcome.case >= known {
                    self.lost("a result of a case whose plan is lost");
                    return Ok(());
                }
                if outcome.link.is_some() && outcome.link_line.is_some() {
                    return Err(self.foreign("an outcome with a link of its own and that of another line"));
                }
                let told = outcome.link_line.map(|line| (line, self.told.get(&line).cloned()));
                let link = match (outcome.link, told) {
                    (_, Some((line, None))) if self.damage.is_empty() => {
                        return Err(
                            self.foreign(format!("its link is said to be in line {line} of the run, which has none"))
                        );
                    }
                    (_, Some((_, None))) => {
                        self.lost("a result of a link whose line is lost");
                        return Ok(());
                    }
                    (_, Some((_, told))) => told,
                    (link, None) => link.map(|link| shared(&mut self.links, link)),
                };
                let (case, repeat) = (outcome.case, outcome.repeat);
                let result = outcome.result;
                journal.tries.push(Try { case, repeat, started_at: outcome.started_at, link, result });
            }
            Event::Link(link) => _ = self.told.insert(self.last, shared(&mut self.links, *link)),
            Event::Configuring { test, value, undo: false } => journal.configured = Some(Change { test, value }),
            Event::Configured { undo: true, failure: None, .. } => {
                (journal.configured, journal.unconfigured) = (None, None);
            }
            Event::Configured { undo: true, failure, .. } => journal.unconfigured = failure,
            Event::Configuring { .. } | Event::Configured { .. } => {}
            Event::Stages(stages) => journal.stages += stages,
            Event::Routes { routes } => journal.routes = routes,
            Event::Watched { host, error, seen } => {
                journal.watched.push(Seen { host, error, seen: *seen });
            }
            Event::Soaked(soaked) => {
                self.losses.soaked(soaked.from, soaked.until);
                journal.soaked.push(*soaked);
            }
            Event::Note { host, text } => journal.notes.push((host, text)),
            Event::Resumed { .. } => {
                // Its process defines links again.
                self.told.clear();
                journal.resumed += 1;
                journal.end = JournalEnd::Broken;
            }
            Event::Interrupted => journal.end = JournalEnd::Interrupted,
            Event::Prevented { why, remedy } => journal.end = JournalEnd::Prevented { why, remedy },
            Event::Finished => journal.end = JournalEnd::Finished,
            Event::Round { .. } => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Journal, JournalError> {
        // Damaged lines at the end: the number of their events is unknown, so the next process leaves out one number.
        if self.unread.is_some() {
            self.missing(self.last + 2);
            self.last += 1;
        }
        if let Some(cause) = self.headless {
            let (path, cause, others) = (self.path.to_owned(), cause.to_owned(), self.number - 1);
            return Err(JournalError::Headless { path, cause, others });
        }
        let mut journal = self.journal.ok_or_else(|| JournalError::Empty { path: self.path.to_owned() })?;
        if let Some(change) = &journal.configured {
            let text = format!(
                "the cluster is still configured for {change}: its `undo` failed or was not reached; run it by hand, or \
                 resume the run"
            );
            journal.notes.push((String::new(), text));
        }
        for damage in &self.damage {
            let (line, what) = (damage.line, &damage.what);
            let then = match damage.healed {
                true => "the run was resumed after it and measured again what was missing",
                false => "what it held is not in this report",
            };
            journal.notes.push((String::new(), format!("line {line} of the journal is damaged: {what}; {then}")));
        }
        if let Some(line) = self.torn {
            let text = format!("line {line} of the journal was cut off by a crash; what it held is not in this report");
            journal.notes.push((String::new(), text));
        }
        journal.contradictions = self.structure.finish(&journal, !self.damage.is_empty());
        for Contradiction { line, what, .. } in &journal.contradictions {
            journal.notes.push((String::new(), format!("line {line} of the journal contradicts the rest: {what}")));
        }
        journal.tail = Tail { run: self.run.unwrap_or_default(), next: self.last + 1, ..self.tail };
        journal.damage = self.damage;
        journal.losses = self.losses.finish();
        Ok(journal)
    }
}

fn planned_behind(journal: &Journal, cases: &[Case]) -> bool {
    let known = (journal.cases.len() + journal.further.len()) as u64;
    cases.first().is_some_and(|case| case.id > known)
}

fn shared(known: &mut HashMap<String, Arc<LinkRecord>>, link: LinkRecord) -> Arc<LinkRecord> {
    match serde_json::to_string(&link) {
        Ok(key) => known.entry(key).or_insert_with(|| Arc::new(link)).clone(),
        Err(_) => Arc::new(link),
    }
}
