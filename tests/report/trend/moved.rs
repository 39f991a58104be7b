//! Parts that move: their history goes with them, and the slot says that its part was replaced.

use railgauge_analysis::{
    history::Run,
    status::Status,
    trend::{Options, Replaced, State, Trend, Way},
};
use railgauge_model::schedule::Flow;
use railgauge_report::text::Screen;
use railgauge_report::trend::{text, view};
use railgauge_wire::{
    facts::{Card, HostFacts, Label, Module},
    terms::Transport,
};

use super::nights::{cluster, night, run, watch};
use crate::support::Dice;

/// The night of the move.
pub(super) const MOVED: u32 = 45;
/// The night on which the bad card became slow.
pub(super) const SLOW: u32 = 35;

/// Which card a host has on a night, by a number.
pub(super) type CardOf = fn(u32, &str) -> &'static str;

/// Every host has the card it always had.
pub(super) fn own(_: u32, host: &str) -> &'static str {
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
pub(super) fn exchanged(night: u32, host: &str) -> &'static str {
    match host {
        "gpu003" if night >= MOVED => own(0, "gpu002"),
        "gpu002" if night >= MOVED => own(0, "gpu003"),
        _ => own(0, host),
    }
}

/// One host gets a new card.
pub(super) fn renewed(night: u32, host: &str) -> &'static str {
    if host == "gpu003" && night >= MOVED { "MT0099" } else { own(0, host) }
}

/// Nights in which what passes a slow card carries half, as soon as it is slow; `tell` puts what is known of a card into facts.
pub(super) fn nights(seed: u64, card: CardOf, tell: impl Fn(&mut HostFacts, &str)) -> Vec<Run> {
    nights_with(seed, card, |number, host| card(number, host) == "MT0003", tell)
}

/// The same where `is_slow` says of which host everything is slow, from the night on which anything is.
pub(super) fn nights_with(
    seed: u64,
    card: CardOf,
    is_slow: impl Fn(u32, &str) -> bool,
    tell: impl Fn(&mut HostFacts, &str),
) -> Vec<Run> {
    let (mut of, mut dice) = (cluster(6), Dice(seed));
    let cases = &of.cases;
    of.readings.retain(|reading| {
        let case = &cases[usize::try_from(reading.case).unwrap()];
        case.flow.members.is_empty() && case.cell.transport == Transport::Verbs
    });
    let flows: Vec<Flow> =
        of.readings.iter().map(|reading| of.cases[usize::try_from(reading.case).unwrap()].flow.clone()).collect();
    let one = |number: u32| {
        let slow = |host: &str| number >= SLOW && is_slow(number, host);
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
pub(super) fn by_serial(facts: &mut HostFacts, serial: &str) {
    let label = Label { serial: Some(serial.into()), ..Label::default() };
    let devices = facts.rdma.iter().map(|device| device.name.clone()).collect();
    facts.parts.cards = vec![Card { pci: "0000:18:00.0".into(), devices, label, ..Card::default() }];
}

/// The machine and all that is in it.
pub(super) fn by_machine(facts: &mut HostFacts, serial: &str) {
    by_serial(facts, serial);
    for (label, kind) in [(&mut facts.parts.machine, "machine"), (&mut facts.parts.board, "board")] {
        label.serial = Some(format!("{kind} {serial}"));
    }
}

/// The GUID and no serial number.
fn by_guid(facts: &mut HostFacts, serial: &str) {
    facts.rdma.iter_mut().for_each(|device| device.guid = Some(format!("guid of {serial}")));
}

/// The cable in every network interface of the devices.
pub(super) fn by_cable(facts: &mut HostFacts, serial: &str) {
    let label = || Label { serial: Some(serial.into()), ..Label::default() };
    let ports = facts.rdma.iter().flat_map(|device| &device.ports);
    let interfaces: Vec<String> = ports.filter_map(|port| port.netdev.clone()).collect();
    assert!(!interfaces.is_empty(), "these hosts have network interfaces");
    let end = |(at, interface): (usize, String)| {
        let serial = label().serial.map(|serial| format!("{serial}-{at}"));
        Module { interface, label: Label { serial, ..label() }, ..Module::default() }
    };
    facts.parts.modules = interfaces.into_iter().enumerate().map(end).collect();
}

/// Both.
fn by_both(facts: &mut HostFacts, serial: &str) {
    by_guid(facts, serial);
    by_serial(facts, serial);
}

pub(super) fn in_slot<'t>(found: &'t Trend, host: &str) -> &'t Replaced {
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
        assert_eq!((before.host.as_str(), before.date.clone()), ("gpu003", night(i64::from(MOVED) - 1)));
        let slow = before.slow.as_ref().expect("it was slow there");
        assert_eq!(slow.since, night(i64::from(SLOW)));
        assert_eq!(slow.series.0, slow.series.1, "all of what passed it was slow: {slow:?}");
        // The good card has no history of being slow.
        let good = in_slot(&found, "gpu003");
        assert_eq!((good.new.as_str(), good.from.as_ref().map(|before| before.slow.is_none())), ("MT0002", Some(true)));
        assert_eq!(
            good.to.as_ref().map(|to| (to.host.as_str(), to.date.clone())),
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
        let text = text::summary(&shown, std::path::Path::new("x.html"), &Screen::PLAIN);
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
fn a_slot_whose_part_was_replaced_begins_a_new_series_and_says_why() {
    // Neither a serial number of a card nor that of a cable is in the GUIDs of the devices.
    for tell in [by_serial, by_cable] {
        let found = watch(nights(10, renewed, tell), &Options::default());
        assert!(found.replaced.iter().all(|one| one.host == "gpu003" && one.date == night(i64::from(MOVED))));
        let of = |host: &str| found.series.iter().filter(move |series| series.link.contains(host)).collect::<Vec<_>>();
        let (before, since): (Vec<_>, Vec<_>) = of("gpu003").into_iter().partition(|series| series.span.0 == night(0));
        assert_eq!(before.len(), since.len(), "each link of it is divided once");
        assert!(!since.is_empty());
        for series in &before {
            assert_eq!((series.span.1.clone(), series.nights, series.alive), (night(i64::from(MOVED) - 1), 45, false));
        }
        for series in &since {
            assert_eq!((series.span.0.clone(), series.nights, series.alive), (night(i64::from(MOVED)), 15, true));
            assert!(series.hardware.iter().any(|word| word.contains("MT0099")), "{:?}", series.hardware);
        }
        // Links that pass no such part go on.
        let others = found.series.iter().filter(|series| !series.link.contains("gpu003"));
        assert!(others.clone().count() > 0 && others.into_iter().all(|series| series.nights == 60));
        let change = found.changes.iter().find(|change| change.way == Way::Worse).unwrap();
        assert!(change.sentence.contains("MT0099") && change.sentence.contains(&night(i64::from(MOVED))));
    }
}

#[test]
fn a_worse_part_is_no_regression_of_its_slot_without_its_serial_numbers() {
    /// The new card of a host is slow from its first night on.
    fn worse(night: u32, host: &str) -> bool {
        host == "gpu003" && night >= MOVED
    }
    let found = watch(nights_with(11, renewed, worse, by_serial), &Options::default());
    let change = found.changes.iter().find(|change| change.way == Way::Worse).expect("it is told");
    // What is worse are the series of the new card, held against their like; those of the old one ended well.
    for (at, _) in &change.members {
        assert_eq!(found.series[*at].span.0, night(i64::from(MOVED)), "{}", change.sentence);
    }
    let told = ["MT0003 → MT0099", &night(i64::from(MOVED)), "gpu003"];
    assert!(told.iter().all(|word| change.sentence.contains(word)), "{}", change.sentence);
    assert_eq!((change.state, found.exit_code), (State::Open, 1), "{}", found.sentence);
}

#[test]
fn a_part_that_came_back_goes_on_with_its_series() {
    /// For ten nights a host has another card.
    fn lent(night: u32, host: &str) -> &'static str {
        if host == "gpu003" && (30..40).contains(&night) { "MT0099" } else { own(0, host) }
    }
    let found = watch(nights_with(12, lent, |_, _| false, by_serial), &Options::default());
    let mut nights: Vec<usize> =
        found.series.iter().filter(|series| series.link.contains("gpu003")).map(|series| series.nights).collect();
    nights.sort_unstable();
    nights.dedup();
    assert_eq!(nights, [10, 50]);
}

#[test]
fn without_serial_numbers_no_part_is_followed() {
    let bare = watch(nights(3, exchanged, |_, _| ()), &Options::default());
    assert!(bare.replaced.is_empty() && bare.changes.iter().all(|change| change.parts.is_empty()));
    assert!(bare.series.iter().all(|series| series.nights == 60), "nothing ends a series");
    let document = serde_json::to_value(&bare).unwrap();
    assert!(document.get("replaced").is_none() && document["changes"][0].get("parts").is_none());
    // With serial numbers the same hosts became worse on the same nights.
    let known = watch(nights(3, exchanged, by_serial), &Options::default());
    let told = |found: &Trend| {
        let worse = found.changes.iter().filter(|change| change.way == Way::Worse);
        worse.map(|change| (change.name.clone(), change.since.clone())).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(told(&bare).is_subset(&told(&known)), "{:?} {:?}", told(&bare), told(&known));
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
