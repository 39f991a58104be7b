//! The plans for known systems that are shipped with railgauge, and which of them fits what was found.

use serde::Serialize;

use super::seen::{Carrier, Seen};

#[derive(Debug, Clone, Copy, Serialize)]
pub struct System {
    /// Its name: that of the plan and of its file under `plans/systems/`.
    pub name: &'static str,
    pub about: &'static str,
    #[serde(skip)]
    pub text: &'static str,
}

macro_rules! systems {
    ($($name:literal: $about:literal;)*) => {
        /// All of them. A new one is a file in `plans/systems/`, a line here and, where hosts can tell that they are one, a line
        /// in [`fitting`].
        pub const SYSTEMS: &[System] = &[
            $(System { name: $name, about: $about, text: include_str!(concat!("../../plans/systems/", $name, ".toml")) },)*
        ];
    };
}

systems! {
    "hgx-h100-h200": "HGX H100 or H200: 8 GPUs and 8 ports of 400 Gb/s in each host";
    "gb200-nvl72": "GB200 NVL72: a rack of 18 hosts, each with 4 GPUs and 4 ports of 400 Gb/s";
    "mi300x": "8 MI300X and 8 ports of 400 Gb/s in each host";
    "azure-nd-h100-v5": "Azure ND H100 v5: 8 H100 and 8 InfiniBand ports of 400 Gb/s";
    "oci-bm-gpu-h100": "OCI BM.GPU.H100.8: 8 H100 and 16 RoCE ports of 200 Gb/s";
    "two-hosts-on-a-cable": "two hosts whose RDMA ports are joined by cables, without a switch";
}

pub fn system(name: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name)
}

pub(super) fn fitting(seen: &Seen) -> Option<&'static System> {
    if seen.carrier != Carrier::Verbs {
        return None;
    }
    let named =
        |words: &[&str]| seen.gpu_name.as_ref().is_some_and(|name| words.iter().any(|word| name.contains(word)));
    let made_by = |maker: &str| seen.product.as_ref().is_some_and(|product| product.contains(maker));
    let has = |gpus: usize, ports: usize, rate: f64| {
        (seen.gpus, seen.devices.len()) == (gpus, ports) && seen.rate == Some(rate)
    };
    let hopper = named(&["H100", "H200"]);
    let name = match () {
        () if named(&["GB200"]) && has(4, 4, 400.0) => "gb200-nvl72",
        () if named(&["H100"]) && has(8, 8, 400.0) && seen.layer == Some("InfiniBand") && made_by("Microsoft") => {
            "azure-nd-h100-v5"
        }
        () if named(&["H100"]) && has(8, 16, 200.0) => "oci-bm-gpu-h100",
        () if hopper && has(8, 8, 400.0) => "hgx-h100-h200",
        () if named(&["MI300X"]) && has(8, 8, 400.0) => "mi300x",
        // Two hosts alone may well be on a cable; larger systems say more of themselves.
        () if seen.hosts.len() == 2 && !seen.is_emulated && !seen.one_machine && seen.rate.is_some() => {
            "two-hosts-on-a-cable"
        }
        () => return None,
    };
    system(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(gpu: &str, gpus: usize, ports: usize, rate: f64) -> Seen {
        let hosts: Vec<String> = (0..4).map(|n| format!("n{n}")).collect();
        let mut seen = Seen::unseen(&hosts, false);
        seen.gpu_name = Some(gpu.to_owned());
        seen.gpus = gpus;
        seen.devices = (0..ports).map(|n| format!("mlx5_{n}")).collect();
        seen.rate = Some(rate);
        seen
    }

    #[test]
    fn hosts_tell_which_system_they_are() {
        let name = |seen: &Seen| fitting(seen).map(|system| system.name);
        assert_eq!(name(&seen("NVIDIA H200", 8, 8, 400.0)), Some("hgx-h100-h200"));
        assert_eq!(name(&seen("NVIDIA GB200", 4, 4, 400.0)), Some("gb200-nvl72"));
        assert_eq!(name(&seen("NVIDIA H100 80GB HBM3", 8, 16, 200.0)), Some("oci-bm-gpu-h100"));
        assert_eq!(name(&seen("AMD Instinct MI300X", 8, 8, 400.0)), Some("mi300x"));
        assert_eq!(name(&seen("NVIDIA A100-SXM4-80GB", 8, 8, 200.0)), None);
        let mut azure = seen("NVIDIA H100 80GB HBM3", 8, 8, 400.0);
        azure.product = Some("Microsoft Corporation Virtual Machine".into());
        azure.layer = Some("InfiniBand");
        assert_eq!(name(&azure), Some("azure-nd-h100-v5"));
        let mut two = seen("", 0, 1, 100.0);
        two.hosts.truncate(2);
        assert_eq!(name(&two), Some("two-hosts-on-a-cable"));
        two.is_emulated = true;
        assert_eq!(name(&two), None);
    }
}
