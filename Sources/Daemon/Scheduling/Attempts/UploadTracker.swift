internal import Core
internal import Linux
internal import Store

/// The scheduler's facts about failing uploads, until these have ended. They are lost at the end of the
/// process: the store keeps what has to survive.
struct UploadTracker: Sendable {
    private struct Entry: Sendable {
        /// Failures of the network or the server that it has met.
        var failures = 0
        /// Consecutive attempts that failed because of the upload alone.
        var setbacks = 0
        /// The wasted bytes that were logged.
        var loggedWaste: Int64 = 0
        /// The uploads that its destination had accepted when this one was last refused for lack of space.
        var acceptedBefore: Int?
        /// The last refusal of its requests: the generation of the destination's settings, and the uploads that it had
        /// accepted.
        var refusal: (generation: Int, accepted: Int)?
        /// Other uploads were accepted after such a refusal: the destination refuses this file.
        var isRefused = false
        /// The upload, where it waits for an unmetered network, because many of its bytes were wasted.
        var waitsForUnmetered: UploadRecord?
    }

    private var entries: [String: Entry] = [:]

    mutating func forget(_ id: String) { entries[id] = nil }

    /// Failures of the destination count from the beginning again: it is another one now.
    mutating func forgetFailures(_ id: String) {
        entries[id]?.failures = 0
        entries[id]?.setbacks = 0
        entries[id]?.refusal = nil
        entries[id]?.isRefused = false
    }

    /// Records that an upload failed because of itself.
    ///
    /// - Parameter wasAnswered: Bytes of it were accepted meanwhile: the count begins again.
    /// - Returns: How often in a row it has failed so.
    mutating func recordSetback(_ id: String, wasAnswered: Bool) -> Int {
        let times = wasAnswered ? 1 : (entries[id]?.setbacks ?? 0) + 1
        entries[id, default: Entry()].setbacks = times
        return times
    }

    /// Records an answer that may concern every request to the destination: its method or its address is refused.
    ///
    /// - Parameters:
    ///   - generation: The generation of the destination's settings. Answers to others count no longer.
    ///   - accepted: How many uploads the destination has accepted since the start.
    ///   - isHeld: Whether something is known to be wrong with the destination.
    /// - Returns: Whether the destination refuses this file: it accepted another one after an earlier such answer.
    mutating func isFileRefused(_ id: String, generation: Int, accepted: Int, isHeld: Bool) -> Bool {
        var entry = entries[id] ?? Entry()
        if let before = entry.refusal {
            entry.isRefused = before.generation == generation && (entry.isRefused || before.accepted < accepted)
        }
        entry.refusal = (generation, accepted)
        entries[id] = entry
        return entry.isRefused && !isHeld
    }

    /// The uploads whose files a destination refuses.
    var refused: Set<String> { Set(entries.filter(\.value.isRefused).keys) }

    /// How long an upload waits that the destination refuses again while it accepts others: one file that makes a
    /// server fail must not stop the rest.
    ///
    /// - Parameters:
    ///   - accepted: How many uploads the destination has accepted since the start.
    ///   - isHeld: Whether something is known to be wrong with the destination.
    /// - Returns: `nil` when the destination is to be held, as after every first failure.
    mutating func ownWait(
        _ id: String, _ remedy: Remedy?, accepted: Int, isHeld: Bool, retry: Backoff, jitter: Double
    ) -> Duration? {
        if case .outOfSpace(let after)? = remedy {
            let before = entries[id]?.acceptedBefore
            entries[id, default: Entry()].acceptedBefore = accepted
            entries[id]?.failures += 1
            // The destination has accepted others since it last refused this one: it has space, but less than this
            // upload needs.
            guard let before, before < accepted, !isHeld else { return nil }
            return after
                ?? DestinationHealth.backoffWhenFull(retry).wait(
                    afterFailures: entries[id]?.failures ?? 1, jitter: jitter)
        }
        let after: Duration?
        switch remedy {
        case .holdDestination(let time): after = time
        // The method or address works for other uploads.
        case .misconfigured: after = nil
        default: return nil
        }
        let before = entries[id]?.failures ?? 0
        entries[id, default: Entry()].failures = before + 1
        // A status concerns the server as a whole; a broken connection may be caused by this file.
        guard before > 0, !isHeld, after == nil else { return nil }
        return retry.wait(afterFailures: before + 1, jitter: jitter)
    }

    /// - Returns: Whether this number of wasted bytes has to be logged.
    mutating func shouldLog(waste: Int64, of id: String) -> Bool {
        guard waste > entries[id]?.loggedWaste ?? 0 else { return false }
        entries[id, default: Entry()].loggedWaste = waste
        return true
    }

    /// Records that an upload waits for an unmetered network.
    ///
    /// - Returns: Whether it did not wait before.
    mutating func waitForUnmetered(_ upload: UploadRecord) -> Bool {
        let isNew = entries[upload.id]?.waitsForUnmetered == nil
        entries[upload.id, default: Entry()].waitsForUnmetered = upload
        return isNew
    }

    /// - Returns: The uploads that need not wait for an unmetered network any more.
    mutating func removeUnmetered(where isFree: (UploadRecord) -> Bool) -> [UploadRecord] {
        let free = entries.values.compactMap(\.waitsForUnmetered).filter(isFree).sorted { $0.id < $1.id }
        for upload in free { entries[upload.id]?.waitsForUnmetered = nil }
        return free
    }

    /// These uploads wait as before: that their wait is over could not be stored.
    mutating func restoreUnmetered(_ uploads: [UploadRecord]) {
        for upload in uploads where entries[upload.id]?.waitsForUnmetered == nil {
            entries[upload.id]?.waitsForUnmetered = upload
        }
    }
}
