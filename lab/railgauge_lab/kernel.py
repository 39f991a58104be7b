"""From a kernel package to what QEMU boots: the uncompressed kernel and the modules in load order."""
import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path

from .boot import bootable
from .errors import LabError
from .process import run

REQUIRED = ["virtio_pci", "virtio_net", "qemu_fw_cfg", "ib_uverbs", "rdma_ucm", "rdma_rxe"]
# Checksums that Soft-RoCE asks the kernel for by name, queueing disciplines for shaped and lossy links, cables inside
# one host. Some are built in or gone in newer kernels.
OPTIONAL = ["crc32c_generic", "crc32_generic", "sch_netem", "sch_tbf", "sch_ingress", "udmabuf", "veth"]
# Loaded by tests that ask for them (`lab-module NAME` in a guest): VLANs, bonds, iWARP in software.
ON_DEMAND = ["8021q", "bonding", "siw"]


def current(target, architecture):
    """Whether `target` was filled with what is wanted today."""
    stamp = target / "wanted"
    return stamp.exists() and stamp.read_text() == wanted(architecture)


def wanted(architecture):
    return f"{' '.join([*architecture.modules, *REQUIRED, *OPTIONAL])}\n{' '.join(ON_DEMAND)}\n"


def unpack(package, architecture, target, add_siw, say):
    """Fill `target` with the kernel, modules/NN-name.ko, later/NAME/NN-name.ko, version, and which modules were wanted.
    `add_siw(version, folder)` puts that module beside the package's own, or returns why it is missing."""
    scratch = target.with_suffix(".part")
    shutil.rmtree(scratch, ignore_errors=True)
    raw = scratch / "raw"
    raw.mkdir(parents=True)
    version = extract(package, raw)
    say(f"unpacking Linux {version} for {architecture.name}")
    (scratch / architecture.kernel).write_bytes(bootable((raw / "vmlinuz").read_bytes(), architecture))
    why = None if any(raw.glob("siw.ko*")) else add_siw(version, raw)
    modules = Modules(raw)
    write_in_order(modules.in_load_order([*architecture.modules, *REQUIRED], OPTIONAL), scratch / "modules")
    for name in ON_DEMAND:
        write_in_order(modules.in_load_order([], [name]), scratch / "later" / name)
    if why is not None:
        (scratch / "later/siw/missing").write_text(why + "\n")
    shutil.rmtree(raw)
    (scratch / "version").write_text(version + "\n")
    (scratch / "wanted").write_text(wanted(architecture))
    shutil.rmtree(target, ignore_errors=True)
    scratch.rename(target)


def extract(package, raw):
    """Write the kernel, every module and the list of built-in ones flat into `raw`; returns the version."""
    version = None
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as source:
        with tarfile.open(fileobj=source.stdout, mode="r|") as archive:
            for member in archive:
                path = Path(member.name)
                if path.name.startswith("vmlinuz-"):
                    version, name = path.name.removeprefix("vmlinuz-"), "vmlinuz"
                elif path.name == "modules.builtin" or ".ko" in path.suffixes:
                    name = path.name
                else:
                    continue
                if member.isfile():
                    (raw / name).write_bytes(archive.extractfile(member).read())
    if source.returncode or version is None:
        raise LabError(f"{package} is not a readable kernel package")
    return version


def write_in_order(modules, folder):
    """Write modules so that their names sort in the order in which they must be loaded."""
    folder.mkdir(parents=True)
    for number, (name, content) in enumerate(modules):
        (folder / f"{number:02}-{name}.ko").write_bytes(content)


class Modules:
    """The modules of an unpacked kernel package, and which of them were handed out."""

    def __init__(self, raw):
        self.files = {module_name(path.name): path for path in raw.iterdir() if ".ko" in path.suffixes}
        builtin = raw / "modules.builtin"
        lines = builtin.read_text().split() if builtin.exists() else []
        self.builtin = {module_name(Path(line).name) for line in lines}
        self.loaded = set()

    def in_load_order(self, required, optional):
        """Names and contents of modules, each after those it depends on. What an earlier call with required modules has
        handed out is loaded by then and left out."""
        done, order = set(self.loaded), []

        def visit(name, must):
            if name in done or name in self.builtin:
                return
            done.add(name)
            if name not in self.files:
                if must:
                    raise LabError(f"the kernel package has no module {name}")
                return
            content = module_content(self.files[name])
            for dependency in dependencies(content):
                visit(dependency, must)
            order.append((name, content))

        for name in required:
            visit(name, True)
        for name in optional:
            visit(name, False)
        if required:
            self.loaded = done
        return order


def module_name(file_name):
    return file_name.split(".ko", 1)[0].replace("-", "_")


def module_content(path):
    content = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(content)
    if path.suffix == ".zst":
        return run("zstd", "-dcq", stdin=content)
    return content


def dependencies(content):
    """The module's `depends=` entry, a string in its .modinfo section."""
    at = content.find(b"\0depends=")
    if at < 0:
        return []
    text = content[at + len(b"\0depends=") : content.index(b"\0", at + 1)].decode()
    return [module_name(name) for name in text.split(",") if name]
