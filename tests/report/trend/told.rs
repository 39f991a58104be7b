//! What is said of parts that move is true: where something cannot be told, that is said.

use railgauge_analysis::{
    history::Run,
    trend::{Change, Options, State, Trend, Way},
};
use railgauge_wire::facts::{Card, Label};

use super::{
    moved::{MOVED, SLOW, by_serial, exchanged, in_slot, nights, nights_with, own, renewed},
    nights::{night, watch},
};

fn worse(found: &Trend) -> Vec<&Change> {
    found.changes.iter().filter(|change| change.way == Way::Worse).collect()
}

fn sentences(found: &Trend) -> Vec<&str> {
    found.changes.iter().map(|change| change.sentence.as_str()).collect()
}

#[test]
fn a_new_card_did_not_make_slow_what_was_slow_before_it_came() {
    // Everything of the host is slow whatever card it has.
    let found = watch(nights_with(21, renewed, |_, host| host == "gpu003", by_serial), &Options::default());
    let [one] = worse(&found).try_into().unwrap_or_else(|_| panic!("{:?}", sentences(&found)));
    assert_eq!((one.name.as_str(), one.since.clone(), one.state), ("host gpu003", night(i64::from(SLOW)), State::Open));
    assert_eq!(one.series.0, one.series.1, "{}", one.sentence);
    assert!(one.parts.len() == 1 && one.parts[0].contains("MT0003 → MT0099"), "{:?}", one.parts);
    assert!(one.parts[0].contains("did not end it"), "{:?}", one.parts);
    assert_eq!(found.exit_code, 1);
}

#[test]
fn what_was_slow_from_its_first_night_on_did_not_fall_when_it_got_another_card() {
    let mut runs = nights_with(22, renewed, |_, host| host == "gpu003", by_serial);
    // Only the nights on which it is slow.
    runs.drain(..usize::try_from(SLOW).unwrap());
    let found = watch(runs, &Options::default());
    let all = worse(&found);
    assert!(!all.is_empty());
    for change in all {
        assert_eq!(change.since, night(i64::from(SLOW)), "{}", change.sentence);
        assert!(!change.sentence.contains("fell"), "{}", change.sentence);
    }
}

#[test]
fn a_slot_that_stays_slow_says_so_where_it_is_told_to_be_slow() {
    let found = watch(nights_with(23, exchanged, |_, host| host == "gpu003", by_serial), &Options::default());
    let [one] = worse(&found).try_into().unwrap_or_else(|_| panic!("{:?}", sentences(&found)));
    assert_eq!((one.name.as_str(), one.since.clone(), one.state), ("host gpu003", night(i64::from(SLOW)), State::Open));
    assert!(one.parts.iter().any(|words| words.contains("MT0003")), "{:?}", one.parts);
}

#[test]
fn two_slow_cards_that_change_places_are_both_bad() {
    let slow = |number: u32, host: &str| ["MT0002", "MT0003"].contains(&exchanged(number, host));
    let found = watch(nights_with(24, exchanged, slow, by_serial), &Options::default());
    for host in ["gpu002", "gpu003"] {
        assert!(in_slot(&found, host).from.as_ref().unwrap().slow.is_some(), "{host}");
    }
    // Both cards are bad where they were and where they are.
    assert_eq!(found.exit_code, 1, "{}", found.sentence);
    assert!(worse(&found).iter().all(|change| change.since == night(i64::from(SLOW))), "{:?}", sentences(&found));
}

#[test]
fn nights_on_which_nothing_is_read_erase_nothing() {
    fn once(night: u32, host: &str) -> &'static str {
        if night == MOVED - 2 { "" } else { exchanged(night, host) }
    }
    fn often(night: u32, host: &str) -> &'static str {
        if night % 3 == 1 { "" } else { exchanged(night, host) }
    }
    for card in [once, often] {
        let slow = |number: u32, host: &str| exchanged(number, host) == "MT0003";
        let found = watch(nights_with(25, card, slow, by_serial), &Options::default());
        let slow = in_slot(&found, "gpu002").from.as_ref().unwrap().slow.as_ref().expect("it was slow there");
        assert_eq!(slow.since, night(i64::from(SLOW)));
        assert_eq!(found.exit_code, 1);
    }
}

#[test]
fn between_nights_on_which_nothing_is_read_no_night_is_named() {
    fn gap(night: u32, host: &str) -> &'static str {
        if (40..=50).contains(&night) { "" } else { exchanged(night, host) }
    }
    let slow = |number: u32, host: &str| exchanged(number, host) == "MT0003";
    let found = watch(nights_with(26, gap, slow, by_serial), &Options::default());
    let there = in_slot(&found, "gpu002");
    assert_eq!((there.until.clone(), there.date.clone()), (night(39), night(51)));
    let words = there.words();
    assert!(words.contains(&night(39)) && words.contains(&night(51)) && !words.contains("replaced on"), "{words}");
    assert!(!words.contains(" until ") && !words.contains(&format!(" since {}", night(51))), "{words}");
    // It fell once, on the night on which it fell.
    let now: Vec<&Change> = worse(&found).into_iter().filter(|change| change.name == "host gpu002").collect();
    let [now] = now.as_slice() else { panic!("{:?}", sentences(&found)) };
    assert_eq!((now.since.clone(), now.state), (night(i64::from(MOVED)), State::Open));
    assert!(now.parts.iter().any(|words| words.contains("MT0003")), "{:?}", now.parts);
}

/// Of what is not measured any more nobody knows whether it is still so.
#[test]
fn a_bad_card_whose_new_host_left_the_plan_is_not_still_bad_there() {
    let mut runs = nights(31, exchanged, by_serial);
    for run in &mut runs[MOVED as usize + 5..] {
        run.hosts.remove("gpu002");
        let cases = &run.cases;
        run.readings.retain(|reading| {
            let flow = &cases[usize::try_from(reading.case).unwrap()].flow;
            flow.hosts().iter().all(|host| ***host != *"gpu002")
        });
    }
    let found = watch(runs, &Options::default());
    let still: Vec<&str> = found
        .series
        .iter()
        .filter(|series| !series.alive && series.alerts.iter().any(|alert| alert.state == State::Open))
        .map(|series| series.link.as_str())
        .collect();
    assert_eq!(still, [""; 0], "{:?}", sentences(&found));
}

#[test]
fn a_card_that_is_lent_while_its_host_is_down_is_followed_there_and_back() {
    let lent = MOVED..MOVED + 5;
    let is_lent = |number: u32| lent.contains(&number);
    let slow = |number: u32, host: &str| host == if is_lent(number) { "gpu002" } else { "gpu003" };
    let mut runs = nights_with(27, own, slow, by_serial);
    for run in &mut runs[lent.start as usize..lent.end as usize] {
        run.hosts.remove("gpu003");
        by_serial(run.hosts.get_mut("gpu002").unwrap(), "MT0003");
        let cases = &run.cases;
        run.readings.retain(|reading| {
            let flow = &cases[usize::try_from(reading.case).unwrap()].flow;
            flow.hosts().iter().all(|host| ***host != *"gpu003")
        });
    }
    let found = watch(runs, &Options::default());
    let moves: Vec<(String, String, String)> =
        found.replaced.iter().map(|one| (one.host.clone(), one.new.clone(), one.date.clone())).collect();
    let at = |number: u32| night(i64::from(number));
    assert_eq!(
        moves,
        [("gpu002".into(), "MT0003".into(), at(lent.start)), ("gpu002".into(), "MT0002".into(), at(lent.end)),]
    );
    let from = found.replaced[0].from.as_ref().unwrap();
    assert_eq!((from.host.as_str(), from.date.clone(), from.slow.is_some()), ("gpu003", at(lent.start - 1), true));
    let to = found.replaced[1].to.as_ref().unwrap();
    assert_eq!((to.host.as_str(), to.date.clone()), ("gpu003", at(lent.end)));
}

#[test]
fn a_card_that_is_exchanged_for_a_week_takes_the_slow_values_there_and_back() {
    fn week(night: u32, host: &str) -> &'static str {
        if night < MOVED + 7 { exchanged(night, host) } else { own(night, host) }
    }
    let found = watch(nights(28, week, by_serial), &Options::default());
    let [there, back] = [0, 7].map(|after| {
        let date = night(i64::from(MOVED) + after);
        found.replaced.iter().find(|one| one.new == "MT0003" && one.date == date).expect("it moved")
    });
    for (one, was) in [(there, "gpu003"), (back, "gpu002")] {
        let from = one.from.as_ref().unwrap();
        assert_eq!(from.host, was);
        assert!(from.slow.is_some(), "{}", one.words());
    }
    let series = back.from.as_ref().unwrap().slow.as_ref().unwrap().series;
    assert!(series.1 <= 5 * 2 && series.0 <= series.1, "{series:?}");
    // The week is reported, and is over. In one series of a few hundred nights noise alone raises an alert in its first week
    // (0.1 a series-year at most), so that four of five are asked for.
    let week = worse(&found).into_iter().find(|change| change.name == "host gpu002").expect("it was slow for a week");
    let is_over = |&&(at, alert): &&(usize, usize)| found.series[at].alerts[alert].state == State::WentAway;
    let over = week.members.iter().filter(is_over).count();
    assert!(week.since == night(i64::from(MOVED)) && over >= 4, "{}", week.sentence);
}

/// Two cards, of which the second has the device of all links from a night on; only serial numbers tell them.
fn with_two_cards(runs: &mut [Run], renamed: impl Fn(u32, &str) -> bool, second: impl Fn(u32, &str) -> String) {
    for (number, run) in (0..).zip(runs) {
        for (host, facts) in &mut run.hosts {
            let device = facts.rdma[0].name.clone();
            let mut names = [device.clone(), "spare".to_owned()];
            if renamed(number, host) {
                names.reverse();
            }
            let of_link = if names[0] == device { "0000:18:00.0" } else { "0000:19:00.0" };
            facts.rdma.truncate(1);
            (facts.rdma[0].pci, facts.rdma[0].guid) = (Some(of_link.into()), None);
            let card = |pci: &str, name: &String, serial: String| Card {
                pci: pci.into(),
                devices: vec![name.clone()],
                label: Label { serial: Some(serial), ..Label::default() },
                ..Card::default()
            };
            let first = format!("A-{host}");
            facts.parts.cards =
                vec![card("0000:18:00.0", &names[0], first), card("0000:19:00.0", &names[1], second(number, host))];
        }
    }
}

#[test]
fn a_card_is_known_by_the_names_that_it_had_at_the_time() {
    fn second(night: u32, host: &str) -> String {
        let owner = match host {
            "gpu003" if night >= MOVED => "gpu002",
            "gpu002" if night >= MOVED => "gpu003",
            host => host,
        };
        format!("B-{owner}")
    }
    let mut runs = nights_with(31, own, |number, host| second(number, host) == "B-gpu003", |_, _| ());
    with_two_cards(&mut runs, |number, _| number >= 21, second);
    let found = watch(runs, &Options::default());
    let there = found.replaced.iter().find(|one| one.host == "gpu002").expect("it came there");
    let from = there.from.as_ref().unwrap();
    assert!(from.part == there.part && !from.part.contains("spare"), "{}", there.words());
    let slow = from.slow.as_ref().expect("it was slow there");
    assert_eq!(slow.series.0, slow.series.1);
}

#[test]
fn a_change_of_which_most_is_over_says_so_and_draws_the_level_before_it() {
    let found = watch(nights(33, exchanged, by_serial), &Options::default());
    let then = worse(&found).into_iter().find(|change| change.name == "host gpu003").unwrap();
    assert!(then.sentence.contains("of them are over"), "{}", then.sentence);
    let view = railgauge_report::trend::view(&found).unwrap();
    let at = view.open.iter().position(|change| change.name == "host gpu002").unwrap();
    // Nights of before the exchange are drawn: every one of the sixty has its dot, for a desk and for a phone.
    let svg = &view.open[at].figure.as_ref().unwrap().svg;
    assert_eq!(svg.matches("class=\"tip\"").count(), 2 * 60, "{svg}");
}
