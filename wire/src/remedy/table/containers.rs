//! What to do about failures of agents in containers and pods, and about containers that lack something.

use super::remedies;

remedies! {
    CONTAINER_DEVICES = "container-devices",
        "start the container with the devices (`--device /dev/infiniband`), as a user who may open them; {0} shows those that it has",
        look "ls -l /dev/infiniband";
    CONTAINER_IMAGE = "container-image",
        "use an image with `sh`, the core utilities (sha256sum) and glibc; deploy/Containerfile makes one";
    CONTAINER_KILLED = "container-killed",
        "see whether the container reached its memory limit ({0}: `oom_kill` counts), and raise it; if not, somebody ended the \
         process",
        look "cat /sys/fs/cgroup/memory.events";
    CONTAINER_LOCKED_MEMORY = "container-locked-memory",
        "start the container with `--ulimit memlock=-1`, or, if it runs as root of the machine, with `--cap-add IPC_LOCK`; {0} shows \
         the limit",
        look "ulimit -l";
    ENGINE_BY_HAND = "engine-by-hand",
        "run a process by hand, it must print `here` and end with status 0: {0}",
        look_here "{engine} exec --interactive {container} sh -c 'echo here'";
    ENGINE_CLIENT = "engine-client", "install {engine} on this machine, or put it on the PATH";
    ENGINE_NOT_RUNNING = "engine-not-running",
        "see why it ended ({0}), and start it: {1}",
        look_here "{engine} logs --tail 20 {container}", change_here "{engine} start {container}";
    ENGINE_NO_CONTAINER = "engine-no-container",
        "correct `names` of `[hosts]`, or start the container; {0} lists those that there are",
        look_here "{engine} ps --all";
    ENGINE_PAUSED = "engine-paused", "let it go on: {0}", change_here "{engine} unpause {container}";
    ENGINE_RESTARTED = "engine-restarted",
        "see why ({0}), and go on with the run: {1}",
        look_here "{engine} logs --tail 20 {container}", change_here "railgauge run --resume {directory}";
    ENGINE_SERVICE = "engine-service",
        "start the service of {engine}, or let your user talk to it; this must work: {0}",
        look_here "{engine} ps";
    IPC_LOCK_NOT_ROOT = "ipc-lock-not-root",
        "run the container as root (`runAsUser: 0`): the capability IPC_LOCK that it has is not in effect for other users; or raise \
         the limit of the container runtime on the node (LimitMEMLOCK=infinity: {0}), restart it and make the pod anew",
        change "systemctl edit containerd";
    IPC_LOCK_IN_NAMESPACE = "ipc-lock-in-namespace",
        "raise the limit of the container itself (`--ulimit memlock=-1` of podman and docker; LimitMEMLOCK=infinity of the container \
         runtime on a node), or start it in the machine's own user namespace (no rootless engine, `hostUsers: true`): the \
         capability IPC_LOCK counts there only";
    KUBECTL_BY_HAND = "kubectl-by-hand",
        "run a process by hand, it must print `here` and end with status 0: {0}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] exec --stdin {pod} [--namespace {namespace}] [--container {container}] -- sh -c 'echo here'";
    KUBECTL_CERTIFICATE = "kubectl-certificate",
        "correct `certificate-authority` of the cluster in your kubeconfig, or the address in `server`, which must be in the API \
         server's certificate; see whether the clock of this machine is right; {0} shows what kubectl uses",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] config view --minify";
    KUBECTL_CLIENT = "kubectl-client", "install kubectl on this machine, or put it on the PATH";
    KUBECTL_CONFIG = "kubectl-config",
        "correct `context`, `kubeconfig` or `namespace` of `[launch.kubectl]`; {0} lists the contexts",
        look_here "kubectl [--kubeconfig {kubeconfig}] config get-contexts";
    KUBECTL_CONTAINER = "kubectl-container",
        "set `container` of `[launch.kubectl]` to one that runs in the pod; {0} shows them",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] describe pod {pod} [--namespace {namespace}]";
    KUBECTL_CUT = "kubectl-cut",
        "look for what cuts streams between here and the pod: a time limit of a proxy or load balancer before the API server, \
         `streamingConnectionIdleTimeout` of the kubelet (4 h), a restart of one of them ({0}); what was measured is kept, and {1} \
         goes on",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get events [--namespace {namespace}]", change_here "railgauge run --resume {directory}";
    KUBECTL_DROPPED = "kubectl-dropped",
        "run the command again; if it comes back, use a newer kubectl, in which kubernetes#131189 is fixed; {0} shows which one runs here",
        look_here "kubectl version --client";
    KUBECTL_FORBIDDEN = "kubectl-forbidden",
        "have the role of deploy/kubernetes/access.yaml bound to your user; then this says yes: {0}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] auth can-i create pods/exec [--namespace {namespace}]";
    KUBECTL_LOGIN = "kubectl-login", "log in to the cluster again; then this works: {0}", look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}]";
    KUBECTL_NODE = "kubectl-node",
        "see whether the node is up and its kubelet runs and can be reached from the API server (port 10250): {0}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] describe node {node}";
    KUBECTL_NO_POD = "kubectl-no-pod",
        "correct `names` of `[hosts]`, or give a selector in `[hosts.kubectl]`, which finds pods that were made anew, also when a run \
         is resumed; {0} lists the pods",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] --output wide";
    KUBECTL_OTHER_PODS = "kubectl-other-pods",
        "have one pod on each node of the run, or start a new run; {0} shows where the pods are",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] --selector {selector} --output wide";
    KUBECTL_POD_ENDED = "kubectl-pod-ended",
        "see why ({0}); when a pod runs in its place, {1} goes on",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] describe pod {pod} [--namespace {namespace}]", change_here "railgauge run --resume {directory}";
    KUBECTL_POD_PENDING = "kubectl-pod-pending",
        "see what it waits for ({0}), such as a device (`rdma/hca`, `nvidia.com/gpu`), an image or a taint",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] describe pod {pod} [--namespace {namespace}]";
    KUBECTL_SELECTOR = "kubectl-selector",
        "correct `selector` of `[hosts.kubectl]`, such as app=railgauge,tier!=test; this must list the pods: {0}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] get pods [--namespace {namespace}] --selector {selector}";
    KUBECTL_SERVER = "kubectl-server",
        "see whether the API server can be reached from here ({0}), and go on when it is back: {1}",
        look_here "kubectl [--kubeconfig {kubeconfig}] [--context {context}] cluster-info", change_here "railgauge run --resume {directory}";
    POD_DEVICES = "pod-devices",
        "ask for the device plugin's resource under `resources.limits` of the container (`rdma/hca: 1`, as deploy/kubernetes does); {0} \
         shows what nodes offer",
        look_here "kubectl describe nodes";
    POD_GID_TABLE = "pod-gid-table",
        "leave `gid_index` out: every pod has a table of its own, and agents choose the GID by its value";
    POD_LOCKED_MEMORY = "pod-locked-memory",
        "add IPC_LOCK to `securityContext.capabilities.add` of the container, which must run as root (deploy/kubernetes does both); \
         or raise the limit of the container runtime on the node (LimitMEMLOCK=infinity: {0}), restart it and make the pod anew",
        change "systemctl edit containerd";
}
