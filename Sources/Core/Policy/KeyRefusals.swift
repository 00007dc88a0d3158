/// What a destination has refused for its key (401, 403), to tell a file that it does not want from a key that it does not take.
///
/// A refusal is the file's own only where another upload was accepted after it. Two files that are refused with nothing accepted in
/// between are refused for the key.
package struct KeyRefusals: Hashable, Sendable {
    package enum Cause: Hashable, Sendable {
        /// The file's: it was refused so often, and others got through in between.
        case file(times: Int)
        /// Nobody knows before another one is tried.
        case unknown
        case key
    }

    private struct Refusal: Hashable {
        var times = 0
        /// Of uploads that were accepted, when it was refused last.
        var accepted = 0
        /// Others got through after one of its refusals.
        var isOwn = false
    }

    private var refused: [String: Refusal] = [:]
    /// Those that were refused since an upload was accepted last.
    private var suspects: Set<String> = []
    private var accepted = 0

    package init() {}

    /// An upload was taken with the key that counts now.
    package mutating func accept() {
        accepted += 1
        suspects = []
    }

    /// - Parameters:
    ///   - id: Of the upload.
    ///   - othersWait: Another one can be tried next.
    package mutating func refuse(_ id: String, othersWait: Bool) -> Cause {
        var refusal = refused[id] ?? Refusal()
        let isProven = refusal.times > 0 && refusal.accepted < accepted
        refusal.times += 1
        refusal.accepted = accepted
        if isProven { refusal.isOwn = true }
        refused[id] = refusal
        suspects.insert(id)
        if suspects.count > 1 { return .key }
        if isProven { return .file(times: refusal.times) }
        return othersWait ? .unknown : .key
    }

    /// It is over, or its key is another one.
    package mutating func forget(_ id: String) {
        refused[id] = nil
        suspects.remove(id)
    }

    /// Uploads that were refused for their own sake.
    package var own: Set<String> { Set(refused.keys.filter { isOwn($0) }) }

    /// Whether an upload was refused for its own sake.
    package func isOwn(_ id: String) -> Bool {
        refused[id].map { $0.isOwn || $0.accepted < accepted } ?? false
    }

    /// So few were refused since one was accepted that another one is worth its request.
    package var isDoubtful: Bool { 1...2 ~= suspects.count }

    /// The only upload that was refused since one was accepted; `nil` where there are several, or none.
    package var onlySuspect: String? { suspects.count == 1 ? suspects.first : nil }
}
