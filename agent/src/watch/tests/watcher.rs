use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs,
    rc::Rc,
    sync::mpsc::{Sender, channel},
    time::Duration,
};

use railgauge_wire::{CounterRow, GigabitsPerSecond, PortSeen};

use super::*;

const PORT: &str = "sys/class/infiniband/mlx5_0/ports/1";
const INTERFACE: &str = "sys/class/net/nowhere0";

/// Drivers that answer what a test says, at a cost, and clocks that a test drives: each reading takes a microsecond.
#[derive(Default, Clone)]
struct Said(Rc<Told>);

#[derive(Default)]
struct Told {
    statistics: RefCell<Vec<(String, u64)>>,
    cost: Cell<Nanoseconds>,
    asked: Cell<u64>,
    now: Cell<Nanoseconds>,
    used: Cell<Nanoseconds>,
}

const TICK: Nanoseconds = Nanoseconds(1_000);

impl Drivers for Said {
    fn now(&self) -> Nanoseconds {
        self.0.now.set(self.0.now.get() + TICK);
        self.0.now.get()
    }

    fn used(&self) -> Nanoseconds {
        self.0.used.set(self.0.used.get() + TICK);
        self.0.used.get()
    }

    fn statistics(&self, _: &str) -> io::Result<Vec<(String, u64)>> {
        self.0.asked.set(self.0.asked.get() + 1);
        for clock in [&self.0.now, &self.0.used] {
            clock.set(clock.get() + self.0.cost.get());
        }
        Ok(self.0.statistics.borrow().clone())
    }

    fn module(&self, _: &str, _: Part) -> io::Result<Vec<u8>> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

/// A host with one RoCE port and its interface, and a watcher whose work a test does step by step.
struct Bench {
    root: tempfile::TempDir,
    watcher: Watcher<Said>,
    said: Said,
}

impl Bench {
    fn new(devices: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let ports = devices.iter().map(|device| WatchedPort { device: (*device).to_owned(), port: 1 });
        let ports: Vec<_> = ports.collect();
        let said = Said::default();
        let mailbox = Arc::new(Mailbox::new(ports.clone(), said.now()));
        let watcher = Watcher::new(Tree::new(root.path()), said.clone(), ports, mailbox);
        let bench = Self { root, watcher, said };
        bench.plug();
        bench
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn plug(&self) {
        for (path, text) in [
            (format!("{PORT}/state"), "4: ACTIVE\n"),
            (format!("{PORT}/phys_state"), "5: LinkUp\n"),
            (format!("{PORT}/rate"), "100 Gb/sec (4X EDR)\n"),
            (format!("{PORT}/link_layer"), "Ethernet\n"),
            (format!("{PORT}/counters/symbol_error"), "7\n"),
            (format!("{PORT}/hw_counters/out_of_sequence"), "100\n"),
            (format!("{PORT}/hw_counters/lifespan"), "10000\n"),
            (format!("{PORT}/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
            (format!("{PORT}/gid_attrs/ndevs/0"), "nowhere0\n"),
            (format!("{INTERFACE}/carrier"), "1\n"),
            (format!("{INTERFACE}/operstate"), "up\n"),
            (format!("{INTERFACE}/speed"), "100000\n"),
            (format!("{INTERFACE}/carrier_down_count"), "3\n"),
            (format!("{INTERFACE}/statistics/tx_bytes"), "99\n"),
        ] {
            self.write(&path, text);
        }
        let place = self.root.path().join("sys/devices/pci0000:b0/0000:b1:00.0");
        fs::create_dir_all(&place).unwrap();
        let _ = std::os::unix::fs::symlink(place, self.root.path().join("sys/class/infiniband/mlx5_0/device"));
    }

    fn unplug(&self) {
        for gone in ["sys/class/infiniband/mlx5_0", INTERFACE] {
            fs::remove_dir_all(self.root.path().join(gone)).unwrap();
        }
    }

    fn look(&mut self) {
        self.watcher.look(self.said.now(), false);
    }

    fn look_closely(&mut self) {
        // As if a second had passed since files were looked for.
        self.watcher.pace = Pace::default();
        self.watcher.look(self.said.now(), true);
    }

    fn count(&mut self) {
        self.watcher.read(Work::Counters, 0);
    }

    fn seen(&self) -> PortSeen {
        self.watcher.mailbox.take(self.said.now()).ports.remove(0)
    }
}

/// What rose in a row: the first one of a watch has all counters.
fn rose(row: &CounterRow) -> BTreeMap<String, u64> {
    row.counted.iter().filter(|(_, rise)| **rise > 0).map(|(name, rise)| (name.clone(), *rise)).collect()
}

#[test]
fn a_carrier_that_goes_and_comes() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    let first = bench.seen();
    let [state] = &first.states[..] else { panic!("{first:?}") };
    assert!(state.up && state.after == state.at && state.lanes == Some(4), "{state:?}");
    assert_eq!(state.rate_gbps, Some(GigabitsPerSecond(100.0)));
    assert_eq!(state.words, "state 4: ACTIVE, phys_state 5: LinkUp, carrier 1, operstate up");
    bench.look();
    bench.write(&format!("{INTERFACE}/carrier"), "0\n");
    bench.look();
    bench.look();
    bench.write(&format!("{INTERFACE}/carrier"), "1\n");
    bench.look();
    let seen = bench.seen();
    assert_eq!((seen.looks, seen.failure.as_deref()), (4, None));
    let [down, up] = &seen.states[..] else { panic!("{seen:?}") };
    assert!(!down.up && down.rate_gbps.is_none() && up.up && up.lanes == Some(4), "{seen:?}");
    assert!(state.at < down.after && down.after < down.at && down.at < up.after && up.after < up.at, "{seen:?}");
    assert!(bench.seen().states.is_empty());
}

#[test]
fn a_port_whose_state_follows_its_carrier_late_is_seen_at_every_look() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    bench.write(&format!("{INTERFACE}/carrier"), "0\n");
    bench.write(&format!("{PORT}/state"), "1: DOWN\n");
    bench.look();
    bench.write(&format!("{INTERFACE}/carrier"), "1\n");
    bench.look();
    bench.write(&format!("{PORT}/state"), "4: ACTIVE\n");
    bench.look();
    let ups: Vec<bool> = bench.seen().states.iter().map(|state| state.up).collect();
    assert_eq!(ups, [true, false, false, true]);
}

#[test]
fn a_rate_that_drops_is_a_change_while_up() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    bench.write(&format!("{PORT}/rate"), "25 Gb/sec (1X EDR)\n");
    bench.look();
    bench.look_closely();
    let states = bench.seen().states;
    let [_, narrow] = &states[..] else { panic!("{states:?}") };
    assert_eq!((narrow.up, narrow.rate_gbps, narrow.lanes), (true, Some(GigabitsPerSecond(25.0)), Some(1)));
}

#[test]
fn a_break_between_two_looks_is_in_the_counters() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    bench.count();
    assert_eq!(bench.seen().states.len(), 1);
    bench.write(&format!("{INTERFACE}/carrier_down_count"), "4\n");
    bench.write(&format!("{INTERFACE}/statistics/tx_bytes"), "1099\n");
    bench.write(&format!("{PORT}/hw_counters/out_of_sequence"), "3\n");
    bench.look();
    bench.count();
    bench.count();
    let seen = bench.seen();
    let [down, up] = &seen.states[..] else { panic!("{seen:?}") };
    assert!(!down.up && up.up && (down.after, down.at) == (up.after, up.at) && down.after < down.at, "{seen:?}");
    assert!(down.words.contains("carrier_down_count"), "{down:?}");
    let [row, still] = &seen.rows[..] else { panic!("{seen:?}") };
    let rose = row.counted.iter().filter(|(_, rise)| **rise > 0);
    let counted: Vec<_> = rose.map(|(name, rise)| (name.as_str(), *rise)).collect();
    assert_eq!(counted, [("netdev/carrier_down_count", 1), ("netdev/tx_bytes", 1000)]);
    assert!(row.counted.contains_key("counters/symbol_error"), "{row:?}");
    assert!(row.from < row.until && row.until == still.from && still.counted.is_empty(), "{seen:?}");
    assert!(seen.failure.is_none(), "{seen:?}");
}

#[test]
fn a_device_that_vanishes_is_down_and_named_and_comes_back() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    bench.count();
    bench.unplug();
    bench.look();
    bench.count();
    bench.look_closely();
    let gone = bench.seen();
    assert_eq!(gone.looks, 1, "looks that fail do not count");
    assert!(gone.failure.as_ref().is_some_and(|why| why.contains("mlx5_0")), "{gone:?}");
    let states: Vec<_> = gone.states.iter().map(|state| (state.up, state.words.contains("sys/class"))).collect();
    assert_eq!(states[..2], [(true, false), (false, true)], "{gone:?}");
    assert!(gone.rows.is_empty(), "{gone:?}");
    bench.plug();
    bench.write(&format!("{PORT}/counters/symbol_error"), "0\n");
    bench.write(&format!("{INTERFACE}/statistics/tx_bytes"), "199\n");
    bench.look_closely();
    bench.count();
    let back = bench.seen();
    assert!(back.states.len() == 1 && back.states[0].up && back.looks == 1 && back.failure.is_none(), "{back:?}");
    // The row reaches over the time that nothing was read in; the reset is not a rise.
    assert_eq!(rose(&back.rows[0]), [("netdev/tx_bytes".to_owned(), 100)].into());
}

#[test]
fn a_port_that_gets_another_interface_is_never_down_meanwhile() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    bench.count();
    // Another interface, and the old one is gone.
    bench.write(&format!("{PORT}/gid_attrs/ndevs/0"), "nowhere1\n");
    let class = bench.root.path().join("sys/class/net");
    fs::rename(class.join("nowhere0"), class.join("nowhere1")).unwrap();
    bench.count();
    bench.look_closely();
    for bytes in ["199\n", "299\n"] {
        bench.write("sys/class/net/nowhere1/statistics/tx_bytes", bytes);
        bench.count();
    }
    let seen = bench.seen();
    assert!(seen.states.len() == 1 && seen.failure.is_none() && seen.looks == 2, "{seen:?}");
    // What the new interface has more than the old one did not rise; the row is there, and the next continues from it.
    let counted: Vec<_> = seen.rows.iter().map(|row| row.counted.get("netdev/tx_bytes").copied()).collect();
    assert!(counted == [None, Some(100)] && seen.rows[0].until == seen.rows[1].from, "{seen:?}");
}

#[test]
fn looks_that_take_long_leave_room_for_readings() {
    let mut bench = Bench::new(&["mlx5_0"]);
    let mut rows = 0;
    for second in 0..8 {
        // Each time both are due.
        bench.watcher.pace = Pace::default();
        bench.write(&format!("{INTERFACE}/statistics/tx_bytes"), &second.to_string());
        bench.watcher.work(bench.said.now());
        rows += bench.seen().rows.len();
    }
    assert!(rows >= 3, "{rows}");
}

#[test]
fn a_device_that_was_never_there_is_down_until_it_comes() {
    let mut bench = Bench::new(&["mlx5_0", "mlx5_7", "../lo"]);
    bench.look_closely();
    bench.watcher.read(Work::Counters, 1);
    bench.watcher.read(Work::Statistics, 1);
    bench.watcher.read(Work::Modules, 1);
    let seen = bench.watcher.mailbox.take(bench.said.now());
    assert!(seen.ports[0].failure.is_none() && seen.ports[0].states[0].up);
    for (port, name) in [(1, "mlx5_7"), (2, "../lo")] {
        let port = &seen.ports[port];
        assert!(port.failure.as_ref().is_some_and(|why| why.contains(name)), "{port:?}");
        assert!(port.looks == 0 && !port.states[0].up && port.longest_gap > Nanoseconds::ZERO, "{port:?}");
    }
}

#[test]
fn statistics_have_rows_of_their_own() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    let say = |bench: &Bench, discards| {
        *bench.said.0.statistics.borrow_mut() =
            vec![("rx_discards_phy".into(), discards), ("rx0_packets".into(), discards)];
    };
    say(&bench, 5);
    bench.watcher.read(Work::Statistics, 0);
    for tx in [200, 300] {
        bench.write(&format!("{INTERFACE}/statistics/tx_bytes"), &tx.to_string());
        bench.count();
    }
    say(&bench, 9);
    bench.watcher.read(Work::Statistics, 0);
    let seen = bench.seen();
    let kinds: Vec<_> = seen.rows.iter().map(|row| (row.is_of_statistics(), rose(row))).collect();
    let one = |name: &str, rise| [(name.to_owned(), rise)].into();
    assert_eq!(kinds, [(false, one("netdev/tx_bytes", 100)), (true, one("ethtool/rx_discards_phy", 4))]);
    assert!(seen.rows[1].from < seen.rows[0].from && seen.rows[1].until > seen.rows[0].until, "{seen:?}");
}

#[test]
fn drivers_without_statistics_are_asked_once() {
    let mut bench = Bench::new(&["mlx5_0"]);
    bench.look_closely();
    for _ in 0..3 {
        bench.watcher.read(Work::Statistics, 0);
    }
    assert_eq!(bench.said.0.asked.get(), 1);
    assert!(bench.seen().rows.is_empty());
}

/// Runs a watcher for so long by its own clock, and returns what it saw.
fn ran(bench: &mut Bench, time: Nanoseconds) -> railgauge_wire::watch::Watched {
    let begun = bench.said.now();
    while bench.said.now() < begun + time {
        let wait = bench.watcher.work(bench.said.now());
        bench.said.0.now.set(bench.said.0.now.get() + wait);
    }
    bench.watcher.mailbox.take(bench.said.now())
}

const MS: Nanoseconds = Nanoseconds::from_millis(1);

#[test]
fn looks_are_ten_a_second_and_rows_one() {
    let seen = ran(&mut Bench::new(&["mlx5_0"]), MS * 3_300);
    let port = &seen.ports[0];
    assert_eq!((port.looks, port.rows.len()), (33, 3), "{seen:?}");
}

#[test]
fn what_costs_much_is_read_less_often_and_looks_go_on() {
    let mut bench = Bench::new(&["mlx5_0"]);
    // The budget of twenty seconds and more, in a reading that is wanted every ten.
    bench.said.0.cost.set(MS * 200);
    *bench.said.0.statistics.borrow_mut() = vec![("rx_discards_phy".into(), 1)];
    let seen = ran(&mut bench, MS * 21_000);
    assert_eq!(bench.said.0.asked.get(), 1, "its next round is due when the first is paid");
    assert!(seen.ports[0].looks > 200 && seen.ports[0].longest_gap < MS * 400, "{seen:?}");
}

/// A driver that reports what it is asked, and does not answer before it is released.
struct Hangs(Sender<()>, Receiver<()>);

impl Drivers for Hangs {
    fn statistics(&self, _: &str) -> io::Result<Vec<(String, u64)>> {
        self.0.send(()).unwrap();
        assert_eq!(self.1.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected), "not released");
        Ok(vec![("rx_discards_phy".into(), 1)])
    }

    fn module(&self, _: &str, _: Part) -> io::Result<Vec<u8>> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

#[test]
fn a_driver_that_hangs_keeps_nobody_from_an_answer() {
    let Bench { root, watcher, .. } = Bench::new(&["mlx5_0"]);
    let port = watcher.ports[0].name.clone();
    let mailbox = Arc::new(Mailbox::new(vec![port.clone()], clock::now()));
    let ((asks, asked), (release, released)) = (channel(), channel());
    let hangs = Watcher::new(Tree::new(root.path()), Hangs(asks, released), vec![port], mailbox.clone());
    let (ending, end) = channel::<()>();
    let asker = std::thread::spawn(move || {
        asked.recv().unwrap();
        // As if two seconds had passed. The driver is released only once this has an answer.
        let seen = mailbox.take(clock::now() + Nanoseconds::from_secs(2));
        drop((ending, release));
        seen
    });
    hangs.run(&end);
    let seen = asker.join().unwrap();
    let port = &seen.ports[0];
    assert!(port.looks <= 2 && port.longest_gap > MS * 1_100, "{port:?}");
    assert!(port.failure.as_ref().is_some_and(|why| why.contains("mlx5_0, port 1")), "{port:?}");
}

/// A driver without statistics.
struct Mute;

impl Drivers for Mute {
    fn statistics(&self, _: &str) -> io::Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }

    fn module(&self, _: &str, _: Part) -> io::Result<Vec<u8>> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn a_watch_takes_less_than_a_hundredth_of_a_processor() {
    let Bench { root, watcher, .. } = Bench::new(&["mlx5_0"]);
    let port = watcher.ports[0].name.clone();
    let mailbox = Arc::new(Mailbox::new(vec![port.clone()], clock::now()));
    let watcher = Watcher::new(Tree::new(root.path()), Mute, vec![port], mailbox.clone());
    let (ending, end) = channel::<()>();
    let ender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(3_300));
        drop(ending);
    });
    watcher.run(&end);
    ender.join().unwrap();
    let seen = mailbox.take(clock::now());
    assert!((12..=36).contains(&seen.ports[0].looks), "{seen:?}");
    assert!(seen.cpu.as_f64() < 0.01 * (seen.until - seen.from).as_f64(), "{seen:?}");
}
