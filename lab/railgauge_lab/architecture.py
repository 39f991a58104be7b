"""What differs between guests of the two architectures: QEMU's machine, the kernel's file and where Debian puts libraries."""
from dataclasses import dataclass

# Of every guest: what ends a guest that failed, and what makes one quick or its names fixed.
COMMON_LINE = "quiet oops=panic panic=-1 nokaslr mitigations=off net.ifnames=0"


@dataclass(frozen=True)
class Architecture:
    """One architecture of guests."""

    # As `uname -m` has it.
    name: str
    # As Debian has it.
    debian: str
    qemu: str
    # QEMU's words for the board and its processor.
    board: tuple
    # The kernel's file in the unpacked package.
    kernel: str
    kernel_line: str
    # Folder of libraries below /usr/lib.
    triplet: str
    # Modules without which a guest of this architecture finds no device.
    modules: tuple
    # Part of the cache's folder that is its own.
    cached: str

    def folder(self, cache):
        """Where its kernel and image are kept."""
        return cache / self.cached


X86 = Architecture(
    name="x86_64", debian="amd64", qemu="qemu-system-x86_64", board=("-M", "pc", "-cpu", "max"), kernel="vmlinux",
    kernel_line=f"console=ttyS0 {COMMON_LINE} random.trust_cpu=on tsc=reliable", triplet="x86_64-linux-gnu", modules=(),
    cached=".")

# A processor with the atomic instructions of servers. Not `max`: signing pointers takes an interpreter long.
# The kernel gets its first random bytes from QEMU, says which programs crash only if told to (x86 does by itself), and
# without a clock chip would begin in 1970.
ARM = Architecture(
    name="aarch64", debian="arm64", qemu="qemu-system-aarch64", board=("-M", "virt", "-cpu", "neoverse-n1"), kernel="Image",
    kernel_line=f"console=ttyAMA0 {COMMON_LINE} random.trust_bootloader=on sysctl.debug.exception-trace=1",
    triplet="aarch64-linux-gnu", modules=("pci_host_generic", "rtc_pl031"), cached="arm64")

BOTH = (X86, ARM)
