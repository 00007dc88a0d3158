package import Core
package import Linux

/// A question about the bytes that this machine's links have sent and received.
package enum LinkQuestion: Sendable {
    /// The counters now.
    case now
    /// The counters when no byte of an earlier run is left to be sent; otherwise there is no answer.
    case whenQuiet

    /// Gives no answer to any question.
    package static let unanswered: @Sendable (LinkQuestion) -> LinkBytes? = { _ in nil }

    /// Reads the kernel's counters.
    package static func kernelReader(_ clocks: any Clocks) -> @Sendable (LinkQuestion) -> LinkBytes? {
        { question in
            if question == .whenQuiet, LinkBytes.isStillSending { return nil }
            return LinkBytes(at: clocks.monotonic())
        }
    }
}
