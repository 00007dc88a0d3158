/// Where the bytes of an asset are until they are uploaded. Stored, because it is decided when the file is recorded.
package enum StagingMode: String, Hashable, Sendable, Codable, CaseIterable {
    /// In a copy of the source.
    case copy
    /// In the source itself: no copy is made, and the source must not change.
    case inPlace = "in-place"
    /// In a file that a command made from the source.
    case export
    /// In bytes that a client handed over: there is only the copy, and there never was a source.
    case received
}
