//! A kit of two virtual hosts with Soft-RoCE, over ssh.

use std::fs;

use crate::{
    fixture_of_kit::fixtures,
    lab::{self, borrow},
    railgauge as program,
    railgauge::Scene,
    read_kit::read,
};
use railgauge::kit::archive::Item;
use serde_json::Value;

#[test]
#[ignore = "rate: the tests have usual time limits, which busy virtual hosts exceed"]
fn a_kit_over_soft_roce_names_no_host_and_no_address() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        let scene = Scene::new();
        let text = format!(
            "name = \"kit\"\n[launch]\nvia = \"ssh\"\ntimeout = \"60s\"\n[launch.ssh]\nconfig = \"{}\"\n[hosts]\nnames = [\"lab[1-2]\"]\ndevices = [\"rxe0\"]\ntcp = [\"eth1\"]\n[[test]]\n\
             name = \"verbs\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\nsizes = \"64KiB\"\nmeasure = \"1s\"\n",
            lab.ssh_config().display()
        );
        let plan = scene.write("plan.toml", &text);
        let mut command = program::program();
        command.arg("bundle").arg(plan).arg("-o").arg(scene.path("x.tar.gz")).arg("--anonymize");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
        let (manifest, items) = read(fs::File::open(scene.path("x.tar.gz")).unwrap()).unwrap();
        let document = |path: &str| -> Value {
            let Some(Item::File(bytes)) = items.get(path) else { panic!("{path} of {:?}", items.keys()) };
            serde_json::from_slice(bytes).unwrap()
        };
        // Soft-RoCE was tested before.
        let verdicts = document("run/verdicts.json");
        assert!(verdicts["cases"]["measured"].as_u64().unwrap() > 0, "{:#}", verdicts["cases"]);
        assert!(verdicts.get("drivers_never_run").is_none());
        let made = fixtures(&manifest, &items).unwrap();
        assert!(made.iter().all(|host| host.drivers == ["rdma_rxe"]), "{made:?}");
        for (path, item) in &items {
            if let Item::File(bytes) = item {
                let text = String::from_utf8_lossy(bytes);
                assert!(!text.contains("10.77.0.") && !text.contains("0a4d:0001") && !text.contains("lab1"), "{path}");
            }
        }
    });
}
