/// The configuration of a watched folder, as far as `Watch` needs it.
package struct WatchRule: Hashable, Sendable {
    package enum Writers: String, Hashable, Sendable, CaseIterable {
        /// A read lease is requested from the kernel.
        case lease
        /// Like `lease`; where no lease can be had, the open files of all processes are searched.
        case proc
        case skip
    }
    package enum Watching: String, Hashable, Sendable, CaseIterable {
        /// By events, and in addition by polling where the file system may not report changes.
        case auto
        /// By polling alone.
        case poll
    }
    /// Whether the headers of a recording have to show that it is complete.
    package enum ContainerCheck: String, Hashable, Sendable, CaseIterable { case check, skip }
    /// The treatment of a recording that stays incomplete.
    package enum Broken: String, Hashable, Sendable, CaseIterable { case wait, upload }
    package enum Existing: String, Hashable, Sendable, CaseIterable { case upload, skip }

    package var name: String
    /// Absolute, normalised.
    package var path: FilePath
    package var recursive: Bool
    /// GlobComparison; empty means every file. A glob without `/` is matched against the name, any other against the path below
    /// the folder.
    package var include: [String]
    package var exclude: [String]
    /// `nil`: 1 s when a close was seen and the lease was granted; 10 s when no close was seen or no lease can be
    /// requested; 30 s without events.
    package var quietFor: Duration?
    package var writers: Writers
    package var existing: Existing
    package var watching = Watching.auto
    package var requirement = FolderRequirement()
    /// The name of a file that its writer puts into the same directory as each finished file.
    package var marker: MarkerName?
    /// A file that has not settled for this long is reported.
    package var reportAfter = Duration.seconds(3600)
    package var limits = FileLimits()
    package var container = ContainerCheck.skip
    package var broken = Broken.upload
    /// How long an incomplete recording has to be unchanged before ``broken`` applies.
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

extension WatchRule {
    /// Whether the rule takes a file, by the names in its path alone.
    package var pathFilter: (_ relative: FilePath) -> Bool {
        let names = NameRules(include: include, exclude: exclude, marker: marker)
        return { [recursive] relative in
            let directories = relative.parent.components
            return recursive || directories.isEmpty
                ? !directories.contains { TemporaryNames.contains($0) } && names.matches(relative) : false
        }
    }
}

/// How long a kept source may stay after its upload was verified. Without a value it stays for ever.
package struct Retention: Hashable, Sendable {
    /// The source is removed this long after its last upload was verified.
    package var time: Duration?
    /// While the folder's disk has fewer bytes free, the sources that were verified longest ago are removed, one after
    /// another.
    package var untilFree: Int64?

    package init(time: Duration? = nil, untilFree: Int64? = nil) {
        self.time = time
        self.untilFree = untilFree
    }

    package var isLimited: Bool { time != nil || untilFree != nil }
}

/// The evidence that a folder must contain before its content is trusted: a disk that is not mounted looks like an
/// empty folder.
package struct FolderRequirement: Hashable, Sendable {
    /// A path below the folder that must exist.
    package var file: FilePath?
    /// The mount point that must be mounted and contain the folder. `nil`: the one that fstab(5) names for it; `/`:
    /// none.
    package var mount: FilePath?

    package init(file: FilePath? = nil, mount: FilePath? = nil) {
        self.file = file
        self.mount = mount
    }

    /// Whether the requirement distinguishes the right disk from another; `mount: /` requires nothing.
    package var identifiesDisk: Bool { file != nil || mount.map { $0 != "/" } ?? false }
}

/// The treatment of a verified source that is to be removed, where it cannot be known whether a program has it open for
/// writing.
package enum UnsureReleaseRule: Hashable, Sendable {
    /// The source is kept.
    case keep
    /// The source is removed if it is still the same, byte for byte, this long after its last upload was verified.
    case after(Duration)
    /// The source is removed at once.
    case delete
}

/// The action for the source after all its uploads are verified.
package enum SourceAction: Hashable, Sendable {
    /// The source stays; the folder's ``Retention`` may remove it later.
    case keep
    /// The source is kept: no upload of this very file has verified that the remote holds it.
    case leave
    case delete
    /// A template for the absolute target path.
    case move(to: Template)

    /// Whether the source is no longer in its place when its uploads are complete.
    package var removesSource: Bool {
        switch self {
        case .keep, .leave: false
        case .delete, .move: true
        }
    }
}
