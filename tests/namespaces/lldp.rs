//! Swapped rails, found by agents alone: hosts and leaves are network namespaces with a real lldpd each, and no file tells the plan
//! of any cable.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use crate::{
    railgauge::{Scene, program},
    skip::skipped,
};
use serde_json::Value;

const HOSTS: usize = 4;
/// Exit code of a program that lacks what it needs.
const UNAVAILABLE: i32 = 77;

fn executable(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What makes a namespace a host: the way in, its lldpcli that knows the socket of its lldpd, and two RDMA devices on its interfaces.
fn hosts(place: &Path) {
    let at = place.display();
    executable(
        &place.join("enter"),
        &format!(
            "host=$1; shift\n\
             space=$(sed -n \"s/^$host \\([^ ]*\\) .*/\\1/p\" {at}/out/spaces)\n\
             exec ip netns exec \"$space\" env PATH=\"{at}/bin/$host:$PATH\" RAILGAUGE_ROOT=\"{at}/root/$host\" \"$@\""
        ),
    );
    for host in (1..=HOSTS).map(|host| format!("gpu{host:03}")) {
        executable(
            &place.join("bin").join(&host).join("lldpcli"),
            &format!(
                "socket=$(sed -n 's/^{host} [^ ]* //p' {at}/out/spaces)\nPATH=${{PATH#*:}} exec lldpcli -u \"$socket\" \"$@\""
            ),
        );
        for rail in 0..2 {
            let port = place.join(format!("root/{host}/sys/class/infiniband/mlx5_{rail}/ports/1"));
            for (file, text) in [
                ("state", "4: ACTIVE".to_owned()),
                ("link_layer", "Ethernet".to_owned()),
                ("gids/0", format!("fe80:0000:0000:0000:0000:00ff:fe00:000{rail}")),
                ("gid_attrs/types/0", "RoCE v2".to_owned()),
                ("gid_attrs/ndevs/0", format!("ens{rail}np0")),
            ] {
                fs::create_dir_all(port.join(file).parent().unwrap()).unwrap();
                fs::write(port.join(file), text + "\n").unwrap();
            }
        }
    }
}

/// Runs a script while the daemons run, with these arguments of `neighbours.py`. `None` where they cannot run.
fn among_neighbours(scene: &Scene, arguments: &[&str], script: &Path) -> Option<Output> {
    let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/railgauge_bench/neighbours.py");
    let mut command = Command::new("python3");
    command.arg(maker).arg(scene.path("out")).args(["--hosts", "4", "--rails", "2"]).args(arguments);
    command.arg("--then").arg(script);
    // Where the agent is that `program` chose.
    let chosen = program();
    command.envs(chosen.get_envs().filter_map(|(name, value)| Some((name, value?))));
    match command.output() {
        Err(error) => {
            skipped(&format!("python3 does not start: {error}"));
            None
        }
        Ok(output) if output.status.code() == Some(UNAVAILABLE) => {
            skipped(String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Ok(output) => Some(output),
    }
}

fn json(path: &Path, output: &Output) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_default()).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn a_swap_is_found_by_agents_alone_and_by_the_files_they_write() {
    let scene = Scene::new();
    hosts(&scene.path(""));
    let plan = format!(
        "name = \"lldp\"\nlaunch = {{ via = \"command\", command = [\"{}\", \"{{host}}\"] }}\n\
         hosts = {{ names = [\"gpu[001-004]\"] }}\n\
         [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\n",
        scene.path("enter").display()
    );
    let plan = scene.write("plan.toml", &plan);
    let (at, program) = (scene.path(""), env!("CARGO_BIN_EXE_railgauge"));
    let (at, plan) = (at.display(), plan.display());
    let script = scene.path("then");
    executable(
        &script,
        &format!(
            "{program} preflight --json {plan} > {at}/preflight.json\n\
             {program} discover --json -o {at}/topology {plan} > {at}/topology.json || exit $?\n"
        ),
    );
    let Some(output) = among_neighbours(&scene, &["--swap", "3"], &script) else { return };
    assert!(output.status.success(), "{output:?}");

    let preflight = json(&scene.path("preflight.json"), &output);
    let heard = &preflight["facts"]["gpu001"]["neighbours"][0];
    assert_eq!((heard["interface"].as_str(), heard["name"].as_str()), (Some("ens0np0"), Some("leaf1")), "{heard:#}");
    let findings = preflight["findings"].as_array().unwrap();
    let of_cables: Vec<&Value> =
        findings.iter().filter(|one| one["check"] == "cabling" && one["severity"] == "warning").collect();
    let [swap] = of_cables.as_slice() else { panic!("{of_cables:#?}\n{output:?}") };
    assert_eq!(swap["hosts"], serde_json::json!(["gpu003"]));
    let what = swap["what"].as_str().unwrap();
    for word in ["swapped", "mlx5_0", "mlx5_1", "leaf1 port Ethernet3", "leaf2 port Ethernet3"] {
        assert!(what.contains(word), "{what}");
    }

    let told = json(&scene.path("topology.json"), &output);
    assert_eq!(told["read"].as_array().unwrap().len(), HOSTS, "{told:#}");
    let text = |path: &str| fs::read_to_string(scene.path(path)).unwrap();
    assert!(text("topology/lldp/gpu003.json").contains("\"leaf1\""));
}
