"""The lab: virtual hosts, their fabric, and the faults that can be injected into both.

settings  where the lab lives and what it is called
architecture  what differs between x86 and Arm guests
packages  Debian's packages: finding and fetching them
boot      a packed kernel -> what QEMU enters
kernel    package -> kernel and the modules the guests load
userland  the programs of an image: this machine's, or those of packages
image     programs and modules -> one initramfs
prepare   kernel and image, kept between labs
fabric    network namespace, bridges, switch ports
machine   one QEMU process
lab       all of them together: up, down, state
commands  the command line
"""
