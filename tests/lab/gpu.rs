//! GPU memory over real verbs without a GPU: a double of NVIDIA's driver library on the lab's hosts, whose memory
//! Soft-RoCE registers by its address as a NIC registers GPU memory with nvidia-peermem.

use std::process::Command;

use crate::{
    example,
    lab::{self, Borrowed, borrow},
    railgauge::{Row, Scene},
};

/// Two hosts that have the double and, in place of the module's own files, a word that peer memory is loaded.
struct Guests {
    lab: Borrowed,
}

impl Guests {
    fn new() -> Option<Self> {
        let lab = borrow()?;
        let double = example::folder_with("cuda_double").join("libcuda_double.so");
        for host in 1..=2 {
            // It is some megabytes, and the same for all tests: a host has it until it is booted anew.
            if lab.ssh(host, "mkdir -p /root/cuda && [ -e /root/cuda/whole ]").status.success() {
                continue;
            }
            let to = format!("lab{host}:/root/cuda/libcuda.so.1");
            let mut scp = Command::new("scp");
            scp.arg("-q").arg("-F").arg(lab.ssh_config()).arg(&double).arg(to);
            assert!(scp.status().unwrap().success());
            assert!(lab.ssh(host, "touch /root/cuda/whole").status.success());
        }
        Some(Self { lab })
    }

    /// Loads what stands for nvidia-peermem, or takes it away: a file system over a folder of sysfs.
    fn peer_memory(&self, loaded: bool) {
        let mut command = "umount /sys/kernel/mm 2>/dev/null; true".to_owned();
        if loaded {
            command += "; mount -t tmpfs tmpfs /sys/kernel/mm && mkdir -p /sys/kernel/mm/memory_peers/nv_mem \
                        && echo 1.3-double >/sys/kernel/mm/memory_peers/nv_mem/version";
        }
        for host in 1..=2 {
            let done = self.lab.ssh(host, &command);
            assert!(done.status.success(), "LAB FAILURE: {}", lab::text(&done.stderr));
        }
    }

    /// Runs tests of GPU memory, with a second for each acknowledgement: an interpreted host beside other work may be away for longer than
    /// seven times the usual 67 ms. Each test is the same but for what is said here; answers with the rows and what was said.
    fn run(&self, tests: &[&str], environment: &str) -> (Vec<Row>, Scene) {
        let scene = Scene::new();
        let config = self.lab.ssh_config();
        let mut plan = format!(
            "name = \"gpu\"\n[launch]\nvia = \"ssh\"\ntimeout = \"60s\"\nkeep_agent = true\nenv = {{ LD_LIBRARY_PATH = \"/root/cuda\"{environment} }}\n\
             ssh = {{ config = \"{}\" }}\n[hosts]\nnames = [\"lab1\", \"lab2\"]\ndevices = [\"rxe0\"]\n\
             [defaults]\nmemory = \"cuda\"\nmeasure = \"200ms\"\nwarm_up = \"20ms\"\nknobs = {{ timeout = 18 }}\n",
            config.display()
        );
        for (number, test) in tests.iter().enumerate() {
            plan += &format!("[[test]]\nname = \"t{number}\"\n{test}\n");
        }
        // What the rows say counts: the interpreted hosts are slow enough for requests to be sent twice, and a verdict
        // then is not given.
        scene.start(&scene.write("gpu.toml", &plan)).end();
        (scene.results().rows(), scene)
    }
}

fn errors(rows: &[Row]) -> String {
    rows.iter().filter_map(|row| row.error.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_operation_on_peer_memory_is_measured_and_verified_on_the_gpu() {
    lab::sound(|| {
        let Some(guests) = Guests::new() else { return };
        guests.peer_memory(true);
        let tests = [
            "op = \"write\"\nmetric = \"bandwidth\"\nsizes = [8, \"64KiB\"]\ngpu_path = \"gdr-peermem\"",
            "op = \"write\"\nmetric = \"latency\"\nsizes = 64\nmeasure = \"10 iterations\"",
            "op = \"read\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nqps = 2",
            "op = \"send\"\nmetric = \"bandwidth\"\nsizes = \"4KiB\"\nbidirectional = true",
            "op = \"atomic_fadd\"\nmetric = \"latency\"\nmeasure = \"10 iterations\"",
            "op = \"send\"\nmetric = \"latency\"\nservice = \"ud\"\nsizes = 1024\nmeasure = \"10 iterations\"",
        ];
        let (rows, scene) = guests.run(&tests, "");
        assert!(rows.iter().all(|row| row.gpu_path == "gdr-peermem" && row.link_layer == "roce-v2"), "{rows:?}");
        assert!(rows.iter().all(|row| row.value.is_some_and(|value| value > 0.0) && row.verified > 0), "{rows:?}");
        let outcomes = scene.results().outcomes();
        let settings: Vec<_> = outcomes.iter().map(|outcome| &outcome["link"]["settings"]).collect();
        assert!(settings.iter().all(|settings| settings["peer_memory"] == "nv_mem 1.3-double"), "{settings:?}");
        let ways: Vec<_> = settings.iter().filter_map(|settings| settings["write_latency"].as_str()).collect();
        assert!(!ways.is_empty() && ways.iter().all(|way| way.contains("GPU memory")), "{ways:?}");
        // Dma-buf was asked for first, and the record says why it is not it.
        assert!(settings[4]["no_dma_buf"].as_str().unwrap().contains("rxe0"), "{settings:?}");
    });
}

#[test]
fn every_nic_writes_to_itself_in_host_memory_and_in_that_of_its_gpu() {
    lab::sound(|| {
        let Some(guests) = Guests::new() else { return };
        guests.peer_memory(true);
        let nic_loopback = "op = \"nic_loopback\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nknobs = { timeout = 18 }";
        let tests = [
            format!("{nic_loopback}\nmemory = \"host\""),
            format!("{nic_loopback}\ngpu_path = \"gdr-peermem\"\ngpus = [1]\nrails = \"each\""),
        ];
        let (rows, scene) = guests.run(&[&tests[0], &tests[1]], "");
        assert!(rows.iter().all(|row| row.value.is_some_and(|value| value > 0.0)), "{rows:?}");
        let told = |row: &Row| (row.metric.clone(), row.transport.clone(), row.verified, row.wrong);
        let wanted = || ("memory_bandwidth".to_owned(), "verbs-loopback".to_owned(), 2 * 65536, 0);
        assert!(rows.len() == 4 && rows.iter().all(|row| told(row) == wanted()), "{rows:?}");
        assert!(rows.iter().all(|row| row.src == row.dst && row.src_device == "rxe0" && row.dst_device == "rxe0"));
        let paths: Vec<_> = rows.iter().map(|row| row.gpu_path.as_str()).collect();
        assert_eq!(paths, ["none", "none", "gdr-peermem", "gdr-peermem"]);
        let outcomes = scene.results().outcomes();
        assert!(outcomes.iter().all(|one| one["link"]["software"] == true && one["link"]["link_layer"] == "memory"));
        let ports: Vec<_> =
            outcomes.iter().filter_map(|one| one["link"]["settings"]["port_link_layer"].as_str()).collect();
        assert_eq!(ports, ["roce-v2"; 4]);
        let (rows, _) = guests.run(&[&tests[0]], ", RAILGAUGE_FAULT = \"flip-bit\"");
        assert!(rows.iter().all(|row| row.wrong > 0), "{rows:?}");
    });
}

#[test]
fn staged_messages_are_asked_for_and_verified() {
    lab::sound(|| {
        let Some(guests) = Guests::new() else { return };
        let tests = [
            "op = \"send\"\nmetric = \"bandwidth\"\nsizes = [64, \"64KiB\"]\nqps = 2\ngpu_path = \"staged\"",
            "op = \"write_imm\"\nmetric = \"bandwidth\"\nsizes = \"16KiB\"\nbidirectional = true\ngpu_path = \"staged\"",
            "op = \"send\"\nmetric = \"latency\"\nsizes = \"4KiB\"\ngpu_path = \"staged\"\nmeasure = \"10 iterations\"",
            "op = \"send\"\nmetric = \"bandwidth\"\nservice = \"ud\"\nsizes = \"2KiB\"\ngpu_path = \"staged\"",
        ];
        let (rows, _) = guests.run(&tests, "");
        assert!(rows.iter().all(|row| row.gpu_path == "staged" && row.verified > 0 && row.wrong == 0), "{rows:?}");
        assert!(rows.iter().all(|row| row.transport.starts_with("verbs-")), "{rows:?}");
    });
}

#[test]
fn paths_that_are_not_there_are_refused_and_never_replaced() {
    lab::sound(|| {
        let Some(guests) = Guests::new() else { return };
        guests.peer_memory(false);
        let write = "op = \"write\"\nmetric = \"bandwidth\"";
        let by_dma_buf = format!("{write}\ngpu_path = \"gdr-dmabuf\"");
        let by_peer_memory = format!("{write}\ngpu_path = \"gdr-peermem\"");
        let (rows, _) = guests.run(&[&by_dma_buf, &by_peer_memory, write], "");
        let of = |test: &str| errors(&rows.iter().filter(|row| row.test == test).cloned().collect::<Vec<_>>());
        assert!(of("t0").contains("rxe0: no dma-buf: its driver registers none"), "{}", of("t0"));
        assert!(of("t1").contains("nvidia_peermem is not loaded"), "{}", of("t1"));
        for words in ["rxe0 does not reach GPU memory", "no dma-buf", "not loaded"] {
            assert!(of("t2").contains(words), "{words}: {}", of("t2"));
        }
        assert!(rows.iter().all(|row| row.value.is_none()), "{rows:?}");
    });
}

#[test]
fn managed_memory_and_wrong_bytes_are_found() {
    lab::sound(|| {
        let Some(guests) = Guests::new() else { return };
        guests.peer_memory(true);
        let write = "op = \"write\"\nmetric = \"bandwidth\"\nsizes = 4096";
        let (rows, _) = guests.run(&[write], ", CUDA_DOUBLE_MANAGED = \"1\"");
        assert!(errors(&rows).contains("managed memory"), "{rows:?}");
        let (rows, _) = guests.run(&[write], ", RAILGAUGE_FAULT = \"flip-bit\"");
        assert!(rows.iter().all(|row| row.wrong > 0), "{rows:?}");
    });
}
