package import Transport

/// One event for one hook.
package struct Notice: Hashable, Sendable {
    /// The same at each try, so that a receiver recognises a repeat. It contains no full stop.
    package var id: String
    /// The event as JSON, in the form of `/v1/events`.
    package var body: [UInt8]

    package init(id: String, body: [UInt8]) {
        self.id = id
        self.body = body
    }
}

/// The result of a try.
package enum DeliveryResult: Hashable, Sendable {
    /// Delivered; contains a description for a person who tried it by hand.
    case delivered(String)
    /// It may succeed later, not before `after`.
    case retry(String, because: DeliveryFailure, after: Duration?)
    /// It will never succeed.
    case refused(String)
    /// The task was cancelled: the result is unknown.
    case stopped
}

/// Why a try to deliver a notice has failed. Failures that are equal are reported once.
package enum DeliveryFailure: Hashable, Sendable {
    /// The command cannot be started.
    case notStarted
    /// The command did not end in time.
    case timeout
    /// The command ended with this exit status.
    case exitStatus(Int32)
    /// The command was ended by this signal.
    case signal(Int32)
    /// A secret cannot be read.
    case secret
    /// There was no answer.
    case transport(TransportError.Kind)
    /// Policy has refused or stopped a connection of the command.
    case held
    /// The server speaks another protocol than the address says.
    case wireProtocol(ProtocolProbe.WireProtocol)
    /// The status of the answer.
    case answer(Int)
}
