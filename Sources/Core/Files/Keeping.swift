/// Where the bytes of an asset are until they are uploaded. Stored, since it is decided when the file is taken up.
package enum Keeping: String, Hashable, Sendable, Codable, CaseIterable {
    /// In a copy of the source.
    case copy
    /// In the source itself: nothing is copied, and the source has to stay what it was.
    case inPlace = "in-place"
    /// In what a command made of the source.
    case export
    /// In what somebody handed over as bytes: the copy is all there is, and there never was a source.
    case received
}
