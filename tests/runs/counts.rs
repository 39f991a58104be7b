//! What honest ends count agrees, and each direction is counted once: local agents over TCP.

use crate::railgauge::Scene;

#[test]
fn both_ends_count_the_same_of_every_kind_of_test() {
    let scene = Scene::new();
    let mut text = "name = \"counts\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a\", \"b\"] }\nlocalise = { waive = [\"all\"] }\n\
                    [defaults]\ntransport = \"tcp\"\nwarm_up = \"2ms\"\nrepeats = 2\n"
        .to_owned();
    for (part, measure) in ["30 iterations", "40ms"].into_iter().enumerate() {
        let all = [
            "op = \"write\"\nmetric = \"bandwidth\"\nbidirectional = true\nqps = [1, 3]",
            "op = \"read\"\nmetric = \"bandwidth\"\nqps = [1, 3]",
            "op = \"send\"\nmetric = \"latency\"",
            "op = \"read\"\nmetric = \"latency\"",
        ];
        for (kind, keys) in all.into_iter().enumerate() {
            text +=
                &format!("[[test]]\nname = \"t{part}{kind}\"\n{keys}\nsizes = [8, 70000]\nmeasure = \"{measure}\"\n");
        }
    }
    let plan = scene.write("plan.toml", &text);
    scene.start(&plan).end().expect(0);
    let mut directions = 0;
    for outcome in scene.results().outcomes() {
        let sample = &outcome["result"]["Ok"];
        let [here, there] = ["initiator", "responder"].map(|end| &sample[end]);
        if here["received"].is_null() {
            assert_eq!(here["operations"], there["operations"], "{outcome}");
        } else {
            assert_eq!([&here["received"], &there["received"]], [&there["bytes"], &here["bytes"]], "{outcome}");
            // 30 on one stream or on three.
            directions += usize::from([30, 90].iter().any(|n| here["operations"] == *n && there["operations"] == *n));
        }
    }
    assert_eq!(directions, 2 * 2 * 2);
}
