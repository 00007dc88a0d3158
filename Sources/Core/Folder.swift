/// A watched folder as somebody configured it: what `Watch` needs to know about it.
package struct WatchRule: Hashable, Sendable {
    package enum Writers: String, Hashable, Sendable, CaseIterable { case lease, skip }
    package enum Existing: String, Hashable, Sendable, CaseIterable { case upload, skip }

    package var name: String
    /// Absolute, normalised.
    package var path: FilePath
    package var recursive: Bool
    /// Globs; empty means every file. A glob without `/` is matched with the name, else with the path below the folder.
    package var include: [String]
    package var exclude: [String]
    /// `nil`: 1 s when a close was seen and the lease was granted; 10 s when no close was seen or the lease cannot be
    /// asked; 30 s without events.
    package var quietFor: Duration?
    package var writers: Writers
    package var existing: Existing

    package init(
        name: String, path: FilePath, recursive: Bool = true, include: [String] = [], exclude: [String] = [],
        quietFor: Duration? = nil, writers: Writers = .lease, existing: Existing = .upload
    ) {
        self.name = name
        self.path = path
        self.recursive = recursive
        self.include = include
        self.exclude = exclude
        self.quietFor = quietFor
        self.writers = writers
        self.existing = existing
    }
}

/// For how long a source that is kept may stay after its upload was verified. Nothing set: for ever.
package struct Keeping: Hashable, Sendable {
    /// It goes when its last upload was verified so long ago.
    package var time: Duration?
    /// The oldest verified ones go, one after another, while the folder's disk has fewer bytes free.
    package var untilFree: Int64?

    package init(time: Duration? = nil, untilFree: Int64? = nil) {
        self.time = time
        self.untilFree = untilFree
    }

    package var isLimited: Bool { time != nil || untilFree != nil }
}

/// What becomes of the source after every upload of it is verified.
package enum SourceAction: Hashable, Sendable {
    /// It stays; the folder's ``Keeping`` may let it go later.
    case keep
    /// It stays for good: that the remote side holds it was not verified by an upload of this very file.
    case leave
    case delete
    /// A template for the absolute target path.
    case move(to: Template)
}
