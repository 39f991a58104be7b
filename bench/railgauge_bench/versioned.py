"""The verbs double (agent/examples/verbs_double) as NCCL wants libibverbs: every function under the version that it asks for.

NCCL looks functions up by name and version (`dlvsym`, its src/misc/ibvsymbols.cc), and the dynamic loader refuses those of a
library that has no versions, as what rustc makes. The library made here has them and passes every call on."""
import platform
import subprocess
import sys
from pathlib import Path

# What NCCL 2.28 demands of IBVERBS_1.1, and what it uses where it is there.
CALLS = ("get_device_list free_device_list get_device_name open_device close_device get_async_event ack_async_event "
         "query_device query_port query_gid query_qp alloc_pd dealloc_pd reg_mr dereg_mr create_cq destroy_cq create_qp "
         "modify_qp destroy_qp").split()
LATER = {"reg_mr_iova2": "IBVERBS_1.8", "reg_dmabuf_mr": "IBVERBS_1.12"}
# What the double does not have: nothing to prepare for a fork, and names of events for a log.
OWN = """
int ibv_fork_init(void) { return 0; }
const char *ibv_event_type_str(int event) { (void)event; return "an event of the double"; }
"""
HEAD = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
"""
JUMP = """
void *to_{name};
__asm__(".globl ibv_{name}\\n.type ibv_{name},@function\\nibv_{name}: movq to_{name}@GOTPCREL(%rip), %r11\\njmp *(%r11)\\n");
"""


def library(folder, double):
    """Makes `libibverbs.so` in a folder, which calls the double."""
    if platform.machine() != "x86_64":
        sys.exit("the library before the verbs double is made for x86-64 only")
    folder, names = Path(folder), [*CALLS, *LATER]
    found = "".join(f'    to_{name} = dlsym(double_, "ibv_{name}");\n' for name in names)
    opened = f"""
__attribute__((constructor)) static void open_double(void) {{
    void *double_ = dlopen("{Path(double).resolve()}", RTLD_NOW | RTLD_LOCAL);
    if (!double_) {{
        fprintf(stderr, "%s\\n", dlerror());
        abort();
    }}
{found}}}
"""
    (folder / "versioned.c").write_text(HEAD + "".join(JUMP.format(name=name) for name in names) + OWN + opened)
    first = "".join(f" ibv_{name};" for name in [*CALLS, "fork_init", "event_type_str"])
    versions, before = f"IBVERBS_1.1 {{ global:{first} local: *; }};\n", "IBVERBS_1.1"
    for name, version in LATER.items():
        versions += f"{version} {{ global: ibv_{name}; }} {before};\n"
        before = version
    (folder / "versions").write_text(versions)
    script = f"-Wl,--version-script={folder / 'versions'}"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "libibverbs.so", folder / "versioned.c", script, "-ldl"],
                   check=True)
