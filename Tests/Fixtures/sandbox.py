"""Becomes a program in as much of a unit's sandbox as can be had without systemd: what it mounts, the processes that it sees, an
ordinary user, capabilities, new privileges, and the filter of system calls, read from the unit's own lines. To be run as root, in
mounts of its own. What is writable belongs to that user from then on.

    unshare -m python3 sandbox.py UNIT WRITABLE... -- PROGRAM ARGUMENT...
"""
import ctypes
import ctypes.util
import errno
import os
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
# In no list of users; that of the unit need not be there.
USER = 64123
CAPABILITIES = {"CAP_LEASE": 28}
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18


def mount(source, target, kind=None, flags=0, data=None):
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    if libc.mount(words[0], words[1], words[2], flags, data.encode() if data else None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {source} {target}")


def settings(path):
    """The lines of [Service]; a key that stands twice has both values."""
    found = {}
    for line in open(path, encoding="utf-8"):
        if line[:1] not in "#;[\n" and "=" in line:
            key, value = line.strip().split("=", 1)
            found.setdefault(key, []).append(value)
    return found


def mounts(unit, writable):
    kept = {path: os.open(path, os.O_PATH) for path in writable}
    devices = {name: os.open("/dev/" + name, os.O_PATH) for name in ("null", "zero", "full", "random", "urandom", "tty")}
    if unit["ProtectSystem"] != ["strict"] or unit["PrivateTmp"] != ["yes"]:
        sys.exit("sandbox.py: knows strict and private alone")
    places = [line.split()[4] for line in open("/proc/self/mountinfo", encoding="utf-8")]
    for place in places:
        if not place.startswith(("/proc", "/dev", "/sys")):
            try:
                mount(None, place, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
            except OSError as error:
                # Under another mount that hides it.
                if error.errno not in (errno.EINVAL, errno.ENOENT):
                    raise
    if unit["ProtectKernelTunables"] == ["yes"]:
        mount("/sys", "/sys", None, MS_BIND | MS_REC)
        mount(None, "/sys", None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    if unit["ProtectHome"] == ["yes"]:
        for place in ("/home", "/root", "/run/user"):
            if os.path.isdir(place):
                mount("tmpfs", place, "tmpfs", MS_RDONLY, "mode=000")
    for place in ("/tmp", "/var/tmp"):
        mount("tmpfs", place, "tmpfs", 0, "mode=1777")
    if unit["PrivateDevices"] == ["yes"]:
        mount("tmpfs", "/dev", "tmpfs", 0, "mode=755")
        for name, number in devices.items():
            open("/dev/" + name, "w").close()
            mount(f"/proc/self/fd/{number}", "/dev/" + name, None, MS_BIND)
    if unit["ProtectProc"] == ["invisible"]:
        mount("proc", "/proc", "proc", 0, "hidepid=invisible")
    for path, number in kept.items():
        os.makedirs(path, exist_ok=True)
        mount(f"/proc/self/fd/{number}", path, None, MS_BIND)
        mount(None, path, None, MS_REMOUNT | MS_BIND)


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operation", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


EQUAL, MASKED = 4, 7


def calls(name, known={}):
    """The calls of a set of systemd's, or the call itself."""
    if not name.startswith("@"):
        return {name}
    if name not in known:
        text = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
        words = [line.split()[0] for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
        known[name] = set().union(*[calls(word) for word in words])
    return known[name]


class Filter:
    def __init__(self, action):
        self.library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(action)))

    def add(self, action, name, *comparisons):
        number = self.library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return
        array = (Comparison * max(1, len(comparisons)))(*comparisons)
        code = self.library.seccomp_rule_add_array(
            self.context, ctypes.c_uint32(action), number, len(comparisons), array)
        if code != 0:
            raise OSError(-code, f"rule of {name}")

    def load(self):
        code = self.library.seccomp_load(self.context)
        if code != 0:
            raise OSError(-code, "seccomp_load")


ALLOW = 0x7FFF0000


def refuse(code):
    return 0x00050000 | code


def filters(unit):
    allowed = set(calls("@default"))
    for line in unit["SystemCallFilter"]:
        for word in line.lstrip("~").split():
            allowed = allowed - calls(word) if line.startswith("~") else allowed | calls(word)
    common = Filter(refuse(getattr(errno, unit["SystemCallErrorNumber"][0])))
    for name in sorted(allowed):
        common.add(ALLOW, name)
    special = Filter(ALLOW)
    families = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
    wanted = {families[word] for word in unit["RestrictAddressFamilies"][0].split()}
    for family in set(range(1, 47)) - wanted:
        special.add(refuse(errno.EAFNOSUPPORT), "socket", Comparison(0, EQUAL, family, 0))
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        special.add(refuse(errno.EPERM), "mmap", Comparison(2, MASKED, 6, 6))
        for name in ("mprotect", "pkey_mprotect"):
            special.add(refuse(errno.EPERM), name, Comparison(2, MASKED, 4, 4))
    if unit["RestrictNamespaces"] == ["yes"]:
        special.add(refuse(errno.ENOSYS), "clone3")
        for kind in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
            special.add(refuse(errno.EPERM), "unshare", Comparison(0, MASKED, kind, kind))
            special.add(refuse(errno.EPERM), "clone", Comparison(0, MASKED, kind, kind))
        special.add(refuse(errno.EPERM), "setns")
    if unit["RestrictSUIDSGID"] == ["yes"]:
        for bit in (0o4000, 0o2000):
            for name, argument in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2)):
                special.add(refuse(errno.EPERM), name, Comparison(argument, MASKED, bit, bit))
    return [special, common]


class CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class CapabilityData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def own(path):
    """Gives everything at a place to the user."""
    os.lchown(path, USER, USER)
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            os.lchown(os.path.join(folder, name), USER, USER)


def become_user(unit):
    bounding = [CAPABILITIES[word] for line in unit["CapabilityBoundingSet"] for word in line.split()]
    ambient = [CAPABILITIES[word] for line in unit["AmbientCapabilities"] for word in line.split()]
    for number in range(64):
        if number not in bounding:
            libc.prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    mask = sum(1 << number for number in ambient)
    data = (CapabilityData * 2)(CapabilityData(mask, mask, mask), CapabilityData(0, 0, 0))
    if libc.capset(ctypes.byref(CapabilityHeader(0x20080522, 0)), data) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    for number in ambient:
        if libc.prctl(47, 2, number, 0, 0) != 0:  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE
            raise OSError(ctypes.get_errno(), "prctl")


def main():
    cut = sys.argv.index("--")
    unit, writable, program = settings(sys.argv[1]), sys.argv[2:cut], sys.argv[cut + 1:]
    loaded = filters(unit)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mounts(unit, writable)
    os.chdir("/")
    os.umask(int(unit["UMask"][0], 8))
    for path in writable:
        own(path)
    become_user(unit)
    if unit["NoNewPrivileges"] == ["yes"]:
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    for one in loaded:
        one.load()
    os.execv(program[0], program)


main()
