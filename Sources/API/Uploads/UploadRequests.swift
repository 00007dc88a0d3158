package struct AddRequest: Codable, Sendable, Hashable {
    /// Absolute path of a file or a folder as text, or as its bytes in hexadecimal: names are not always text.
    package var path: String
    /// Destinations; empty for those of the folder that contains the path.
    package var to: [String]
    package var key: String?
    package var context: [String: String]
    /// Further request headers of these uploads, sent only to the destination's own address. Their values are never
    /// shown.
    package var headers: [String: String]
    /// The address to create these uploads at, in place of the destination's own: of the same origin.
    package var url: String?
    /// The address of an upload that exists, in place of `url`. It is a secret.
    package var uploadURL: String?
    /// Whether to upload even if the history contains the file.
    package var again: Bool

    package init(
        path: String, to: [String] = [], key: String? = nil, context: [String: String] = [:],
        headers: [String: String] = [:], url: String? = nil, uploadURL: String? = nil, again: Bool = false
    ) {
        self.headers = headers
        self.url = url
        self.uploadURL = uploadURL
        self.path = path
        self.to = to
        self.key = key
        self.context = context
        self.again = again
    }
}

/// A request to upload bytes that are handed over without a file.
package struct ReceiveRequest: Sendable, Hashable {
    /// The name of the file that they form.
    package var name: String
    /// Destinations; empty for the only one that is configured.
    package var to: [String]
    package var key: String?
    /// Whether the key stands for this file alone: it is refused if an upload of the list or the history to the same
    /// destination had it. A browser may send a request again of its own accord when a connection breaks before the
    /// answer.
    package var isKeyOnce = false
    package var context: [String: String]
    /// As in ``AddRequest``.
    package var headers: [String: String]
    package var url: String?
    package var uploadURL: String?
    /// The number of bytes, where it is known.
    package var size: Int64?

    package init(
        name: String, to: [String] = [], key: String? = nil, context: [String: String] = [:],
        headers: [String: String] = [:], url: String? = nil, uploadURL: String? = nil, size: Int64? = nil
    ) {
        self.name = name
        self.to = to
        self.key = key
        self.context = context
        self.headers = headers
        self.url = url
        self.uploadURL = uploadURL
        self.size = size
    }
}

/// The lists to clear.
package struct FlushRequest: Codable, Sendable, Hashable {
    /// `completed`, `failed` or `cancelled`; absent for all three.
    package var list: String?
    package var folder: String?
    package var destination: String?

    package init(list: String? = nil, folder: String? = nil, destination: String? = nil) {
        self.list = list
        self.folder = folder
        self.destination = destination
    }
}

/// The answer of `add` and of verbs that change uploads.
package struct UploadsReply: Codable, Sendable, Hashable {
    /// The present uploads; of more than a person named, the newest hundred.
    package var uploads: [UploadView]
    /// The number of uploads.
    package var count: Int
    /// How many uploads of a whole folder, of a destination or of all could not be retried, or files of a folder not
    /// added, and the reason for the first of them.
    package var refused: Int?
    package var refusal: String?

    package init(uploads: [UploadView] = [], count: Int? = nil, refused: Int? = nil, refusal: String? = nil) {
        self.uploads = uploads
        self.count = count ?? uploads.count
        self.refused = refused
        self.refusal = refusal
    }
}

/// The uploads that `pause`, `resume`, `cancel`, `retry`, `remove` and `priority` apply to.
package struct Selection: Codable, Sendable, Hashable {
    /// Ids, unique prefixes of at least 6 characters, or keys.
    package var ids: [String]
    package var all: Bool
    package var folder: String?
    package var destination: String?
    /// In seconds; for `pause`.
    package var duration: Int64?
    /// For `pause`: whether the parts in flight may arrive.
    package var afterPart: Bool
    /// For `priority`, which requires it: -1000...1000; higher goes first.
    package var priority: Int?

    package static let priorities = -1000...1000

    package init(
        ids: [String] = [], all: Bool = false, folder: String? = nil, destination: String? = nil,
        duration: Int64? = nil, afterPart: Bool = false, priority: Int? = nil
    ) {
        self.ids = ids
        self.all = all
        self.folder = folder
        self.destination = destination
        self.duration = duration
        self.afterPart = afterPart
        self.priority = priority
    }
}
