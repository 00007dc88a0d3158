/// A watched folder as somebody configured it: what `Watch` needs to know about it.
package struct WatchRule: Hashable, Sendable {
    package enum Writers: String, Hashable, Sendable, CaseIterable {
        /// The kernel is asked for a read lease.
        case lease
        /// As `lease`; where none can be had, the descriptors of all processes are looked through.
        case proc
        case skip
    }
    package enum Watching: String, Hashable, Sendable, CaseIterable {
        /// By events, and by polling too where the file system may keep quiet about changes.
        case auto
        /// By polling alone.
        case poll
    }
    /// Whether the headers of a recording have to say that it is whole.
    package enum ContainerCheck: String, Hashable, Sendable, CaseIterable { case check, skip }
    /// What becomes of a recording that stays unfinished.
    package enum Broken: String, Hashable, Sendable, CaseIterable { case wait, upload }
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
    package var watching = Watching.auto
    package var requirement = FolderRequirement()
    /// A file that stands beside each file that is finished.
    package var marker: MarkerName?
    /// A file that has not settled for so long is reported.
    package var reportAfter = Duration.seconds(3600)
    package var limits = FileLimits()
    package var container = ContainerCheck.skip
    package var broken = Broken.upload
    /// For how long a recording that is not whole has to be unchanged before ``broken`` counts.
    package var brokenAfter = Duration.seconds(3600)

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
package struct Retention: Hashable, Sendable {
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

/// What a folder must show before anything in it is believed: a disk that is not mounted looks like an empty folder.
package struct FolderRequirement: Hashable, Sendable {
    /// A path below the folder of something that must be there.
    package var file: FilePath?
    /// Where something must be mounted that holds the folder. `nil`: what fstab(5) names for it; `/`: nothing.
    package var mount: FilePath?

    package init(file: FilePath? = nil, mount: FilePath? = nil) {
        self.file = file
        self.mount = mount
    }

    /// Whether it tells the right disk from another; `mount: /` asks for nothing.
    package var tellsDisk: Bool { file != nil || mount.map { $0 != "/" } ?? false }
}

/// What becomes of a verified source that is to go, where it cannot be known whether a program has it open for writing.
package enum ReleaseUnsure: Hashable, Sendable {
    /// It stays for good.
    case keep
    /// It goes when it is still the same, byte for byte, so long after its last upload was verified.
    case after(Duration)
    /// It goes at once.
    case delete
}

/// What becomes of the source after every upload of it is verified.
package enum SourceAction: Hashable, Sendable {
    /// It stays; the folder's ``Retention`` may let it go later.
    case keep
    /// It stays for good: that the remote side holds it was not verified by an upload of this very file.
    case leave
    case delete
    /// A template for the absolute target path.
    case move(to: Template)

    /// The source is not where it was when its uploads are complete.
    package var removesSource: Bool {
        switch self {
        case .keep, .leave: false
        case .delete, .move: true
        }
    }
}
