internal import Linux
internal import WebServer

/// Who may change things: root, the daemon's own user, and members of its group.
///
/// The socket's mode (0660) has already kept everyone else out; this is the second lock, for a socket whose mode
/// somebody widened so that all may look.
struct Access: Sendable {
    let user: UInt32
    let group: UInt32
    /// Whether a user belongs to a group by the system's accounts; a peer's credentials name its first group alone.
    let isMember: @Sendable (_ user: UInt32, _ group: UInt32) -> Bool

    static var ofThisProcess: Access {
        Access(user: Accounts.user, group: Accounts.group, isMember: Accounts.isMember(_:of:))
    }

    func mayChange(_ peer: WebPeer) async -> Bool {
        guard let asking = peer.user else { return false }
        if asking == 0 || asking == user || peer.group == group { return true }
        // The accounts may live in a directory far away. A failed question is a no.
        return (try? await blocking { isMember(asking, group) }) ?? false
    }
}
