//! The tests of a plan, by what it is for.

use super::{
    page::Page,
    seen::{Carrier, Seen, has},
    within,
};

/// Hosts up to which every pair is measured.
const TOURNAMENT: usize = 32;
/// Hosts up to which everything is measured several times.
const FEW: usize = 8;
/// Rounds of a larger cluster: every host meets as many others.
const ROUNDS: usize = 32;
/// Rounds of one night.
const NIGHTLY_ROUNDS: usize = 4;
/// Links that an expectation about peers needs: a link and three others (docs/reading-the-report.md).
pub(super) const PEERS: usize = 4;
/// GPU memory below which collectives stay small, in bytes.
const SMALL_GPU: u64 = 8 << 30;

/// Tests for the day on which a cluster is handed over.
pub(super) fn acceptance(page: &mut Page, seen: &Seen) {
    let pairs = defaults(page, seen, if seen.hosts.len() <= TOURNAMENT { None } else { Some(ROUNDS) }, ("1s", "200ms"));
    if seen.hosts.len() <= FEW && !seen.one_machine && !seen.is_emulated {
        page.line("repeats = 3  # few hosts: the scatter of each link is worth the time");
    }
    demands(page, seen);
    within::tests(page, seen);
    match seen.carrier {
        Carrier::Verbs => over_verbs(page, seen, pairs),
        Carrier::Tcp => over_tcp(page, seen, pairs),
    }
    if seen.hosts.len() >= 4 {
        page.gap();
        page.say(
            "All hosts send at once, each to another one: what the switches between them carry. Without adaptive routing some \
             flows share a path, and that is no defect: add a limit when you know what your fabric reaches.",
        );
        page.line(
            "[[test]]\nname = \"all-at-once\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"1MiB\"\nqps = 4",
        );
        page.line("pattern = \"permutation\"\nrounds = 2");
        if seen.one_machine {
            // The least for flows at once.
            page.line("measure = \"500ms\"");
        }
    }
    collectives(page, seen, "1s");
}

/// Tests between jobs, every night.
pub(super) fn nightly(page: &mut Page, seen: &Seen) {
    let pairs = defaults(page, seen, Some(NIGHTLY_ROUNDS), ("500ms", "100ms"));
    page.line("repeats = 3");
    demands(page, seen);
    page.gap();
    page.line(
        "[[test]]\nname = \"write-bandwidth\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"1MiB\"\nqps = 4",
    );
    if seen.unjudged.is_none() {
        expect(
            page,
            "Lower than on the day of acceptance: a healthy link never falls below this, whatever else is going on.",
            "bandwidth",
            "percent_of_ceiling = 75",
            None,
        );
        if pairs >= PEERS {
            expect(
                page,
                "The link that became slow since yesterday.",
                "bandwidth",
                "within_percent_of_peers = 10",
                None,
            );
        }
    }
    page.gap();
    page.line("[[test]]\nname = \"write-latency\"\nop = \"write\"\nmetric = \"latency\"\nsizes = 8");
    collectives(page, seen, "500ms");
    page.gap();
    page.say(
        "After some weeks compare with your own past: `railgauge runs baseline 'reports/nightly-*' -o baseline.json`, and uncomment \
         this. `railgauge trend 'reports/nightly-*'` needs no baseline.",
    );
    for line in ["[baseline]", "file = \"baseline.json\"", ""] {
        page.line(format!("# {line}").trim_end());
    }
    page.say("and in a [[test]]:");
    for line in ["[[test.expect]]", "metric = \"bandwidth\"", "within_percent_of_baseline = 5"] {
        page.example(line);
    }
}

/// Two variants of one setting, measured in turn.
pub(super) fn tuning(page: &mut Page, seen: &Seen) {
    // A round of an odd number of hosts leaves one out, of which nothing would be known: two have all of them.
    defaults(page, seen, Some(1 + seen.hosts.len() % 2), ("500ms", "100ms"));
    demands(page, seen);
    // Emulated devices have no PCIe whose order could be relaxed.
    let (what, a, b) = match seen.carrier {
        Carrier::Verbs if !seen.is_emulated && !seen.one_machine => (
            "PCIe relaxed ordering: with it a NIC need not wait for earlier writes.",
            ("strict-order", "relaxed_ordering = false"),
            ("relaxed-order", "relaxed_ordering = true"),
        ),
        _ => (
            "Polling takes a processor per end; sleeping until something arrives leaves it to others.",
            ("polling", "completion = \"poll\""),
            ("sleeping", "completion = \"events\""),
        ),
    };
    page.gap();
    page.say(what);
    page.say(
        "Any key in `knobs` can take its place, and so can `qps`, `env` of NCCL, or `[test.configure]` for settings of hosts and \
         switches (docs/plan-format.md).",
    );
    for (name, knob) in [a, b] {
        page.gap();
        page.line(format!("[[test]]\nname = \"{name}\"\nop = \"write\"\nmetric = \"bandwidth\""));
        page.line(format!("sizes = [\"64KiB\", \"1MiB\"]\nknobs = {{ {knob} }}"));
    }
    page.gap();
    page.say(
        "Every block measures both twice, in changing order, so that slow drift cancels. The report says whether they differ, and \
         by how much.",
    );
    page.line(format!("[[interleave]]\na = \"{}\"\nb = \"{}\"\nblocks = 8", a.0, b.0));
}

/// Writes `[defaults]` with so many rounds of random pairs, or all pairs. Returns the number of pairs.
fn defaults(page: &mut Page, seen: &Seen, rounds: Option<usize>, (window, warm_up): (&str, &str)) -> usize {
    let hosts = seen.hosts.len();
    // The circle method (docs/patterns.md).
    let all = hosts.div_ceil(2) * 2 - 1;
    page.gap();
    page.line("[defaults]");
    if seen.carrier == Carrier::Tcp {
        page.line("transport = \"tcp\"");
    }
    let pairs = match rounds.map(|rounds| rounds.min(all)) {
        None => {
            page.line("pattern = \"tournament\"  # every pair once");
            hosts * (hosts - 1) / 2
        }
        Some(rounds) => {
            page.line("pattern = \"random\"  # every host with as many others as there are rounds");
            page.line(format!("rounds = {rounds}"));
            rounds * seen.pairs_of_round()
        }
    };
    // Longer windows would not make more of what says nothing.
    let (window, warm_up) = if seen.one_machine { ("300ms", "50ms") } else { (window, warm_up) };
    page.line(format!("measure = \"{window}\"\nwarm_up = \"{warm_up}\""));
    if seen.is_emulated && seen.carrier == Carrier::Verbs {
        page.say("An emulated device is slow: less in flight, and more patience until something is sent again.");
        page.line("knobs = { depth = 16, timeout = 18 }");
    }
    pairs
}

/// Says why nothing is demanded, and how that is written.
fn demands(page: &mut Page, seen: &Seen) {
    let Some(why) = &seen.unjudged else { return };
    page.gap();
    page.say(why);
    if !seen.one_machine {
        page.say("A demand is written below its test, for example:");
        for line in ["[[test.expect]]", "metric = \"bandwidth\"", "at_least = \"9 Gb/s\""] {
            page.example(line);
        }
    }
}

fn over_verbs(page: &mut Page, seen: &Seen, pairs: usize) {
    let is_judged = seen.unjudged.is_none();
    let is_compared = is_judged && pairs >= PEERS;
    page.gap();
    page.line("[[test]]\nname = \"write-bandwidth\"\nop = \"write\"\nmetric = \"bandwidth\"");
    let sizes = if seen.is_emulated { "[\"64KiB\", \"512KiB\"]" } else { "[\"64KiB\", \"1MiB\", \"8MiB\"]" };
    page.line(format!("sizes = {sizes}\nqps = 4"));
    if is_judged {
        expect(
            page,
            "Healthy ports reach 95 % and more of what rate, MTU and headers allow; the rest is room for notifications of \
             congestion and for a slot that is only just fast enough.",
            "bandwidth",
            "percent_of_ceiling = 90",
            Some("1MiB..8MiB"),
        );
    }
    if is_compared {
        expect(
            page,
            "Equal links differ by less than 1 %: one that is 5 % below the others has something of its own.",
            "bandwidth",
            "within_percent_of_peers = 5",
            Some("1MiB..8MiB"),
        );
    }
    page.gap();
    page.line("[[test]]\nname = \"read-bandwidth\"\nop = \"read\"\nmetric = \"bandwidth\"\nsizes = \"1MiB\"\nqps = 4");
    if is_judged {
        expect(
            page,
            "A read waits for its answer, so that a little more is lost between two of them.",
            "bandwidth",
            "percent_of_ceiling = 85",
            None,
        );
    }
    page.gap();
    page.line(
        "[[test]]\nname = \"both-directions\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"1MiB\"\nqps = 4",
    );
    page.line("bidirectional = true");
    if is_judged {
        expect(
            page,
            "Both directions share the PCIe slot and the memory of the host.",
            "bandwidth",
            "percent_of_ceiling = 80",
            None,
        );
    }
    latency(page, is_compared);
    if seen.gpus > 0 && seen.gpudirect {
        page.gap();
        page.say("The NIC reads and writes GPU memory by itself (GPUDirect RDMA), each rail that of the nearest GPU.");
        page.line(
            "[[test]]\nname = \"gpu-write-bandwidth\"\nop = \"write\"\nmetric = \"bandwidth\"\nmemory = \"cuda\"",
        );
        page.line("sizes = [\"1MiB\", \"8MiB\"]\nqps = 4");
        if is_judged && !seen.far_from_gpus.is_empty() {
            page.say(format!(
                "No speed is demanded: {} no GPU behind the same PCIe switch (as on all hosts or on some), and a path through the \
                 processor carries less, how much depends on it. After a first run, demand what it shows.",
                has(&seen.far_from_gpus)
            ));
        } else if is_judged {
            expect(
                page,
                "A GPU behind the same PCIe switch costs nothing; ACS, or a path through the processor, costs half and more.",
                "bandwidth",
                "percent_of_ceiling = 85",
                None,
            );
        }
    }
}

fn over_tcp(page: &mut Page, seen: &Seen, pairs: usize) {
    let is_judged = seen.unjudged.is_none();
    page.gap();
    page.line("[[test]]\nname = \"write-bandwidth\"\nop = \"write\"\nmetric = \"bandwidth\"");
    page.line("sizes = [\"64KiB\", \"1MiB\"]\nqps = 4");
    if is_judged {
        expect(
            page,
            "Four streams fill such a link, unless the processors are busy or small packets cost them too much.",
            "bandwidth",
            "percent_of_ceiling = 80",
            Some("1MiB"),
        );
    }
    if is_judged && pairs >= PEERS {
        expect(
            page,
            "TCP varies more than RDMA: a link that is a tenth below the others has something of its own.",
            "bandwidth",
            "within_percent_of_peers = 10",
            Some("1MiB"),
        );
    }
    latency(page, is_judged && pairs >= PEERS);
}

fn latency(page: &mut Page, is_compared: bool) {
    page.gap();
    page.line("[[test]]\nname = \"write-latency\"\nop = \"write\"\nmetric = \"latency\"\nsizes = [8, \"4KiB\"]");
    if is_compared {
        expect(
            page,
            "Another switch on the way adds less than the path itself: more than double is a detour or a setting.",
            "latency_p50",
            "within_percent_of_peers = 100",
            Some("8"),
        );
    }
}

/// All-reduce of NCCL: within every host, and over all of them.
fn collectives(page: &mut Page, seen: &Seen, window: &str) {
    if seen.nccl.is_none() || seen.gpus == 0 {
        return;
    }
    let hosts = seen.hosts.len();
    let sizes = match (window, seen.gpu_bytes) {
        (_, Some(bytes)) if bytes < SMALL_GPU => "[\"8MiB\", \"128MiB\"]",
        ("1s", _) => "[\"8MiB\", \"128MiB\", \"1GiB\"]",
        _ => "[\"128MiB\"]",
    };
    let test = |page: &mut Page, name: &str, groups: &str| {
        page.line(format!(
            "[[test]]\nname = \"{name}\"\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\""
        ));
        page.line(format!("{groups}\nranks_per_host = {}\nsizes = {sizes}", seen.gpus));
    };
    if seen.gpus > 1 {
        page.gap();
        page.say(match seen.is_amd {
            true => "RCCL within every host, which has the interface of NCCL: xGMI and PCIe, without the network.",
            false => "NCCL within every host: NVLink and PCIe, without the network.",
        });
        test(page, "nccl-in-host", "groups = \"every\"\ngroup_size = 1");
        if seen.unjudged.is_none() && hosts >= PEERS {
            expect(
                page,
                match seen.is_amd {
                    true => "Equal hosts differ little: a lost xGMI link or a GPU at a lower clock shows.",
                    false => "Equal hosts differ by less than 2 %: a lost NVLink or a GPU at a lower clock shows.",
                },
                "busbw",
                "within_percent_of_peers = 5",
                Some("128MiB..1GiB"),
            );
        }
    }
    page.gap();
    page.say(
        "NCCL over all hosts. If it is slow or fails, the run measures ever smaller groups until the reason is left. Add \
         `carried_by = \"nccl-ib\"` to fail a run in which NCCL falls back to sockets, and a limit for busbw from your contract.",
    );
    test(page, "nccl-all-hosts", "groups = \"all\"");
}

/// An expectation below a test, with its reason above it.
pub(super) fn expect(page: &mut Page, reason: &str, metric: &str, limit: &str, sizes: Option<&str>) {
    page.gap();
    page.say(reason);
    page.line(format!("[[test.expect]]\nmetric = \"{metric}\"\n{limit}"));
    match sizes {
        Some("8") => page.line("sizes = 8"),
        Some(sizes) => page.line(format!("sizes = \"{sizes}\"")),
        None => {}
    }
}
