//! `via = "kubectl"`: what `kubectl exec` does to streams in every way that is known, with a double of kubectl, and with a real one
//! and a double of the API server. `via = "podman"`: real containers.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    kubernetes::{self, Cluster, Front, fronts},
    podman,
    railgauge::{Running, Scene, program},
};
use serde_json::{Value, json};

/// Text in the words of the process that becomes the agent, and in those that take its file.
const AGENT: &str = "exec \"$1\"";
const STORE: &str = "head -c";
const THREE: [(&str, &str); 3] = [("rg-a", "n1"), ("rg-b", "n2"), ("rg-c", "n3")];

/// A plan of so many cases on what `hosts` says.
fn plan(via: &str, hosts: &str, cases: usize, measure: &str) -> String {
    format!(
        "name = \"in-containers\"\nlaunch = {{ via = \"{via}\", timeout = \"60s\", retries = 0 }}\nhosts = {hosts}\n\
         localise = {{ confirm = false, waive = [\"all\"] }}\n[[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \
         \"tcp\"\npattern = \"ring\"\nsizes = \"1KiB\"\nrepeats = {cases}\nmeasure = \"{measure}\"\nwarm_up = \"10ms\"\n"
    )
}

const SELECTED: &str = "{ kubectl = { selector = \"app=rg\", pods = 3 } }";

fn run(cluster: &Cluster, scene: &Scene, plan: &str) -> Running {
    let path = scene.write("plan.toml", plan);
    let mut command = program();
    command.args(["run", "-o"]).arg(scene.run_directory()).arg(path);
    scene.spawn(cluster.on(command), "run")
}

/// What the run says of a host that it lost.
fn lost(scene: &Scene, host: &str) -> Option<Value> {
    let journal = scene.results().journal();
    journal.iter().map(|line| line["event"]["HostLost"].clone()).find(|lost| lost["host"] == host)
}

/// Demands that a host is lost for this reason: the id of its remedy, and words of its cause.
#[track_caller]
fn is_lost_for(scene: &Scene, host: &str, remedy: &str, words: &str) {
    let told = lost(scene, host).unwrap_or_else(|| panic!("{host} is not lost")).to_string();
    assert!(told.contains(&format!("\"id\":\"{remedy}\"")) && told.contains(words), "{remedy}, {words}: {told}");
}

/// Time within which a host is given up, on however busy a machine.
const GIVEN_UP: Duration = Duration::from_secs(180);

/// Waits until a host is given up.
#[track_caller]
fn until_lost(scene: &Scene, host: &str) {
    let end = Instant::now() + GIVEN_UP;
    while lost(scene, host).is_none() {
        assert!(Instant::now() < end, "{host} is never given up");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn pods_that_a_selector_finds_are_hosts_with_the_names_of_their_nodes() {
    for front in fronts() {
        let cluster = Cluster::start(front, &THREE);
        let scene = Scene::new();
        let path = scene.write("plan.toml", &plan("kubectl", SELECTED, 1, "20000 iterations"));
        let mut command = program();
        command.args(["run", "-o"]).arg(scene.run_directory()).arg(path);
        // Three megabytes through the API server, whole.
        command.env("RAILGAUGE_AGENT", cluster.agent_to_send());
        let ended = scene.spawn(cluster.on(command), "run").end();
        ended.expect(0);
        let resolved = &scene.results().journal()[0]["event"]["Started"]["resolved"];
        let hosts = resolved["hosts"].as_array().unwrap().iter();
        let hosts: Vec<(&str, &str)> =
            hosts.map(|host| (host["name"].as_str().unwrap(), host["address"].as_str().unwrap())).collect();
        assert_eq!(hosts, [("n1", "rg-a"), ("n2", "rg-b"), ("n3", "rg-c")], "{front:?}");
        assert_eq!(scene.results().measured().len(), scene.results().planned().len(), "{front:?}");
        cluster.is_left_empty();
        assert_eq!(cluster.left_in("rg-a"), [""; 0], "{front:?}");
    }
}

/// What preflight says of hosts of which some do not come up.
#[track_caller]
fn preflight(cluster: &Cluster, scene: &Scene, plan: &str) -> Value {
    let path = scene.write("plan.toml", plan);
    let mut command = program();
    command.args(["preflight", "--json"]).arg(path).env("RAILGAUGE_AGENT", cluster.agent_to_send());
    let output = cluster.on(command).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// kubectl 1.32 drops what the API server says before kubectl is ready for it (kubernetes#131189). That is no cut stream.
#[test]
fn what_kubectl_drops_is_asked_for_again() {
    for front in fronts() {
        let names = ["ok-a", "ok-b", "once", "always"];
        let cluster = Cluster::start(front, &names.map(|name| (name, "n1")));
        cluster.ways(&json!({"once": {"no-shell": true, "dropped": 1}, "always": {"no-shell": true, "dropped": 9}}));
        let hosts = format!("{{ names = {} }}", serde_json::to_string(&names).unwrap());
        let text = plan("kubectl", &hosts, 1, "20000 iterations").replace("retries = 0", "retries = 2");
        let told = preflight(&cluster, &Scene::new(), &text);
        let once = &told["lost"]["once"];
        assert!(once["cause"].as_str().unwrap().contains("executable file not found"), "{front:?} {once:#}");
        let always = &told["lost"]["always"];
        assert_eq!(always["remedy"]["id"], "kubectl-by-hand", "{front:?} {always:#}");
        assert!(always["cause"].as_str().unwrap().contains("(tried 3 times)"), "{front:?} {always:#}");
        assert_eq!(told["lost"].as_object().unwrap().len(), 2, "{front:?}");
    }
}

/// Each pod has another fault, and the words of kubectl are in the cause.
#[test]
fn pods_that_do_not_come_up_are_reported_in_the_words_of_kubectl() {
    for front in fronts() {
        let names =
            ["ok-a", "ok-b", "forbidden", "gone", "no-kubelet", "no-shell", "short", "cut", "pending", "evicted"];
        let cluster = Cluster::start(front, &[]);
        let status = |name: &str| match name {
            "pending" => json!({ "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/9 nodes are available: 9 Insufficient rdma/hca."}] }),
            "evicted" => {
                json!({ "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." })
            }
            _ => json!({ "phase": "Running" }),
        };
        let pods: Vec<_> =
            names.iter().filter(|name| **name != "gone").map(|name| (*name, "n1", status(name))).collect();
        cluster.statuses(&pods);
        cluster.ways(&json!({
            "forbidden": {"refuse": "forbidden"},
            "no-kubelet": {"refuse": "kubelet-gone"},
            "no-shell": {"no-shell": true},
            "short": {"of": STORE, "stdin": 100_000},
            // In the middle of a line of the first answer.
            "cut": {"of": AGENT, "stdout": 40, "then": "cut"},
        }));
        let scene = Scene::new();
        let hosts = format!("{{ names = {} }}", serde_json::to_string(&names).unwrap());
        // A real kubectl may drop what the API server says at once (kubernetes#131189); another try hears it.
        let text = plan("kubectl", &hosts, 1, "20000 iterations").replace("retries = 0", "retries = 2");
        let told = preflight(&cluster, &scene, &text);
        for (host, words) in [
            ("forbidden", "is forbidden"),
            ("gone", "not found"),
            ("no-kubelet", "error dialing backend"),
            ("no-shell", "executable file not found"),
            ("short", "arrived damaged"),
            ("cut", "host inspection failed"),
            ("pending", "does not have a host assigned"),
            ("evicted", "completed pod"),
        ] {
            let failure = &told["lost"][host];
            assert_eq!(
                (&failure["stage"], &failure["remedy"]["id"]),
                (&json!("deploy"), &json!("kubectl-by-hand")),
                "{front:?} {failure:#}"
            );
            assert!(failure["cause"].as_str().unwrap().contains(words), "{front:?} {failure:#}");
        }
        assert_eq!(told["lost"].as_object().unwrap().len(), 8, "{front:?}");
        cluster.is_left_empty();
    }
}

#[test]
fn a_stream_that_is_cut_in_the_middle_of_a_frame_is_a_lost_host_whatever_kubectl_says() {
    for front in fronts() {
        for then in ["cut", "abort"] {
            let cluster = Cluster::start(front, &THREE);
            // The greeting and its answer are some hundred bytes; the facts of this machine are thousands.
            cluster.ways(&json!({ "rg-b": {"of": AGENT, "stdout": 2500, "then": then} }));
            let scene = Scene::new();
            let ended = run(&cluster, &scene, &plan("kubectl", SELECTED, 1, "20000 iterations")).end();
            ended.expect(3);
            is_lost_for(&scene, "n2", "kubectl-by-hand", "ended before the process in it");
            assert!(lost(&scene, "n1").is_none() && lost(&scene, "n3").is_none());
            cluster.is_left_empty();
        }
    }
}

/// What is between kubectl and the process does not close its input (moby#9098): the agent is ended by another process.
#[test]
fn an_agent_that_is_not_told_of_the_cut_is_ended() {
    let cluster = Cluster::start(Front::Double, &THREE);
    cluster.ways(&json!({ "rg-b": {"of": AGENT, "stdout": 2500, "then": "cut", "orphan": true} }));
    let scene = Scene::new();
    run(&cluster, &scene, &plan("kubectl", SELECTED, 1, "20000 iterations")).end().expect(3);
    is_lost_for(&scene, "n2", "kubectl-by-hand", "ended before the process in it");
    cluster.is_left_empty();
}

/// The stream is cut while the agent is sent, and the process in the pod sees no end of its input, or sees it.
#[test]
fn a_cut_while_the_agent_is_sent_leaves_nothing_in_the_pod() {
    for front in fronts() {
        for then in ["cut", "abort"] {
            let cluster = Cluster::start(front, &THREE);
            let way = json!({"of": STORE, "stdin": 100_000, "then": then});
            let orphan = json!({"of": STORE, "stdin": 100_000, "then": then, "orphan": true});
            cluster.ways(&json!({ "rg-a": way, "rg-b": orphan }));
            let scene = Scene::new();
            let path = scene.write("plan.toml", &plan("kubectl", SELECTED, 1, "20000 iterations").replace("60s", "6s"));
            let mut command = program();
            command.args(["preflight", "--json"]).arg(path).env("RAILGAUGE_AGENT", cluster.agent_to_send());
            let output = cluster.on(command).output().unwrap();
            let told: Value = serde_json::from_slice(&output.stdout).unwrap();
            for host in ["n1", "n2"] {
                let failure = &told["lost"][host];
                assert_eq!(
                    (&failure["stage"], &failure["remedy"]["id"]),
                    (&json!("deploy"), &json!("kubectl-by-hand"))
                );
            }
            // The time of a try is over by then.
            cluster.is_left_empty();
            assert_eq!((cluster.left_in("rg-a"), cluster.left_in("rg-b")), (vec![], vec![]), "{front:?} {then}");
        }
    }
}

/// A controller that is killed says no goodbye, and a second Ctrl-C waits for none.
#[test]
fn a_controller_that_ends_at_once_leaves_nothing_in_pods() {
    for front in fronts() {
        for code in [None, Some(130)] {
            let cluster = Cluster::start(front, &THREE);
            let scene = Scene::new();
            let mut running = run(&cluster, &scene, &plan("kubectl", SELECTED, 40, "300ms"));
            running.wait_for_outcomes(1);
            assert!(!cluster.processes().is_empty());
            match code {
                None => {
                    running.send("-KILL");
                    assert_eq!(running.end().status.code(), None, "{front:?}");
                }
                Some(code) => running.send_until_end("-INT").expect(code),
            }
            cluster.is_left_empty();
            // What the controller could not take away the next run does.
            let next = Scene::new();
            run(&cluster, &next, &plan("kubectl", SELECTED, 1, "20000 iterations")).end().expect(0);
            assert_eq!(cluster.left_in("rg-a"), [""; 0], "{front:?} {code:?}");
        }
    }
}

/// A case takes longer than the time after which an idle stream is cut.
#[test]
fn questions_keep_idle_streams_from_being_cut() {
    for (idle, code) in [(8, 0), (2, 3)] {
        let cluster = Cluster::start(Front::Double, &THREE);
        let way = json!({"of": AGENT, "idle": idle, "then": "cut"});
        cluster.ways(&json!({ "rg-a": way, "rg-b": way, "rg-c": way }));
        let scene = Scene::new();
        let ended = run(&cluster, &scene, &plan("kubectl", SELECTED, 1, "12s")).end();
        ended.expect(code);
    }
}

#[test]
fn a_stream_in_which_nothing_moves_any_more_is_a_lost_host() {
    let cluster = Cluster::start(Front::Double, &THREE);
    let scene = Scene::new();
    let mut running = run(&cluster, &scene, &plan("kubectl", SELECTED, 20, "500ms"));
    running.wait_for_outcomes(1);
    cluster.ways(&json!({ "rg-b": {"of": AGENT, "now": "hang"} }));
    until_lost(&scene, "n2");
    is_lost_for(&scene, "n2", "kubectl-by-hand", "nothing comes from the pod rg-b");
    running.end().expect(3);
    cluster.is_left_empty();
}

#[test]
fn a_pod_that_goes_away_during_the_run_is_named() {
    for front in fronts() {
        let cluster = Cluster::start(front, &THREE);
        let scene = Scene::new();
        let mut running = run(&cluster, &scene, &plan("kubectl", SELECTED, 40, "5000 iterations"));
        running.wait_for_outcomes(1);
        // It must not end before its pods do.
        running.send("-STOP");
        let running_pod = |name, node| (name, node, json!({ "phase": "Running" }));
        let evicted =
            json!({ "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." });
        cluster.statuses(&[running_pod("rg-a", "n1"), ("rg-b", "n2", evicted)]);
        cluster.ways(&json!({ "rg-b": {"of": AGENT, "now": "kill"}, "rg-c": {"of": AGENT, "now": "kill"} }));
        running.send("-CONT");
        until_lost(&scene, "n2");
        until_lost(&scene, "n3");
        is_lost_for(&scene, "n2", "container-killed", "the process in the pod rg-b was killed");
        is_lost_for(&scene, "n3", "container-killed", "the process in the pod rg-c was killed");
        running.end().expect(3);
        // The DaemonSet has made them anew: the run goes on with the same nodes.
        cluster.ways(&json!({}));
        cluster.pods(&[("rg-a", "n1"), ("rg-x", "n2"), ("rg-y", "n3")]);
        let mut again = program();
        again.args(["run", "--resume"]).arg(scene.run_directory());
        scene.spawn(cluster.on(again), "again").end().expect(0);
        assert_eq!(scene.results().measured().len(), scene.results().planned().len());
    }
}

#[test]
fn a_run_is_not_taken_up_again_with_pods_of_other_nodes() {
    let cluster = Cluster::start(Front::Double, &THREE);
    let scene = Scene::new();
    let mut running = run(&cluster, &scene, &plan("kubectl", SELECTED, 12, "300ms"));
    running.wait_for_outcomes(1);
    running.kill();
    let before = scene.results().journal().len();
    for (pods, words) in [
        ([("rg-x", "n1"), ("rg-y", "n1"), ("rg-c", "n3")], "several pods run on the node n1 (rg-x, rg-y)"),
        ([("rg-a", "n9"), ("rg-b", "n2"), ("rg-c", "n3")], "the pod rg-a was on the node n1 and is on n9 now"),
    ] {
        cluster.pods(&pods);
        let mut again = program();
        again.args(["run", "--resume"]).arg(scene.run_directory());
        let ended = scene.spawn(cluster.on(again), "again").end();
        ended.expect(4);
        ended.says(words);
        ended.says("kubectl get pods --selector app=rg --output wide");
        assert_eq!(scene.results().journal().len(), before);
    }
}

#[test]
fn an_api_server_that_goes_away_takes_the_hosts() {
    for front in fronts() {
        let mut cluster = Cluster::start(front, &THREE);
        let scene = Scene::new();
        let mut running = run(&cluster, &scene, &plan("kubectl", SELECTED, 40, "500ms"));
        running.wait_for_outcomes(1);
        cluster.goes_down();
        let way = json!({"of": AGENT, "now": "abort"});
        cluster.ways(&json!({ "rg-a": way, "rg-b": way, "rg-c": way }));
        let ended = running.end();
        ended.expect(3);
        // Once no two hosts are left the run ends, and need not note the last of them.
        let told = std::fs::read_to_string(scene.results().path("records.jsonl")).unwrap();
        assert!(told.contains("\"id\":\"kubectl-by-hand\""), "{told}");
        cluster.is_left_empty();
    }
}

/// Before any run directory is made.
#[test]
fn pods_that_cannot_be_listed_are_no_mistake_of_the_plan_and_their_number_is() {
    for front in fronts() {
        let mut cluster = Cluster::start(front, &THREE[..2]);
        let told = |cluster: &Cluster, text: &str, code: i32| {
            let scene = Scene::new();
            let ended = run(cluster, &scene, text).end();
            ended.expect(code);
            assert!(!scene.run_directory().exists());
            ended
        };
        let three = plan("kubectl", SELECTED, 1, "20000 iterations");
        told(&cluster, &three, 2).says("the plan wants 3 pods, kubectl finds 2 running pods for app=rg");
        let nowhere = three.replace("retries = 0 }", "retries = 0, kubectl = { context = \"nope\" } }");
        told(&cluster, &nowhere, 4).says("--context nope get pods");
        let strange = three.replace("app=rg", "app==rg");
        told(&cluster, &strange, 4).says("kubectl get pods --selector app==rg");
        cluster.goes_down();
        told(&cluster, &three, 4).says("cannot be listed");
    }
    // Nobody asks for pods that have names.
    let scene = Scene::new();
    let path = scene.write("plan.toml", &plan("kubectl", SELECTED, 1, "20000 iterations"));
    let mut command = program();
    command.args(["run", "-o"]).arg(scene.run_directory()).arg(&path).env("PATH", scene.path("nowhere"));
    let ended = scene.spawn(command, "run").end();
    ended.expect(4);
    ended.says("cannot start kubectl");
    // What contacts no host needs no kubectl.
    let mut check = program();
    check.arg("check").arg(path).env("PATH", scene.path("nowhere"));
    scene.spawn(check, "check").end().expect(0);
}

/// All of it on the same containers, one after another: they are paused and killed.
#[test]
fn on_real_containers() {
    let Some(containers) = podman::Containers::start(3) else { return };
    let hosts = format!("{{ names = {} }}", serde_json::to_string(&containers.names).unwrap());
    let started = |cases: usize| {
        let scene = Scene::new();
        let path = scene.write("plan.toml", &plan("podman", &hosts, cases, "300ms"));
        let running = scene.start(&path);
        (scene, running)
    };
    let (scene, running) = started(1);
    let (ended, results) = (running.end(), scene.results());
    assert_eq!(results.measured().len(), results.planned().len(), "{}", ended.said);
    assert!(results.rows().iter().all(|row| row.verified > 0 && row.wrong == 0), "{}", ended.said);
    // What was not sent again is a pass.
    let again = results.sent_again().len();
    assert_eq!(results.verdicts()["troubles"].as_array().unwrap().len(), again, "{}", ended.said);
    ended.expect(if again == 0 { 0 } else { 3 });
    for name in &containers.names {
        assert_eq!(containers.says(name, "ls /root/.cache/railgauge"), "", "the agent's file is left");
    }
    // 8 MiB are the limit of this container, and the plan wants more.
    let verbs = plan("podman", &hosts, 1, "300ms").replace("\"tcp\"", "\"verbs\"").replace("1KiB", "16MiB");
    let mut preflight = program();
    preflight.args(["preflight", "--json"]).arg(scene.write("verbs.toml", &verbs));
    let told: Value = serde_json::from_slice(&preflight.output().unwrap().stdout).unwrap();
    assert_eq!(told["facts"][&containers.names[0]]["surroundings"]["container"], "podman");
    assert_eq!(told["facts"][&containers.names[0]]["ipc_lock"], "absent");
    let finding = told["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "locked-memory");
    assert_eq!(finding.unwrap()["remedy"]["id"], "container-locked-memory");

    let (scene, mut running) = started(60);
    running.wait_for_outcomes(1);
    let [first, second] = [&containers.names[0], &containers.names[1]];
    containers.engine(&["pause", first]);
    until_lost(&scene, first);
    is_lost_for(&scene, first, "engine-by-hand", "nothing comes from the container");
    containers.engine(&["unpause", first]);
    containers.engine(&["kill", second]);
    until_lost(&scene, second);
    is_lost_for(&scene, second, "container-killed", "was killed");
    running.end().expect(3);
    let none = containers.says(first, "for p in /proc/[0-9]*; do readlink $p/exe; done | grep -c use-; true");
    assert_eq!(none, "0", "an agent is left");

    // A container that is not there, and one that does not run any more.
    let scene = Scene::new();
    let names = serde_json::to_string(&[first, second, "no-such"]).unwrap();
    let path = scene.write("plan.toml", &plan("podman", &format!("{{ names = {names} }}"), 1, "20000 iterations"));
    let mut preflight = program();
    preflight.args(["preflight", "--json"]).arg(path);
    let told: Value = serde_json::from_slice(&preflight.output().unwrap().stdout).unwrap();
    for name in ["no-such", second] {
        assert_eq!(told["lost"][name]["remedy"]["id"], "engine-by-hand");
    }
}

/// Its client alone, without a service.
#[test]
fn an_engine_that_is_not_there_or_does_not_answer_is_told() {
    let lost = |via: &str, path: Option<&str>| {
        let scene = Scene::new();
        let file = scene.write("plan.toml", &plan(via, "{ names = [\"a\", \"b\"] }", 1, "20000 iterations"));
        let mut command = program();
        command.args(["preflight", "--json"]).arg(file).env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let told: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        told["lost"]["a"].clone()
    };
    for via in ["podman", "docker"] {
        let failure = lost(via, Some("/nonexistent"));
        assert_eq!(
            (&failure["stage"], &failure["remedy"]["id"]),
            (&json!("connect"), &json!("engine-by-hand")),
            "{failure:#}"
        );
    }
    if Command::new("docker").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let failure = lost("docker", None);
        assert_eq!(failure["remedy"]["id"], "engine-by-hand", "{failure:#}");
    } else {
        kubernetes::left_out("containers: no docker here: what its client says without a service is not tried");
    }
}
