//! What to do about failures of reaching a host, sending the agent and starting it.

use super::remedies;

remedies! {
    ACCEPT_HOST_KEY = "accept-host-key",
        "compare the key with the host's own ({0} there) and accept it with {1} (where HostKeyAlias or UserKnownHostsFile of your \
         ssh_config do not say otherwise), or set `host_keys` = \"accept-new\" in `[launch.ssh]`",
        look "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        change_here "ssh-keyscan -p {port} {host} >> {file}";
    ACCEPT_JUMP_KEY = "accept-jump-key",
        "run {0} by hand and accept the jump host's key: that is the one which is not trusted, and what ssh knows of jump hosts \
         comes from your ssh_config",
        change_here "ssh {jump_host}";
    ADD_HOST_SETTING = "add-host-setting", "add `{key}` to the host in the plan, or remove it from the command";
    AGENT_DIR = "agent-dir", "name a private, writable directory of the login user in `launch.agent_dir`";
    AGENT_DIR_CHMOD = "agent-dir-chmod",
        "make it private with {0} (by default it is ~/.cache/railgauge), or name a directory in `launch.agent_dir` that does not \
         exist yet",
        change "chmod 700 {directory}";
    AGENT_DIR_EXEC = "agent-dir-exec",
        "name a directory in `launch.agent_dir` from which programs may be started; {0} lists file systems that do not allow it",
        look "findmnt -O noexec";
    AGENT_DIR_PARENTS = "agent-dir-parents",
        "name another place in `launch.agent_dir`: every directory above it must belong to root or to the login user and be \
         writable for nobody else (or have the sticky bit)";
    AGENT_DIR_SPACE = "agent-dir-space",
        "free some space there ({0}), or name a directory on another file system in `launch.agent_dir`",
        look "df -h";
    ALLOW_SSH_ALGORITHM = "allow-ssh-algorithm",
        "allow an algorithm in ssh_config (KexAlgorithms, HostKeyAlgorithms, Ciphers) that both ssh here and sshd there have";
    BUILD_AGENT = "build-agent",
        "build the agent with {0}, or name its file in RAILGAUGE_AGENT",
        change_here "cargo build -p railgauge-agent --profile agent";
    BUILD_AGENT_FOR = "build-agent-for", "build the agent for {machine} and put it at {path}";
    BUILD_FOR_OLDEST_GLIBC = "build-for-oldest-glibc",
        "build the agent against the oldest C library of the cluster ({0} shows the host's): it was built for a newer one",
        look "ldd --version";
    BUILD_FOR_PROCESSOR = "build-for-processor",
        "build the agent for the processor of this host ({0}): it was built for another",
        look "uname -m";
    CHECK_HOST_UP = "check-host-up", "check that the host is up and reachable from here";
    CHECK_HUNG_HOST = "check-hung-host",
        "check that the host is up and not hung, and that no firewall drops the connection";
    CHECK_KEY_FILE = "check-key-file", "check that the key file of `launch.ssh` exists, is yours and has mode 600";
    CHECK_LOGIN_SHELL = "check-login-shell",
        "check the start-up files of the login shell and the log of the host's sshd";
    CHECK_MAX_STARTUPS = "check-max-startups",
        "check that the sshd behind a forwarder is up, and lower `launch.in_flight` if too many connections came at once \
         (MaxStartups there): something answered and hung up before the handshake was over";
    CHECK_NAME_SERVER = "check-name-server",
        "check the name server, which did not answer ({0}), or give the host an `address` in the plan",
        look_here "cat /etc/resolv.conf";
    CHECK_ROUTE_TO_HOST = "check-route-to-host",
        "check the address, the routes from here ({0}) and the host's power",
        look_here "ip route";
    CHECK_SHELL_LIMITS = "check-shell-limits",
        "check {0} and the limits of this shell ({1}): the agent is a process of this machine",
        look_here "dmesg", look_here "ulimit -a";
    CHECK_SSHD = "check-sshd",
        "check that the host is up, that its sshd runs and that the port is right: nothing listens on it";
    CHECK_SSHD_SESSIONS = "check-sshd-sessions",
        "check MaxSessions and ForceCommand in the host's sshd_config ({0}) and the log of its sshd",
        look "sshd -T | grep -iE 'maxsessions|forcecommand'";
    CHECK_SSH_KEYS = "check-ssh-keys",
        "check `user` and `identity` of `launch.ssh`, {0} here and ~/.ssh/authorized_keys there: the host accepts none of your \
         keys for this user (railgauge never asks for a password)",
        look_here "ssh-add -l";
    CHECK_WHO_WRITES = "check-who-writes",
        "check what else writes to the agent's standard output: the launcher's command, a wrapper, start-up files of the shell";
    CORRECT_ADDRESS = "correct-address",
        "give the host an `address` in the plan that is not empty and does not begin with `-`";
    CORRECT_SSH_CONFIG = "correct-ssh-config", "correct your ssh_config, or name another in `config` of `launch.ssh`";
    EXPORT_VARIABLE = "export-variable",
        "export {variable} before railgauge is started, or remove it from `send_env` of `[launch]`";
    FIND_KILLER = "find-killer",
        "{0} says whether the kernel's out-of-memory killer ended the agent; if not, somebody else did",
        look "dmesg | grep -i 'killed process'";
    GIVE_ADDRESS = "give-address",
        "give the host an `address` in the plan, or name it in ssh_config or /etc/hosts: its name is unknown here";
    INSTALL_COREUTILS = "install-coreutils", "install `sh` and the core utilities (sha256sum) on the host";
    INSTALL_LOADED_LIBRARY = "install-loaded-library", "install the missing library on the host";
    INSTALL_SSH = "install-ssh",
        "install OpenSSH's client on this machine: {0}, or the package of your distribution",
        change_here "apt install openssh-client";
    LAUNCH_COMMAND = "launch-command",
        "run `launch.command` by hand with `sh -c 'echo here'` behind it: it has to print that, with exit status 0";
    LAUNCH_COMMAND_PROGRAM = "launch-command-program",
        "correct `launch.command` if it names a program that is not there, or install `sh` and the core utilities on the host; \
         to see which, run the command by hand with `sh -c 'echo here'` behind it";
    LOWER_IN_FLIGHT = "lower-in-flight",
        "lower `launch.in_flight`, or raise this machine's limits ({0}, {1})",
        look_here "ulimit -u", look_here "ulimit -n";
    NAME_AGENT_FILE = "name-agent-file", "name the agent's file in RAILGAUGE_AGENT";
    NAME_IDENTITY = "name-identity", "name the right key in `identity` of `launch.ssh`: ssh offered too many";
    PASS_WORDS_ON = "pass-words-on",
        "use via = \"ssh\", or a command that passes its arguments through (ip netns exec, kubectl exec, docker exec, srun): \
         this one joins them for a shell, as ssh does";
    QUIET_LOGIN_SHELL = "quiet-login-shell",
        "check log.txt and the start-up files of the login shell: something that is not the agent writes to its standard output";
    RAISE_CONNECT_TIMEOUT = "raise-connect-timeout",
        "check that the host is up and reachable from here; `launch.timeout` sets this time";
    RAISE_DEPLOY_TIMEOUT = "raise-deploy-timeout",
        "check the network to the host and its disk: one is slow or hangs; `launch.timeout` sets this time";
    RAISE_START_TIMEOUT = "raise-start-timeout",
        "check the host's load ({0}): it is overloaded, or the agent hangs; `launch.timeout` sets this time",
        look "uptime";
    READ_LOG = "read-log", "look at log.txt, which has everything that the agent wrote";
    REBUILD_BOTH = "rebuild-both",
        "build railgauge and the agent from one source: {0}",
        change_here "cargo build && cargo build -p railgauge-agent --profile agent";
    REMOVE_FROM_JUMP = "remove-from-jump",
        "remove the host from `jump` of `launch.ssh` or from ProxyJump in ssh_config: it is its own jump host";
    REPLACE_HOST_KEY = "replace-host-key",
        "if the host was installed anew, and only then, forget the old key and accept the new one: {0}, then {1}; if not, \
         somebody else may be answering",
        change_here "ssh-keygen -R {name} -f {file}",
        change_here "ssh-keyscan -p {port} {host} >> {file}";
    RETRY_BUSY_FILE = "retry-busy-file", "try again when no other process writes the agent's file any more";
    RETRY_TAKEN_FILE = "retry-taken-file",
        "try again: another run on the host may have taken the agent's file away in this moment; if it fails again, name a \
         directory in `launch.agent_dir` where links or copies can be made";
    SSH_BY_HAND = "ssh-by-hand", "run {0} by hand: it tells more", look_here "ssh -v {address}";
    SSH_SOCKET_DIR = "ssh-socket-dir",
        "set TMPDIR to a short, writable path on a local file system: ssh's control socket is made in XDG_RUNTIME_DIR, TMPDIR \
         or /tmp of this machine";
}
