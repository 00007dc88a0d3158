internal import API
internal import Core
internal import Linux

/// The rights that a check by the service's user lacks, compared with the service itself.
enum ServiceGroups {
    static let unit = "sluice.service"

    /// Whether this process has the service's user.
    static var isServiceUser: Bool {
        let user = UserDatabase.user
        return ServiceUnit(unit)?.user.map { $0 == UserDatabase.shown(user) || $0 == "\(user)" } ?? false
    }

    /// - Returns: `nil` where nothing is missing, or where the caller is another user than the service's.
    static func finding(
        _ service: ServiceUnit?, user: UInt32 = UserDatabase.user, groups: Set<UInt32> = UserDatabase.groups
    ) -> CheckFinding? {
        guard let service, let name = service.user, name == UserDatabase.shown(user) || name == "\(user)" else {
            return nil
        }
        let all = [service.group].compactMap { $0 } + service.groups
        let lacking = all.filter { UserDatabase.group(named: $0).map { !groups.contains($0) } ?? true }
        guard !lacking.isEmpty else { return nil }
        let names = lacking.map { "`\(printable($0))`" }.joined(separator: ", ")
        return CheckFinding(
            about: "rights", name: "groups",
            CheckResult(
                .warning,
                "this check runs without the group\(lacking.count == 1 ? "" : "s") \(names) of \(unit), so it may report folders as unreadable "
                    + "that the service can use: `sluice check --running` asks the service, and `sudo setpriv --reuid=\(name) "
                    + "--regid=\(service.group ?? name) --groups=\(all.isEmpty ? name : all.joined(separator: ",")) sluice check` has its "
                    + "groups"))
    }
}
