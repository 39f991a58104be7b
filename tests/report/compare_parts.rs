//! Links whose parts are others on the two sides of a comparison.

use std::{fs, path::Path};

use railgauge_analysis::{compare::Options, history::Run};
use railgauge_report as report;
use railgauge_report::text::Screen;
use railgauge_wire::facts::{Card, Label};

use super::compare::{compare_runs, read, runs, small};

/// Gives every host a card with a serial number of its own.
fn with_cards(runs: &mut [(usize, Run)], serial: impl Fn(&str) -> Option<String>) {
    for (host, facts) in runs.iter_mut().flat_map(|(_, run)| &mut run.hosts) {
        let label = Label { serial: serial(host), ..Label::default() };
        let devices = facts.rdma.iter().map(|device| device.name.clone()).collect();
        let interfaces = facts.interfaces.iter().map(|interface| interface.name.clone()).collect();
        facts.parts.cards = vec![Card { pci: "0000:18:00.0".into(), devices, interfaces, label, ..Card::default() }];
    }
}

#[test]
fn a_link_with_another_card_after_than_before_says_so_in_its_row() {
    let mut sides = [read(&runs(5, 0, &small(4))), read(&runs(5, 5, &small(4)))];
    with_cards(&mut sides[0], |host| Some(format!("MT-{host}")));
    with_cards(&mut sides[1], |host| Some(if host == "gpu003" { "MT-new".to_owned() } else { format!("MT-{host}") }));
    let found = compare_runs(&sides, Options::default(), |_, _| 0.0);
    assert!(!found.cells.is_empty());
    for cell in &found.cells {
        let passes = cell.link.contains("gpu003");
        assert_eq!(cell.parts.len(), usize::from(passes), "{}", cell.link);
        assert_eq!(cell.reason.contains("MT-gpu003 → MT-new"), passes, "{}", cell.reason);
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("compare.html");
    let view = report::compare::write(&found, &path).unwrap();
    let (text, page) = (
        report::compare::text::summary(&view, Path::new("x.html"), &Screen::PLAIN),
        fs::read_to_string(&path).unwrap(),
    );
    assert!(text.contains("MT-new") && page.contains("MT-new"), "{text}");
    // Where nothing can be read on a side, no part is another one.
    with_cards(&mut sides[1], |_| None);
    let blind = compare_runs(&sides, Options::default(), |_, _| 0.0);
    assert!(blind.cells.iter().all(|cell| cell.parts.is_empty()));
    // One number on two hosts of a side is no card that moved.
    with_cards(&mut sides[1], |host| Some(if host < "gpu003" { "MT-gpu003".to_owned() } else { format!("MT-{host}") }));
    let shared = compare_runs(&sides, Options::default(), |_, _| 0.0);
    assert!(shared.cells.iter().flat_map(|cell| &cell.parts).all(|part| part.after != "MT-gpu003"));
    assert_eq!(shared.configuration.shared.len(), 1);
}
