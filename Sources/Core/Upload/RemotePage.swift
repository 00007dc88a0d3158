/// An upload that was begun at a remote and is incomplete.
package struct RemoteUnfinished: Hashable, Sendable {
    /// The remote's own name for it.
    package var id: String
    /// The future name of its object, in the form of ``RemoteObject/id``.
    package var name: String
    package var begunAt: WallTime?
    /// The checkpoint for `Destination.discard`.
    package var checkpoint: Checkpoint

    package init(id: String, name: String, begunAt: WallTime?, checkpoint: Checkpoint) {
        self.id = id
        self.name = name
        self.begunAt = begunAt
        self.checkpoint = checkpoint
    }
}

/// One page of a remote's objects.
package struct RemotePage: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        /// The remote's own name for it: ``RemoteObject/id``.
        package var id: String
        /// The object's name there, for people.
        package var name: String?
        /// The address where a person finds it.
        package var url: String?
        /// The remote's own word for its state.
        package var state: String?
        /// Bytes.
        package var size: Int64?
        package var createdAt: WallTime?

        package init(
            id: String, name: String? = nil, url: String? = nil, state: String? = nil, size: Int64? = nil,
            createdAt: WallTime? = nil
        ) {
            self.id = id
            self.name = name
            self.url = url
            self.state = state
            self.size = size
            self.createdAt = createdAt
        }
    }

    package var items: [Item]
    /// The mark of the next page; `nil` on the last.
    package var next: String?

    package init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }
}
