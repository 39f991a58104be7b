use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/module/nvidia_peermem, flavour of /sys/module/nvidia, kernel release",
    meaning: "data in GPU memory is copied through host memory, if the plan allows that: the copies limit the bandwidth",
    source: "NVIDIA GPUDirect RDMA guide; kernel Documentation/driver-api/dma-buf.rst (RDMA since 5.12)",
    spoils: Spoils::GpuMemory,
    subject: Subject::GpuBesideNic,
    needs: &[Need::Host(|facts| !facts.modules.is_empty(), "its kernel's modules")],
    find,
};

/// First kernel that registers dma-bufs for RDMA.
const DMABUF: (u32, u32) = (5, 12);

/// There are two ways: a dma-buf, which needs the open driver and a kernel that registers it, and nvidia_peermem.
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    if !scene.may_use_gpudirect() {
        return;
    }
    let demanded = |path| scene.has(|test| test.gpu_path == Some(path));
    let hosts = scene.hosts().filter(|(_, facts)| !facts.gpus.is_empty() && !facts.rdma.is_empty());
    for (host, facts) in hosts {
        let mut add = |severity, what: &str, remedy: Entry| found.push(Found::host(severity, host, what, remedy));
        if facts.has_amd_gpus() {
            // RCCL has its own ways: links of this program reach the memory of AMD's GPUs only through the host.
            let staged = |test: &Test| matches!(test.gpu_path, Some(GpuPath::Staged | GpuPath::None));
            let by_nic =
                |over: Transport| scene.has(|test| test.memory.has_gpu() && test.transport == over && !staged(test));
            let what = "its GPUs are AMD's, whose memory is not registered with NICs";
            if by_nic(Transport::Verbs) {
                add(Failure, what, remedy::AMD_GPU_OVER_RDMA);
            }
            // A loop cannot be staged.
            if by_nic(Transport::Nic) {
                add(Failure, what, remedy::LOOP_AMD_GPU_MEMORY);
            }
            continue;
        }
        let loaded = |name| facts.modules.contains_key(name);
        let peermem = loaded("nvidia_peermem") || loaded("nv_peer_mem");
        let open = facts.modules.get("nvidia").is_some_and(|version| version.contains("open"));
        let dmabuf = open && release(&facts.kernel).is_some_and(|release| release >= DMABUF);
        if demanded(GpuPath::GdrPeermem) && !peermem {
            add(Failure, "module nvidia_peermem is not loaded", remedy::LOAD_PEERMEM);
        } else if !peermem && !dmabuf {
            let what = match (open, loaded("nvidia")) {
                (_, false) => "neither nvidia_peermem nor the NVIDIA driver's module is loaded",
                (false, _) => {
                    "nvidia_peermem is not loaded, and the driver is not the open one, which supports dma-buf"
                }
                (true, _) => {
                    "nvidia_peermem is not loaded, and the kernel is older than 5.12, which is needed for dma-buf"
                }
            };
            let severity = if demanded(GpuPath::GdrDmabuf) { Failure } else { Warning };
            add(severity, what, remedy::PEERMEM_OR_OPEN_MODULES);
        }
    }
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
