internal import Core

/// The policy for an upload that is gone after its last byte may have been sent: the remote may have finished it and removed
/// its record, or lost it.
enum GonePolicy: String, Sendable, CaseIterable {
    case reupload
    case assumeComplete = "assume_complete"
    case hold

    init(_ values: [String: SettingValue]) {
        self = .reupload
        if case .text(let word)? = values["gone"], let policy = Self(rawValue: word) { self = policy }
    }

    static let summary =
        "What to do if an upload is gone after its last byte may have been sent: `reupload` once (default), "
        + "`assume_complete` where every byte was acknowledged, or `hold` for a person."

    /// Warnings of `check` where a folder removes its sources, together with those of ``FinalErrorPolicy``.
    static func releaseDoubts(_ values: [String: SettingValue]) -> [String] {
        var doubts: [String] = []
        if GonePolicy(values) == .assumeComplete {
            doubts.append(
                "`gone: assume_complete` regards an upload as complete that the server no longer knows; perhaps a "
                    + "proxy in front of it acknowledged its bytes; set `gone: reupload`")
        }
        if FinalErrorPolicy(values) == .accept {
            doubts.append(
                "`final_error: accept` regards files as complete that the server refused at their end; set `final_error: fail`"
            )
        }
        return doubts
    }
}
