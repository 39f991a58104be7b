//! What to do about failures of agents in containers and pods, and about containers that lack something.

remedies! {
    CONTAINER_DEVICES = "start the container with `--device /dev/infiniband`, as a user who may open it; {0} shows \
         its devices",
        look "ls -l /dev/infiniband";
    CONTAINER_IMAGE = "use an image with `sh`, the core utilities (sha256sum) and glibc; deploy/Containerfile makes \
         one";
    CONTAINER_KILLED = "check whether the container reached its memory limit ({0}: `oom_kill`) and raise it; else \
         something ended \
         the process",
        look "cat /sys/fs/cgroup/memory.events";
    CONTAINER_LOCKED_MEMORY = "start the container with `--ulimit memlock=-1` or, as root of the machine, `--cap-add \
         IPC_LOCK`; {0} shows \
         the limit",
        look "ulimit -l";
    ENGINE_BY_HAND = "check that the container runs ({0}) and that a process in it prints `here` with status 0: {1}",
        look_here "{engine} ps --all", look_here "{engine} exec --interactive {container} sh -c 'echo here'";
    IPC_LOCK_NOT_ROOT = "run the container as root (`runAsUser: 0`), since its IPC_LOCK has no effect for other \
         users; or raise the \
         runtime's limit on the node (LimitMEMLOCK=infinity: {0}), restart it and recreate the pod",
        change "systemctl edit containerd";
    IPC_LOCK_IN_NAMESPACE = "raise the container's own limit (`--ulimit memlock=-1`, or LimitMEMLOCK=infinity of the \
         runtime), or start \
         it in the machine's user namespace (no rootless engine, `hostUsers: true`), where IPC_LOCK counts";
    KUBECTL_BY_HAND = "check that the pod runs ({0}) and that a process in it prints `here` with status 0: {1}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] [--selector {selector}] --output wide",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] exec --stdin {pod} [--namespace {namespace}] [--container {container}] -- sh -c 'echo here'";
    KUBECTL_OTHER_PODS = "have one pod on each node of the run, or start a new run; {0} shows the pods",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] --selector {selector} --output wide";
    POD_DEVICES = "request the device plugin's resource under `resources.limits` (`rdma/hca: 1`, as in \
         deploy/kubernetes); {0} \
         shows what nodes have",
        look_here "kubectl describe nodes";
    POD_GID_TABLE = "leave `gid_index` out: pods have different GID tables, and agents choose the GID by value";
    POD_LOCKED_MEMORY = "add IPC_LOCK to `securityContext.capabilities.add` and run as root (as in \
         deploy/kubernetes); or raise the \
         runtime's limit on the node (LimitMEMLOCK=infinity: {0}), restart it and recreate the pod",
        change "systemctl edit containerd";
}
