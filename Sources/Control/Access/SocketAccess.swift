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

    static var ofThisProcess: SocketAccess {
        SocketAccess(user: UserDatabase.user, group: UserDatabase.group, isMember: UserDatabase.isMember(_:of:))
    }

    func denial(of request: WebRequest) -> WebDenial? { nil }

    func changeDenial(of request: WebRequest) async -> String? {
        await mayChange(request.peer)
            ? nil : "only root and members of the daemon's group may change anything; you may only read"
    }

    func mayChange(_ peer: WebPeer) async -> Bool {
        guard let asking = peer.user else { return false }
        if asking == 0 || asking == user || peer.group == group { return true }
        // The accounts may be in a remote directory. A failed question is a no.
        return (try? await blocking { isMember(asking, group) }) ?? false
    }

    func name(of request: WebRequest) -> String {
        request.peer.user.map { UserDatabase.name(of: $0) ?? "user \($0)" } ?? "unknown"
    }
}
