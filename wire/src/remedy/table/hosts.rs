//! What to do about failures of reaching a host, sending the agent and starting it.

remedies! {
    ACCEPT_HOST_KEY = "compare the key with the host's own (run {0} there) and accept it with {1} (or the file of your \
         ssh_config's UserKnownHostsFile), or set `host_keys` = \"accept-new\" in `[launch.ssh]`",
        look "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        change_here "ssh-keyscan -p {port} {host} >> {file}";
    ACCEPT_JUMP_KEY = "run {0} by hand and accept the jump host's key; ssh takes settings for jump hosts only from \
         your ssh_config",
        change_here "ssh {jump_host}";
    ADD_HOST_SETTING = "add `{key}` to the host in the plan, or remove it from the command";
    AGENT_DIR = "set `launch.agent_dir` to a private, writable directory of the login user";
    AGENT_DIR_CHMOD = "make it private with {0}, or set `launch.agent_dir` to a directory that does not exist",
        change "chmod 700 {directory}";
    AGENT_DIR_EXEC = "set `launch.agent_dir` to a file system not listed by {0}",
        look "findmnt -O noexec";
    AGENT_DIR_PARENTS = "set `launch.agent_dir` to a place whose parent directories belong to root or the login user \
         and are \
         writable only by their owner (or sticky)";
    AGENT_DIR_SPACE = "free some space there ({0}), or set `launch.agent_dir` to a directory on another file system",
        look "df -h";
    BUILD_AGENT = "build the agent with {0}, or set RAILGAUGE_AGENT to its path",
        change_here "cargo build -p railgauge-agent --profile agent";
    BUILD_AGENT_FOR = "build the agent for {machine} and put it at {path}; releases (./dist) have it for x86_64 and \
         aarch64";
    BUILD_FOR_OLDEST_GLIBC = "use the agents of a release (./dist), which need glibc 2.17 on x86_64 and 2.28 on \
         aarch64 ({0}); this agent \
         needs a newer one",
        look "ldd --version";
    BUILD_FOR_PROCESSOR = "use the agents of a release (./dist), or build the agent for this processor ({0})",
        look "uname -m";
    CHECK_HOST_UP = "check that the host is up and reachable from here";
    CHECK_LOGIN_SHELL = "check the start-up files of the login shell and the log of the host's sshd";
    CHECK_SHELL_LIMITS = "check {0} and this shell's limits ({1}): the agent is a local process",
        look_here "dmesg", look_here "ulimit -a";
    CHECK_SSHD_SESSIONS = "check MaxSessions and ForceCommand in the host's sshd_config ({0}) and the log of its sshd",
        look "sshd -T | grep -iE 'maxsessions|forcecommand'";
    CHECK_WHO_WRITES = "find what else writes to the agent's standard output: the launcher's command, a wrapper, \
         shell start-up \
         files";
    CORRECT_ADDRESS = "give the host an `address` that is not empty and does not start with `-`";
    EXPORT_VARIABLE = "export {variable} before starting railgauge, or remove it from `send_env` of `[launch]`";
    FIND_KILLER = "{0} says whether the kernel's out-of-memory killer killed the agent; if not, something else did",
        look "dmesg | grep -i 'killed process'";
    INSTALL_COREUTILS = "install `sh` and the core utilities (sha256sum) on the host";
    INSTALL_LOADED_LIBRARY = "install the missing library on the host";
    INSTALL_SSH = "install OpenSSH's client on this machine: {0}, or install your distribution's package",
        change_here "apt install openssh-client";
    LAUNCH_COMMAND = "run `launch.command` by hand with `sh -c 'echo here'`: it must print `here` with status 0";
    LAUNCH_COMMAND_PROGRAM = "correct the program in `launch.command`, or install `sh` and the core utilities on the \
         host; to find out, \
         run the command with `sh -c 'echo here'`";
    LOWER_IN_FLIGHT = "lower `launch.in_flight`, or raise this machine's limits ({0}, {1})",
        look_here "ulimit -u", look_here "ulimit -n";
    NAME_AGENT_FILE = "set RAILGAUGE_AGENT to the path of the agent";
    PASS_WORDS_ON = "use via = \"ssh\", or a command that passes arguments unchanged (ip netns exec, kubectl exec, \
         srun); this \
         one joins them for a shell";
    QUIET_LOGIN_SHELL = "check log.txt and the login shell's start-up files: something else writes to its standard \
         output";
    RAISE_CONNECT_TIMEOUT = "check that the host is up and reachable from here; `launch.timeout` sets this limit";
    RAISE_DEPLOY_TIMEOUT = "check the host's network and disk for delays, or raise `launch.timeout`";
    RAISE_START_TIMEOUT = "check the host's load ({0}): it is overloaded, or the agent hangs; `launch.timeout` sets \
         this limit",
        look "uptime";
    READ_LOG = "see log.txt, which has all output of the agent";
    REBUILD_BOTH = "build railgauge and the agent from the same source: {0}",
        change_here "cargo build && cargo build -p railgauge-agent --profile agent";
    REPLACE_HOST_KEY = "only if the host was reinstalled, replace its key: {0}, then {1}; otherwise another machine \
         may be answering",
        change_here "ssh-keygen -R {name} -f {file}",
        change_here "ssh-keyscan -p {port} {host} >> {file}";
    RETRY_BUSY_FILE = "try again when no other process is writing the agent's file";
    RETRY_TAKEN_FILE = "try again: another run may have removed the agent's file; else set `launch.agent_dir` to a \
         directory that \
         allows links or copies";
    SSH_BY_HAND = "run {0} by hand: it must log in without a prompt; `address` and `[launch.ssh]` of the plan and your \
         ssh_config decide how",
        look_here "ssh -v -o BatchMode=yes {address} true";
    SSH_SOCKET_DIR = "set TMPDIR to a short, writable, local path: ssh's control socket is in XDG_RUNTIME_DIR, \
         TMPDIR or /tmp";
    SLURM_LONGER_TIME = "give the job more time (`time` of `[launch.slurm]`, `salloc --time`) and continue in a new \
         allocation: {0}",
        change_here "railgauge run --resume {directory}";
    SLURM_NEW_ALLOCATION = "continue in a new allocation: {0}", change_here "railgauge run --resume {directory}";
    SLURM_NODE_OUTSIDE = "request this node too (`salloc --nodelist`) or exclude it; {0} shows the job's nodes",
        look_here "scontrol show job {job}";
    SLURM_NO_ALLOCATION = "let railgauge ask for an allocation ({0}), or call it inside one of your own: {1}",
        change_here "railgauge submit {plan}", change_here "salloc --nodes={nodes} --exclusive railgauge run {plan}";
    SLURM_STEP_BY_HAND = "check the node ({0}), the job's steps ({1}), and that a step in the allocation prints \
         `here`: {2}",
        look_here "scontrol show node {node}", look_here "squeue --steps --nodelist={node}",
        look_here "srun -u --overlap --mpi=none -N1 -n1 -w {node} sh -c 'echo here'";
    USE_GLIBC_HOST = "use a host or image with glibc ({0}): agents of a release need 2.17 on x86_64, 2.28 on \
         aarch64, and the C \
         library of their architecture",
        look "ldd --version";
}
