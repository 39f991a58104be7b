//! What to do about programs of hosts that report switches and cables.

remedies! {
    INSTALL_INFINIBAND_DIAGS = "install infiniband-diags on a host of the subnet, or run ibnetdiscover and dump_fts \
         elsewhere and name \
         their output in [topology]";
    INSTALL_LLDPD = "install lldpd and start it ({0}), and turn on LLDP at the switches",
        change "systemctl enable --now lldpd";
    LLDPD_ANSWERS = "check that lldpd runs ({0}) and that the agent's user is root or in the group of its socket",
        look "systemctl status lldpd";
    MAY_ASK_LLDPD = "let the agent's user run lldpcli ({0}: group adm on Debian), or run {1} as root and name the \
         directory of \
         HOST.json files as `lldp` in [topology]",
        look "ls -l /usr/sbin/lldpcli", look "lldpcli -f json show neighbors";
    MAY_ASK_SUBNET = "check that a subnet manager runs ({0}), ib_umad is loaded, and the agent's user (usually root) \
         may open {1}",
        look "sminfo", look "ls -l /dev/infiniband";
    READ_SUBNETS = "exclude hosts or NICs of other InfiniBand subnets, or describe all cables in [topology]";
    SWITCHES_TELL = "check that LLDP is on at the switches and the cables are up, then wait for its interval \
         (usually 30 s)";
    RUN_TOOL_BY_HAND = "run the program on the host by hand, and name the file with its output in [topology]";
}
