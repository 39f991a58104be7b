//! Parts that move: their history goes with them, and the slot says that its part was replaced.

use railgauge::{
    analysis::{
        history::Run,
        trend::{Options, Replaced, State, Trend, Way},
        verdict::Status,
    },
    report::trend::{text, view},
};
use railgauge_model::schedule::Flow;
use railgauge_wire::{
    facts::{Card, HostFacts, Label},
    terms::Transport,
};

use super::nights::{cluster, night, run, watch};
use crate::support::Dice;

/// The night of the move.
const MOVED: u32 = 45;
/// The night on which the bad card became slow.
const SLOW: u32 = 35;

/// Which card a host has on a night, by a number.
type CardOf = fn(u32, &str) -> &'static str;

/// Every host has the card it always had.
fn own(_: u32, host: &str) -> &'static str {
    match host {
        "gpu001" => "MT0001",
        "gpu002" => "MT0002",
        "gpu003" => "MT0003",
        "gpu004" => "MT0004",
        "gpu005" => "MT0005",
        _ => "MT0006",
    }
}

/// The cards of two hosts change places.
fn exchanged(night: u32, host: &str) -> &'static str {
    match host {
        "gpu003" if night >= MOVED => own(0, "gpu002"),
        "gpu002" if night >= MOVED => own(0, "gpu003"),
        _ => own(0, host),
    }
}

/// One host gets a new card.
fn renewed(night: u32, host: &str) -> &'static str {
    if host == "gpu003" && night >= MOVED { "MT0099" } else { own(0, host) }
}

/// Nights in which what passes a slow card carries half, as soon as it is slow; `tell` puts what is known of a card into facts.
fn nights(seed: u64, card: CardOf, tell: impl Fn(&mut HostFacts, &str)) -> Vec<Run> {
    let (mut of, mut dice) = (cluster(6), Dice(seed));
    let cases = &of.cases;
    of.readings.retain(|reading| {
        let case = &cases[usize::try_from(reading.case).unwrap()];
        case.flow.members.is_empty() && case.cell.transport == Transport::Verbs
    });
    let flows: Vec<Flow> =
        of.readings.iter().map(|reading| of.cases[usize::try_from(reading.case).unwrap()].flow.clone()).collect();
    let one = |number: u32| {
        let slow = |host: &str| number >= SLOW && card(number, host) == "MT0003";
        let level = |at: usize| Some(if flows[at].hosts().iter().any(|host| slow(host)) { 195.0 } else { 390.0 });
        let mut run = run(&of, number, 0, &mut dice, level);
        for (host, facts) in &mut run.hosts {
            tell(facts, card(number, host));
        }
        run
    };
    (0..60).map(one).collect()
}

/// The serial number of the card that carries all devices.
fn by_serial(facts: &mut HostFacts, serial: &str) {
    let label = Label { serial: Some(serial.into()), ..Label::default() };
    let devices = facts.rdma.iter().map(|device| device.name.clone()).collect();
    facts.parts.cards = vec![Card { pci: "0000:18:00.0".into(), devices, label, ..Card::default() }];
}

/// The machine and all that is in it.
fn by_machine(facts: &mut HostFacts, serial: &str) {
    by_serial(facts, serial);
    for (label, kind) in [(&mut facts.parts.machine, "machine"), (&mut facts.parts.board, "board")] {
        label.serial = Some(format!("{kind} {serial}"));
    }
}

/// The GUID and no serial number.
fn by_guid(facts: &mut HostFacts, serial: &str) {
    facts.rdma.iter_mut().for_each(|device| device.guid = Some(format!("guid of {serial}")));
}

/// Both.
fn by_both(facts: &mut HostFacts, serial: &str) {
    by_guid(facts, serial);
    by_serial(facts, serial);
}

fn in_slot<'t>(found: &'t Trend, host: &str) -> &'t Replaced {
    found.replaced.iter().find(|one| one.host == host).expect("its part was replaced")
}

#[test]
fn a_slow_card_is_followed_to_the_host_that_it_was_moved_to() {
    for tell in [by_serial, by_both] {
        let found = watch(nights(1, exchanged, tell), &Options::default());
        assert_eq!(found.replaced.len(), 2, "{:?}", found.replaced);
        let there = in_slot(&found, "gpu002");
        assert_eq!(
            (there.date.clone(), there.old.as_str(), there.new.as_str()),
            (night(i64::from(MOVED)), "MT0002", "MT0003")
        );
        let before = there.from.as_ref().unwrap();
        assert_eq!((before.host.as_str(), before.until.clone()), ("gpu003", night(i64::from(MOVED) - 1)));
        let slow = before.slow.as_ref().expect("it was slow there");
        assert_eq!(slow.since, night(i64::from(SLOW)));
        assert_eq!(slow.series.0, slow.series.1, "all of what passed it was slow: {slow:?}");
        // The good card has no history of being slow.
        let good = in_slot(&found, "gpu003");
        assert_eq!((good.new.as_str(), good.from.as_ref().map(|before| before.slow.is_none())), ("MT0002", Some(true)));
        assert_eq!(
            good.to.as_ref().map(|to| (to.host.as_str(), to.since.clone())),
            Some(("gpu002", night(i64::from(MOVED))))
        );
        // It is bad where it is now, and that is still so.
        assert_eq!((found.status, found.exit_code), (Status::Fail, 1), "{}", found.sentence);
        let named = |name: &str| {
            let mut all = found.changes.iter().filter(|change| change.name == name && change.way == Way::Worse);
            all.next().unwrap_or_else(|| {
                panic!("{:?}", found.changes.iter().map(|change| &change.sentence).collect::<Vec<_>>())
            })
        };
        let now = named("host gpu002");
        assert_eq!((now.state, now.since.clone()), (State::Open, night(i64::from(MOVED))), "{}", now.sentence);
        assert!(now.parts.iter().any(|words| words.contains("MT0003") && words.contains("gpu003")), "{:?}", now.parts);
        // Where it was, all is well but for the link between the two.
        let then = named("host gpu003");
        assert_eq!(then.since, night(i64::from(SLOW)));
        assert!(then.parts.iter().any(|words| words.contains("MT0003 → MT0002")), "{:?}", then.parts);
        for (at, alert) in &then.members {
            let (series, alert) = (&found.series[*at], &found.series[*at].alerts[*alert]);
            let over = matches!(alert.state, State::WentAway | State::Ended);
            assert_eq!(over, !series.link.contains("gpu002"), "{}: {:?}", series.link, alert.state);
        }
        let shown = view(&found).unwrap();
        assert_eq!(shown.parts.rows.len(), 2);
        let text = text::summary(&shown, std::path::Path::new("x.html"), false);
        assert!(text.contains("MT0003"), "{text}");
    }
}

#[test]
fn a_slow_card_that_is_replaced_ends_the_slowness() {
    for tell in [by_serial, by_both, by_guid] {
        let found = watch(nights(2, renewed, tell), &Options::default());
        let [one] = found.replaced.as_slice() else { panic!("{:?}", found.replaced) };
        assert_eq!((one.host.as_str(), one.date.clone()), ("gpu003", night(i64::from(MOVED))));
        assert!(one.new.ends_with("MT0099") && one.from.is_none() && one.to.is_none(), "{one:?}");
        assert_eq!(found.exit_code, 0, "{}", found.sentence);
        let over = found.changes.iter().find(|change| change.way == Way::Worse).unwrap();
        assert_eq!((over.name.as_str(), over.since.clone()), ("host gpu003", night(i64::from(SLOW))));
        assert!(over.parts.len() == 1 && over.parts[0].contains(&one.new), "{:?}", over.parts);
    }
}

#[test]
fn another_machine_is_told_as_one_and_not_by_its_parts() {
    let found = watch(nights(7, exchanged, by_machine), &Options::default());
    assert_eq!(found.replaced.len(), 6, "{:?}", found.replaced);
    let now = found.changes.iter().find(|change| change.name == "host gpu002" && change.way == Way::Worse).unwrap();
    let [words] = now.parts.as_slice() else { panic!("{:?}", now.parts) };
    assert!(words.contains("machine MT0003") && words.contains("gpu003"), "{words}");
}

#[test]
fn without_serial_numbers_nothing_is_said_and_nothing_is_other() {
    let bare = watch(nights(3, exchanged, |_, _| ()), &Options::default());
    assert!(bare.replaced.is_empty() && bare.changes.iter().all(|change| change.parts.is_empty()));
    // The same numbers with serial numbers: the same changes on the same nights, with the same state.
    let known = watch(nights(3, exchanged, by_serial), &Options::default());
    let told = |found: &Trend| {
        found
            .changes
            .iter()
            .map(|change| (change.name.clone(), change.since.clone(), change.state, change.series))
            .collect::<Vec<_>>()
    };
    assert_eq!((told(&bare), bare.exit_code, &bare.sentence), (told(&known), known.exit_code, &known.sentence));
    let document = serde_json::to_value(&bare).unwrap();
    assert!(document.get("replaced").is_none() && document["changes"][0].get("parts").is_none());
}

#[test]
fn equal_serial_numbers_on_two_hosts_are_none() {
    /// A placeholder that no list has on two hosts until one of them gets a card of its own.
    fn placeholder(night: u32, host: &str) -> &'static str {
        match host {
            "gpu002" => "MT-UNSET-1",
            "gpu003" if night < MOVED => "MT-UNSET-1",
            _ => own(0, host),
        }
    }
    for tell in [by_serial, by_both] {
        let found = watch(nights(4, placeholder, tell), &Options::default());
        assert!(found.replaced.is_empty(), "{:?}", found.replaced);
    }
    // One that the list has.
    let found = watch(
        nights(5, |night, host| if night < MOVED { "To Be Filled By O.E.M." } else { own(0, host) }, by_serial),
        &Options::default(),
    );
    assert!(found.replaced.is_empty(), "{:?}", found.replaced);
}

#[test]
fn serial_numbers_that_can_be_read_from_a_night_on_begin_nothing() {
    let late = |facts: &mut HostFacts, serial: &str| by_guid(facts, serial);
    let mut runs = nights(6, own, late);
    for run in &mut runs[30..] {
        let hosts: Vec<String> = run.hosts.keys().cloned().collect();
        for host in hosts {
            by_serial(run.hosts.get_mut(&host).unwrap(), own(0, &host));
        }
    }
    let found = watch(runs, &Options::default());
    assert!(found.replaced.is_empty(), "{:?}", found.replaced);
    assert!(found.series.iter().all(|series| series.nights == 60));
}
