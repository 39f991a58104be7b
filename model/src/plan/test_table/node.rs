//! Tests within hosts: memory of processors and GPUs, and NICs that write to themselves. They share windows, sizes, rails and expectations
//! with pairs; matrix products also have a precision, and NICs the memory and the knobs of queue pairs. All other keys belong to a network.

use railgauge_wire::{Bytes, MOST_ROWS, Nanoseconds, Op, PATTERNS, Precision, ROW_STEP, TestMetric, Transport, Window};

use super::kind::Kind;
use crate::plan::{Rails, Table};

/// Default bytes of a GPU copy: nvbandwidth's.
const OF_GPU: Bytes = Bytes::from_mib(512);
/// Default host memory that is moved: several times the caches of most processors.
const OF_PROCESSORS: Bytes = Bytes::from_gib(2);
/// Default bytes of one write through a NIC: enough to make the time of headers and requests negligible.
const OF_NIC: Bytes = Bytes::from_mib(8);

/// Least bytes over which the reads of a memory latency are spread: a page.
const LEAST_SPREAD: Bytes = Bytes::from_kib(4);

/// Least tested memory of a GPU: twenty times the second-level cache of an H100, which has 50 MB.
const LEAST_TESTED: Bytes = Bytes::from_gib(1);

/// Fewest reads of a memory latency: as many as are timed at once.
const LEAST_READS: u64 = 4096;

/// Default rows of a matrix product: many rounds for every multiprocessor of an H100.
const ROWS: u32 = 8192;

/// Window of a test whose inherited window is adaptive: the default.
const USUAL: Nanoseconds = Nanoseconds::from_secs(2);

/// The default size; `None` for tests of a network.
pub fn size(op: Option<Op>) -> Option<Bytes> {
    op?.within_host().map(|transport| match transport {
        Transport::Gpu => OF_GPU,
        Transport::Nic => OF_NIC,
        _ => OF_PROCESSORS,
    })
}

/// The sizes of matrix products, in bytes of their square results: as the plan says, or of [`ROWS`] rows. `None` after reporting a mistake.
pub fn products(test: &Table<'_>, precision: Precision, sizes: Option<Vec<Bytes>>) -> Option<Vec<Bytes>> {
    let Some(raw) = test.raw("sizes").filter(|raw| raw.own) else {
        return Some(vec![precision.square(ROWS)]);
    };
    let sizes = sizes?;
    let wrong = sizes.iter().find(|size| precision.rows(**size).is_none());
    let Some(wrong) = wrong else { return Some(sizes) };
    let message = format!("no square matrix of {precision} products has {wrong} bytes");
    let help = format!(
        "the result has a multiple of {ROW_STEP} rows, up to {MOST_ROWS}, of as many elements of {} bytes: 4096 rows are {} bytes, and \
         {ROWS} are {}",
        precision.result(),
        precision.square(4096),
        precision.square(ROWS)
    );
    test.reject(raw.span.clone(), message, help)
}

/// The sizes of a test of a GPU's memory, which the plan must give: a test of a small part would be mistaken for one of all. `None` after
/// reporting that they are missing.
pub fn tested(test: &Table<'_>, sizes: Option<Vec<Bytes>>) -> Option<Vec<Bytes>> {
    if let Some(raw) = test.raw("sizes").filter(|raw| raw.own) {
        let sizes = sizes?;
        let Some(small) = sizes.iter().find(|size| **size < LEAST_TESTED) else { return Some(sizes) };
        let message = format!("{small} bytes do not test a GPU's memory: what is small stays in its caches");
        return test.reject(raw.span.clone(), message, "the smallest size is \"1GiB\"");
    }
    let span = test.written("op").unwrap_or_default();
    let message = "`sizes` must say how much of the memory of each GPU is tested";
    test.reject(span, message, "a GPU of 80 GB has more than 72 GiB free where nothing else runs: sizes = \"72GiB\"")
}

/// The sizes of a test of memory latency: powers of two, so that one order of reads visits every line. `None` after reporting a mistake.
pub fn spread(test: &Table<'_>, sizes: Option<Vec<Bytes>>) -> Option<Vec<Bytes>> {
    let sizes = sizes?;
    let is_one = |size: &Bytes| size.0.is_power_of_two() && *size >= LEAST_SPREAD;
    let (Some(wrong), Some(raw)) = (sizes.iter().find(|size| !is_one(size)), test.raw("sizes")) else {
        return Some(sizes);
    };
    let message = format!("the reads of a memory latency cannot be spread over {wrong} bytes");
    let help = format!("use a power of two, of {LEAST_SPREAD} bytes at least, such as \"1GiB\"");
    test.reject(raw.span.clone(), message, help)
}

/// The window and the rails of a test within hosts. An impossible value is a mistake in the test itself, and dropped in a default.
pub fn settled(
    test: &Table<'_>,
    kind: &Kind,
    window: Option<Window>,
    rails: Option<Rails>,
) -> (Option<Window>, Option<Rails>) {
    let wrong = |span, message: &str, help: &str| test.wrong(span, message, help);
    let window = match (window, test.written("measure")) {
        (Some(Window::Adaptive { .. }), Some(span)) => {
            let message = "a test within hosts is not measured adaptively: its flows would not end together";
            wrong(span, message, "write measure = \"2s\" or measure = \"20 iterations\"");
            None
        }
        (Some(Window::Adaptive { .. }), None) => Some(Window::Duration(USUAL)),
        (window, _) => window,
    };
    let fewest = match (kind.op, kind.metric) {
        (Some(Op::GpuMemoryTest), _) => Some((PATTERNS, "would be no test with each of its patterns")),
        (Some(Op::MemoryRead), Some(TestMetric::Latency)) => {
            Some((LEAST_READS, "take less time than the clock resolves"))
        }
        _ => None,
    };
    let window = match (window, fewest, test.written("measure")) {
        (Some(Window::Iterations(count)), Some((fewest, why)), span) if count < fewest => match span {
            Some(span) => {
                let help = format!("write measure = \"{fewest} iterations\" or more, or a time");
                wrong(span, &format!("{count} iterations {why}"), &help);
                None
            }
            None => Some(Window::Duration(USUAL)),
        },
        (window, ..) => window,
    };
    if let (Some(Op::GpuMemoryTest), Some(verify)) =
        (kind.op, test.flag("verify").filter(|verify| verify.own && !verify.value))
    {
        wrong(verify.span, "a test of memory without comparing is none", "leave `verify` out");
    }
    let rails = match (rails, test.written("rails")) {
        (Some(Rails::Crossed), Some(span)) => {
            let help = "use \"aligned\" (all at once), \"each\" (one after the other), or a list";
            wrong(span, "rails = \"crossed\" does not apply within a host", help);
            None
        }
        (Some(Rails::Crossed), None) => Some(Rails::Aligned),
        (rails, _) => rails,
    };
    (window, rails)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_wire::{GpuPath, Memory};

    use super::*;
    use crate::plan::{Mistakes, Plan, model::Pattern, parse};

    fn read(test: &str) -> Result<Plan, Mistakes> {
        read_as("bandwidth", test)
    }

    fn read_as(metric: &str, test: &str) -> Result<Plan, Mistakes> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a\"] }\n\
                    [defaults]\nsizes = \"64KiB\"\ntransport = \"tcp\"\nqps = [1, 4]\n\
                    rails = \"crossed\"\nmeasure = { confidence = 2 }\n[[test]]\n";
        parse("p.toml", &format!("{head}metric = \"{metric}\"\n{test}\n"), Path::new("")).map(|(plan, _)| plan)
    }

    #[test]
    fn a_test_within_a_host_needs_one_host_and_takes_nothing_from_the_defaults_of_networks() {
        let of = |test: &str| read(test).unwrap_or_else(|mistakes| panic!("{mistakes}")).tests.remove(0);
        let test = of("op = \"host_to_gpu\"");
        assert_eq!((test.transport, test.memory.from, &*test.sizes), (Transport::Gpu, Memory::Cuda, &[OF_GPU][..]));
        assert_eq!((test.window, &test.rails), (Window::Duration(USUAL), &Rails::Aligned));
        assert_eq!(
            (&test.pattern, &*test.qps, test.name.as_str()),
            (&Pattern::Within, &[1][..], "host_to_gpu-bandwidth-gpu")
        );
        let test = of("op = \"memory_copy\"\nsizes = \"1MiB\"\ntransport = \"cpu\"\nknobs = { footprint = \"cache\" }");
        assert_eq!(
            (test.transport, test.memory.from, &*test.sizes),
            (Transport::Cpu, Memory::Host, &[Bytes::from_mib(1)][..])
        );
        let test = of("op = \"gpu_memory_test\"\nsizes = \"72GiB\"\nmeasure = \"10 iterations\"");
        assert_eq!((test.memory.from, &*test.sizes), (Memory::Cuda, &[Bytes::from_gib(72)][..]));
        let test = of(
            "op = \"gpu_copy\"\nrails = \"each\"\n[[test.expect]]\nmetric = \"memory_bandwidth\"\nat_least = \"1000 GB/s\"",
        );
        assert_eq!((test.rails, test.expect.len()), (Rails::Each, 1));
    }

    #[test]
    fn memory_has_a_latency_over_a_power_of_two() {
        let of = |test: &str| read_as("latency", test).unwrap_or_else(|mistakes| panic!("{mistakes}")).tests.remove(0);
        let test = of("op = \"memory_read\"\n[[test.expect]]\nmetric = \"memory_latency\"\nat_most = \"120 ns\"");
        assert_eq!((test.metric, &*test.sizes, test.expect.len()), (TestMetric::Latency, &[OF_PROCESSORS][..], 1));
        assert_eq!(of("op = \"memory_read\"\nsizes = [\"4KiB\", \"1GiB\"]").sizes.len(), 2);
    }

    #[test]
    fn matrix_products_have_a_precision_and_square_results() {
        let of = |test: &str| {
            let test = test.replace("{OP}", "op = \"matmul\"");
            read_as("compute", &test).unwrap_or_else(|mistakes| panic!("{mistakes}")).tests.remove(0)
        };
        let test = of("{OP}");
        assert_eq!((test.transport, &*test.sizes), (Transport::Gpu, &[Bytes::from_mib(128)][..]));
        assert_eq!((test.knobs.precision, test.name.as_str()), (Some(Precision::Bf16), "matmul-compute-gpu"));
        let test = of("{OP}\nknobs = { precision = \"tf32\" }");
        assert_eq!((test.knobs.precision, &*test.sizes), (Some(Precision::Tf32), &[Bytes::from_mib(256)][..]));
        let test = of(
            "{OP}\nsizes = [\"32MiB\", \"128MiB\"]\n[[test.expect]]\nmetric = \"compute\"\nat_least = \"0.6 PFLOP/s\"",
        );
        assert_eq!((test.sizes.len(), test.expect.len()), (2, 1));
        for (metric, test, words) in [
            ("compute", "op = \"gpu_copy\"", "gpu_copy does not support metric = \\\"compute\\\""),
            ("compute", "op = \"write\"\ntransport = \"verbs\"", "write does not support metric"),
            ("bandwidth", "op = \"matmul\"", "matmul does not support metric"),
            ("compute", "op = \"matmul\"\nsizes = \"100MiB\"", "no square matrix of bf16 products has 104857600 bytes"),
            ("compute", "op = \"matmul\"\nknobs = { precision = \"fp64\" }", "fp64"),
            ("latency", "op = \"memory_write\"", "memory_write does not support metric"),
            ("latency", "op = \"memory_read\"\nsizes = [\"1GiB\", \"3GiB\"]", "cannot be spread over 3221225472 bytes"),
            ("latency", "op = \"memory_read\"\nmeasure = \"20 iterations\"", "20 iterations take less time"),
            ("latency", "op = \"memory_read\"\nsizes = 2048", "cannot be spread over 2048 bytes"),
            ("compute", "op = \"matmul\"\nknobs = { footprint = \"cache\" }", "`footprint`"),
            ("bandwidth", "op = \"gpu_copy\"\nknobs = { precision = \"bf16\" }", "`precision`"),
        ] {
            let refused = format!("{:?}", read_as(metric, test).expect_err(test));
            assert!(refused.contains(words), "{test}: {refused}");
        }
    }

    #[test]
    fn a_nic_writes_to_itself_in_host_memory_or_that_of_its_gpu() {
        let of = |test: &str| {
            let test = format!("op = \"nic_loopback\"\n{test}");
            read(&test).unwrap_or_else(|mistakes| panic!("{mistakes}")).tests.remove(0)
        };
        let test = of("");
        assert_eq!((test.transport, test.memory.from, &*test.sizes), (Transport::Nic, Memory::Host, &[OF_NIC][..]));
        assert_eq!((test.window, &test.rails), (Window::Duration(USUAL), &Rails::Aligned));
        assert_eq!(
            (&test.pattern, &*test.qps, test.name.as_str()),
            (&Pattern::Within, &[1][..], "nic_loopback-bandwidth-nic")
        );
        let test = of(
            "memory = \"cuda\"\ngpu_path = \"gdr-peermem\"\ngpus = [3, 1]\nrails = [1]\nsizes = [\"1MiB\", \"8MiB\"]\n\
                       knobs = { gid_index = 3, relaxed_ordering = true }\n\
                       [[test.expect]]\nmetric = \"memory_bandwidth\"\nwithin_percent_of_peers = 5",
        );
        assert_eq!(
            (test.memory.from, test.gpu_path, &*test.gpus.from),
            (Memory::Cuda, Some(GpuPath::GdrPeermem), &[3, 1][..])
        );
        assert_eq!((&test.rails, test.sizes.len(), test.expect.len()), (&Rails::Only(vec![1]), 2, 1));
        assert_eq!((test.knobs.gid_index, test.knobs.relaxed_ordering), (Some(3), Some(true)));
    }

    #[test]
    fn a_default_that_a_nic_cannot_have_is_left_out() {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a\"], devices = [\"mlx5_0\", \"mlx5_1\"] }\n\
                    [defaults]\nmemory = \"cuda\"\ngpu_path = \"staged\"\nknobs = { joining = \"rdma-cm\", mtu = 1024 }\n[[test]]\n\
                    op = \"nic_loopback\"\nmetric = \"bandwidth\"\nrails = \"each\"\n";
        let (plan, _) = parse("p.toml", head, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let test = &plan.tests[0];
        assert_eq!((test.memory.from, test.gpu_path, test.knobs.joining), (Memory::Cuda, None, None));
        assert_eq!(test.knobs.mtu, Some(1024));
        // The rails are the devices that the plan lists.
        let schedule = crate::schedule::schedule(&plan, &crate::schedule::Inventory::of_plan(&plan)).unwrap();
        let flows: Vec<(u32, u32)> =
            schedule.rounds.iter().flat_map(|round| &round.flows).map(|flow| (flow.from.rail, flow.to.rail)).collect();
        assert_eq!((schedule.rounds.len(), flows), (2, vec![(0, 0), (1, 1)]));
    }

    #[test]
    fn what_belongs_to_networks_is_refused() {
        for (test, words) in [
            ("op = \"gpu_copy\"\nqps = 2", "`qps` does not apply"),
            ("op = \"gpu_memory_test\"", "how much of the memory"),
            ("op = \"gpu_memory_test\"\nsizes = \"1B\"", "1 bytes do not test"),
            ("op = \"gpu_memory_test\"\nsizes = \"1GiB\"\nverify = false", "without comparing"),
            ("op = \"gpu_memory_test\"\nsizes = \"1GiB\"\nmeasure = \"9 iterations\"", "9 iterations would be no test"),
            ("op = \"gpu_copy\"\npattern = \"ring\"", "`pattern` does not apply"),
            ("op = \"gpu_copy\"\nto = \"a\"", "`to` does not apply"),
            ("op = \"gpu_copy\"\ngpus = [0]", "`gpus` does not apply"),
            ("op = \"gpu_copy\"\ntransport = \"nccl\"", "is not supported over nccl"),
            ("op = \"gpu_copy\"\nrails = \"crossed\"", "does not apply within a host"),
            ("op = \"gpu_copy\"\nmeasure = { confidence = 2 }", "not measured adaptively"),
            ("op = \"gpu_copy\"\nknobs = { footprint = \"cache\" }", "`footprint`"),
            ("op = \"memory_read\"\nknobs = { depth = 2 }", "`depth`"),
            ("op = \"memory_read\"\nranks_per_host = 2", "only to collectives"),
            ("op = \"write\"\ntransport = \"gpu\"", "write is not supported over gpu"),
            ("op = \"write\"\ntransport = \"nic\"", "write is not supported over nic"),
            ("op = \"nic_loopback\"\nqps = 2", "`qps` does not apply"),
            ("op = \"nic_loopback\"\nservice = \"uc\"", "`service` does not apply"),
            ("op = \"nic_loopback\"\ngpu_distance = \"PIX\"", "`gpu_distance` does not apply"),
            ("op = \"nic_loopback\"\ngpus = [0]", "`gpus` does not apply to host memory"),
            ("op = \"nic_loopback\"\ngpu_path = \"gdr-dmabuf\"", "`gpu_path` does not apply to host memory"),
            ("op = \"nic_loopback\"\nmemory = \"cuda\"\ngpu_path = \"staged\"", "not measured through host memory"),
            ("op = \"nic_loopback\"\nknobs = { joining = \"rdma-cm\" }", "`joining` does not apply to a NIC"),
            ("op = \"nic_loopback\"\nsizes = \"4GiB\"", "an RDMA message of 4294967296 bytes"),
            ("op = \"nic_loopback\"\nrails = \"crossed\"", "does not apply within a host"),
            ("op = \"host_to_gpu\"\nmemory = \"host\"", "`memory` does not apply"),
        ] {
            let refused = format!("{:?}", read(test).expect_err(test));
            assert!(refused.contains(words), "{test}: {refused}");
        }
    }
}
