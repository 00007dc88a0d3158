/// A request to record the requests of a destination, or for those that were recorded since.
package struct TraceRequest: Codable, Sendable, Hashable {
    /// ``TraceReply/next`` of the reply before; absent to begin.
    package var after: Int?
    /// How long requests are recorded, in seconds; only at the beginning.
    package var seconds: Int64?

    package init(after: Int? = nil, seconds: Int64? = nil) {
        self.after = after
        self.seconds = seconds
    }
}

package struct TraceReply: Codable, Sendable, Hashable {
    package var entries: [TraceEntry]
    /// For the next request: names the trace and the entry.
    package var next: Int
    /// Nothing more is recorded.
    package var ended: Bool
    /// Entries that were dropped because they were not fetched in time.
    package var dropped: Int

    package init(entries: [TraceEntry], next: Int, ended: Bool, dropped: Int) {
        self.entries = entries
        self.next = next
        self.ended = ended
        self.dropped = dropped
    }
}

/// One request and its answer, without secrets: unknown headers, and the part of an address that may give a right, are
/// given by their length or digest alone.
package struct TraceEntry: Codable, Sendable, Hashable {
    package struct Body: Codable, Sendable, Hashable {
        /// Its length; absent where it is not known.
        package var bytes: Int64?
        /// In the staged file.
        package var offset: Int64?
        /// Hexadecimal.
        package var sha256: String?

        package init(bytes: Int64?, offset: Int64? = nil, sha256: String? = nil) {
            self.bytes = bytes
            self.offset = offset
            self.sha256 = sha256
        }
    }

    package struct Answer: Codable, Sendable, Hashable {
        package var status: Int
        /// `Name: value`.
        package var headers: [String]
        package var body: Body

        package init(status: Int, headers: [String], body: Body) {
            self.status = status
            self.headers = headers
            self.body = body
        }
    }

    package var at: String
    package var method: String
    package var url: String
    package var interface: String?
    package var proxy: String?
    /// `Name: value`.
    package var headers: [String]
    package var body: Body
    /// Absent where none came.
    package var answer: Answer?
    /// Why there is no answer.
    package var error: String?
    /// Bytes of the body that left, and of everything on the wire.
    package var sent: Int64
    package var wire: Int64
    package var milliseconds: Int64

    package init(
        at: String, method: String, url: String, interface: String?, proxy: String?, headers: [String], body: Body,
        answer: Answer?, error: String?, sent: Int64, wire: Int64, milliseconds: Int64
    ) {
        self.at = at
        self.method = method
        self.url = url
        self.interface = interface
        self.proxy = proxy
        self.headers = headers
        self.body = body
        self.answer = answer
        self.error = error
        self.sent = sent
        self.wire = wire
        self.milliseconds = milliseconds
    }
}

/// The last failed requests of all destinations.
package struct FailuresView: Codable, Sendable, Hashable {
    /// Those with a failed request since the daemon started, in the order of the configuration.
    package var destinations: [DestinationFailuresView]

    package init(destinations: [DestinationFailuresView]) { self.destinations = destinations }
}

package struct DestinationFailuresView: Codable, Sendable, Hashable {
    package var destination: String
    /// At most ten, the oldest first.
    package var requests: [TraceEntry]

    package init(destination: String, requests: [TraceEntry]) {
        self.destination = destination
        self.requests = requests
    }
}
