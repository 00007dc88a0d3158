/// Refusals of a destination that concern its key, mostly with 401 or 403. They are counted to find out whether it
/// refuses a file or the key.
///
/// A refusal is about the file only where another upload was accepted after it. Two files that are refused without an
/// accepted one in between are refused because of the key.
package struct KeyRefusals: Hashable, Sendable {
    package enum Cause: Hashable, Sendable {
        /// The file is refused: this many times, while others were accepted in between.
        case file(times: Int)
        /// Unknown until another upload is tried.
        case unknown
        case key
    }

    private struct Refusal: Hashable {
        var times = 0
        /// Number of accepted uploads when it was refused last.
        var accepted = 0
        /// Other uploads were accepted after one of its refusals.
        var isOwn = false
    }

    private var refused: [String: Refusal] = [:]
    /// Uploads that were refused since the last accepted one.
    private var suspects: Set<String> = []
    private var accepted = 0

    package init() {}

    /// Records that an upload was accepted with the present key.
    package mutating func accept() {
        accepted += 1
        suspects = []
    }

    /// - Parameters:
    ///   - id: The upload's id.
    ///   - othersWait: Another upload can be tried next.
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
        if othersWait { return .unknown }
        // No upload can try the key now. Others were accepted after an earlier refusal of this one: it waits alone, and
        // the next upload of another file shows whether the key is at fault.
        return refusal.isOwn ? .file(times: refusal.times) : .key
    }

    /// Forgets an upload that is over, or whose key has changed.
    package mutating func forget(_ id: String) {
        refused[id] = nil
        suspects.remove(id)
    }

    /// Every upload that was refused and is not over. None of them shows whether the key is at fault, so another upload
    /// is tried in its place while one waits.
    package var uploads: Set<String> { Set(refused.keys) }

    /// Uploads whose own files were refused.
    package var own: Set<String> { Set(refused.keys.filter { isOwn($0) }) }

    /// Whether an upload's own file was refused.
    package func isOwn(_ id: String) -> Bool {
        refused[id].map { $0.isOwn || $0.accepted < accepted } ?? false
    }

    /// Whether so few were refused since the last accepted one that trying another is worth a request. Uploads whose own
    /// files were refused before do not count: any number of them says nothing about the key.
    package var isDoubtful: Bool {
        !suspects.isEmpty && suspects.count { refused[$0]?.isOwn != true } <= 2
    }

    /// The only upload that was refused since the last accepted one; `nil` where there are several, or none.
    package var onlySuspect: String? { suspects.count == 1 ? suspects.first : nil }
}
