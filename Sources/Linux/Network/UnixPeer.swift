internal import CLinux

/// The peer of a Unix socket: its effective user and group when it connected (`SO_PEERCRED`, unix(7)). `nil` for any
/// other socket.
package func unixPeer(ofSocket number: CInt) -> (user: UInt32, group: UInt32)? {
    var user: UInt32 = 0
    var group: UInt32 = 0
    guard sluice_peer_user(number, &user, &group) == 0 else { return nil }
    // A TCP socket answers too, with a user of -1.
    return user == .max ? nil : (user, group)
}
