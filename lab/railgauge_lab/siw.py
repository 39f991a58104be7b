"""siw, iWARP in software. Debian's kernels leave it out, so its module is built for the guests' kernel.

Source, headers and build tools are Debian's, of the kernel's own version; the packages are unpacked, never installed.
A lab without the module is a whole lab but for iWARP: `lab-module siw` says then why there is none.
"""
import ctypes
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from .architecture import X86
from .errors import LabError
from .process import run

SOURCE = "drivers/infiniband/sw/siw/"
ABSENT = "not installed: "


def add(version, architecture, raw, apts, work, say):
    """Build siw.ko for a version of the kernel into `raw`. Returns None, or why that cannot be done here."""
    if architecture is not X86:
        return f"the lab builds it for {X86.name} guests only"
    if lacking():
        return f"{ABSENT}{', '.join(lacking())}; ./setup --tests installs them"
    reasons = []
    for apt in apts:
        try:
            say(f"building siw (iWARP) for Linux {version}")
            build(version, raw / "siw.ko", apt(work), work / "siw")
            return None
        except LabError as error:
            reasons.append(str(error))
    say(f"the guests have no siw (iWARP): {'; '.join(reasons)}")
    return f"building it failed ({'; '.join(reasons)}); `lab clean` and `lab build` try again"


def worth_another_try(kernel):
    """Whether the module was left out for want of a tool that is there now."""
    note = kernel / "later" / "siw" / "missing"
    return note.exists() and note.read_text().startswith(ABSENT) and not lacking()


def lacking():
    """What this machine needs for a module of the kernel and does not have."""
    absent = [name for name in ("make", "gcc", "ld") if shutil.which(name) is None]
    try:
        ctypes.CDLL("libelf.so.1")  # of objtool, which comes with the headers
    except OSError:
        absent.append("libelf1")
    return absent


def build(version, target, apt, work):
    """Fetch, unpack, compile; `target` is the module without symbols for debuggers."""
    shutil.rmtree(work, ignore_errors=True)
    headers = apt.download(f"linux-headers-{version}")
    release, depends = (run("dpkg-deb", "-f", headers, field).decode().strip() for field in ("Version", "Depends"))
    others = re.findall(r"linux-headers-\S+-common|linux-kbuild-[^\s,]+", depends)
    for package in [headers, *(apt.download(at_release(name, release, depends)) for name in others)]:
        run("dpkg-deb", "-x", package, work)
    series = re.match(r"\d+\.\d+", version)[0]
    take_source(apt.download(f"linux-source-{series}={release}"), work / "siw")
    tree = work / "usr/src" / f"linux-headers-{version}"
    # The headers' makefile names the place where the package would be installed.
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(makefile.replace("/usr/src/", f"{work}/usr/src/"))
    wanted = re.search(r"\bgcc-\d+", depends)
    compiler = wanted[0] if wanted and shutil.which(wanted[0]) else "gcc"
    # Types for debuggers of BPF would need a program more; a caller's jobs are not for this make.
    run("env", "-u", "MAKEFLAGS", "make", "-s", "-C", tree, f"-j{os.cpu_count() or 1}", f"M={work}/siw",
        f"CC={compiler}", "CONFIG_RDMA_SIW=m", "CONFIG_DEBUG_INFO=", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
    run("strip", "--strip-debug", "-o", target, work / "siw" / "siw.ko")
    shutil.rmtree(work)


def at_release(name, release, depends):
    """A package, of the same release where the headers ask for that."""
    return f"{name}={release}" if f"{name} (= {release})" in depends else name


def take_source(package, folder):
    """Unpack the driver alone from the package of the whole kernel's source: a compressed archive in an archive."""
    folder.mkdir(parents=True)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as outer:
        with tarfile.open(fileobj=outer.stdout, mode="r|") as packed:
            source = next((member for member in packed if member.name.endswith(".tar.xz")), None)
            if source is None:
                raise LabError(f"{package} holds no source of the kernel")
            with tarfile.open(fileobj=packed.extractfile(source), mode="r|xz") as tree:
                for member in tree:
                    if SOURCE in member.name and member.isfile():
                        (folder / Path(member.name).name).write_bytes(tree.extractfile(member).read())
                    elif any(folder.iterdir()):
                        break  # a folder's files lie together, and the rest is long
        outer.terminate()
    if not any(folder.iterdir()):
        raise LabError(f"{package} has no {SOURCE}")
