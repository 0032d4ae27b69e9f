"""System calls by number, for those that the standard library lacks."""

import ctypes
import errno
import mmap
import os
import platform

from registry import Absent, Refused

libc = ctypes.CDLL(None, use_errno=True)
MACHINE = platform.machine()
AT_FDCWD = -100

# Calls of both architectures: x86_64 and aarch64.
OLD = {
    "ptrace": (101, 117), "kcmp": (312, 272), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "sethostname": (170, 161), "setdomainname": (171, 162), "adjtimex": (159, 171),
    "syslog": (103, 116), "personality": (135, 92), "vhangup": (153, 58), "prlimit64": (302, 261),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "migrate_pages": (256, 238), "move_pages": (279, 239), "clone": (56, 220),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_create": (319, 279), "execveat": (322, 281), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "removexattr": (197, 14), "fchmodat": (268, 53), "fchownat": (260, 54), "utimensat": (280, 88),
    "inotify_init1": (294, 26), "inotify_add_watch": (254, 27), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "linkat": (265, 37), "capset": (126, 91), "capget": (125, 90),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "io_uring_setup": (425, 425),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "clone3": (435, 435), "openat2": (437, 437),
    "mount_setattr": (442, 442), "fchmodat2": (452, 452), "memfd_secret": (447, 447), "setxattrat": (463, 463),
    "removexattrat": (466, 466), "open_tree_attr": (467, 467), "file_setattr": (469, 469),
    "process_vm_read": (310, 270), "quotactl_fd": (443, 443), "landlock_create_ruleset": (444, 444),
    "get_robust_list": (274, 100), "set_mempolicy": (237, 237), "listmount": (458, 458), "statmount": (457, 457),
}
# Calls that only x86_64 has.
X86 = {"modify_ldt": 154, "iopl": 172, "ioperm": 173, "chmod": 90, "chown": 92, "lchown": 94, "utime": 132,
       "utimes": 235, "futimesat": 261, "uselib": 134, "sysfs": 139, "lookup_dcookie": 212, "ustat": 136}
X32 = 0x40000000


def number(name):
    if MACHINE == "x86_64" and name in X86:
        return X86[name]
    if name not in OLD or MACHINE not in ("x86_64", "aarch64"):
        raise Absent(f"{MACHINE} has no {name}")
    return OLD[name][MACHINE == "aarch64"]


def call(name, *args):
    """The result; raises the error of the system."""
    return raw(number(name), *args)


def raw(call_number, *args):
    ctypes.set_errno(0)
    words = [ctypes.c_char_p(a) if isinstance(a, bytes) else a if isinstance(a, ctypes._SimpleCData) or not isinstance(a, int)
             else ctypes.c_long(a) for a in args]
    result = libc.syscall(ctypes.c_long(call_number), *words)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def passes(name, *args, refused=(errno.EPERM, errno.EACCES, errno.ENOSYS)):
    """Whether a call gets past the checks of permission: any other error than these comes from behind them."""
    try:
        return f"{name} = {call(name, *args)}"
    except OSError as error:
        if error.errno in refused:
            raise
        return f"{name}: {errno.errorcode.get(error.errno)}, which is no refusal"


def x32(name, *args):
    if MACHINE != "x86_64":
        raise Absent("no x32 here")
    return raw(number(name) | X32, *args)


def int80(call_number, first=0, second=0, third=0):
    """A call of the 32-bit interface, from a few bytes of machine code."""
    if MACHINE != "x86_64":
        raise Absent("no 32-bit calls here")
    code = b"\x53"  # push rbx
    for opcode, value in ((0xB8, call_number), (0xBB, first), (0xB9, second), (0xBA, third)):
        code += bytes([opcode]) + (value & 0xFFFFFFFF).to_bytes(4, "little")
    code += b"\xcd\x80\x5b\xc3"  # int 0x80; pop rbx; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def low_text(text):
    """The address of a text below 4 GiB, as a 32-bit call needs it."""
    libc.mmap.restype = ctypes.c_void_p
    map_32bit = 0x40
    address = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22 | map_32bit, -1, ctypes.c_long(0))
    if address in (None, ctypes.c_void_p(-1).value):
        raise Refused("no memory below 4 GiB")
    ctypes.memmove(address, text + b"\0", len(text) + 1)
    return address
