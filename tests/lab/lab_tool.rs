//! The lab keeps what its README promises: hosts come up, faults are what they say, deaths are told apart, and
//! nothing is left behind.

use std::{net::TcpStream, path::Path};

use crate::lab::{self, Borrowed, borrow, text, tool};

fn two_hosts() -> Option<Borrowed> {
    borrow()
}

fn answer(lab: &Borrowed, host: u32, command: &str) -> String {
    let output = lab.ssh(host, command);
    assert!(output.status.success(), "lab{host}: {command}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn every_host_has_two_rails_of_soft_roce() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        for host in 1..=2 {
            assert_eq!(answer(&lab, host, "hostname"), format!("lab{host}"));
            assert_eq!(answer(&lab, host, "ls /sys/class/infiniband"), "rxe0\nrxe1");
            assert_eq!(answer(&lab, host, "cat /sys/class/infiniband/*/ports/1/state"), "4: ACTIVE\n4: ACTIVE");
            assert_eq!(answer(&lab, host, "ulimit -l"), "unlimited");
            // Each rail reaches the other host's NIC of the same rail, and through the router that of the other.
            let other = 3 - host;
            for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                answer(&lab, host, &format!("ping -c 2 -W 2 -I eth{} 10.79.{to}.{other}", from + 1));
            }
        }
    });
}

#[test]
fn a_cut_link_is_silent_and_a_pulled_cable_is_not() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        let ping = "ping -c 1 -W 1 10.79.1.2 >/dev/null; echo $?";
        let carrier = "cat /sys/class/net/eth2/carrier";
        lab.expect(&["link", "2.1", "down"]);
        assert_eq!((answer(&lab, 1, ping), answer(&lab, 2, carrier)), ("1".into(), "1".into()));
        assert_eq!(answer(&lab, 1, "ping -c 1 -W 2 10.79.0.2 >/dev/null; echo $?"), "0", "the other rail is whole");
        lab.expect(&["link", "2.1", "up"]);
        // Address resolution that failed a moment ago is tried again only after a second.
        assert_eq!(answer(&lab, 1, "ping -c 5 -W 1 10.79.1.2 >/dev/null; echo $?"), "0");
        lab.expect(&["cable", "2.1", "out"]);
        assert_eq!(answer(&lab, 2, carrier), "0");
        assert!(answer(&lab, 2, "cat /sys/class/infiniband/rxe1/ports/1/state").contains("DOWN"));
        lab.expect(&["cable", "2.1", "in"]);
        assert_eq!(answer(&lab, 2, carrier), "1");
    });
}

#[test]
#[ignore = "rate: of a shaped link"]
fn a_shaped_link_is_shaped_in_both_directions() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        lab.expect(&["rate", "2.0", "8mbit"]);
        answer(&lab, 2, "iperf3 -s -D");
        for direction in ["", "-R"] {
            let json = answer(&lab, 1, &format!("iperf3 -c 10.79.0.2 -t 3 -J {direction}"));
            let report: serde_json::Value = serde_json::from_str(&json).unwrap();
            let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
            assert!((4e6..9e6).contains(&rate), "8 Mbit/s were asked for, {rate} bit/s came through ({direction:?})");
        }
        lab.expect(&["rate", "2.0", "off"]);
        assert!(!answer(&lab, 2, "tc qdisc show dev eth1").contains("tbf"));
        answer(&lab, 2, "pkill iperf3");
    });
}

/// Waits until nobody listens there any more.
fn refused(address: &str) {
    for _ in 0..100 {
        if TcpStream::connect(address).is_err() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{address} still accepts connections");
}

#[test]
fn ssh_is_refused_on_demand_and_by_a_killed_host() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        lab.expect(&["sshd", "2", "refuse"]);
        refused("127.79.0.2:2222");
        let output = lab.ssh(2, "true");
        assert_eq!(output.status.code(), Some(255));
        assert!(text(&output.stderr).contains("Connection refused"), "{}", text(&output.stderr));
        lab.expect(&["sshd", "2", "accept"]);
        answer(&lab, 2, "true");

        lab.expect(&["kill", "2"]);
        refused("127.79.0.2:2222");
        assert_eq!(lab.status()[1]["state"], "killed");
        assert!(lab.run(&["status"]).status.success(), "a death that was asked for is no failure of the lab");
        lab.expect(&["start", "2"]);
        answer(&lab, 2, "true");
    });
}

/// What the lab reports as its own failure, once it has noticed it.
fn failure(lab: &Borrowed, command: &[&str]) -> String {
    for _ in 0..100 {
        let status = lab.run(command);
        if !status.status.success() {
            assert_eq!(status.status.code(), Some(70));
            return text(&status.stderr);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("the lab reports no failure");
}

#[test]
fn a_panic_is_told_as_a_failure_of_the_lab() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        lab.ssh(2, "echo c >/proc/sysrq-trigger");
        let said = failure(&lab, &["status"]);
        assert!(said.starts_with("LAB FAILURE: lab2 died") && said.contains("Kernel panic"), "{said}");
        // From here on the death is known, and the host can be booted again.
        lab.expect(&["kill", "2"]);
        lab.expect(&["start", "2"]);
        assert!(lab.run(&["status"]).status.success());
    });
}

#[test]
fn a_crash_of_the_guests_own_programs_is_a_failure_of_the_lab_and_one_of_the_agent_is_not() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        // What the kernel says at this level when a program is killed for a memory it may not touch. The console keeps the order.
        for program in ["railgauge-agent", "ib_write_bw", "sshd"] {
            lab.ssh(2, &format!("echo '<6>{program}[77]: segfault at 8 ip 0 sp 0 error 4' >/dev/kmsg"));
        }
        let said = failure(&lab, &["status"]);
        assert!(["sshd[77]", "ib_write_bw[77]"].iter().all(|named| said.contains(named)), "{said}");
        assert!(!said.contains("railgauge-agent"), "{said}");
        lab.expect(&["kill", "2"]);
        lab.expect(&["start", "2"]);
        assert!(lab.run(&["status"]).status.success());
    });
}

#[test]
fn a_clock_that_runs_wrong_is_a_failure_of_the_lab() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        let file = lab.directory().join("hosts/2/clock");
        let kept = std::fs::read_to_string(&file).unwrap();
        // As if a day had passed in the guest since its first reading: far more than 5 % of any age of the lab.
        let mut reading: [f64; 3] = serde_json::from_str(&kept).unwrap();
        reading[2] -= 86_400.0;
        std::fs::write(&file, serde_json::to_string(&reading).unwrap()).unwrap();
        // The lab says nothing before it has watched a clock for some seconds.
        let said = failure(&lab, &["status", "--clocks"]);
        std::fs::write(&file, kept).unwrap();
        assert!(
            said.starts_with("LAB FAILURE: lab2 running") && said.contains("the clock of this guest made"),
            "{said}"
        );
    });
}

#[test]
fn a_lab_whose_user_is_gone_takes_itself_down() {
    if borrow().is_none() {
        return;
    }
    let folder = "/var/tmp/railgauge-lab-81";
    let other = |words: &[&str]| {
        let mut command = tool(words);
        command.env("RAILGAUGE_LAB_BLOCK", "81").env("RAILGAUGE_LAB_DIR", folder);
        command
    };
    let mut user = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let up = other(&["up", "1", "--while", &user.id().to_string()]).output().unwrap();
    assert!(up.status.success(), "LAB FAILURE: {}", text(&up.stderr));
    assert!(Path::new("/run/netns/railgauge-lab81").exists());
    user.kill().unwrap();
    user.wait().unwrap();
    for _ in 0..200 {
        if !Path::new(folder).exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!Path::new(folder).exists() && !Path::new("/run/netns/railgauge-lab81").exists());
    assert!(TcpStream::connect("127.81.0.1:2222").is_err(), "its host is gone too");
}

#[test]
fn wrong_words_are_told_apart_from_failures() {
    lab::sound(|| {
        let Some(lab) = two_hosts() else { return };
        for words in [
            &["ssh", "9", "true"][..],
            &["link", "1.7", "down"],
            &["up", "0"],
            &["up", "2", "--arm", "3"],
            &["link", "x", "up"],
        ] {
            assert_eq!(lab.run(words).status.code(), Some(2), "{words:?}");
        }
        assert_eq!(lab.run(&["up", "2"]).status.code(), Some(70), "the lab is up already");
    });
}

/// A host that is killed holds its port of ssh no longer when the tool says so, however long its memory takes to be given back.
#[test]
fn a_killed_guest_is_gone_with_its_ports() {
    let mut tests = std::process::Command::new("python3");
    tests.args(["-B", "-m", "unittest", "railgauge_lab.test_machine"]);
    let output = tests.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("lab")).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("Ran "), "{said}");
}
