//! What can be measured within hosts: every GPU by itself, and the memory of the processors.

use railgauge_model::plan::hostlist::fold;
use railgauge_wire::{
    HostFacts,
    facts::{CUBLASLT, HIPBLASLT},
};
use serde::Serialize;

/// What of the hosts' GPUs and memory can be measured and compared; nothing where tests of GPUs are left out.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Within {
    gpus: usize,
    nodes: usize,
    /// Whether all GPUs are of one product: others are not peers.
    has_equal_gpus: bool,
    /// `None` for unknown GPUs, and for GPUs of several products.
    sheet: Option<Sheet>,
    has_equal_processors: bool,
    /// Whether the loader of every host finds a cuBLASLt or hipBLASLt.
    multiplies: bool,
    /// Nine tenths of the memory of the GPU that has least, in GiB; `None` if a driver does not report it.
    tested_gib: Option<u64>,
    pub notes: Vec<String>,
}

impl Within {
    /// What these hosts have, each with a GPU that CUDA or HIP shows.
    pub(super) fn of(facts: &[(&String, &HostFacts)]) -> Self {
        let hosts = |is: fn(&HostFacts) -> bool| -> Vec<String> {
            facts.iter().filter(|(_, facts)| is(facts)).map(|(host, _)| (*host).clone()).collect()
        };
        // Tests within hosts are about all GPUs that NVML or AMD SMI counts, and CUDA or HIP copies for those alone that it shows.
        let hiding = hosts(|facts| facts.gpus.iter().any(|gpu| facts.cuda_number(gpu).is_none()));
        if !hiding.is_empty() {
            let note = format!(
                "{} GPUs that CUDA or HIP does not show: tests of GPUs by themselves are left out.",
                has(&hiding)
            );
            return Self { notes: vec![note], ..Self::default() };
        }
        let without = hosts(|facts| !multiplies(facts));
        let notes = match without.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "{} no cuBLASLt or hipBLASLt that the loader finds (libcublasLt.so, libhipblaslt.so): matrix products are left out. Install it, or name its folder in \
                 LD_LIBRARY_PATH.",
                has(&without)
            )],
        };
        let name = all_equal(facts.iter().flat_map(|(_, facts)| &facts.gpus).map(|gpu| gpu.name.clone()));
        Self {
            gpus: facts.iter().map(|(_, facts)| facts.gpus.len()).sum(),
            nodes: facts.iter().map(|(_, facts)| facts.cpu.nodes().len()).sum(),
            has_equal_gpus: name.is_some(),
            sheet: name.and_then(|name| sheet(&name)),
            has_equal_processors: all_equal(facts.iter().map(|(_, facts)| facts.cpu.model.clone())).is_some(),
            multiplies: without.is_empty(),
            tested_gib: facts
                .iter()
                .flat_map(|(_, facts)| &facts.gpus)
                .map(|gpu| gpu.memory_bytes)
                .min()
                .flatten()
                .map(|bytes| (bytes.0 / 10 * 9) >> 30)
                .filter(|gib| *gib > 0),
            notes,
        }
    }
}

/// Whether the loader finds a cuBLASLt of any version, or a hipBLASLt.
fn multiplies(facts: &HostFacts) -> bool {
    facts.finds(CUBLASLT) || facts.finds(HIPBLASLT)
}

/// Figures of a data sheet: memory and one direction of NVLink in GB/s, dense products of bf16 in TFLOP/s.
#[derive(Debug, Clone, Copy, Serialize)]
struct Sheet {
    memory: u32,
    link: Option<u32>,
    products: u32,
}

/// GPUs as NVML and AMD SMI name them, and their data sheets: NVIDIA A100 (2021), H100 and H200 (2024), HGX B200 (2025), AMD Instinct MI300X and
/// MI325X (2024).
const SHEETS: [(&str, u32, Option<u32>, u32); 10] = [
    ("A100-SXM4-40GB", 1_555, Some(300), 312),
    ("A100-SXM4-80GB", 2_039, Some(300), 312),
    ("A100 80GB PCIe", 1_935, None, 312),
    ("H100 80GB HBM3", 3_350, Some(450), 989),
    ("H100 PCIe", 2_000, None, 756),
    ("H200 NVL", 4_800, None, 835),
    ("H200", 4_800, Some(450), 989),
    ("NVIDIA B200", 8_000, Some(900), 2_250),
    ("MI300X", 5_300, None, 1_307),
    ("MI325X", 6_000, None, 1_307),
];

fn sheet(name: &str) -> Option<Sheet> {
    // Whole words: a GH200 has other figures than an H200.
    let name = format!(" {name} ");
    let (_, memory, link, products) = *SHEETS.iter().find(|(known, ..)| name.contains(&format!(" {known} ")))?;
    Some(Sheet { memory, link, products })
}

/// The value that all have; `None` where one has none or another.
pub(super) fn all_equal<T: PartialEq>(values: impl IntoIterator<Item = Option<T>>) -> Option<T> {
    let mut values = values.into_iter();
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

/// `gpu1 has`, `gpu[1-2] have`.
pub(super) fn has(hosts: &[String]) -> String {
    format!("{} {}", fold(hosts.iter().map(String::as_str)), if hosts.len() == 1 { "has" } else { "have" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_sheet_is_found_by_whole_words() {
        let memory = |name| sheet(name).map(|sheet| sheet.memory);
        assert_eq!(
            ["NVIDIA H200", "NVIDIA H200 NVL", "AMD Instinct MI300X OAM"].map(memory),
            [Some(4_800), Some(4_800), Some(5_300)]
        );
        assert_eq!(["NVIDIA GH200 480GB", "NVIDIA GB200", "AMD Instinct MI300XHF"].map(memory), [None; 3]);
    }
}
