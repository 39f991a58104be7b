//! A slow host in the traffic of a mixture of experts: six namespaces on a bridge, one of them at half the rate of the others.

use crate::{
    namespaces::{Spaces, run},
    railgauge::Scene,
    skip::skipped,
};

const HOSTS: usize = 6;
const SLOW: usize = 5;

fn built(spaces: &Spaces) -> bool {
    let switch = spaces.name("s");
    let mut good = run(&["ip", "netns", "add", &switch])
        && run(&["ip", "-n", &switch, "link", "add", "br0", "type", "bridge"])
        && run(&["ip", "-n", &switch, "link", "set", "br0", "up"]);
    for number in 1..=HOSTS {
        let (host, port) = (spaces.name(&number.to_string()), format!("p{number}"));
        let rate = if number == SLOW { "100mbit" } else { "200mbit" };
        let address = format!("10.85.0.{number}/24");
        good = good
            && run(&["ip", "netns", "add", &host])
            && run(&[
                "ip", "-n", &host, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns", &switch,
            ])
            && run(&["ip", "-n", &switch, "link", "set", &port, "master", "br0", "up"])
            && run(&["ip", "-n", &host, "addr", "add", &address, "dev", "eth0"])
            && run(&["ip", "-n", &host, "link", "set", "eth0", "gso_max_segs", "1", "up"])
            && run(&[
                "ip", "netns", "exec", &host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate,
                "burst", "20kb", "latency", "50ms",
            ]);
    }
    good
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn a_slow_host_is_named_from_a_round_of_experts() {
    let spaces = Spaces::new("t");
    if !built(&spaces) {
        skipped("hosts on a bridge with limited rates: they cannot be made here (root, iproute2?)");
        return;
    }
    let names: Vec<String> = (1..=HOSTS).map(|number| spaces.name(&number.to_string())).collect();
    let scene = Scene::new();
    let plan = format!(
        "name = \"experts\"\nlaunch = {{ via = \"command\", command = [\"ip\", \"netns\", \"exec\", \"{{host}}\"] }}\n\
         hosts = {{ names = {names:?} }}\n[[test]]\nname = \"dispatch\"\nop = \"all_to_all_v\"\nmetric = \"bandwidth\"\n\
         transport = \"tcp\"\nmeasure = \"1s\"\nwarm_up = \"200ms\"\nrepeats = 3\n\
         traffic = {{ moe = {{ experts = 32, top_k = 4, tokens = 64, hidden = 512 }} }}\n\
         expect = [{{ metric = \"busbw\", at_least = \"0.018 GB/s\" }}]\n"
    );
    scene.start(&scene.write("plan.toml", &plan)).end().expect(1);
    let verdicts = scene.results().verdicts();
    let of_test = verdicts["components"].as_array().unwrap().iter().find(|one| one["test"] == "dispatch").unwrap();
    let components = of_test["components"].as_array().unwrap();
    let faulty: Vec<_> = components.iter().filter(|one| one["state"] == "faulty").map(|one| &one["hosts"][0]).collect();
    assert_eq!(faulty, [&names[SLOW - 1]], "{of_test:#}");
}
