//! `railgauge discover`: programs of the hosts, here scripts in PATH, become files that the plan can name.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{
    railgauge::{Scene, program},
    skip::skipped,
};
use serde_json::Value;

const PLAN: &str = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"gpu001\", \"gpu002\"] }\n\
                    [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n";

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Programs of these names and scripts, before all others in PATH.
fn programs(scene: &Scene, scripts: &[(&str, String)]) -> String {
    let folder = scene.path("bin");
    fs::create_dir_all(&folder).unwrap();
    for (name, script) in scripts {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

fn cat(path: &str) -> String {
    format!("cat {}", repository(path).display())
}

/// A host with an InfiniBand port, for agents that look there.
fn with_infiniband(scene: &Scene) -> PathBuf {
    let port = scene.path("root/sys/class/infiniband/mlx5_0/ports/1");
    fs::create_dir_all(&port).unwrap();
    fs::write(port.join("link_layer"), "InfiniBand\n").unwrap();
    scene.path("root")
}

fn topology(scene: &Scene, path: &str, root: Option<&Path>) -> Output {
    let mut command = program();
    command.args(["discover", "--json"]).arg(scene.write("plan.toml", PLAN)).env("PATH", path);
    if let Some(root) = root {
        command.env("RAILGAUGE_ROOT", root);
    }
    command.output().unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

const LLDP: &str = "model/src/topology/recorded/lldp.json";
const FABRIC: &str = "model/src/topology/recorded/fabric.txt";
const LFTS: &str = "model/src/topology/recorded/lfts.txt";

#[test]
fn what_hosts_tell_becomes_files_that_the_plan_can_name() {
    let scene = Scene::new();
    let check = "[ \"$LC_ALL\" = C ] || exit 9\n";
    let path = programs(
        &scene,
        &[("lldpcli", format!("{check}{}", cat(LLDP))), ("ibnetdiscover", cat(FABRIC)), ("dump_fts", cat(LFTS))],
    );
    let root = with_infiniband(&scene);
    let output = topology(&scene, &path, Some(&root));
    let told = document(&output);
    assert_eq!(output.status.code(), Some(0), "{told:#}");
    for (file, recorded) in
        [("lldp/gpu001.json", LLDP), ("lldp/gpu002.json", LLDP), ("fabric.txt", FABRIC), ("lfts.txt", LFTS)]
    {
        let written = fs::read_to_string(scene.path("topology").join(file)).unwrap();
        assert_eq!(written, fs::read_to_string(repository(recorded)).unwrap(), "{file}");
    }
    let lines: Vec<&str> = told["topology"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(lines[0], "[topology]");
    let plan = scene.write("with.toml", &format!("{PLAN}{}\n", lines.join("\n")));
    let checked = program().arg("check").arg(plan).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    // A second reading does not mix with the first.
    assert_eq!(topology(&scene, &path, Some(&root)).status.code(), Some(2));
}

/// Why the neighbours of the first host were not read: kind and remedy.
fn trouble(told: &Value) -> (&str, &str) {
    let lldp = told["not_read"].as_array().unwrap().iter().find(|one| one["key"] == "lldp").unwrap();
    (lldp["why"]["kind"].as_str().unwrap(), lldp["why"]["remedy"]["id"].as_str().unwrap())
}

#[test]
fn what_could_not_be_read_is_told_with_its_remedy_and_is_no_success() {
    for (script, kind, remedy) in [
        ("echo 'unable to connect to socket' >&2; exit 1", "configuration", "lldpd-answers"),
        ("exec sleep 30", "deadline", "run-tool-by-hand"),
        ("exec yes", "internal", "run-tool-by-hand"),
        ("echo '{\"hosts\": []}'", "internal", "run-tool-by-hand"),
    ] {
        let scene = Scene::new();
        let path = programs(&scene, &[("lldpcli", script.to_owned())]);
        let output = topology(&scene, &path, None);
        let told = document(&output);
        assert_eq!(trouble(&told), (kind, remedy), "{script}: {told:#}");
        assert_eq!(output.status.code(), Some(4), "{script}");
        assert!(!scene.path("topology").exists(), "{script}");
    }
    // Some of it is better than nothing, and is told as what it is.
    let scene = Scene::new();
    let path = programs(
        &scene,
        &[("lldpcli", "exit 1".into()), ("ibnetdiscover", cat(FABRIC)), ("dump_fts", "exit 1".into())],
    );
    let output = topology(&scene, &path, Some(&with_infiniband(&scene)));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(scene.path("topology/fabric.txt").exists() && !scene.path("topology/lfts.txt").exists());
    // Nobody next to a host is no success either.
    let scene = Scene::new();
    let path = programs(&scene, &[("lldpcli", "echo '{\"lldp\": {}}'".into())]);
    let output = topology(&scene, &path, None);
    assert_eq!((output.status.code(), trouble(&document(&output)).1), (Some(3), "switches-tell"));
}

#[test]
fn ports_in_another_subnet_are_no_success() {
    let scene = Scene::new();
    let path = programs(&scene, &[("lldpcli", cat(LLDP)), ("ibnetdiscover", cat(FABRIC)), ("dump_fts", cat(LFTS))]);
    let root = with_infiniband(&scene);
    let gids = root.join("sys/class/infiniband/mlx5_0/ports/1/gids");
    fs::create_dir_all(&gids).unwrap();
    for (guid, code) in [("0200:0000:0001:00b1", 0), ("0200:0000:00ff:00b1", 3)] {
        fs::write(gids.join("0"), format!("fe80:0000:0000:0000:{guid}\n")).unwrap();
        let output = topology(&scene, &path, Some(&root));
        let told = document(&output);
        assert_eq!(output.status.code(), Some(code), "{told:#}");
        let other: Vec<&Value> =
            told["not_read"].as_array().unwrap().iter().filter(|one| one["key"] == "ibnetdiscover").collect();
        let hosts: Vec<&str> = other.iter().map(|one| one["why"]["host"].as_str().unwrap()).collect();
        assert_eq!(hosts, if code == 0 { vec![] } else { vec!["gpu001", "gpu002"] });
        fs::remove_dir_all(scene.path("topology")).unwrap();
    }
}

/// The programs of infiniband-diags themselves, on a subnet that OpenSM brought up in ibsim.
#[test]
fn a_subnet_is_read_by_the_programs_of_a_host() {
    let scene = Scene::new();
    let on_subnet = |name: &str| {
        let environment = scene.path("subnet/environment");
        format!("PATH=${{PATH#*:}}:/usr/sbin exec env $(cat {}) {name} \"$@\"", environment.display())
    };
    let path = programs(
        &scene,
        &[
            ("lldpcli", "exit 1".into()),
            ("ibnetdiscover", on_subnet("ibnetdiscover")),
            ("dump_fts", on_subnet("dump_fts")),
        ],
    );
    let mut command = Command::new("python3");
    command.arg(repository("bench/railgauge_bench/subnet.py")).arg(scene.path("subnet")).args(["--hosts", "16"]);
    command.args(["--radix", "8", "--then", "env"]).arg(format!("PATH={path}"));
    command.arg(format!("RAILGAUGE_ROOT={}", with_infiniband(&scene).display()));
    let chosen = program();
    command.envs(chosen.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.arg(chosen.get_program()).args(["discover", "--json"]).arg(scene.write("plan.toml", PLAN));
    let output = match command.output() {
        Err(error) => return skipped(&format!("python3 does not start: {error}")),
        // The subnet's program says that it lacks what it needs.
        Ok(output) if output.status.code() == Some(77) => {
            return skipped(String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output) => output,
    };
    // LLDP has nothing to tell of hosts with InfiniBand only.
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(document(&output)["topology"].as_array().unwrap().len(), 3);
    let text = |path: &str| fs::read_to_string(scene.path(path)).unwrap();
    // ibnetdiscover's second line is the time.
    let cables =
        |text: String| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cables(text("topology/fabric.txt")), cables(text("subnet/fabric.txt")));
    assert_eq!(text("topology/lfts.txt"), text("subnet/lfts.txt"));
}
