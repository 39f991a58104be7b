//! The recipes of docs/watch.md in the programs that they are for, which `./setup` does not install. Each is named by a variable:
//!
//!     RAILGAUGE_NAGIOS=/usr/sbin/nagios4 RAILGAUGE_NHC=/usr/sbin/nhc RAILGAUGE_CRON=/usr/sbin/cron \
//!         RAILGAUGE_SYSTEMD=/lib/systemd/systemd cargo test --test commands monitors -- --ignored
//!
//! `RAILGAUGE_NHC` is NHC's script, with its checks in `scripts` beside it or in `/etc/nhc/scripts`. NHC, cron and systemd need root: they get a name and
//! folders of their own, which this machine does not see.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{Machine, Scenario, block, built_agent, followed_up};

/// A program that a variable names.
fn named(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names no program"));
    fs::canonicalize(&path).unwrap_or_else(|error| panic!("{variable}: {}: {error}", path.display()))
}

fn healthy() -> Scenario {
    Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }
}

/// A run that blames gpu005.
fn bad() -> String {
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    followed_up(&slow, &slow).0
}

/// A process that ends with the test, or was told to end.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn soon<T>(what: &str, seconds: u64, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: nothing");
        thread::sleep(Duration::from_millis(200));
    }
}

/// What Nagios knows of its services: state, line and performance data.
fn services(status: &Path) -> BTreeMap<String, (String, String, String)> {
    let text = fs::read_to_string(status).unwrap_or_default();
    let blocks = text.split("servicestatus {").skip(1);
    let of = |block: &str| {
        let value = |key: &str| {
            let start = format!("\t{key}=");
            block.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
        };
        let is_checked = value("has_been_checked") == "1";
        let told = (value("current_state"), value("plugin_output"), value("performance_data"));
        is_checked.then(|| (value("service_description"), told))
    };
    blocks.filter_map(of).collect()
}

#[test]
#[ignore = "needs Nagios"]
fn by_hand_nagios_has_each_of_its_four_states_from_the_recipe() {
    let nagios = named("RAILGAUGE_NAGIOS");
    let machine = Machine::new();
    let states = ["ok", "warning", "critical", "unknown"];
    machine.add("ok", &healthy().jsonl());
    machine.add("warning", &Scenario { contaminated: true, ..Scenario::healthy(4, 1) }.jsonl());
    machine.add("critical", &bad());
    // A run that was killed.
    machine.add("unknown", healthy().jsonl().lines().next().unwrap());
    let recipe = block("define command");
    let (command, service) = recipe.split_at(recipe.find("define service").unwrap());
    // Runs that are made up are days old.
    let service = format!("{service}\n");
    let command = machine.here(command).replace("--format nagios", "--format nagios --max-age 1000000h");
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let days: String = days.iter().map(|day| format!("  {day} 00:00-24:00\n")).collect();
    let mut objects = format!(
        "define timeperiod {{\n  timeperiod_name always\n  alias always\n{days}}}\n\
         define command {{\n  command_name up\n  command_line /bin/true\n}}\n\
         define contact {{\n  contact_name nobody\n  service_notification_commands up\n  host_notification_commands up\n  \
         service_notification_period always\n  host_notification_period always\n}}\n\
         define host {{\n  host_name head\n  address 127.0.0.1\n  check_command up\n  max_check_attempts 1\n  check_period always\n  \
         contacts nobody\n}}\n\
         define service {{\n  name generic-service\n  register 0\n  max_check_attempts 1\n  retry_interval 1\n  check_period always\n  \
         contacts nobody\n}}\n{command}"
    );
    for state in states {
        let runs = machine.at(state);
        let service = service.replace("/srv/railgauge/nightly", runs.to_str().unwrap());
        objects += &service.replace("railgauge nightly", state);
    }
    fs::write(machine.at("objects.cfg"), objects).unwrap();
    let at = |name: &str| machine.at(name).to_str().unwrap().to_owned();
    for folder in ["rw", "archives", "spool"] {
        fs::create_dir(machine.at(folder)).unwrap();
    }
    let me = |word: &str| String::from_utf8(Command::new("id").arg(word).arg("-n").output().unwrap().stdout).unwrap();
    let settings = [
        ("log_file", at("nagios.log")),
        ("cfg_file", at("objects.cfg")),
        ("object_cache_file", at("objects.cache")),
        ("status_file", at("status.dat")),
        ("status_update_interval", "1".into()),
        ("nagios_user", me("-u").trim().into()),
        ("nagios_group", me("-g").trim().into()),
        ("command_file", at("rw/nagios.cmd")),
        ("query_socket", at("rw/nagios.qh")),
        ("lock_file", at("nagios.pid")),
        ("temp_file", at("nagios.tmp")),
        ("temp_path", at("rw")),
        ("check_result_path", at("spool")),
        ("log_archive_path", at("archives")),
        ("use_syslog", "0".into()),
        ("check_result_reaper_frequency", "1".into()),
        ("service_inter_check_delay_method", "n".into()),
        ("check_for_updates", "0".into()),
        ("enable_notifications", "0".into()),
    ];
    let config: String = settings.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    fs::write(machine.at("nagios.cfg"), config).unwrap();
    let checked = Command::new(&nagios).arg("-v").arg(machine.at("nagios.cfg")).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let started = Command::new(&nagios).arg(machine.at("nagios.cfg")).stdout(Stdio::null()).spawn().unwrap();
    let _nagios = Ends(started);
    let found = soon("checks of Nagios", 60, || Some(services(&machine.at("status.dat"))).filter(|all| all.len() == 4));
    for (code, state) in states.into_iter().enumerate() {
        let (told, line, data) = &found[state];
        assert_eq!(*told, code.to_string(), "{state}: {line}");
        assert!(line.starts_with(&format!("RAILGAUGE {} - ", state.to_uppercase())), "{line}");
        // Without an age there is nothing to draw: a killed run has none that counts.
        assert!(data.starts_with("age=") && !line.contains('|'), "{state}: {data}");
    }
}

#[test]
#[ignore = "needs LBNL Node Health Check, and root"]
fn by_hand_the_node_health_check_takes_the_blamed_node_out_and_puts_it_back() {
    let nhc = named("RAILGAUGE_NHC");
    let machine = Machine::new();
    let line = machine.here(block("check_cmd_status").trim());
    let line = line.replace("--format nhc", "--format nhc --max-age 1000000h");
    let scripts = nhc.with_file_name("scripts");
    let scripts = if scripts.exists() { scripts } else { "/etc/nhc/scripts".into() };
    fs::create_dir(machine.at("nhc")).unwrap();
    fs::write(machine.at("nhc/nhc.conf"), format!("{line}\n")).unwrap();
    // What NHC would have Slurm do is written down.
    for word in ["offline", "online"] {
        let path = machine.at(word);
        fs::write(&path, format!("#!/bin/sh\necho {word} \"$1\" >> {}\n", machine.at("told").display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let check = |host: &str, more: &str| {
        let _ = fs::remove_file(machine.at("told"));
        let at = |name: &str| machine.at(name).display().to_string();
        let nhc = format!(
            "hostname {host} && exec bash {} -D {} -t 30 INCDIR={} LOGFILE={} OFFLINE_NODE={} ONLINE_NODE={} NHC_RM=slurm DETACHED_MODE=0 \
             NHC_DETACHED= {more}",
            nhc.display(),
            at("nhc"),
            scripts.display(),
            at("nhc.log"),
            at("offline"),
            at("online"),
        );
        // What NHC leaves behind to watch its time would hold a pipe open.
        let mut command = Command::new("unshare");
        command.args(["--uts", "sh", "-c", &nhc]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let passed = command.status().unwrap().success();
        let log = fs::read_to_string(machine.at("nhc.log")).unwrap_or_default();
        let told = fs::read_to_string(machine.at("told")).unwrap_or_default();
        (passed, told, log)
    };
    machine.add("runs", &bad());
    let (passed, told, log) = check("gpu005", "");
    assert!(!passed && told == "offline gpu005\n", "{told}{log}");
    // Its neighbours, which the same run measured, and a machine that is not in the plan.
    for host in ["gpu004", "login1"] {
        let (passed, told, log) = check(host, "");
        assert!(passed && !told.contains("offline"), "{host}: {told}{log}");
    }
    // After the repair a later run measured it.
    let mended = Scenario { sizes: vec![1 << 20], day: 2, ..Scenario::healthy(8, 2) };
    fs::create_dir(machine.at("runs/later")).unwrap();
    fs::write(machine.at("runs/later/records.jsonl"), mended.jsonl()).unwrap();
    let (passed, told, log) = check("gpu005", "");
    assert!(passed && !told.contains("offline"), "{told}{log}");
    // A file system that hangs, and a machine without railgauge.
    fs::remove_file(machine.at("bin/railgauge")).unwrap();
    let (passed, told, log) = check("gpu005", "");
    assert!(passed && !told.contains("offline"), "{told}{log}");
    let hangs = "#!/bin/sh\nexec sleep 60\n";
    fs::write(machine.at("bin/railgauge"), hangs).unwrap();
    fs::set_permissions(machine.at("bin/railgauge"), fs::Permissions::from_mode(0o755)).unwrap();
    let begun = Instant::now();
    let (passed, told, log) = check("gpu005", "");
    assert!(
        passed && !told.contains("offline") && begun.elapsed() < Duration::from_secs(20),
        "{told}{log} {:?}",
        begun.elapsed()
    );
}

#[test]
#[ignore = "needs cron, and root"]
fn by_hand_cron_runs_its_line() {
    let cron = named("RAILGAUGE_CRON");
    let machine = Machine::new();
    let table = machine.here(&block("17 2 * * *  railgauge run")).replace("17 2 * * *", "* * * * *");
    let agent = built_agent().map(|agent| format!("RAILGAUGE_AGENT={}\n", agent.display())).unwrap_or_default();
    fs::write(machine.at("table"), format!("{agent}{table}\n")).unwrap();
    // The daemon gets folders of its own: what others gave cron to do here is not done twice.
    let script = format!(
        "set -e; mount --make-rprivate /; mkdir -p /var/spool/cron; mount -t tmpfs none /var/spool/cron; mount -t tmpfs none /run; \
         mkdir -p /etc/cron.d; mount -t tmpfs none /etc/cron.d; mkdir -m 1730 /var/spool/cron/crontabs; \
         cp {} /var/spool/cron/crontabs/root; chmod 600 /var/spool/cron/crontabs/root; exec {} -f",
        machine.at("table").display(),
        cron.display(),
    );
    let started =
        Command::new("unshare").args(["--mount", "--fork", "--pid", "--kill-child", "sh", "-c", &script]).spawn();
    let _cron = Ends(started.unwrap());
    // A minute begins; the night takes seconds.
    let prom = machine.at("prom/railgauge.prom");
    soon("a night by cron", 150, || prom.exists().then_some(()));
    machine.has_metrics();
    let runs: Vec<_> = fs::read_dir(machine.at("runs")).unwrap().flatten().collect();
    let day = runs[0].file_name().into_string().unwrap();
    assert!(runs[0].path().join("report.html").exists() && day.len() == 8, "{day}");
}

/// A manager for a user, of the machine's systemd: in namespaces where it finds a machine that was started by systemd.
#[test]
#[ignore = "needs systemd, and root"]
fn by_hand_systemd_fires_the_timer_and_runs_the_service() {
    let systemd = named("RAILGAUGE_SYSTEMD");
    let machine = Machine::new();
    let units = machine.at("home/.config/systemd/user");
    fs::create_dir_all(units.join("timers.target.wants")).unwrap();
    fs::create_dir(machine.at("runtime")).unwrap();
    fs::set_permissions(machine.at("runtime"), fs::Permissions::from_mode(0o700)).unwrap();
    let railgauge = machine.at("bin/railgauge").display().to_string();
    let agent = built_agent().map(|agent| format!("Environment=RAILGAUGE_AGENT={}\n", agent.display()));
    let service = machine.here(&block("Type=oneshot")).replace("=railgauge", &format!("={railgauge}"));
    let service = service.replace("'railgauge", &format!("'{railgauge}"));
    fs::write(units.join("railgauge-nightly.service"), format!("{service}\n{}", agent.unwrap_or_default())).unwrap();
    // In a minute, and not at night.
    let timer =
        block("OnCalendar=").replace("*-*-* 02:17", "*:*:0/10").replace("RandomizedDelaySec=10min", "AccuracySec=1s");
    fs::write(units.join("railgauge-nightly.timer"), timer + "\n").unwrap();
    let wanted = units.join("timers.target.wants/railgauge-nightly.timer");
    std::os::unix::fs::symlink("../railgauge-nightly.timer", wanted).unwrap();
    let script = format!(
        "set -e; mount --make-rprivate /; mount -t tmpfs none /run; mkdir -p /run/systemd/system; {} --user --log-target=null; exit 1",
        systemd.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script]);
    command.env("HOME", machine.at("home")).env("XDG_RUNTIME_DIR", machine.at("runtime")).env_remove("XDG_CONFIG_HOME");
    let _systemd = Ends(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let prom = machine.at("prom/railgauge.prom");
    soon("a night by systemd", 120, || prom.exists().then_some(()));
    machine.has_metrics();
    assert!(fs::read_dir(machine.at("runs")).unwrap().flatten().any(|run| run.path().join("report.html").exists()));
}
