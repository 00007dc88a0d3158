/// Explains why an upload or a file is sent or not: one answer for each matching upload, or one for a file without
/// uploads.
package struct WhyView: Codable, Sendable, Hashable {
    package var answers: [WhyAnswer]

    package init(answers: [WhyAnswer]) {
        self.answers = answers
    }
}

package struct WhyAnswer: Codable, Sendable, Hashable {
    /// Absent for a file without an upload.
    package var id: String?
    package var destination: String?
    package var folder: String?
    package var path: String
    /// As ``UploadView/state``; for a file without an upload `settling`, `gathering`, `expected`, `left_alone`,
    /// `known`, `outside`, `unknown`; for a watched folder `folder`.
    package var state: ShownState
    /// One sentence.
    package var text: String
    /// The holds, the strongest first.
    package var holds: [HoldView]
    /// The exceptions that persons made for it.
    package var exceptions: [OverrideView]?
    /// The way that it uses or would use; absent where nothing leaves this machine, and where no way may be used.
    package var way: RouteView?
    /// The ways that it does not use, each with the reason; absent where there is no other.
    package var otherWays: [RouteView]?

    package init(
        id: String? = nil, destination: String? = nil, folder: String? = nil, path: String, state: ShownState,
        text: String,
        holds: [HoldView], exceptions: [OverrideView]? = nil, way: RouteView? = nil, otherWays: [RouteView]? = nil
    ) {
        self.id = id
        self.destination = destination
        self.folder = folder
        self.path = path
        self.state = state
        self.text = text
        self.holds = holds
        self.exceptions = exceptions
        self.way = way
        self.otherWays = otherWays
    }
}

/// The interface that bytes leave this machine by, with the reason.
package struct RouteView: Codable, Sendable, Hashable {
    /// Absent where the choice is left to the kernel.
    package var interface: String?
    /// The local address of its packets, where it is known.
    package var address: String?
    /// The reason for this choice.
    package var text: String

    package init(interface: String? = nil, address: String? = nil, text: String) {
        self.interface = interface
        self.address = address
        self.text = text
    }
}
