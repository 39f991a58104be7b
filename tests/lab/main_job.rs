//! The main job on the lab: four hosts over SSH, RDMA over Soft-RoCE, from plan to report.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{
    browser,
    lab::{self, Borrowed, borrow, left_out, read},
    railgauge::{Row, Scene},
};

fn four_hosts() -> Option<Borrowed> {
    borrow()
}

/// A plan of the repository, with the lab of the tests in place of a user's, and with fewer sizes: a case takes interpreted hosts
/// more than a second.
fn plan(lab: &Borrowed, scene: &Scene, name: &str, fewer: &[(&str, &str)]) -> PathBuf {
    let mut original = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("plans").join(name));
    let theirs = "/var/tmp/railgauge-lab/ssh_config";
    assert!(original.contains(theirs), "{name} does not name {theirs}");
    for (all, some) in fewer {
        assert!(original.contains(all), "{name} does not have {all}");
        original = original.replace(all, some);
    }
    // Interpreted hosts on a busy machine are away for seconds.
    let patient = original.replacen("[defaults]\n", "[defaults]\ndeadline = \"60s\"\n", 1);
    scene.write(name, &patient.replace(theirs, &lab.ssh_config().display().to_string()))
}

/// Every planned case has a row for every metric of its test, measured, verified, and truly by RDMA. Rows of further
/// cases that confirm a suspect are left out: whether hosts that share two cores are suspect is chance.
#[track_caller]
fn every_case_is_measured(scene: &Scene) -> Vec<Row> {
    let results = scene.results();
    let rows: Vec<Row> = results.rows().into_iter().filter(|row| row.phase == "test").collect();
    let mut of_case: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        of_case.entry(row.case).or_default().push(row);
    }
    assert_eq!(of_case.keys().copied().collect::<BTreeSet<_>>(), results.planned());
    for row in &rows {
        // An interpreted host may come to one operation in a window, which has no deviation.
        if row.metric != "latency_stdev" || row.value.is_some() {
            assert!(row.value.is_some_and(|value| value > 0.0) && row.error.is_none(), "{row:?}");
        }
        assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
        assert_eq!((row.transport.as_str(), row.link_layer.as_str()), ("verbs-rc", "roce-v2"), "{row:?}");
        assert!(row.src != row.dst && row.src_device.starts_with("rxe") && row.dst_device.starts_with("rxe"));
    }
    rows
}

fn pairs(rows: &[Row]) -> BTreeSet<(&str, &str)> {
    rows.iter().map(|row| if row.src < row.dst { (&*row.src, &*row.dst) } else { (&*row.dst, &*row.src) }).collect()
}

#[test]
fn a_tournament_of_four_hosts_and_its_report_in_a_browser() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        scene.start(&plan(&lab, &scene, "lab-4.toml", &[("KiB x2", "KiB x8")])).end().expect(0);

        let rows = every_case_is_measured(&scene);
        for (test, metric) in
            [("write-bandwidth", "bandwidth"), ("write-latency", "latency_p50"), ("read-bandwidth", "bandwidth")]
        {
            let rows: Vec<Row> = rows.iter().filter(|row| row.test == test && row.metric == metric).cloned().collect();
            assert_eq!(pairs(&rows).len(), 6, "{test}");
            let sizes: BTreeSet<u64> = rows.iter().map(|row| row.size).collect();
            assert_eq!(sizes.len(), 4, "{test}: {sizes:?}");
            assert_eq!(rows.len(), 6 * sizes.len(), "{test}: one row per case and metric");
        }
        let verdicts = scene.results().verdicts();
        assert_eq!(verdicts["status"], "pass", "{verdicts}");
        for name in ["plan.toml", "facts.json", "records.jsonl", "junit.xml", "report.html"] {
            assert!(scene.results().path(name).metadata().unwrap().len() > 0, "{name}");
        }
        // Where nobody had anything to say, it is empty.
        assert!(scene.results().path("log.txt").exists());
        seen(&scene);
    });
}

/// The report says what it must, with nothing broken, on a desk and on a phone.
fn seen(scene: &Scene) {
    let browser = match browser::browser() {
        Ok(browser) => browser,
        Err(reason) => return left_out(&format!("the report was not seen in a browser: {reason}")),
    };
    let page = scene.results().path("report.html");
    for (name, width) in [("desk", 1280), ("phone", 390)] {
        let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-report-{name}.png"));
        let seen = browser::look(browser, &page, width, &picture);
        assert!(seen.console.is_empty(), "{:?}", seen.console);
        for host in 1..=4 {
            assert!(seen.dom.contains(&format!("lab{host}")));
        }
        let dom = seen.dom.to_lowercase();
        for words in ["soft-roce", "roce v2", "rxe0", "pass", "<svg", "write-latency"] {
            assert!(dom.contains(words), "the page has no `{words}`");
        }
        assert!(picture.metadata().unwrap().len() > 20_000, "{}", picture.display());
    }
}

#[test]
fn two_rails_at_once_and_across() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        scene
            .start(&plan(
                &lab,
                &scene,
                "lab-2-rails.toml",
                &[("lab[1-4]", "lab[1-3]"), ("256KiB x4", "256KiB x64"), ("[8, \"4KiB\"]", "[8]")],
            ))
            .end()
            .expect(0);
        let rows = every_case_is_measured(&scene);
        let devices = |test: &str| -> BTreeSet<(&str, &str)> {
            let rows = rows.iter().filter(|row| row.test == test);
            rows.map(|row| (&*row.src_device, &*row.dst_device)).collect()
        };
        assert_eq!(devices("both-rails"), BTreeSet::from([("rxe0", "rxe0"), ("rxe1", "rxe1")]));
        let all = BTreeSet::from([("rxe0", "rxe0"), ("rxe0", "rxe1"), ("rxe1", "rxe0"), ("rxe1", "rxe1")]);
        assert_eq!(devices("across-rails"), all);
    });
}

#[test]
fn three_hosts_at_once_into_one() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        scene.start(&plan(&lab, &scene, "lab-incast.toml", &[])).end().expect(0);
        // Nothing is called contaminated, though the receiver's NIC carries three flows and their acknowledgements.
        let rows = every_case_is_measured(&scene);
        let values = |test: &str, metric: &str| -> Vec<f64> {
            let rows = rows.iter().filter(|row| row.test == test && row.metric == metric);
            rows.filter_map(|row| row.value).collect()
        };
        let (flows, ingress) = (values("incast", "bandwidth"), values("incast", "ingress_bandwidth"));
        assert_eq!((flows.len(), ingress.len()), (3, 1));
        assert!((ingress[0] / flows.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{ingress:?} {flows:?}");
        // A processor is the limit here, the sender's or the receiver's: three senders bring as much as one at least,
        // less the lab's noise, and three times as much at most.
        let mut alone = values("alone", "bandwidth");
        alone.sort_by(f64::total_cmp);
        let share = ingress[0] / alone[1];
        println!("incast of three: {flows:.4?}, together {:.4} Gb/s; one sender: {alone:.4?}", ingress[0]);
        assert!((0.5..4.0).contains(&share), "together {} Gb/s, one sender {} Gb/s", ingress[0], alone[1]);
    });
}
