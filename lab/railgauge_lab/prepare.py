"""What guests of an architecture boot, kept between labs: made when it is missing, or when what it is made of has changed."""
import fcntl
import shutil
from contextlib import contextmanager

from . import image, kernel, packages, siw, userland
from .architecture import X86
from .errors import Unavailable
from .settings import private_directory


def missing(architectures):
    """Programs that this machine needs for guests of these architectures and does not have."""
    programs = [architecture.qemu for architecture in architectures]
    if any(architecture is not X86 for architecture in architectures):
        programs += ["apt-get", "dpkg-deb", "readelf", "tar"]
    return [*(name for name in programs if shutil.which(name) is None), *image.missing_programs()]


def check(architectures):
    """Raise Unavailable where one of them is missing."""
    names = missing(architectures)
    if names:
        raise Unavailable(f"not installed: {', '.join(names)}; ./setup --tests installs them")


def prepare(settings, architecture, say):
    """Bring kernel and image up to date and return the folder they lie in."""
    cache = private_directory(settings.cache)
    with locked(cache / "lock"):
        folder = private_directory(architecture.folder(cache))
        if not kernel.current(folder / "kernel", architecture) or siw.worth_another_try(folder / "kernel"):
            with workshop(cache) as work:
                package, apts = packages.kernel_package(work, architecture, settings.series, say)
                kernel.unpack(package, architecture, folder / "kernel",
                              lambda version, raw: siw.add(version, architecture, raw, apts, work, say), say)
        source = programs(folder, cache, architecture, say)
        stamp, wanted = folder / "initramfs.stamp", image.fingerprint(folder / "kernel", source)
        if not stamp.exists() or stamp.read_text() != wanted or not (folder / "initramfs").exists():
            say(f"building the guests' image for {architecture.name}")
            image.build(folder / "kernel", source, folder / "initramfs")
            stamp.write_text(wanted)
    return folder


def programs(folder, cache, architecture, say):
    """Where the programs of an image come from."""
    if architecture is X86:
        return userland.Own(architecture)
    root = folder / "root"
    if not userland.current(root):
        with workshop(cache) as work:
            userland.unpack(packages.arm_apt(work), root, work, say)
    return userland.Unpacked(architecture, root)


@contextmanager
def workshop(cache):
    """A folder for what is fetched, which is gone when all went well."""
    work = private_directory(cache / "work")
    yield work
    shutil.rmtree(work)


@contextmanager
def locked(path):
    """Hold a lock file for a while."""
    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
