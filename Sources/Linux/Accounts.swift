internal import Glibc

/// The users and groups of this machine (getpwuid_r(3), getgrouplist(3)).
package enum Accounts {
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

    /// The name of a user for people, or the number where it has none.
    package static func shown(_ user: UInt32) -> String { name(of: user) ?? "\(user)" }

    /// Whether `user` is in `group` by the accounts: first group and memberships. May wait for a directory service.
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
}
