internal import Core

/// The user with whose rights systemd starts a service, and its groups.
package struct ServiceUser: Hashable, Sendable {
    package let name: String
    package let user: UInt32
    package let group: UInt32
    /// Supplementary groups, without duplicates.
    package let groups: [UInt32]
    /// Whether the unit gives the right to ask for the writers of other users' files (`CAP_LEASE`).
    package var keepsLease = true

    /// A user or a group of a unit that no account has.
    package struct MissingAccount: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    package init(name: String, user: UInt32, group: UInt32, groups: [UInt32]) {
        (self.name, self.user, self.group, self.groups) = (name, user, group, groups)
    }

    /// As systemd does it: `Group=` replaces the user's first group, and `SupplementaryGroups=` are added to the groups
    /// that the accounts give the user (systemd.exec(5)). May wait for a directory service.
    ///
    /// - Returns: `nil` for a unit that runs as root.
    /// - Throws: ``MissingAccount``.
    package init?(_ unit: ServiceUnit) throws(MissingAccount) {
        guard let written = unit.user else { return nil }
        guard let account = UserDatabase.user(named: written) else {
            throw MissingAccount(description: "there is no user `\(printable(written))`")
        }
        guard account.user != 0 else { return nil }
        func number(_ name: String) throws(MissingAccount) -> UInt32 {
            guard let number = UserDatabase.group(named: name) else {
                throw MissingAccount(description: "there is no group `\(printable(name))`")
            }
            return number
        }
        let group = try unit.group.map { name throws(MissingAccount) in try number(name) } ?? account.group
        var groups = Set(UserDatabase.groups(of: account.name, with: group))
        for name in unit.groups { groups.insert(try number(name)) }
        self.init(name: account.name, user: account.user, group: group, groups: groups.sorted())
    }
}
