//! What is shipped for containers and Kubernetes: manifests that Kubernetes takes, and a recipe from which an image comes out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{kubernetes::skipped, podman};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shipped manifests.
fn manifests() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join("deploy/kubernetes")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Holds manifests against Kubernetes' schemas; `None` where those cannot be had.
fn validated(files: &[PathBuf]) -> Option<Output> {
    let output = Command::new(root().join("tests/kubernetes/validate")).args(files).output().unwrap();
    if output.status.code() == Some(77) {
        skipped(&format!("deploy: {}", String::from_utf8_lossy(&output.stderr).trim()));
        return None;
    }
    Some(output)
}

#[test]
fn kubernetes_takes_the_manifests_and_they_give_what_agents_need() {
    let Some(output) = validated(&manifests()) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let of_kind = |kind: &str| objects.iter().filter(|one| one["kind"] == kind).collect::<Vec<_>>();
    let workloads: Vec<&Value> = ["DaemonSet", "Job"].iter().flat_map(|kind| of_kind(kind)).collect();
    assert_eq!(workloads.len(), 3);
    for workload in workloads {
        let template = &workload["spec"]["template"];
        let container = &template["spec"]["containers"][0];
        // What lifts the limit on locked memory does so for root alone.
        assert_eq!(container["securityContext"]["runAsUser"], 0);
        assert_eq!(container["securityContext"]["capabilities"]["add"], json!(["IPC_LOCK"]));
        assert_eq!(container["resources"]["limits"]["rdma/hca"], 1);
        // Without requests a pod is the first to be evicted, and gets what others leave of the processor.
        let requests = container["resources"]["requests"].as_object().unwrap();
        assert!(requests.contains_key("cpu") && requests.contains_key("memory"));
        // `sleep` reaps nobody.
        assert_eq!(template["spec"]["shareProcessNamespace"], true);
        // The label by which plans select the pods, also for who must not share a node.
        let labels = &template["metadata"]["labels"];
        assert_eq!(&workload["metadata"]["labels"], labels);
        let selector = match workload["kind"].as_str() {
            Some("Job") => {
                assert_eq!(workload["spec"]["completionMode"], "Indexed");
                let rules = &template["spec"]["affinity"]["podAntiAffinity"];
                &rules["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]["matchLabels"]
            }
            _ => {
                // Nodes without RDMA would have a pod that is pending for ever, and nodes with GPUs none.
                let place = &template["spec"];
                assert_eq!(place["nodeSelector"], json!({ "railgauge": "true" }));
                assert_eq!(place["tolerations"][0]["key"], "nvidia.com/gpu");
                &workload["spec"]["selector"]["matchLabels"]
            }
        };
        assert_eq!(selector, labels);
    }
    // What adds IPC_LOCK is refused at every other level.
    let labels = &of_kind("Namespace")[0]["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "privileged");
    let may = |resource: &str, verb: &str| {
        let holds = |list: &Value, what: &str| list.as_array().unwrap().iter().any(|one| one == what);
        let rules = of_kind("Role")[0]["rules"].as_array().unwrap();
        rules.iter().any(|rule| holds(&rule["resources"], resource) && holds(&rule["verbs"], verb))
    };
    assert!(may("pods", "list") && may("pods", "get") && may("pods/exec", "create") && may("pods/exec", "get"));
}

/// Each of these is one slip of somebody who edits a manifest.
#[test]
fn a_manifest_with_a_slip_is_refused() {
    let place = tempfile::tempdir().unwrap();
    for (file, right, wrong) in [
        ("job.yaml", "completionMode: Indexed", "completionMod: Indexed"),
        ("job.yaml", "completions: 4", "completions: four"),
        ("job.yaml", "topologyKey: kubernetes.io/hostname", "topology: kubernetes.io/hostname"),
        ("daemonset.yaml", "add: [\"IPC_LOCK\"]", "add: IPC_LOCK"),
        ("daemonset.yaml", "runAsUser: 0", "runAsUser: root"),
        ("daemonset.yaml", "limits:", "limit:"),
        ("daemonset-host-network.yaml", "hostNetwork: true", "hostNetwork: \"yes\""),
        ("namespace.yaml", "kind: Namespace", "kind: Namespce"),
        ("access.yaml", "verbs: [\"get\", \"list\"]", "verbs: get"),
    ] {
        let text = fs::read_to_string(root().join("deploy/kubernetes").join(file)).unwrap();
        assert!(text.contains(right), "{file}: {right}");
        let spoiled = place.path().join(file);
        fs::write(&spoiled, text.replacen(right, wrong, 1)).unwrap();
        let Some(output) = validated(&[spoiled]) else { return };
        assert_eq!(output.status.code(), Some(1), "{file}: {wrong} is taken");
    }
}

/// The recipe is built on a base of files of this machine, so that nothing is fetched.
#[test]
fn the_recipe_makes_an_image_whose_agents_are_found() {
    let place = tempfile::tempdir().unwrap();
    let base = format!("localhost/railgauge-base-{}", std::process::id());
    let image = format!("localhost/railgauge-image-{}", std::process::id());
    if let Err(why) = podman::import(place.path(), &base) {
        skipped(&format!("deploy: no image can be made here: {why}"));
        return;
    }
    // As the folder of a release has them.
    let release = place.path().join("release");
    fs::create_dir_all(release.join("bin")).unwrap();
    let agent = Path::new(env!("CARGO_BIN_EXE_railgauge")).with_file_name("../agent/railgauge-agent");
    fs::copy(&agent, release.join("bin/railgauge-agent")).unwrap();
    let recipe = root().join("deploy/Containerfile");
    let base_argument = format!("BASE={base}");
    let words =
        ["build", "--quiet", "--isolation=chroot", "--file", recipe.to_str().unwrap(), "--tag", &image, "--build-arg"];
    let more = ["--build-arg=PACKAGES=", release.to_str().unwrap()];
    let built = podman::done("podman", &[&words, &[base_argument.as_str()][..], &more].concat());
    let inside =
        built.and_then(|_| podman::in_image(&image, "sha256sum < /opt/railgauge/bin/railgauge-agent; echo $PATH"));
    let _ = podman::done("podman", &["rmi", "--force", &image, &base]);
    let inside = inside.unwrap();
    let sum = Command::new("sha256sum").arg(&agent).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(inside.starts_with(&sum) && inside.contains("/opt/railgauge/bin:"), "{inside}");
}
