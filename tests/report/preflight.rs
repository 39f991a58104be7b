//! The page of a preflight: findings by cause with hosts folded, and nothing said of what was not read.

use std::{collections::BTreeMap, fs, path::Path};

use railgauge_analysis::status::Status;
use railgauge_model::plan::{self, Plan};
use railgauge_preflight::{Cluster, demands, drift, judge};
use railgauge_report::preflight::{Looked, PreflightView, view, write};
use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    remedy,
};

fn host(name: &str) -> HostFacts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hosts/{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn planned(hosts: usize, wanted: &str) -> Plan {
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"n[1-{hosts}]\"] }}\n{wanted}\n[[test]]\nname = \
         \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\n"
    );
    plan::parse("t.toml", &text, Path::new(".")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0
}

fn seen(plan: &Plan, hosts: Vec<HostFacts>, lost: &BTreeMap<String, Failure>) -> (PreflightView, String) {
    let cluster = Cluster { facts: (1..).map(|i| format!("n{i}")).zip(hosts).collect(), clocks: BTreeMap::new() };
    let findings = judge(plan, &cluster);
    let demands = demands(plan, &cluster, &findings);
    let drift = drift(&cluster.facts);
    let looked = Looked { plan, cluster: &cluster, demands: &demands, findings: &findings, drift: &drift, lost };
    let made = view(&looked, "2026-11-26 06:00:00 UTC".to_owned());
    // Every finding is on a card, and no card has hosts that none of its findings has.
    for finding in &findings {
        let here = |card: &&railgauge_report::preflight::Card| {
            card.check == finding.check
                && (card.what == finding.what || card.each.iter().any(|(_, what)| *what == finding.what))
        };
        assert!(made.cards.iter().any(|card| here(&card)), "{finding:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("preflight.html");
    write(&made, &page).unwrap();
    (made, fs::read_to_string(page).unwrap())
}

fn gone() -> Failure {
    Failure::new(Stage::Connect, Kind::Lost, "ssh: connect to host 10.0.0.9: No route to host")
        .remedy(remedy::CHECK_FIREWALL)
}

#[test]
fn a_healthy_cluster_has_no_section_without_content() {
    let mut hosts = vec![host("roce8"); 4];
    hosts.iter_mut().for_each(|host| host.unreadable.clear());
    let (view, page) = seen(&planned(4, ""), hosts, &BTreeMap::new());
    assert_eq!((view.status, view.first.as_str(), view.cards.len()), (Status::Pass, "", 0));
    assert!(view.sentence.contains("No findings."), "{}", view.sentence);
    for absent in ["id=\"findings\"", "id=\"lost\"", "id=\"demands\"", "id=\"unread\"", "id=\"drift\"", "next step"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert_eq!(view.inventory.rows.len(), 1, "equal hosts share a row");
}

#[test]
fn one_cause_on_many_hosts_is_one_card() {
    let mut hosts = vec![host("roce8"); 64];
    let (plan, none) = (planned(64, ""), BTreeMap::new());
    let before = seen(&plan, hosts.clone(), &none).0;
    for host in &mut hosts[..20] {
        host.rdma[3].ports[0].state = Some("DOWN".into());
    }
    let (view, page) = seen(&plan, hosts, &none);
    let cards: Vec<_> = view.cards.iter().filter(|card| !before.cards.contains(card)).collect();
    assert_eq!(cards.len(), 1, "{cards:#?}");
    assert_eq!((cards[0].check.as_str(), cards[0].hosts.as_str(), cards[0].of_hosts), ("port-state", "n[1-20]", 20));
    assert_eq!(view.status, Status::Fail);
    assert!(view.first.starts_with("port-state (n[1-20]): "), "{}", view.first);
    assert!(page.contains("n[1-20]") && page.contains(&cards[0].help.replace('/', "&#x2f;")[..20]));
}

#[test]
fn silence_is_told_and_is_no_pass() {
    let plan = planned(4, "[preflight]\nkernel = \"0.1\"\n");
    let lost = [("n3".to_owned(), gone().at("n3")), ("n4".to_owned(), gone().at("n4"))].into();
    let (view, page) = seen(&plan, vec![host("roce8"); 2], &lost);
    assert_eq!(view.status, Status::Fail, "the kernel is another one");
    let [gone] = view.lost.as_slice() else { panic!("{:?}", view.lost) };
    assert_eq!(gone.hosts, "n[3-4]");
    assert!(view.sentence.contains("2 of 4 hosts answered"), "{}", view.sentence);
    assert!(view.demands.rows[0][4].contains("not read: "), "{:?}", view.demands.rows);
    assert!(page.contains("The sections below do not cover these hosts."));
    // Nothing to object to on those that answered is still not known of the others.
    let (view, _) = seen(&planned(4, ""), vec![host("roce8"); 2], &lost);
    assert_eq!(view.status, Status::Inconclusive);
    assert!(!view.sentence.contains("No findings."), "{}", view.sentence);
    let (view, _) = seen(&planned(4, ""), Vec::new(), &lost);
    assert_eq!(view.status, Status::NotRun);
    assert!(!view.sentence.contains("No findings"), "{}", view.sentence);
}

#[test]
fn what_could_not_be_read_is_listed_once_for_all_hosts() {
    let mut hosts = vec![host("roce8"); 8];
    for host in &mut hosts {
        host.unreadable = [("serial numbers".to_owned(), "Permission <denied>".to_owned())].into();
    }
    let (view, page) = seen(&planned(8, ""), hosts, &BTreeMap::new());
    assert_eq!(view.unread.len(), 1);
    assert_eq!(view.unread[0].hosts, "n[1-8]");
    assert!(page.contains("Permission &lt;denied&gt;"));
}

#[test]
fn a_message_with_the_time_is_one_row_for_all_hosts() {
    let mut hosts = vec![host("roce8"); 8];
    for (at, host) in hosts.iter_mut().enumerate() {
        let why = format!("exit status: 1: 2026-11-26T11:07:{:02} [WARN/control] no socket", 16 + at / 3);
        host.unreadable = [("neighbours".to_owned(), why)].into();
    }
    hosts[7].unreadable = [("neighbours".to_owned(), "exit status: 127".to_owned())].into();
    let (view, page) = seen(&planned(8, ""), hosts, &BTreeMap::new());
    let rows: Vec<_> = view.unread.iter().map(|row| row.hosts.as_str()).collect();
    assert_eq!(rows, ["n8", "n[1-7]"], "{:?}", view.unread);
    assert!(page.contains("(the first one, verbatim)"));
}

/// A page with something in every section, to be seen in a browser.
pub fn page(dir: &Path) -> Option<std::path::PathBuf> {
    let mut hosts = vec![host("roce8"); 6];
    hosts[1].rdma[3].ports[0].state = Some("DOWN".into());
    hosts[2].kernel = "6.1.0".into();
    hosts[3].unreadable = [("serial numbers".to_owned(), "Permission denied".to_owned())].into();
    let lost = [("n7".to_owned(), gone().at("n7"))].into();
    let (_, page) = seen(&planned(7, "[preflight]\nkernel = \"6.1.0\"\n"), hosts, &lost);
    let path = dir.join("preflight.html");
    fs::write(&path, page).unwrap();
    Some(path)
}

#[test]
fn a_preflight_of_a_part_of_a_plan_says_so_beside_its_verdict() {
    let mut plan = planned(2, "");
    plan.subset = Some(plan::subset::Subset {
        hosts: Some(vec!["n1".to_owned(), "n2".to_owned()]),
        of_hosts: 3,
        tests: None,
        of_tests: vec!["bw".to_owned()],
        repeats: None,
        left_out: Vec::new(),
    });
    let (made, _) = seen(&plan, vec![host("roce8"); 2], &BTreeMap::new());
    let told = "Only part of the plan was checked: 2 of 3 hosts (n[1-2]). 2 of 2 hosts answered.";
    assert!(made.sentence.starts_with(told), "{}", made.sentence);
}
