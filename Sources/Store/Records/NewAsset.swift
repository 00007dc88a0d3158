package import Core

// The store's input and output: values, so that no statement leaves the module.

/// A settled file with the orders that follow from its folder's settings.
package struct NewAsset: Sendable, Hashable {
    /// One upload that is to be made.
    package struct PlannedUpload: Sendable, Hashable {
        package var destination: String
        package var name: FilePath
        package var mediaType: String
        package var key: String?
        package var context: [String: String]
        package var metadata: [String: String]
        /// Additional request headers, which may be secrets.
        package var headers: [String: String] = [:]
        /// The address where to create it, or where it exists.
        package var url: GivenURL?

        /// Its place among destinations of which one is enough.
        package var choice: Choice?

        package init(
            destination: String, name: FilePath, mediaType: String, key: String?, context: [String: String],
            metadata: [String: String]
        ) {
            self.destination = destination
            self.name = name
            self.mediaType = mediaType
            self.key = key
            self.context = context
            self.metadata = metadata
        }
    }

    /// The place of an upload among uploads of which one is enough.
    package struct Choice: Sendable, Hashable {
        /// The same for all of them, and for no other uploads of the file.
        package var number: Int
        /// How long it waits for those before it; zero for the first.
        package var wait: Duration

        package init(number: Int, wait: Duration) { (self.number, self.wait) = (number, wait) }
    }

    package var file: SettledFile
    package var action: SourceAction
    package var priority: Int
    package var orders: [PlannedUpload]
    /// Whether a person asked for it although it may have been uploaded before.
    package var again: Bool
    /// Arrivals of one batch with the same number travel together; `nil` for one that goes alone.
    package var unit: Int?
    /// The earlier path (below the folder) whose newest asset it joins.
    package var joins: FilePath?
    /// The name of the group that is reported as one, with ``unit``: a path below the folder.
    package var group: FilePath?
    package var stagingMode: StagingMode

    package init(
        file: SettledFile, action: SourceAction, priority: Int, orders: [PlannedUpload], again: Bool = false,
        stagingMode: StagingMode = .copy
    ) {
        self.stagingMode = stagingMode
        self.file = file
        self.action = action
        self.priority = priority
        self.orders = orders
        self.again = again
    }
}

/// The result of recording an arrival.
package enum NewAssetOutcome: Sendable, Hashable {
    /// Recorded, with the ids of its uploads.
    case recorded(asset: Int64, uploads: [String])
    /// The same, for a path whose earlier version was recorded before.
    case newVersion(asset: Int64, uploads: [String])
    /// The asset that was waiting for this path has been updated to the new status.
    case renewed(asset: Int64)
    /// This version of this path is known already.
    case known
    /// Another unfinished upload has the key.
    case keyTaken(String)
    /// A person adds a file while this upload, of an earlier version or to another destination, waits for its copy.
    case copyAwaited(String)

    /// `nil` where nothing was recorded.
    var asset: Int64? {
        switch self {
        case .recorded(let asset, _), .newVersion(let asset, _), .renewed(let asset): asset
        case .known, .keyTaken, .copyAwaited: nil
        }
    }
}
