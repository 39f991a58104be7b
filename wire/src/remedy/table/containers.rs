//! What to do about failures of agents in containers and pods, and about containers that lack something.

remedies! {
    CONTAINER_DEVICES = "start the container with the devices (`--device /dev/infiniband`), as a user who may open \
        them; {0} shows those that it has",
        look "ls -l /dev/infiniband";
    CONTAINER_IMAGE = "use an image with `sh`, the core utilities (sha256sum) and glibc; deploy/Containerfile makes \
        one";
    CONTAINER_KILLED = "see whether the container reached its memory limit ({0}: `oom_kill` counts), and raise it; if \
        not, somebody ended the process",
        look "cat /sys/fs/cgroup/memory.events";
    CONTAINER_LOCKED_MEMORY = "start the container with `--ulimit memlock=-1`, or, if it runs as root of the machine, \
        with `--cap-add IPC_LOCK`; {0} shows the limit",
        look "ulimit -l";
    ENGINE_BY_HAND = "see whether the container is there and runs ({0}); a process by hand must print `here` and end \
        with status 0: {1}",
        look_here "{engine} ps --all", look_here "{engine} exec --interactive {container} sh -c 'echo here'";
    IPC_LOCK_NOT_ROOT = "run the container as root (`runAsUser: 0`): the capability IPC_LOCK that it has is not in \
        effect for other users; or raise the limit of the container runtime on the node (LimitMEMLOCK=infinity: {0}), \
        restart it and make the pod anew",
        change "systemctl edit containerd";
    IPC_LOCK_IN_NAMESPACE = "raise the limit of the container itself (`--ulimit memlock=-1` of podman and docker; \
        LimitMEMLOCK=infinity of the container runtime on a node), or start it in the machine's own user namespace (no \
        rootless engine, `hostUsers: true`): the capability IPC_LOCK counts there only";
    KUBECTL_BY_HAND = "see whether the pod is there and runs ({0}); a process by hand must print `here` and end with \
        status 0: {1}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] [--selector {selector}] --output wide",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] exec --stdin {pod} [--namespace {namespace}] [--container {container}] -- sh -c 'echo here'";
    KUBECTL_OTHER_PODS = "have one pod on each node of the run, or start a new run; {0} shows where the pods are",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] --selector {selector} --output wide";
    POD_DEVICES = "ask for the device plugin's resource under `resources.limits` of the container (`rdma/hca: 1`, as \
        deploy/kubernetes does); {0} shows what nodes offer",
        look_here "kubectl describe nodes";
    POD_GID_TABLE = "leave `gid_index` out: every pod has a table of its own, and agents choose the GID by its value";
    POD_LOCKED_MEMORY = "add IPC_LOCK to `securityContext.capabilities.add` of the container, which must run as root \
        (deploy/kubernetes does both); or raise the limit of the container runtime on the node (LimitMEMLOCK=infinity: \
        {0}), restart it and make the pod anew",
        change "systemctl edit containerd";
}
