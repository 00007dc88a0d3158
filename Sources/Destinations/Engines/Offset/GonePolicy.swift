internal import Core

/// The policy for an upload that is gone after its last byte may have been sent: the remote may have finished it and removed
/// its record, or lost it.
enum GonePolicy: String, Sendable, CaseIterable {
    case reupload
    case assumeComplete = "assume_complete"
    case hold

    static func key<Owner: DeclaredSettings>(_ path: DestinationKey<Owner>.Property<Self>) -> DestinationKey<Owner> {
        DestinationKey(
            "gone", path,
            "What to do if an upload is gone after its last byte may have been sent: `reupload` once (default), "
                + "`assume_complete` where every byte was acknowledged, or `hold` for a person.")
    }

    /// Warnings of `check` where a folder removes its sources.
    var releaseDoubts: [String] {
        guard self == .assumeComplete else { return [] }
        return [
            "`gone: assume_complete` regards an upload as complete that the server no longer knows; perhaps a "
                + "proxy in front of it acknowledged its bytes; set `gone: reupload`"
        ]
    }
}
