"""The guests' root file system: one initramfs for each architecture, shared by all of its hosts of a lab. Programs come from
this machine or, for another architecture, from Debian's packages."""
import hashlib
import os
import stat
from pathlib import Path

from .architecture import X86
from .errors import Unavailable
from .process import run
from .userland import MERGED, Own

BUSYBOX = "/usr/bin/busybox"
GUEST = Path(__file__).resolve().parent.parent / "guest"
RDMA_TESTS = [f"/usr/bin/ib_{op}_{what}" for op in ("write", "read", "send", "atomic") for what in ("bw", "lat")]
PROGRAMS = [
    "/usr/bin/bash", "/usr/sbin/sshd", "/usr/lib/openssh/sftp-server", "/usr/bin/ssh", "/usr/bin/scp", "/usr/bin/ip",
    "/usr/sbin/tc", "/usr/bin/rdma", "/usr/bin/ibv_devinfo", "/usr/bin/ibv_devices", "/usr/bin/iperf3",
    "/usr/bin/taskset", "/usr/bin/timeout", "/usr/bin/pkill", "/usr/bin/pgrep", *RDMA_TESTS,
]
# Newer OpenSSH splits its daemon; older ones do not have these.
PROGRAMS_IF_THERE = ["/usr/lib/openssh/sshd-session", "/usr/lib/openssh/sshd-auth"]
# Opened at run time, so that no program names them: the providers of Soft-RoCE and siw, what the agent is linked with (for an old
# C library its former parts too), and the unwinder that thread cancellation opens.
LIBRARIES = ["libibverbs/librxe-rdmav*.so", "libibverbs/libsiw-rdmav*.so", "librdmacm.so.1", "libibverbs.so.1",
             "libgcc_s.so.1", "libm.so.6", "libnss_files.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"]
DATA = ["/etc/libibverbs.d/rxe.driver", "/etc/libibverbs.d/siw.driver", "/usr/lib/tc/*.dist"]

# `op` is the user that is not root: plans that log in as an ordinary user can be tried too.
ACCOUNTS = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nop:x:1000:1000:operator:/home/op:/bin/bash\n"
                   "sshd:x:102:65534::/run/sshd:/bin/false\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": "root:x:0:\nop:x:1000:\nnogroup:x:65534:\n",
    "/etc/shadow": "root:*:19000:0:99999:7:::\nop:*:19000:0:99999:7:::\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "/etc/os-release": 'NAME="railgauge lab"\nPRETTY_NAME="railgauge lab guest"\nID=railgauge-lab\n',
    "/etc/shells": "/bin/bash\n/bin/sh\n",
    "/etc/inittab": "::sysinit:/lab/boot\n",
}
FOLDERS = ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "tmp", "run", "root", "mnt",
           "var/empty", "var/tmp", "home/op"]


OWN = Own(X86)


def missing_programs(userland=OWN):
    """Programs of the image that are not there."""
    return [name for name in [*PROGRAMS, BUSYBOX, "/etc/libibverbs.d/rxe.driver"] if not userland.has(name)]


def fingerprint(kernel, userland):
    """Changes when anything that goes into the image does."""
    digest = hashlib.sha256(repr((ACCOUNTS, FOLDERS)).encode())
    for path in sorted(GUEST.iterdir()):
        digest.update(path.read_bytes())
    files = [*PROGRAMS, *existing(userland), BUSYBOX]
    for path in sorted([*modules_of(kernel), *map(userland.file, files)]):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def existing(userland):
    """Optional programs, libraries and data files that are there."""
    found = [name for name in PROGRAMS_IF_THERE if userland.has(name)]
    for pattern in LIBRARIES:
        found += userland.library(pattern)
    return found + [hit for pattern in DATA for hit in userland.glob(pattern)]


def modules_of(kernel):
    """Files of all modules of an unpacked kernel."""
    return [*(kernel / "modules").iterdir(), *(kernel / "later").glob("*/*")]


def build(kernel, userland, target):
    """Write the image, uncompressed: unpacking takes the guests longer than reading."""
    missing = missing_programs(userland)
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)}; ./setup --tests installs them")
    archive = Archive()
    for name in MERGED:
        archive.link(name, f"usr/{name}")
    for folder in FOLDERS:
        archive.folder(folder, 0o1777 if folder.endswith("tmp") else 0o755)
    archive.file("init", (GUEST / "init").read_bytes(), 0o755)
    archive.file("lab/boot", (GUEST / "boot").read_bytes(), 0o755)
    archive.file("usr/sbin/lab-module", (GUEST / "module").read_bytes(), 0o755)
    for module in sorted(modules_of(kernel)):
        archive.file(f"lab/{module.relative_to(kernel)}", module.read_bytes())
    for name in userland.with_libraries([*PROGRAMS, *existing(userland), BUSYBOX]):
        file = userland.file(name)
        archive.file(name, file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
    for name, text in ACCOUNTS.items():
        archive.file(name, text.encode(), 0o600 if name == "/etc/shadow" else 0o644)
    # Of this machine's busybox, which can be asked: that of another architecture is the same program.
    for applet in run(BUSYBOX, "--list").decode().split():
        if not any(archive.has(f"usr/{folder}/{applet}") for folder in ("bin", "sbin")):
            archive.link(f"usr/bin/{applet}", "busybox")
    scratch = target.with_suffix(".part")
    scratch.write_bytes(archive.finish())
    scratch.rename(target)


class Archive:
    """A cpio archive in the kernel's format, owned by root. Later entries of a name are ignored."""

    def __init__(self):
        self.parts = []
        self.names = set()

    def has(self, name):
        return name.strip("/") in self.names

    def folder(self, name, mode=0o755):
        self._entry(name, stat.S_IFDIR | mode, b"")

    def file(self, name, content, mode=0o644):
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name, target):
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def finish(self):
        self._append("TRAILER!!!", 0, b"")
        return b"".join(self.parts)

    def _entry(self, name, mode, content):
        name = name.strip("/")
        if name.split("/", 1)[0] in MERGED and "/" in name:
            name = f"usr/{name}"
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent and parent not in self.names:
            self.folder(parent)
        self.names.add(name)
        self._append(name, mode, content)

    def _append(self, name, mode, content):
        path = name.encode() + b"\0"
        number = len(self.names)
        # Documentation/driver-api/early-userspace/buffer-format.rst: ino, mode, uid, gid, nlink, mtime, filesize,
        # four device numbers, namesize, check; header with name and content are padded to four bytes.
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + path
        self.parts += [header, b"\0" * (-len(header) % 4), content, b"\0" * (-len(content) % 4)]
