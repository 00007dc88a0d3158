internal import CLinux

/// Holds a program, and all that it starts, to one TCP port, for as long as they live.
///
/// Landlock (landlock(7), ABI 4, Linux 6.7) lets it connect to this port alone, at any address, and bind no port. A
/// filter of calls (seccomp(2)) leaves it Unix sockets, TCP, and the kernel's lists of interfaces (`NETLINK_ROUTE`): no
/// UDP, no raw or packet sockets, no MPTCP, which Landlock does not check, and no io_uring, which the filter does not
/// see. It also cannot gain rights by starting another program (`PR_SET_NO_NEW_PRIVS`).
package struct Confinement: Hashable, Sendable {
    /// The parts of it that a kernel supports.
    package struct Support: Hashable, Sendable {
        /// The version of Landlock; 0 where it is missing or switched off.
        package var landlockABI: Int
        package var filtersCalls: Bool
        /// Whether connections over TCP are held to the port.
        package var holdsTCP: Bool { landlockABI >= 4 }
        package var isComplete: Bool { holdsTCP && filtersCalls }

        package init(landlockABI: Int, filtersCalls: Bool) {
            self.landlockABI = landlockABI
            self.filtersCalls = filtersCalls
        }

        /// The support of the running kernel, for this process.
        package static let here = Support(
            landlockABI: Int(sluice_landlock_abi()), filtersCalls: sluice_has_call_filter() == 1)
    }

    package let port: UInt16
    /// The parts to apply.
    package let support: Support

    package init(port: UInt16, support: Support = .here) {
        self.port = port
        self.support = support
    }
}
