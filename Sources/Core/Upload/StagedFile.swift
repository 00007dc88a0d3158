/// The bytes of an upload, complete and durable: a copy in the staging folder, or a source that is uploaded in place.
package struct StagedFile: Hashable, Sendable {
    package var place: FilePlace
    /// Bytes.
    package var size: Int64
    /// SHA-256 of the content, 32 bytes.
    package var sha256: [UInt8]
    /// The known digests of its parts.
    package var parts: PartDigests

    /// Makes one from a file of our own.
    package init(path: FilePath, size: Int64, sha256: [UInt8], parts: PartDigests = PartDigests()) {
        self.init(place: .path(path), size: size, sha256: sha256, parts: parts)
    }

    package init(place: FilePlace, size: Int64, sha256: [UInt8], parts: PartDigests = PartDigests()) {
        self.place = place
        self.size = size
        self.sha256 = sha256
        self.parts = parts
    }
}
