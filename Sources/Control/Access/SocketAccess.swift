internal import Linux
internal import WebServer

/// For the socket: who may make changes is root, the daemon's own user, and members of its group.
///
/// The socket's mode (0660) has already refused all others. This is a second check, for a socket whose mode was widened
/// so that every user may read.
struct SocketAccess: Authorizer {
    let user: UInt32
    let group: UInt32
    /// Whether a user belongs to a group in the system's accounts; a peer's credentials only name its first group.
    let isMember: @Sendable (_ user: UInt32, _ group: UInt32) -> Bool
    /// The name of a user in the system's accounts.
    var accountName: @Sendable (_ user: UInt32) -> String? = UserDatabase.name(of:)
    /// The accounts may be in a remote directory. A lookup that hangs there holds up one thread of its own, and the
    /// next one fails at once.
    var memberships = SlowDisk(timeout: .seconds(10))
    /// A command waits for a name at most this long: it is for the log alone.
    var names = SlowDisk(timeout: .seconds(2))

    static var ofThisProcess: SocketAccess {
        SocketAccess(user: UserDatabase.user, group: UserDatabase.group, isMember: UserDatabase.isMember(_:of:))
    }

    func denial(of request: WebRequest) -> WebDenial? { nil }

    func changeDenial(of request: WebRequest) async -> String? {
        do {
            if try await mayChange(request.peer) { return nil }
        } catch {
            return "the machine's accounts did not answer in time whether you are in the daemon's group: try again"
        }
        return "only root and members of the daemon's group may change anything; you may only read"
    }

    func mayChange(_ peer: WebPeer) async throws -> Bool {
        guard let asking = peer.user else { return false }
        if asking == 0 || asking == user || peer.group == group { return true }
        return try await memberships.run { _ in isMember(asking, group) }
    }

    /// Without an answer the number is the name.
    func name(of request: WebRequest) async -> String {
        guard let user = request.peer.user else { return "unknown" }
        return (try? await names.run { _ in accountName(user) }) ?? key(of: request)
    }

    func key(of request: WebRequest) -> String { request.peer.user.map { "user \($0)" } ?? "unknown" }
}
