/// Where the bytes of an upload are read.
package enum FilePlace: Hashable, Sendable {
    /// A file of our own.
    case path(FilePath)
    /// A descriptor of this process that stays open for the upload's attempt. Used for a source that is uploaded in
    /// place, since it has no path that could be opened.
    case open(Int32, shown: FilePath)

    /// The path for messages.
    package var shown: FilePath {
        switch self {
        case .path(let path): path
        case .open(_, let path): path
        }
    }

    package var display: String { shown.display }
}
