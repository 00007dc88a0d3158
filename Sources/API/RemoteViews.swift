/// A request for a page of a destination's list.
package struct RemoteRequest: Codable, Sendable, Hashable {
    /// ``RemoteReply/next`` of the page before.
    package var after: String?
    package init(after: String? = nil) { self.after = after }
}

/// A page of a destination's content, newest first.
package struct RemoteReply: Codable, Sendable, Hashable {
    package struct Item: Codable, Sendable, Hashable {
        /// The destination's own name for it.
        package var id: String
        package var name: String?
        package var url: String?
        /// In the destination's own words.
        package var state: String?
        /// In bytes.
        package var size: Int64?
        package var createdAt: String?
        /// The upload that made it, or will make it; absent for objects of other programs.
        package var upload: String?

        package init(
            id: String, name: String?, url: String?, state: String?, size: Int64?, createdAt: String?, upload: String?
        ) {
            self.id = id
            self.name = name
            self.url = url
            self.state = state
            self.size = size
            self.createdAt = createdAt
            self.upload = upload
        }
    }

    package var destination: String
    package var items: [Item]
    /// The start of the next page; absent for the last.
    package var next: String?
    /// Bytes that were sent and received for the question.
    package var sent: Int64
    package var received: Int64

    package init(destination: String, items: [Item], next: String?, sent: Int64, received: Int64) {
        self.destination = destination
        self.items = items
        self.next = next
        self.sent = sent
        self.received = received
    }
}

/// A request for a destination's unfinished uploads, with the action to take.
package struct OrphansRequest: Codable, Sendable, Hashable {
    /// Whether to remove them there.
    package var abort: Bool?
    package init(abort: Bool? = nil) { self.abort = abort }
}

/// Unfinished uploads at a destination that this installation began and no longer knows, oldest first.
package struct OrphansReply: Codable, Sendable, Hashable {
    package struct Item: Codable, Sendable, Hashable {
        /// The destination's own name for it.
        package var id: String
        /// Its intended name.
        package var name: String
        package var begunAt: String?
        /// Whether it was removed; absent when no removal was requested.
        package var removed: Bool?

        package init(id: String, name: String, begunAt: String?, removed: Bool? = nil) {
            self.id = id
            self.name = name
            self.begunAt = begunAt
            self.removed = removed
        }
    }

    package var destination: String
    package var items: [Item]
    /// The number of other unfinished uploads there: those that continue, and those that other programs began.
    package var others: Int
    /// Bytes that were sent and received for the questions.
    package var sent: Int64
    package var received: Int64

    package init(destination: String, items: [Item], others: Int, sent: Int64, received: Int64) {
        self.destination = destination
        self.items = items
        self.others = others
        self.sent = sent
        self.received = received
    }
}
