"""The lab: virtual hosts, their fabric, and the faults that can be injected into both.

settings  where the lab lives and what it is called
packages  the kernel package: finding and fetching it
kernel    package -> ELF kernel and the modules the guests load
image     host programs and modules -> one initramfs
fabric    network namespace, bridges, switch ports
machine   one QEMU process
lab       all of them together: up, down, state
commands  the command line
"""
