//! What to do about programs of hosts that report switches and cables.

remedies! {
    INSTALL_INFINIBAND_DIAGS = "install infiniband-diags (ibnetdiscover, dump_fts) on a host of the subnet, or run \
        them where they are and name the files in [topology]";
    INSTALL_LLDPD = "install lldpd and start it ({0}), and turn on LLDP at the switches",
        change "systemctl enable --now lldpd";
    LLDPD_ANSWERS = "check that lldpd runs ({0}) and that the agent's user may speak with it: root, or a member of the \
        group of its socket",
        look "systemctl status lldpd";
    MAY_ASK_LLDPD = "let the agent's user run lldpcli: {0} shows its group (adm on Debian); or run {1} by hand as root \
        and name the folder of the files HOST.json as `lldp` in [topology]",
        look "ls -l /usr/sbin/lldpcli", look "lldpcli -f json show neighbors";
    MAY_ASK_SUBNET = "check that a subnet manager runs ({0}), that the module ib_umad is loaded, and that the agent's \
        user may open {1}: usually only root may",
        look "sminfo", look "ls -l /dev/infiniband";
    READ_SUBNETS = "railgauge reads one InfiniBand subnet: leave the hosts or NICs of the others out of the plan, or \
        describe all cables in [topology]";
    SWITCHES_TELL = "check that LLDP is on at the switches and that the cables are up; lldpd hears a switch within its \
        interval, 30 s as a rule";
    RUN_TOOL_BY_HAND = "run the program by hand on the host to see what it does, and name the file with its output in \
        [topology]";
}
