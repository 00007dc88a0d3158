internal import Core
internal import Synchronization
internal import Transport

/// A version of the draft "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload), as
/// `Upload-Draft-Interop-Version` names it.
enum InteropVersion: String, Sendable, CaseIterable {
    /// Drafts -04 and -05: tusd, and servers of that time.
    case six = "6"
    /// Drafts -09 to -11. Its messages are those of 9.
    case eight = "8"
    /// Draft -12.
    case nine = "9"
    /// No header: the RFC.
    case none

    static let headerName = "Upload-Draft-Interop-Version"

    var headers: [(String, String)] { self == .none ? [] : [(Self.headerName, rawValue)] }

    /// The version that an answer names, if it is one of these: that in which the server answers, or the latest one that
    /// it speaks.
    static func named(in headers: Headers) -> InteropVersion? {
        headers[headerName].flatMap { InteropVersion(rawValue: $0) }.flatMap { $0 == .none ? nil : $0 }
    }

    /// For messages: `interop 9`.
    var words: String { self == .none ? "no interop version" : "interop \(rawValue)" }
}

/// `interop`: the version that a person has chosen, or all that are tried.
enum InteropChoice: String, Sendable, CaseIterable {
    case auto
    case six = "6"
    case eight = "8"
    case nine = "9"
    case none

    /// `nil` for `auto`.
    var version: InteropVersion? { InteropVersion(rawValue: rawValue) }
}

/// The version that a server speaks, as far as its answers have shown. Shared by all uploads to a destination.
final class InteropMemory: Sendable {
    private struct State {
        var spoken: InteropVersion?
        /// Versions for which the server gave answers without any sign of the draft.
        var silent: Set<InteropVersion> = []
        /// Its answers suggest this version.
        var suggested: InteropVersion?
    }

    private let choice: InteropChoice
    private let state = Mutex(State())

    init(_ choice: InteropChoice) { self.choice = choice }

    /// Whether another version may be tried.
    var isAutomatic: Bool { choice.version == nil }

    /// The version that the server has spoken.
    var spoken: InteropVersion? { state.withLock { $0.spoken } }

    func hasSpoken(_ version: InteropVersion) -> Bool { spoken == version }

    /// The versions to try, the likeliest first.
    ///
    /// - Parameter first: The version with which an upload was created, if there is one.
    func candidates(first: InteropVersion? = nil) -> [InteropVersion] {
        if let version = choice.version { return [version] }
        let (spoken, silent, suggested) = state.withLock { ($0.spoken, $0.silent, $0.suggested) }
        let usual = [suggested, .nine, .six].compactMap { $0 }
        let ranked = usual.filter { !silent.contains($0) } + usual.filter(silent.contains)
        var all: [InteropVersion] = []
        for version in [first, spoken].compactMap({ $0 }) + ranked where !all.contains(version) { all.append(version) }
        return all
    }

    /// The version to try after these; `nil` when none is left. An answer may have suggested one meanwhile.
    func next(after tried: [InteropVersion], first: InteropVersion? = nil) -> InteropVersion? {
        candidates(first: first).first { !tried.contains($0) }
    }

    func recordSpoken(_ version: InteropVersion) {
        state.withLock { state in
            state.spoken = version
            state.silent.remove(version)
        }
    }

    /// The server did not understand this version.
    func recordSilent(_ version: InteropVersion) {
        state.withLock { state in
            if state.spoken == version { state.spoken = nil }
            state.silent.insert(version)
        }
    }

    func suggest(_ version: InteropVersion) { state.withLock { $0.suggested = version } }

    /// Takes the version that an answer names, if it is another one than that of the request.
    ///
    /// - Returns: Whether it is.
    @discardableResult
    func learn(from headers: Headers, to version: InteropVersion) -> Bool {
        guard let named = InteropVersion.named(in: headers), named != version else { return false }
        suggest(named)
        return true
    }
}
