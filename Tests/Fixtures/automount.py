"""An automounter: the kernel's autofs at a place, and a directory that is bound there whenever somebody enters it.

    automount.py PLACE DIRECTORY

Prints `ready`, and `mounted` for each time. Protocol 5, a direct mount
(Documentation/filesystems/autofs.rst; uapi/linux/auto_fs.h). Takes root.
"""

import ctypes
import fcntl
import os
import struct
import sys

MS_BIND = 4096
MISSING_DIRECT = 5
READY, FAIL = 0x9360, 0x9361
# struct autofs_v5_packet: version, type, token, device, inode, uid, gid, pid, tgid, length of the name, name; 8 bytes aligned.
HEAD = struct.Struct("=iiIIQIIIII")
PACKET = 304

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags, data):
    if libc.mount(source, target, kind, ctypes.c_ulong(flags), data) != 0:
        raise OSError(ctypes.get_errno(), "mount", target)


def main():
    place, directory = (os.fsencode(word) for word in sys.argv[1:])
    # Processes of this group pass without waiting for a mount.
    os.setpgid(0, 0)
    reading, writing = os.pipe()
    options = f"fd={writing},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    mount(b"sluice-test", place, b"autofs", 0, options.encode())
    os.close(writing)
    root = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    print("ready", flush=True)
    while packet := os.read(reading, PACKET):
        version, kind, token = HEAD.unpack_from(packet)[:3]
        assert version == 5 and len(packet) == PACKET, (version, len(packet))
        if kind != MISSING_DIRECT:
            fcntl.ioctl(root, FAIL, token)
            continue
        mount(directory, place, None, MS_BIND, None)
        fcntl.ioctl(root, READY, token)
        print("mounted", flush=True)


main()
