use crate::plan::{Section, format::keys};

pub static HOSTS: Section = Section {
    header: "[hosts]",
    about: "Which hosts take part: `names`, `file`, or both; with `via = \"slurm\"` also neither: the nodes of the \
            allocation; with `via = \"kubectl\"` a selector of pods.",
    keys: keys! {
        "names": Hosts, Means("none"),
            "Host names, each once: `\"gpu[001-032,040]\"`.";
        "file": Path, Means("none"),
            "A file with one hostlist on each line; `#` starts a comment.";
        "exclude": Hosts, Means("none"), "Hosts to leave out, also from groups.";
        "groups": Groups, Means("none"),
            "Named groups of hosts: `rack1 = \"gpu[001-016]\"`. A group must not have a host's name.";
        "places": Places, Means("not known"),
            "Rack and slot of each host: a table such as `{ \"gpu[001-016]\" = \"rack12/u[01-16]\" }`, or a file \
             with lines `host,rack,slot`. Reports and verdicts.json show it.";
        "devices": Texts, Means("found by the agent: every active port"),
            "RDMA devices to use on every host, in rail order; `mlx5_0:2` is port 2.",
            "perftest `--ib-dev`, `--ib-port`; `NCCL_IB_HCA`";
        "tcp": Texts, Means("found by the agent"),
            "Network interfaces or addresses for TCP on every host, in rail order.", "`NCCL_SOCKET_IFNAME`";
        "slurm": Table(&SLURM), Means("none"),
            "Number of nodes of the allocation, in place of names.";
        "kubectl": Table(&KUBECTL), Means("none"), "Which pods, in place of names.";
        "override": Tables(&OVERRIDE), Means("none"), "Settings of single hosts.";
    },
};

pub static SLURM: Section = Section {
    header: "[hosts.slurm]",
    about: "Nodes of a Slurm allocation in place of names: `hosts = { slurm = { nodes = 32 } }`.",
    keys: keys! {
        "nodes": Whole(1, 65_536), Required,
            "The first so many of the allocation; `railgauge submit` requests them.";
    },
};

pub static KUBECTL: Section = Section {
    header: "[hosts.kubectl]",
    about: "Pods in place of names: `hosts = { kubectl = { selector = \"app=railgauge\", pods = 32 } }`. A host has the name of its \
            node where every pod has a node of its own, else that of its pod.",
    keys: keys! {
        "selector": Text, Required, "Selector of labels (`kubectl get pods --selector`).";
        "pods": Whole(1, 65_536), Required,
            "How many of them run; any other number is an error.";
    },
};

pub static OVERRIDE: Section = Section {
    header: "[[hosts.override]]",
    about: "Settings of the hosts it matches. No key may be set twice for one host.",
    keys: keys! {
        "match": Hosts, Required, "Hosts or groups it applies to.";
        "address": Text, Means("the host's name"),
            "Name, IPv4 or IPv6 address that the launcher connects to. For one host only.";
        "user": Text, Means("that of `[launch.ssh]`"),
            "Login name for ssh, podman and docker, or `{user}` of a command.";
        "port": Whole(1, 65_535), Means("that of `[launch.ssh]`"), "Port of sshd, or `{port}` of a command.";
        "devices": Texts, Means("that of `[hosts]`"),
            "RDMA devices to use, in rail order.", "perftest `--ib-dev`, `--ib-port`; `NCCL_IB_HCA`";
        "tcp": Texts, Means("that of `[hosts]`"),
            "Network interfaces or addresses for TCP, in rail order.", "`NCCL_SOCKET_IFNAME`";
    },
};
