//! A kernel of many clusters of today: Linux 6.1, whose Soft-RoCE sends much again.

use serde_json::Value;

use crate::{
    lab::{self, Shape, borrow_shaped},
    railgauge::Scene,
};

#[test]
#[ignore = "slow: another kernel is fetched and booted"]
fn every_operation_between_two_hosts_of_linux_6_1() {
    lab::sound(|| {
        let shape = Shape { hosts: 2, nics: 1, arm: None, kernel: Some("6.1") };
        let Some(lab) = borrow_shaped(shape) else { return };
        let scene = Scene::new();
        let test = |op: &str, metric: &str, window: &str| {
            format!("[[test]]\nop = {op:?}\nmetric = {metric:?}\nsizes = 8\nmeasure = {window:?}\n")
        };
        let latency =
            ["write", "read", "send", "atomic_fadd", "atomic_cas"].map(|op| test(op, "latency", "20 iterations"));
        let bandwidth = ["write", "read", "send"].map(|op| test(op, "bandwidth", "200ms"));
        let plan = format!(
            r#"
            name = "old-kernel"
            [launch]
            via = "ssh"
            timeout = "60s"
            [launch.ssh]
            config = "{}"
            [hosts]
            names = ["lab[1-2]"]
            devices = ["rxe0"]
            [localise]
            waive = ["all"]
            [defaults]
            warm_up = "1ms"
            deadline = "60s"
            [defaults.knobs]
            completion = "events"
            timeout = 20
            {}{}
            "#,
            lab.ssh_config().display(),
            latency.concat(),
            bandwidth.concat()
        );
        scene.start(&scene.write("plan.toml", &plan)).end().expect(0);
        let rows = scene.results().rows();
        assert!(!rows.is_empty());
        for row in &rows {
            assert!(row.value.is_some_and(f64::is_finite) && row.error.is_none(), "{row:?}");
            assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
            assert_eq!((row.transport.as_str(), row.link_layer.as_str()), ("verbs-rc", "roce-v2"), "{row:?}");
        }
        let facts: Value = serde_json::from_str(&lab::read(&scene.results().path("facts.json"))).unwrap();
        assert!(facts["lab1"]["kernel"].as_str().unwrap().starts_with("6.1."), "{:#}", facts["lab1"]);
        assert!(scene.results().outcomes().iter().all(|outcome| outcome["link"]["software"] == true));
    });
}
