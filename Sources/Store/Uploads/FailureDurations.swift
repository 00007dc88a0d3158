internal import Core

extension Schema {
    static let failingTime = """
        -- How long it had been failing at its last failure, in ms: without the time in which it could not be tried.
        ALTER TABLE upload ADD COLUMN failed_for INTEGER;
        """
}

/// For how long the uploads of one run have been failing: for `retry.give_up_after`.
///
/// The time between two failures counts as far as an attempt ran in it, or a wait that a failure has set. A pause, a
/// closed window or any other hold of policy adds no more than one such wait. Where the destination is at fault, its
/// uploads are tried in turn: each failure of one of them counts for all of the same folder. All times are in ms of
/// ``RunTime``.
struct FailureDurations {
    private struct Clock {
        /// How long the class has been failing in this run.
        var total: Int64 = 0
        /// The last failure of an upload of the class, and the wait that followed from it.
        var last: (at: Int64, wait: Int64)?

        mutating func fail(at now: Int64, tried: Int64, wait: Int64) {
            if let last {
                let span = max(0, now - last.at)
                let tried = min(tried, span)
                total += tried + min(span - tried, last.wait + FailureDurations.margin)
            }
            last = (now, wait)
        }
    }

    /// Between the end of a wait and the attempt that follows.
    private static let margin: Int64 = 5_000

    private var clocks: [UploadClass: Clock] = [:]
    /// The total of its class at the last failure of an upload.
    private var marks: [String: Int64] = [:]
    /// The beginning of running attempts.
    private var attempts: [String: Int64] = [:]

    mutating func beginAttempt(_ id: String, at now: Int64) { attempts[id] = now }
    mutating func endAttempt(_ id: String) { attempts[id] = nil }

    /// The time since the last failure of an upload does not count: it may have been paused in between.
    mutating func skip(_ id: String) { marks[id] = nil }

    /// The time that counts since the last failure of an upload, if it fails now.
    func elapsed(_ id: String, of uploadClass: UploadClass, at now: Int64) -> Int64 {
        var clock = clocks[uploadClass.ofAnyFile] ?? Clock()
        let tried = tried(id, at: now)
        clock.fail(at: now, tried: tried, wait: 0)
        return marks[id].map { clock.total - $0 } ?? tried
    }

    /// The time at which an upload will have been failing for `missing` more than at its last failure, if it is not
    /// tried before.
    ///
    /// - Returns: `nil` where its present wait ends earlier, so that the next attempt decides.
    func time(of id: String, _ uploadClass: UploadClass, toAdd missing: Int64) -> Int64? {
        guard let mark = marks[id], let clock = clocks[uploadClass.ofAnyFile], let last = clock.last else { return nil }
        let left = max(0, missing - (clock.total - mark))
        return left <= last.wait ? last.at + left : nil
    }

    /// Records that an attempt of an upload has failed.
    ///
    /// - Parameter wait: The wait that follows from the failure.
    mutating func fail(_ id: String, of uploadClass: UploadClass, at now: Int64, wait: Int64) {
        clocks[uploadClass.ofAnyFile, default: Clock()].fail(at: now, tried: tried(id, at: now), wait: wait)
        marks[id] = clocks[uploadClass.ofAnyFile]?.total
    }

    private func tried(_ id: String, at now: Int64) -> Int64 { attempts[id].map { max(0, now - $0) } ?? 0 }
}
