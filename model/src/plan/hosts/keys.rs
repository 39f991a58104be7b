use crate::plan::{Section, format::keys};

pub static HOSTS: Section = Section {
    header: "[hosts]",
    about: "Which hosts take part: `names`, `file`, or both; with `via = \"slurm\"` also neither: the nodes of the \
            allocation; with `via = \"kubectl\"` a selector of pods.",
    keys: keys! {
        "names": Hosts, Means("none"),
            "Host names, with ranges as Slurm and pdsh write them: `\"gpu[001-032,040]\"`. Every name once.";
        "file": Path, Means("none"),
            "A file with one hostlist on each line; `#` begins a comment. A relative path starts from the plan's \
             directory.";
        "exclude": Hosts, Means("none"), "Hosts that are left out, also from groups.";
        "groups": Groups, Means("none"),
            "Named groups of hosts: `rack1 = \"gpu[001-016]\"`. A group cannot be called like a host.";
        "places": Places, Means("not known"),
            "In which rack and slot each host is: a table such as `{ \"gpu[001-016]\" = \"rack12/u[01-16]\" }`, with \
             one place for all hosts of an entry or as many as there are hosts; or a file with a line \
             `host,rack,slot` for each. Reports and verdicts.json show it; nothing depends on it.";
        "devices": Texts, Means("found by the agent: every active port"),
            "RDMA devices to use on every host, in rail order; `mlx5_0:2` is port 2.",
            "perftest `--ib-dev`, `--ib-port`; `NCCL_IB_HCA`";
        "tcp": Texts, Means("found by the agent"),
            "Network interfaces or addresses for TCP on every host, in rail order. Addresses differ between hosts: \
             give them in `[[hosts.override]]`.", "`NCCL_SOCKET_IFNAME`";
        "slurm": Table(&SLURM), Means("none"),
            "How many nodes of the allocation, in place of names; only with `via = \"slurm\"`.";
        "kubectl": Table(&KUBECTL), Means("none"), "Which pods, in place of names; only with `via = \"kubectl\"`.";
        "override": Tables(&OVERRIDE), Means("none"), "Settings of single hosts.";
    },
};

pub static SLURM: Section = Section {
    header: "[hosts.slurm]",
    about: "Nodes of a Slurm allocation in place of names: `hosts = { slurm = { nodes = 32 } }`.",
    keys: keys! {
        "nodes": Whole(1, 65_536), Required,
            "How many: the first so many of the allocation, and what `railgauge submit` asks for.";
    },
};

pub static KUBECTL: Section = Section {
    header: "[hosts.kubectl]",
    about: "Pods in place of names: `hosts = { kubectl = { selector = \"app=railgauge\", pods = 32 } }`. A host has the name of its \
            node where every pod has a node of its own, else that of its pod.",
    keys: keys! {
        "selector": Text, Required, "Selector of labels (`kubectl get pods --selector`).";
        "pods": Whole(1, 65_536), Required,
            "How many of them run: another number is an error, so that no host is missed.";
    },
};

pub static OVERRIDE: Section = Section {
    header: "[[hosts.override]]",
    about: "Settings of the hosts it matches. No key may be set twice for one host.",
    keys: keys! {
        "match": Hosts, Required, "Hosts or groups it applies to.";
        "address": Text, Means("the host's name"),
            "What the launcher connects to: a name or an IPv4 or IPv6 address. For one host only.";
        "user": Text, Means("that of `[launch.ssh]`"),
            "Login name: for ssh, for podman and docker, or `{user}` of a command.";
        "port": Whole(1, 65_535), Means("that of `[launch.ssh]`"), "Port: of sshd, or `{port}` of a command.";
        "devices": Texts, Means("that of `[hosts]`"),
            "RDMA devices to use, in rail order.", "perftest `--ib-dev`, `--ib-port`; `NCCL_IB_HCA`";
        "tcp": Texts, Means("that of `[hosts]`"),
            "Network interfaces or addresses for TCP, in rail order.", "`NCCL_SOCKET_IFNAME`";
    },
};
