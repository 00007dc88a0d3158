/// The address that a person gave for one upload.
package enum GivenURL: Sendable, Hashable {
    /// The upload is created there, in place of the destination's own address.
    case creation(String)
    /// The upload exists there, and is not created. The address is a secret: who knows it may write to the upload.
    case upload(String)

    /// In front of a stored ``upload(_:)``. No address contains a space.
    private static let mark = "upload "

    package init(stored: String) {
        self = stored.hasPrefix(Self.mark) ? .upload(String(stored.dropFirst(Self.mark.count))) : .creation(stored)
    }

    /// The form in the database and beside a staged copy. A version that does not know ``upload(_:)`` refuses its
    /// address, and sends nothing.
    package var stored: String {
        switch self {
        case .creation(let url): url
        case .upload(let url): Self.mark + url
        }
    }

    /// The address of a creation; `nil` for an upload that exists.
    package var creation: String? { if case .creation(let url) = self { url } else { nil } }
    /// The address of an upload that exists.
    package var upload: String? { if case .upload(let url) = self { url } else { nil } }
}
