internal import CLinux
internal import Core

/// Holds a program, and all that it starts, to one TCP port or to one file, for as long as they live.
///
/// Landlock (landlock(7), ABI 4, Linux 6.7) lets it connect to this port alone, at any address, and bind no port. A
/// filter of calls (seccomp(2)) leaves it Unix sockets, TCP, and the kernel's lists of interfaces (`NETLINK_ROUTE`): no
/// UDP, no raw or packet sockets, no MPTCP, which Landlock does not check, and no io_uring, which the filter does not
/// see. It also cannot gain rights by starting another program (`PR_SET_NO_NEW_PRIVS`).
///
/// A program that decodes a file of strangers is held to that file instead (``Decoder``).
package struct Confinement: Hashable, Sendable {
    /// The parts of it that a kernel supports.
    package struct Support: Hashable, Sendable {
        /// The version of Landlock; 0 where it is missing or switched off.
        package var landlockABI: Int
        package var filtersCalls: Bool
        /// Whether connections over TCP are held to the port.
        package var holdsTCP: Bool { landlockABI >= 4 }
        package var isComplete: Bool { holdsTCP && filtersCalls }
        /// Whether a program can be held to one file. The filter leaves such a program no sockets, so that Landlock
        /// need not know TCP.
        package var holdsDecoders: Bool { landlockABI >= 1 && filtersCalls }

        package init(landlockABI: Int, filtersCalls: Bool) {
            self.landlockABI = landlockABI
            self.filtersCalls = filtersCalls
        }

        /// The support of the running kernel, for this process.
        package static let here = Support(
            landlockABI: Int(sluice_landlock_abi()), filtersCalls: sluice_has_call_filter() == 1)
    }

    /// The limits of a program that decodes one file, which is lent to it (`Program.passedDescriptor`).
    ///
    /// By Landlock (Linux 5.13) it reads that file, its own and the shared libraries and nothing else, writes no file,
    /// and executes nothing but itself. A filter permits the calls that decoding needs, and no others: no sockets,
    /// processes, signals, keys or mounts. It has no capabilities except, as root, that of reading its file. It has the
    /// lowest priorities, unless a filter of calls keeps this process from setting them, as that of the service does:
    /// then it has those of this process. Where the kernel lacks Landlock or seccomp, it does not start.
    package struct Decoder: Hashable, Sendable {
        /// Bytes of memory that it can allocate.
        package var memory: Int64
        /// Time on a processor, in whole seconds.
        package var processorTime: Duration

        package init(memory: Int64, processorTime: Duration) {
            self.memory = memory
            self.processorTime = processorTime
        }

        /// Bytes of everything that it maps, used or not. A program under foreign control can use all of it as memory, so
        /// it is no larger than needed: ffmpeg of Debian 12 maps 230 MiB of code and libraries.
        fileprivate var addresses: Int64 { memory + 384 << 20 }
    }

    /// Without meaning for a decoder.
    package let port: UInt16
    /// The parts to apply.
    package let support: Support
    /// `nil` for a program that is held to a port.
    package let decoder: Decoder?

    package init(port: UInt16, support: Support = .here) {
        self.port = port
        self.support = support
        decoder = nil
    }

    package init(_ decoder: Decoder) {
        port = 0
        support = .here
        self.decoder = decoder
    }

    /// Lends its form for the kernel; `nil` for no confinement.
    static func withPointer<R>(
        _ confinement: Confinement?, _ body: (UnsafePointer<sluice_confinement>?) -> R
    ) -> R {
        guard let confinement else { return body(nil) }
        var given = sluice_confinement(
            port: confinement.port, holds_tcp: confinement.support.holdsTCP ? 1 : 0,
            filters_calls: confinement.support.filtersCalls ? 1 : 0, decoder: nil)
        guard let decoder = confinement.decoder else { return body(&given) }
        let limits = sluice_decoder(
            memory: UInt64(decoder.memory), addresses: UInt64(decoder.addresses),
            seconds: UInt32(decoder.processorTime.components.seconds))
        return withUnsafePointer(to: limits) { limits in
            given.decoder = limits
            return body(&given)
        }
    }
}
