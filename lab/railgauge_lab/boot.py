"""The kernel as QEMU enters it directly. A compressed one would unpack itself first, which takes most of the boot time when
every instruction is interpreted."""
import lzma
import struct
import zlib

from .architecture import X86
from .errors import LabError
from .process import run


def bootable(image, architecture):
    """The uncompressed kernel of a package's vmlinuz: an ELF file for x86 (which QEMU enters by PVH), an Image for Arm."""
    return elf_of(image) if architecture is X86 else image_of(image)


def elf_of(image):
    """The ELF kernel inside a bzImage: boot protocol fields setup_sects, payload_offset, payload_length."""
    start = ((image[0x1F1] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[start + offset : start + offset + length]
    # The build appends the unpacked size, which zstd would take for a second frame.
    kernel = unpacked(payload[:-4] if payload.startswith(ZSTD) else payload)
    if not kernel.startswith(b"\x7fELF"):
        raise LabError("the unpacked kernel is not an ELF file")
    return kernel


def image_of(image):
    """The Image of arm64: it is the file itself, or that is one compressed, by gzip or inside a program of EFI that unpacks it
    (drivers/firmware/efi/libstub/zboot-header.S of Linux: "zimg" at 4, then offset and size of what is compressed)."""
    if image[4:8] == b"zimg":
        offset, size = struct.unpack_from("<II", image, 8)
        image = image[offset : offset + size]
    # Documentation/arch/arm64/booting.rst of Linux: the magic number at 56.
    kernel = image if image[56:60] == ARM_MAGIC else unpacked(image)
    if kernel[56:60] != ARM_MAGIC:
        raise LabError("the unpacked kernel is not an Image of arm64")
    return kernel


ARM_MAGIC = b"ARM\x64"
XZ, GZIP, ZSTD = b"\xfd7zXZ\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpacked(payload):
    """A kernel, compressed in one of the ways that Debian has used."""
    if payload.startswith(XZ):
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(payload)
    if payload.startswith(GZIP):
        return zlib.decompressobj(31).decompress(payload)
    if payload.startswith(ZSTD):
        return run("zstd", "-dcq", stdin=payload)
    raise LabError(f"the kernel is compressed in an unknown way (it starts with {payload[:6].hex()})")
