//! What a plan comes to.

use std::{path::Path, time::Duration};

use railgauge_model::plan::{
    Plan,
    model::{AtOnce, Beside, BesideWay, Cut, HostKeys, Launcher, Limit, Pattern, Rails, RateLimit, Victim},
    parse,
};
use railgauge_wire::{
    link::{Completion, Footprint, Joining},
    step::Window,
    terms::{GpuPath, Memory, Metric, Op, Service, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds},
};

fn read(text: &str) -> Plan {
    parse("plan.toml", text, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_or_else(|mistakes| panic!("{mistakes}")).0
}

const SMALL: &str = "name = \"small\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = \"a[1-4]\"\n";

#[test]
fn every_key_arrives() {
    let plan = read(
        r##"
name = "every-key"
description = """
Two
lines"""
seed = 7

[launch]
via = "ssh"
in_flight = 4
retries = 0
timeout = "1.5s"
keep_agent = true
agent_dir = "/opt/x"
env = { NCCL_DEBUG = "INFO" }

[launch.ssh]
config = "Cargo.toml"
user = "op"
port = 2222
identity = "/dev/null"
jump = ["one", "me@two:22"]
host_keys = "accept-new"
known_hosts = "known"

[hosts]
names = ["gpu[1-3]", "gpu[004-005]"]
exclude = "gpu3"
devices = ["mlx5_0", "mlx5_1:2"]
tcp = ["eth0", "eth1"]

[hosts.groups]
left = "gpu[1-3]"
right = ["gpu005", "gpu004"]

[[hosts.override]]
match = "left"
user = "root"
port = 22
[[hosts.override]]
match = "gpu005"
address = "fe80::1%eth0"
devices = ["rxe0", "rxe1"]
tcp = ["10.0.0.5", "10.1.0.5"]

[defaults]
metric = "bandwidth"
service = "uc"
qps = 4
warm_up = "10ms"
knobs = { depth = 64, mtu = 1024, congestion_control = "cubic" }

[[test]]
name = "first"
op = "write"
memory = "host"
sizes = ["64..256 x2", "1 KiB", 8]
qps = [4, 1]
bidirectional = true
pattern = "between"
between = ["left", "right"]
rails = [1, 0]
hosts = ["left", "right"]
repeats = 3
measure = { confidence = "2%", at_least = "1s", at_most = "2s" }
verify = false
deadline = "5s"

[test.knobs]
mtu = 4096
post_list = 8
signal_every = 16
inline = 0
gid_index = 3
traffic_class = 106
service_level = 3
flow_label = 1
retry_count = 7
timeout = 20
relaxed_ordering = true
huge_pages = true
core = 5
completion = "events"
footprint = "dram"
joining = "rdma-cm"

[[test.expect]]
metric = "bandwidth"
at_least = "11.25 GB/s"
sizes = "64..128"
rails = [1]
[[test.expect]]
metric = "message_rate"
within_percent_of_peers = "10%"

[[test]]
op = "send"
metric = "latency"
transport = "tcp"
measure = "1000 iterations"
[[test.expect]]
metric = "latency_p99"
at_most = "50 us"
group = "right"
"##,
    );
    assert_eq!((plan.name.as_str(), plan.description.as_str(), plan.seed), ("every-key", "Two\nlines", 7));
    let launch = &plan.launch;
    assert_eq!((launch.in_flight, launch.retries, launch.timeout), (4, 0, Duration::from_millis(1500)));
    assert!(launch.keep_agent && launch.agent_dir.as_deref() == Some("/opt/x") && launch.env["NCCL_DEBUG"] == "INFO");
    let Launcher::Ssh(ssh) = &launch.via else { panic!("{:?}", launch.via) };
    assert_eq!(ssh.config.as_deref(), Some(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))));
    assert_eq!(ssh.identity.as_deref(), Some(Path::new("/dev/null")));
    assert_eq!(ssh.known_hosts.as_deref(), Some(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/known"))));
    assert_eq!((ssh.user.as_deref(), ssh.port, ssh.host_keys), (Some("op"), Some(2222), HostKeys::AcceptNew));
    assert_eq!(ssh.jump, ["one", "me@two:22"]);

    let names: Vec<_> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["gpu1", "gpu2", "gpu004", "gpu005"]);
    assert_eq!(plan.groups["left"], ["gpu1", "gpu2"]);
    assert_eq!(plan.groups["right"], ["gpu004", "gpu005"]);
    let (first, last) = (&plan.hosts[0], &plan.hosts[3]);
    assert_eq!((first.user.as_deref(), first.port, first.address.as_str()), (Some("root"), Some(22), "gpu1"));
    assert_eq!(first.devices, ["mlx5_0", "mlx5_1:2"]);
    assert_eq!((last.address.as_str(), last.user.as_deref()), ("fe80::1%eth0", None));
    assert_eq!((last.devices[1].as_str(), last.tcp[0].as_str()), ("rxe1", "10.0.0.5"));

    let test = &plan.tests[0];
    assert_eq!(
        (test.op, test.metric, test.transport, test.service),
        (Op::Write, TestMetric::Bandwidth, Transport::Verbs, Service::Uc)
    );
    assert_eq!((test.memory.from, test.gpu_path), (Memory::Host, None));
    assert_eq!(test.sizes, [8, 64, 128, 256, 1024].map(Bytes));
    assert_eq!((test.qps.as_slice(), test.bidirectional, test.repeats, test.verify), (&[1, 4][..], true, 3, false));
    assert_eq!(test.pattern, Pattern::Between("left".into(), "right".into()));
    assert_eq!(test.rails, Rails::Only(vec![0, 1]));
    assert_eq!(test.hosts, names);
    assert_eq!(
        test.window,
        Window::Adaptive { relative: 0.02, at_least: Nanoseconds::from_secs(1), at_most: Nanoseconds::from_secs(2) }
    );
    assert_eq!((test.warm_up, test.deadline), (Duration::from_millis(10), Duration::from_secs(5)));
    let knobs = &test.knobs;
    assert_eq!(
        (knobs.depth, knobs.mtu, knobs.post_list, knobs.signal_every),
        (Some(64), Some(4096), Some(8), Some(16))
    );
    assert_eq!((knobs.inline, knobs.outstanding_reads, knobs.gid_index), (Some(0), None, Some(3)));
    assert_eq!((knobs.traffic_class, knobs.service_level, knobs.flow_label), (Some(106), Some(3), Some(1)));
    assert_eq!((knobs.retry_count, knobs.timeout, knobs.core), (Some(7), Some(20), Some(5)));
    assert_eq!((knobs.relaxed_ordering, knobs.huge_pages), (Some(true), Some(true)));
    assert_eq!((knobs.completion, knobs.footprint), (Some(Completion::Events), Some(Footprint::Dram)));
    assert_eq!((knobs.joining, knobs.congestion_control.as_deref()), (Some(Joining::RdmaCm), None));
    let [floor, peers] = test.expect.as_slice() else { panic!("{:?}", test.expect) };
    assert_eq!((floor.metric, floor.limit), (Metric::Bandwidth, Limit::AtLeast(90.0)));
    assert_eq!(
        (floor.sizes, floor.rails.as_slice(), floor.group.as_deref()),
        (Some((Bytes(64), Bytes(128))), &[1][..], None)
    );
    assert_eq!(peers.limit, Limit::WithinPercentOfPeers(10.0));
    assert!(peers.line > floor.line);

    // Defaults that have no meaning for the test are left out of it.
    let test = &plan.tests[1];
    assert_eq!(test.name, "send-latency-tcp");
    assert_eq!((test.sizes.as_slice(), test.qps.as_slice(), test.service), (&[Bytes(8)][..], &[1][..], Service::Rc));
    assert_eq!((test.knobs.depth, test.knobs.mtu, test.window), (None, None, Window::Iterations(1000)));
    assert_eq!(test.knobs.congestion_control.as_deref(), Some("cubic"));
    assert_eq!(test.expect[0].limit, Limit::AtMost(50.0));
    assert_eq!(test.expect[0].group.as_deref(), Some("right"));
}

#[test]
fn what_is_left_out_has_its_preset() {
    let plan = read(&format!("{SMALL}[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n"));
    assert_eq!((plan.seed, plan.launch.in_flight, plan.launch.retries), (1, 32, 2));
    assert_eq!((plan.launch.timeout, plan.launch.keep_agent), (Duration::from_secs(20), false));
    let test = &plan.tests[0];
    assert_eq!(test.name, "write-bandwidth-verbs");
    assert_eq!((test.transport, test.service, test.memory.from), (Transport::Verbs, Service::Rc, Memory::Host));
    assert_eq!((test.sizes.as_slice(), test.qps.as_slice(), test.repeats), (&[Bytes(65_536)][..], &[1][..], 1));
    assert_eq!((&test.pattern, &test.rails), (&Pattern::Tournament, &Rails::Aligned));
    assert_eq!((test.window, test.warm_up), (Window::Duration(Nanoseconds::from_secs(2)), Duration::from_millis(500)));
    assert_eq!((test.deadline, test.verify), (Duration::from_secs(30), true));
}

#[test]
fn a_command_is_words_and_never_a_shell_line() {
    let launch = |command: &str| {
        let text = SMALL.replace("\"local\"", &format!("\"command\"\ncommand = {command}"));
        read(&format!("{text}[[test]]\nop = \"write\"\nmetric = \"latency\"\n")).launch.via
    };
    let words = |words: &[&str]| Launcher::Command(words.iter().map(|word| (*word).to_owned()).collect());
    assert_eq!(launch("\"ip netns exec {host}\""), words(&["ip", "netns", "exec", "{host}"]));
    assert_eq!(launch("'run \"on $HOME\" --at={host}; x'"), words(&["run", "on $HOME", "--at={host};", "x"]));
    assert_eq!(launch("[\"a b\", \"{host}\"]"), words(&["a b", "{host}"]));
}

#[test]
fn patterns_are_read_with_their_keys() {
    let pattern = |keys: &str| {
        read(&format!(
            "{SMALL}groups = {{ x = \"a1\", y = \"a[2-3]\" }}\n[[test]]\nop = \"read\"\nmetric = \"latency\"\n{keys}\n"
        ))
        .tests
        .remove(0)
        .pattern
    };
    assert_eq!(pattern("pattern = \"random\"\nrounds = 3"), Pattern::Random(3));
    assert_eq!(pattern("pattern = \"ring\""), Pattern::Ring);
    assert_eq!(pattern("pattern = \"neighbours\""), Pattern::Neighbours);
    assert_eq!(pattern("pattern = \"one-to-many\"\nfrom = \"a2\""), Pattern::OneToMany("a2".into()));
    assert_eq!(pattern("pattern = \"many-to-one\"\nto = \"a2\""), Pattern::ManyToOne("a2".into()));
    assert_eq!(pattern("pattern = \"between\"\nbetween = [\"x\", \"y\"]"), Pattern::Between("x".into(), "y".into()));
    assert_eq!(
        pattern("pattern = \"pairs\"\npairs = [[\"a1\", \"a2\"], [\"a2\", \"a1\"]]"),
        Pattern::Pairs(vec![("a1".into(), "a2".into()), ("a2".into(), "a1".into())])
    );
}

#[test]
fn patterns_at_once_are_read_with_their_keys() {
    let pattern = |keys: &str| {
        let test = read(&format!(
            "{SMALL}groups = {{ x = \"a1\", y = \"a[2-3]\" }}\n[[test]]\nop = \"read\"\nmetric = \"bandwidth\"\n{keys}\n\
             [[test.expect]]\nmetric = \"ingress_bandwidth\"\npercent_of_ceiling = 90\n"
        ))
        .tests
        .remove(0);
        assert!(test.at_once());
        match test.pattern {
            Pattern::AtOnce(pattern) => pattern,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(pattern("pattern = \"incast\""), AtOnce::Incast(None));
    assert_eq!(pattern("pattern = \"incast\"\nto = \"a2\""), AtOnce::Incast(Some("a2".into())));
    assert_eq!(pattern("pattern = \"outcast\"\nfrom = \"a1\""), AtOnce::Outcast(Some("a1".into())));
    assert_eq!(pattern("pattern = \"all-to-all\""), AtOnce::AllToAll);
    assert_eq!(pattern("pattern = \"ring-at-once\""), AtOnce::Ring);
    assert_eq!(pattern("pattern = \"permutation\""), AtOnce::Permutation(1));
    assert_eq!(pattern("pattern = \"bisection\"\nrounds = 3"), AtOnce::Bisection(Cut::Drawn(3)));
    assert_eq!(
        pattern("pattern = \"bisection\"\nbetween = [\"x\", \"y\"]"),
        AtOnce::Bisection(Cut::Groups("x".into(), "y".into()))
    );
}

#[test]
fn a_victim_is_read_with_its_keys() {
    let text = |keys: &str| {
        format!(
            "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a[1-6]\"] }}\n[[test]]\nop = \"write\"\n\
             metric = \"bandwidth\"\npattern = \"victim\"\n{keys}\n"
        )
    };
    let pattern = |keys: &str| match parse("plan.toml", &text(keys), Path::new("")).unwrap().0.tests.remove(0).pattern {
        Pattern::AtOnce(AtOnce::Victim(victim)) => victim,
        other => panic!("{other:?}"),
    };
    let refused = |keys: &str| {
        let mistakes = parse("plan.toml", &text(keys), Path::new("")).unwrap_err();
        assert!(mistakes.list.iter().all(|mistake| mistake.help.is_some()), "{mistakes}");
        mistakes.to_string()
    };
    let flow = Some(("a1".to_owned(), "a2".to_owned()));
    assert_eq!(pattern(""), Victim { flow: None, to: None, draws: 1 });
    assert_eq!(pattern("rounds = 4"), Victim { flow: None, to: None, draws: 4 });
    let named = "victim = [\"a1\", \"a2\"]\nto = \"a3\"";
    assert_eq!(pattern(named), Victim { flow: flow.clone(), to: Some("a3".into()), draws: 1 });
    assert_eq!(pattern("victim = [\"a1\", \"a2\"]\nrounds = 2"), Victim { flow, to: None, draws: 2 });

    let limit = "[[test.expect]]\nmetric = \"victim_loss\"\nat_most = \"5%\"";
    pattern(&format!("repeats = 3\n{limit}"));
    assert!(refused(limit).contains("noise"), "{}", refused(limit));
    assert!(refused("victim = [\"a1\", \"a2\"]\nto = \"a2\"").contains("an end of the victim"));
    assert!(refused("victim = [\"a1\", \"a1\"]").contains("own peer"));
    assert!(refused("victim = [\"a1\", \"b1\"]").contains("b1 is not one of the hosts"));
    assert!(refused("victim = \"a1\"").contains("two hosts"));
    assert!(refused(&format!("{named}\nrounds = 2")).contains("`rounds`"));
    assert!(refused("hosts = [\"a[1-4]\"]").contains("needs 5 hosts"));
    let read = text("").replace("\"write\"", "\"read\"");
    assert!(parse("plan.toml", &read, Path::new("")).unwrap_err().to_string().contains("reads"));
    let peers = "repeats = 3\n[[test.expect]]\nmetric = \"victim_loss\"\nwithin_percent_of_peers = 5";
    assert!(refused(peers).contains("`at_most` only"), "{}", refused(peers));
    assert!(refused("rails = \"each\"").contains("aligned rails"));
    let elsewhere = text("victim = [\"a1\", \"a2\"]").replace("pattern = \"victim\"", "pattern = \"incast\"");
    assert!(parse("plan.toml", &elsewhere, Path::new("")).unwrap_err().to_string().contains("does not apply"));
}

#[test]
fn traffic_beside_flows_is_read_with_its_keys() {
    let text = |keys: &str| {
        format!(
            "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a[1-6]\"] }}\n[[test]]\nop = \"write\"\n\
             metric = \"bandwidth\"\n{keys}\n"
        )
    };
    let test = |keys: &str| parse("plan.toml", &text(keys), Path::new("")).unwrap_or_else(|wrong| panic!("{wrong}")).0;
    let beside = |keys: &str| test(&format!("beside = {{ {keys} }}")).tests.remove(0).beside.unwrap();
    let refused = |text: &str| {
        let mistakes = parse("plan.toml", text, Path::new("")).unwrap_err();
        assert!(mistakes.list.iter().all(|mistake| mistake.help.is_some()), "{mistakes}");
        mistakes.to_string()
    };
    assert_eq!(beside(""), Beside { flows: vec![4], direction: BesideWay::Same, rate: None, command: None, op: None });
    assert_eq!(
        beside("transport = \"tcp\", flows = [16, 1], direction = \"both\", rate = \"10 Gb/s\""),
        Beside { flows: vec![1, 16], direction: BesideWay::Both, rate: Some(GigabitsPerSecond(10.0)), ..beside("") }
    );
    assert_eq!(test("").tests[0].beside, None);
    let limit = "beside = {}\n[[test.expect]]\nmetric = \"beside_loss\"\n";
    test(&format!("repeats = 3\n{limit}at_most = \"5%\""));
    for (keys, words) in [
        (&*format!("{limit}at_most = \"5%\""), "noise"),
        (&format!("repeats = 3\n{limit}within_percent_of_peers = 5"), "`at_most` only"),
        ("[[test.expect]]\nmetric = \"beside_loss\"\nat_most = \"5%\"", "does not measure beside_loss"),
        ("beside = { flows = [] }", "`flows` is empty"),
        ("beside = { flows = [1, 1] }", "twice"),
        ("beside = { flows = 65 }", "65"),
        ("beside = { transport = \"udp\" }", "udp"),
        ("beside = { direction = \"up\" }", "up"),
        ("beside = { rate = \"0 Gb/s\" }", "send nothing"),
        ("beside = { rate = \"10\" }", "has no unit"),
        ("beside = {}\nmeasure = \"100 iterations\"", "fixed time"),
        ("beside = {}\nmeasure = \"100ms\"", "half a second"),
        ("beside = {}\nbidirectional = true", "`bidirectional`"),
        ("beside = {}\npattern = \"incast\"", "flows at once"),
        ("beside = {}\npattern = \"victim\"", "flows at once"),
    ] {
        let said = refused(&text(keys));
        assert!(said.contains(words), "{keys}: {said}");
    }
    // Each of its keys is read, whatever is wrong with the others.
    let all = text("beside = { transport = \"udp\", flows = 0, direction = \"up\", rate = \"10\" }");
    assert_eq!(parse("plan.toml", &all, Path::new("")).unwrap_err().list.len(), 4);
    let default = text("").replace("[[test]]", "[defaults]\nbeside = {}\n[[test]]");
    assert!(refused(&default).contains("unknown key `beside` in [defaults]"));
    let latency = text("beside = {}").replace("\"bandwidth\"", "\"latency\"");
    assert!(refused(&latency).contains("does not apply to latency"));
    let collective = text("beside = {}\ntransport = \"tcp\"").replace("\"write\"", "\"all_reduce\"");
    assert!(refused(&collective).contains("do not run alongside all_reduce"));
}

#[test]
fn what_is_odd_but_right_is_noted() {
    let notes = |keys: &str| {
        let text = format!("{SMALL}[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n{keys}\n");
        parse("plan.toml", &text, Path::new("")).unwrap().1.to_string()
    };
    assert!(notes("knobs = { retry_count = 7 }").contains("note: Soft-RoCE retries forever with retry_count = 7"));
    assert!(notes("verify = false").contains("inconclusive"));
    assert_eq!(notes(""), "");
}

#[test]
fn gpu_memory_goes_over_tcp() {
    let text = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"n[1-2]\"] }\n[[test]]\nop = \"write\"\n\
                metric = \"bandwidth\"\ntransport = \"tcp\"\nmemory = \"cuda\"\ngpu_path = \"staged\"\n";
    let (plan, _) = parse("plan.toml", text, Path::new("")).unwrap();
    assert_eq!((plan.tests[0].memory.from, plan.tests[0].gpu_path), (Memory::Cuda, Some(GpuPath::Staged)));
}

/// A plan of four hosts with what `places` is.
fn with_places(places: &str) -> String {
    SMALL.to_owned() + &format!("places = {places}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n")
}

#[test]
fn places_are_given_one_by_one_in_ranges_and_by_groups() {
    let places = |text: &str| read(&with_places(text)).places.into_iter().collect::<Vec<_>>();
    let pair = |host: &str, place: &str| (host.to_owned(), place.to_owned());
    assert_eq!(places("{ a1 = \"rack1/u01\", a2 = \"rack 2\" }"), [pair("a1", "rack1/u01"), pair("a2", "rack 2")]);
    let ranges = places("{ \"a[1-2]\" = \"r1/u[07-08]\", \"a[3-4]\" = \"r[2-3]/top\" }");
    assert_eq!(ranges, [pair("a1", "r1/u07"), pair("a2", "r1/u08"), pair("a3", "r2/top"), pair("a4", "r3/top")]);
    assert_eq!(places("{ \"a[1-4]\" = \"r1\" }").len(), 4);
    let grouped = with_places("{ left = \"r9\" }").replace("[[test]]", "[hosts.groups]\nleft = \"a[1-2]\"\n[[test]]");
    assert_eq!(read(&grouped).places.into_iter().collect::<Vec<_>>(), [pair("a1", "r9"), pair("a2", "r9")]);
    assert!(read(&with_places("{}")).places.is_empty());
}

#[test]
fn places_that_cannot_be_meant_are_mistakes() {
    for places in [
        "{ b1 = \"r1\" }",
        "{ \"a[1-4]\" = \"r1/u[1-3]\" }",
        "{ \"a[1-2]\" = \"r1\", a2 = \"r2\" }",
        "{ a1 = \"/u1\" }",
        "{ a1 = \"r1/u1/x\" }",
        "{ \"a[1\" = \"r1\" }",
        "{ a1 = \"r[1\" }",
        "{ a1 = 7 }",
        "[\"r1\"]",
        "\"nowhere.csv\"",
    ] {
        let mistakes = parse("plan.toml", &with_places(places), Path::new("/plans")).expect_err(places);
        assert_eq!(mistakes.list.len(), 1, "{places}: {mistakes}");
        assert!(mistakes.list[0].help.is_some() && mistakes.list[0].place.is_some(), "{mistakes}");
    }
}

#[test]
fn places_from_a_file_have_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let parsed = |text: &str| {
        std::fs::write(folder.path().join("racks.csv"), text).unwrap();
        parse("plan.toml", &with_places("\"racks.csv\""), folder.path())
    };
    let text =
        "\u{feff}host,rack,slot\r\na1, r1 ,u07\r\n# all of them\r\n\r\na2,r1\r\nother,r5,u1\r\na4,r2,u1 # here\r\n";
    let (plan, notes) = parsed(text).unwrap();
    let found: Vec<(&str, &str)> = plan.places.iter().map(|(host, place)| (host.as_str(), place.as_str())).collect();
    assert_eq!(found, [("a1", "r1/u07"), ("a2", "r1"), ("a4", "r2/u1")]);
    // What it does not say is said.
    assert!(notes.list.iter().any(|note| note.help.as_ref().is_some_and(|help| help.contains("a3"))), "{notes:?}");
    for (line, wrong) in [
        (2, "a1,r1\na2\n"),
        (2, "a1,r1\na2,r1,u1,x\n"),
        (3, "a1,r1\na2,r1\na1,r2\n"),
        (1, "a[1-4],r1,u1\n"),
        (1, "-x,r1\n"),
        (1, "a1,,u1\n"),
        (1, "a1,\"r1\",u1\n"),
        (1, "a1,r\u{1b}[2J,u1\n"),
        (1, "a1,r1/x,u1\n"),
    ] {
        let mistakes = parsed(wrong).expect_err(wrong);
        assert_eq!(mistakes.list.len(), 1, "{wrong}: {mistakes}");
        let document = mistakes.json();
        let first = &document["mistakes"][0];
        assert_eq!((&first["file"], &first["line"]), (&"racks.csv".into(), &line.into()), "{wrong}: {document}");
    }
}

const TRAFFIC: &str = "[[test]]\nname = \"ping\"\nop = \"write\"\nmetric = \"latency\"\n\
                       [[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\n";

#[test]
fn a_soak_takes_the_first_test_that_can_carry_it_and_is_strict_unless_told() {
    let soak = read(&format!("{SMALL}{TRAFFIC}[soak]\nfor = \"72h\"\n")).soak.unwrap();
    assert_eq!((soak.lasts, soak.test.as_str()), (Duration::from_secs(72 * 3600), "write"));
    assert_eq!((soak.window, soak.longest_outage), (Duration::from_secs(10), Duration::ZERO));
    assert!(soak.rate_limit.is_none() && soak.limits.is_empty());
    let soak = read(&format!(
        "{SMALL}{TRAFFIC}[soak]\nfor = \"1h\"\ntest = \"write\"\nshare = \"40%\"\nwindow = \"2s\"\nlongest_outage = \"7s\"\n\
         limits = {{ symbol_error = \"10/s\", link_error_recovery = \"0/s\", \"ethtool/rx_crc\" = \"1.5/s\" }}\n"
    ));
    let soak = soak.soak.unwrap();
    assert_eq!(soak.rate_limit, Some(RateLimit::Percent(40.0)));
    let limits: Vec<_> = soak.limits.iter().map(|(name, limit)| (name.as_str(), *limit)).collect();
    assert_eq!(limits, [("ethtool/rx_crc", 1.5), ("link_error_recovery", 0.0), ("symbol_error", 10.0)]);
    assert!(read(&format!("{SMALL}{TRAFFIC}")).soak.is_none());
}

/// The plan's order of hosts is another one than that in which a group is written.
#[test]
fn places_follow_a_group_as_it_is_written() {
    let text = |hosts: &str| {
        format!(
            "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = \"a[1-4]\"\n{hosts}\n[[test]]\nop = \"write\"\nmetric = \
             \"bandwidth\"\n"
        )
    };
    let places = |hosts: &str| read(&text(hosts)).places;
    let plan = places("groups = { r1 = [\"a4\", \"a1\"] }\nplaces = { r1 = \"A1/[1-2]\" }");
    assert_eq!((plan["a4"].as_str(), plan["a1"].as_str()), ("A1/1", "A1/2"));
    assert_eq!(plan, places("places = { \"a[4,1]\" = \"A1/[1-2]\" }"));
    // A host that is left out keeps its slot.
    let plan = places("exclude = \"a4\"\ngroups = { r1 = [\"a4\", \"a1\"] }\nplaces = { r1 = \"A1/[1-2]\" }");
    assert_eq!((plan.get("a4"), plan["a1"].as_str()), (None, "A1/2"));
}
