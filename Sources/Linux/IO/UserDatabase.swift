package import Core
internal import Glibc

/// The users and groups of this machine (getpwuid_r(3), getgrouplist(3)).
package enum UserDatabase {
    /// Effective ids of this process.
    package static var user: UInt32 { geteuid() }
    package static var group: UInt32 { getegid() }

    /// The name of a user; `nil` when it has none. May wait for a directory service.
    package static func name(of user: UInt32) -> String? {
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        guard getpwuid_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.pw_name
        else { return nil }
        return String(cString: name)
    }

    /// The name of a user for people, or the number if there is no name.
    package static func shown(_ user: UInt32) -> String { name(of: user) ?? "\(user)" }

    /// Whether `user` is in `group` according to the accounts: first group and memberships. May wait for a directory
    /// service.
    @Sendable package static func isMember(_ user: UInt32, of group: UInt32) -> Bool {
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        guard getpwuid_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.pw_name
        else {
            return false
        }
        var count: CInt = 1024
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard getgrouplist(name, entry.pw_gid, &groups, &count) >= 0 else { return false }
        return groups.prefix(Int(count)).contains(group)
    }

    /// The number of a user by name, or written out, and its first group; `nil` where there is none. May wait for a
    /// directory service.
    package static func user(named name: String) -> (name: String, user: UInt32, group: UInt32)? {
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        let failed =
            if let number = UInt32(name) {
                getpwuid_r(number, &entry, &buffer, buffer.count, &found)
            } else {
                getpwnam_r(name, &entry, &buffer, buffer.count, &found)
            }
        guard failed == 0, found != nil, let name = entry.pw_name else { return nil }
        return (String(cString: name), entry.pw_uid, entry.pw_gid)
    }

    /// The groups of a user according to the accounts, `group` among them. May wait for a directory service.
    package static func groups(of user: String, with group: UInt32) -> [UInt32] {
        var count: CInt = 1024
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard getgrouplist(user, group, &groups, &count) >= 0 else { return [group] }
        return Array(groups.prefix(Int(count)))
    }

    /// The name of a group for people, or the number if there is no name. May wait for a directory service.
    package static func shown(group: UInt32) -> String {
        var buffer = [CChar](repeating: 0, count: 64 << 10)
        var entry = Glibc.group()
        var found: UnsafeMutablePointer<Glibc.group>?
        guard getgrgid_r(group, &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.gr_name
        else { return "\(group)" }
        return String(cString: name)
    }

    /// The number of a group by its name, or written out; `nil` where there is none. May wait for a directory service.
    package static func group(named name: String) -> UInt32? {
        if let number = UInt32(name) { return number }
        var buffer = [CChar](repeating: 0, count: 64 << 10)
        var entry = Glibc.group()
        var found: UnsafeMutablePointer<Glibc.group>?
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return entry.gr_gid
    }

    /// The groups of this process (getgroups(2)), its effective one among them.
    package static var groups: Set<UInt32> {
        var all = [gid_t](repeating: 0, count: 65_536)
        let count = getgroups(CInt(all.count), &all)
        return Set(all.prefix(max(0, Int(count)))).union([getegid()])
    }

    /// The group with rights to a file or folder, if this process is not in it; `nil` for root's group, where the group
    /// has no rights, or where they cannot be read.
    ///
    /// - Parameter writes: Whether rights to write are required, and not only to read.
    package static func groupToJoin(for path: FilePath, writes: Bool) -> String? {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0, status.st_gid != 0, !groups.contains(status.st_gid) else {
            return nil
        }
        let wanted: mode_t = writes ? 0o020 : 0o040
        return status.st_mode & wanted != 0 ? shown(group: status.st_gid) : nil
    }

    /// The number of the user that a path belongs to; `nil` where it cannot be examined.
    package static func owner(of path: FilePath) -> UInt32? {
        var status = stat()
        return path.withCString({ stat($0, &status) }) == 0 ? status.st_uid : nil
    }
}
