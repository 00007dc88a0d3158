#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

// Newer than the headers of Debian 12; numbers and layout from include/uapi/linux/stat.h and fs.h.
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x00001000U
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif
struct file_system_uuid { uint8_t length; uint8_t uuid[16]; };
#define GET_FILE_SYSTEM_UUID _IOR(0x15, 0, struct file_system_uuid)

int sluice_statx_following(const char *path, struct sluice_look *look) {
    int opened = open(path, O_PATH | O_CLOEXEC);
    if (opened < 0) return -1;
    int result = sluice_statx(opened, "", look);
    int code = errno;
    close(opened);
    errno = code;
    return result;
}

static uint64_t mount_number(int folder, const char *path, unsigned kind) {
    struct statx s;
    memset(&s, 0, sizeof s);
    int flags = AT_NO_AUTOMOUNT | (path[0] ? 0 : AT_EMPTY_PATH);
    if (statx(folder, path, flags, kind, &s) != 0 || !(s.stx_mask & kind)) return 0;
    // stx_mnt_id stands at byte 144; the structure of older headers has it among its spare fields.
    uint64_t number;
    memcpy(&number, (const char *)&s + 144, sizeof number);
    return number;
}

uint64_t sluice_mount_number(int folder, const char *path) { return mount_number(folder, path, STATX_MNT_ID); }
uint64_t sluice_unique_mount_number(int folder, const char *path) {
    return mount_number(folder, path, STATX_MNT_ID_UNIQUE);
}

int sluice_file_system_uuid(int opened, uint8_t *uuid) {
    struct file_system_uuid answer;
    memset(&answer, 0, sizeof answer);
    int result = ioctl(opened, GET_FILE_SYSTEM_UUID, &answer);
    struct statfs system;
    struct btrfs_ioctl_fs_info_args btrfs;
    memset(&btrfs, 0, sizeof btrfs);
    // Btrfs answers its own question only, on every kernel.
    if (result != 0 && fstatfs(opened, &system) == 0 && system.f_type == BTRFS_SUPER_MAGIC &&
        ioctl(opened, BTRFS_IOC_FS_INFO, &btrfs) == 0) {
        memcpy(answer.uuid, btrfs.fsid, 16);
        answer.length = 16;
        result = 0;
    }
    if (result == 0 && answer.length != 16) {
        result = -1;
        errno = ENODATA;
    }
    if (result == 0) memcpy(uuid, answer.uuid, 16);
    return result;
}

uint64_t sluice_device_number(uint32_t device_major, uint32_t device_minor) {
    return makedev(device_major, device_minor);
}
