//! Preflight on the lab: what is wrong with a host is found, named and explained, and nothing is found on healthy hosts.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::lab::{self, Borrowed, borrow, read, text};
use serde_json::Value;

/// Runs of preflight on healthy hosts; `RAILGAUGE_PREFLIGHT_RUNS` asks for others.
const RUNS: u32 = 5;

/// One look at the four hosts of the lab.
struct Look {
    document: Value,
    code: i32,
    took: Duration,
    /// From the agents' greetings until the last host's facts were known.
    told: f64,
    /// Hosts whose clock is off by their own word. On a busy machine a guest may take its processor's frequency wrong
    /// when it boots; its clock then runs too fast, and a finding that says so is no false alarm.
    runaway: Vec<String>,
}

impl Look {
    fn at(lab: &Borrowed, more: &str) -> Self {
        Self::with(lab, &lab.ssh_config(), more)
    }

    /// As a user that is not root.
    fn as_user(lab: &Borrowed, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("ssh_config");
        std::fs::write(&config, read(&lab.ssh_config()).replace("User root", "User op")).unwrap();
        Self::with(lab, &config, more)
    }

    fn with(lab: &Borrowed, config: &Path, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = write_plan(folder.path(), config, more);
        let mut command = Command::new(env!("CARGO_BIN_EXE_railgauge"));
        command.args(["preflight", "--json"]).arg(plan);
        let started = Instant::now();
        let output = command.output().unwrap();
        let took = started.elapsed();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
        assert_eq!(document["lost"], serde_json::json!({}), "{}", text(&output.stderr));
        let told = document["told_within_s"].as_f64().unwrap();
        let clocks = document["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "clock");
        let named = clocks.flat_map(|finding| finding["hosts"].as_array().unwrap()).map(|host| host.as_str().unwrap());
        let runaway = named.filter(|host| is_off(lab, host)).map(str::to_owned).collect();
        Self { runaway, code: output.status.code().unwrap(), took, told, document }
    }

    /// Findings above notice, without those of clocks that the test did not touch and that are truly off.
    fn serious(&self, touched: &str) -> Vec<&Value> {
        let all = self.document["findings"].as_array().unwrap().iter();
        let runaway = |finding: &Value| {
            let host = finding["hosts"][0].as_str().unwrap();
            finding["check"] == "clock" && host != touched && self.runaway.iter().any(|name| name == host)
        };
        all.filter(|finding| finding["severity"] != "notice" && !runaway(finding)).collect()
    }

    /// The only finding above notice is this check's, about this host, and says this.
    #[track_caller]
    fn finds(&self, check: &str, host: &str, words: &[&str]) -> &Value {
        let serious = self.serious(host);
        let [finding] = serious.as_slice() else { panic!("{serious:#?}") };
        assert_eq!((&finding["check"], &finding["hosts"]), (&check.into(), &serde_json::json!([host])), "{finding:#}");
        for word in words {
            assert!(finding["what"].as_str().unwrap().contains(word), "no `{word}`: {finding:#}");
        }
        for explained in [&finding["meaning"], &finding["remedy"]["id"], &finding["remedy"]["text"], &finding["source"]]
        {
            assert!(!explained.as_str().unwrap().is_empty(), "{finding:#}");
        }
        finding
    }
}

/// Whether a host's own `date` is seconds away from ours.
fn is_off(lab: &Borrowed, host: &str) -> bool {
    let said = text(&lab.ssh(host.trim_start_matches("lab").parse().unwrap(), "date +%s").stdout);
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    (said.parse::<f64>().unwrap_or(ours) - ours).abs() > 2.0
}

fn write_plan(folder: &Path, config: &Path, more: &str) -> PathBuf {
    let path = folder.join("plan.toml");
    let plan = format!(
        "name = \"preflight\"\n[launch]\nvia = \"ssh\"\ntimeout = \"60s\"\nkeep_agent = true\n[launch.ssh]\nconfig = \"{}\"\n[hosts]\nnames = [\"lab[1-4]\"]\n\
         [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = [\"64KiB\"]\n{more}",
        config.display()
    );
    std::fs::write(&path, plan).unwrap();
    path
}

/// A fault on a host, mended when it is dropped.
struct Fault<'a> {
    lab: &'a Borrowed,
    host: u32,
    mend: &'static str,
}

impl<'a> Fault<'a> {
    fn on(lab: &'a Borrowed, host: u32, make: &str, mend: &'static str) -> Self {
        let output = lab.ssh(host, make);
        assert!(output.status.success(), "LAB FAILURE: {make}: {}", text(&output.stderr));
        Self { lab, host, mend }
    }
}

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        let output = self.lab.ssh(self.host, self.mend);
        if !output.status.success() && !std::thread::panicking() {
            panic!("LAB FAILURE: {}: {}", self.mend, text(&output.stderr));
        }
    }
}

fn four_hosts() -> Option<Borrowed> {
    borrow()
}

#[test]
fn healthy_hosts_give_no_alarm() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let runs = std::env::var("RAILGAUGE_PREFLIGHT_RUNS").map_or(RUNS, |runs| runs.parse().unwrap());
        let (mut took, mut told) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let look = Look::at(&lab, "");
            assert!(look.serious("").is_empty(), "{:#?}", look.serious(""));
            assert_eq!(look.code, 0);
            took.push(look.took.as_secs_f64());
            told.push(look.told);
        }
        let words = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            format!("{:.2} s median, {:.2} s longest", times[times.len() / 2], times[times.len() - 1])
        };
        println!("{runs} preflights of 4 healthy hosts, nothing above notice: {}", words(&mut took));
        println!("from the agents' greetings until all is known: {}", words(&mut told));
    });
}

#[test]
fn an_mtu_that_was_lowered() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let _fault = Fault::on(&lab, 2, "ip link set eth1 mtu 1500", "ip link set eth1 mtu 9000");
        let look = Look::at(&lab, "");
        look.finds("mtu", "lab2", &["rxe0", "1500", "others have 9000", "RDMA MTU 1024"]);
        assert_eq!(look.code, 0, "a warning does not fail");
        let look = Look::at(&lab, "[preflight]\nmtu = 9000\n");
        look.finds("mtu", "lab2", &["the plan requires 9000"]);
        assert_eq!(look.code, 1, "what the plan wants is a failure");
    });
}

#[test]
fn a_second_gid_of_another_subnet() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let (make, mend) = ("ip addr add 10.99.0.3/24 dev eth1", "ip addr del 10.99.0.3/24 dev eth1");
        let _fault = Fault::on(&lab, 3, make, mend);
        Look::at(&lab, "").finds("gid-table", "lab3", &["rxe0", "GID 2", "10.99.0.0/24", "empty"]);
    });
}

#[test]
fn a_limit_on_locked_memory() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let sshd = |limit: &str| {
            format!(
                "kill $(cat /run/sshd.pid); sleep 0.5; ulimit -l {limit}; /usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log"
            )
        };
        let _fault = Fault::on(
            &lab,
            4,
            &sshd("64"),
            "kill $(cat /run/sshd.pid); sleep 0.5; ulimit -H -l unlimited; ulimit -l unlimited; /usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log",
        );
        // Root is held to no limit.
        assert_eq!(Look::at(&lab, "").serious("lab4"), Vec::<&Value>::new());
        let look = Look::as_user(&lab, "");
        look.finds("locked-memory", "lab4", &["64 KiB", "the plan needs about"]);
        assert_eq!(look.code, 1);
    });
}

#[test]
fn a_port_that_is_down() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        lab.expect(&["cable", "1.0", "out"]);
        let look = Look::at(&lab, "");
        lab.expect(&["cable", "1.0", "in"]);
        look.finds("port-state", "lab1", &["rxe0", "DOWN"]);
        assert_eq!(look.code, 1);
    });
}

/// Soft-RoCE has no firmware: a file over the kernel's stands for one.
#[test]
fn firmware_that_differs() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let file = "/sys/class/infiniband/rxe0/fw_ver";
        let make = |version: &str| format!("echo {version} >/tmp/fw_ver; mount --bind /tmp/fw_ver {file}");
        let mend = "umount /sys/class/infiniband/rxe0/fw_ver";
        let _faults: Vec<Fault<'_>> = (1..=4)
            .map(|host| Fault::on(&lab, host, &make(if host == 3 { "28.39.1002" } else { "28.43.1014" }), mend))
            .collect();
        let look = Look::at(&lab, "");
        look.finds("firmware", "lab3", &["rxe0", "28.39.1002", "others have 28.43.1014"]);
        let drift = look.document["drift"].as_array().unwrap();
        let row = drift.iter().find(|row| row["fact"] == "rxe0 firmware").expect("the firmware drifts");
        assert_eq!(row["others"], serde_json::json!({ "lab3": "28.39.1002" }));
    });
}

#[test]
fn a_clock_that_is_three_seconds_off() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        set_clock(1, 3.0);
        let look = Look::at(&lab, "");
        set_clock(1, 0.0);
        look.finds("clock", "lab1", &["differs from the controller's"]);
    });
}

/// Sets a host's clock so far off this machine's, give or take how long a line takes to it over an open connection.
fn set_clock(host: u32, off: f64) {
    let mut setting = lab::tool(&["ssh", &host.to_string(), "echo ready; read time; date -s @$time"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut said = BufReader::new(setting.stdout.take().unwrap());
    said.read_line(&mut ready).unwrap();
    assert_eq!(ready.trim(), "ready", "LAB FAILURE: no shell on lab{host}");
    // `date` takes whole seconds: it is told one at the moment it begins.
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() + off;
    let next = now().floor() + 1.0;
    std::thread::sleep(Duration::from_secs_f64((next - now()).max(0.0)));
    let mut line = setting.stdin.take().unwrap();
    writeln!(line, "{next:.0}").unwrap();
    drop(line);
    assert!(setting.wait().unwrap().success(), "LAB FAILURE: lab{host} does not set its clock");
}
