/// Decides which recorded files are copied into staging next, and keeps account of the space reserved for them.
///
/// Several workers make passes through the waiting files at the same time. A pass stops where the caller has to wait
/// for an answer about a file; other workers continue meanwhile. A file that needs space never takes it from a file
/// that waits before it.
package struct StagingAdmission: Sendable {
    /// A recorded file that waits for its copy.
    package struct Candidate: Hashable, Sendable {
        package var id: Int64
        package var path: FilePath
        package var size: Int64
        /// Whether it gets a copy; a file that is uploaded in place does not.
        package var needsSpace: Bool

        package init(id: Int64, path: FilePath, size: Int64, needsSpace: Bool) {
            self.id = id
            self.path = path
            self.size = size
            self.needsSpace = needsSpace
        }
    }

    /// A file that is to be copied now, with its reserved space.
    package struct Ticket: Hashable, Sendable {
        package let id: Int64
        package let reservation: StagingBudget.Reservation
    }

    /// The next step of a pass, for the file of this number.
    package enum Step: Hashable, Sendable {
        /// The file is larger than the staging folder may ever be. The caller refuses it, and calls
        /// ``endRefusal(_:)``.
        case refuse(Int64, maxSize: Int64)
        /// The copy may need less space than the file's size. The caller measures it, and calls ``endMeasuring(_:_:)``.
        case measure(Int64)
        /// The file is in the batch.
        case admit(Int64)
    }

    /// One pass of a worker through the candidates.
    package struct Pass: Sendable {
        fileprivate let candidates: [Candidate]
        fileprivate let isForExports: Bool
        fileprivate var next = 0
        /// The candidate that is being examined.
        fileprivate var examined: Candidate?
        /// The measured need of the examined candidate.
        fileprivate var need: Int64?
        fileprivate var batch: [Ticket] = []
        fileprivate var obstacle: StagingBudget.Obstacle?
        /// Files before the others that another worker examines.
        fileprivate var ahead: Set<Int64> = []
        /// Whether a file was left for those.
        fileprivate var leavesFiles = false
        fileprivate var hasRefused = false

        /// - Parameters:
        ///   - candidates: In the order in which they are to be copied.
        ///   - isForExports: Whether they are made by commands, one at a time.
        package init(_ candidates: [Candidate], isForExports: Bool) {
            self.candidates = candidates
            self.isForExports = isForExports
        }
    }

    /// The result of a pass.
    package struct Result: Hashable, Sendable {
        /// One large file, or several small ones.
        package var batch: [Ticket] = []
        /// The reason why the first file that does not fit has to wait.
        package var obstacle: StagingBudget.Obstacle?
        /// Whether the shortage of space is over.
        package var endsShortage = false
    }

    /// A query of the present space.
    package struct SpaceQuery: Sendable {
        fileprivate let number: Int
        fileprivate let released: StagingBudget.Reservation
    }

    /// Larger files are copied alone.
    package static let smallFile: Int64 = 1 << 20

    /// Files that are copied or examined.
    private var underWay: Set<Int64> = []
    /// Files of these that are only being examined, and may have to wait for space.
    private var examined: Set<Int64> = []
    /// Whether a pass left files behind one that another worker examines, until there is a decision about that.
    private var hasLeftFiles = false
    /// The latest answer about the space, by the time of asking.
    private var answer: (query: SpaceQuery, budget: StagingBudget)?
    private var queries = 0
    /// Space of copies in progress.
    private var reserved = StagingBudget.Reservation()
    /// Space whose reservation has ended, in total since the start.
    private var released = StagingBudget.Reservation()
    /// Whether space is lacking for the next file: of those to be exported, and of the others. It ends when no file has
    /// an obstacle, not with each file that fits.
    private var shortage = (exports: false, copies: false)
    /// Whether a worker may find a file now that it could not take before: space was released, a copy has ended, or a
    /// pass has left files behind.
    private var needsWake = false

    package init() {}

    /// Whether no file is copied or examined.
    package var isIdle: Bool { underWay.isEmpty }
    package var isShort: Bool { shortage.exports || shortage.copies }
    /// Files that are being copied. An examined file still counts as waiting.
    package var copying: Set<Int64> { underWay.subtracting(examined) }
    package func isUnderWay(_ id: Int64) -> Bool { underWay.contains(id) }

    /// - Returns: Whether to wake the workers, since a file may be taken now that could not be taken before.
    package mutating func takeWake() -> Bool {
        defer { needsWake = false }
        return needsWake
    }

    // MARK: - Space

    /// Must be called before the space is read, since copies that end meanwhile may or may not be in the answer.
    package mutating func beginSpaceQuery() -> SpaceQuery {
        queries += 1
        return SpaceQuery(number: queries, released: released)
    }

    /// Stores the answer, unless a later query was answered first.
    package mutating func endSpaceQuery(_ query: SpaceQuery, _ budget: StagingBudget) {
        if query.number > answer?.query.number ?? 0 { answer = (query, budget) }
    }

    /// The space that an answer may not include.
    ///
    /// - Parameter own: A reservation that is about to be replaced.
    package func reserved(
        since query: SpaceQuery, without own: StagingBudget.Reservation = StagingBudget.Reservation()
    ) -> StagingBudget.Reservation {
        reserved - own + released - query.released
    }

    /// Replaces a reservation by a larger one for the same bytes and more.
    package mutating func extend(_ own: inout StagingBudget.Reservation, to wanted: StagingBudget.Reservation) {
        reserved = reserved - own + wanted
        released = released + StagingBudget.Reservation(size: 0, need: own.need)
        own = wanted
    }

    /// Ends a reservation.
    package mutating func release(_ reservation: StagingBudget.Reservation) {
        forget(reservation)
        needsWake = true
    }

    private mutating func forget(_ reservation: StagingBudget.Reservation) {
        reserved = reserved - reservation
        released = released + reservation
    }

    /// Uses the latest answer, also for a worker that has waited since its own: files removed meanwhile count for the
    /// next file, and not for one that another worker finds behind it.
    private func obstacle(
        for candidate: Candidate, _ wanted: StagingBudget.Reservation
    ) -> StagingBudget.Obstacle? {
        guard let answer else { return nil }
        return answer.budget.obstacle(for: candidate.path, wanted, reserved: reserved(since: answer.query))
    }

    // MARK: - Passes

    /// Continues a pass.
    ///
    /// - Parameter maxSize: `staging.max_size`.
    /// - Returns: `nil` at its end; the caller then calls ``finish(_:)``.
    package mutating func advance(_ pass: inout Pass, maxSize: Int64?) -> Step? {
        if let candidate = pass.examined, let need = pass.need {
            (pass.examined, pass.need) = (nil, nil)
            let wanted = StagingBudget.Reservation(size: candidate.size, need: need)
            pass.obstacle = obstacle(for: candidate, wanted)
            if pass.obstacle == nil { return admit(candidate, wanted, &pass) }
        }
        while pass.next < pass.candidates.count {
            let candidate = pass.candidates[pass.next]
            pass.next += 1
            if underWay.contains(candidate.id) {
                if examined.contains(candidate.id), pass.obstacle == nil { pass.ahead.insert(candidate.id) }
                continue
            }
            if !pass.batch.isEmpty && !isSmall(candidate, pass) { continue }
            guard candidate.needsSpace else { return admit(candidate, StagingBudget.Reservation(), &pass) }
            // If another worker examines an earlier file, this one would take its space.
            if !pass.ahead.isEmpty {
                pass.leavesFiles = true
                continue
            }
            // A file behind one that waits for space would take that space.
            if pass.obstacle != nil { continue }
            if let maxSize, candidate.size > maxSize {
                examine(candidate, &pass)
                return .refuse(candidate.id, maxSize: maxSize)
            }
            let wanted = StagingBudget.Reservation(size: candidate.size, need: candidate.size)
            let obstacle = obstacle(for: candidate, wanted)
            if obstacle == nil { return admit(candidate, wanted, &pass) }
            // Measured only now, since it costs calls for each file. The size of an export is not known before.
            if !pass.isForExports {
                examine(candidate, &pass)
                return .measure(candidate.id)
            }
            pass.obstacle = obstacle
        }
        return nil
    }

    /// The file of the last step was refused.
    package mutating func endRefusal(_ pass: inout Pass) {
        endExamination(&pass)
        pass.examined = nil
        pass.hasRefused = true
    }

    /// The need of the file of the last step is known.
    package mutating func endMeasuring(_ need: Int64, _ pass: inout Pass) {
        endExamination(&pass)
        pass.need = need
    }

    /// Ends a pass.
    package mutating func finish(_ pass: Pass) -> Result {
        var result = Result(batch: pass.batch)
        if pass.leavesFiles {
            if pass.ahead.isDisjoint(with: examined) {
                // Another worker decided meanwhile, without knowing that files were left behind its file.
                needsWake = true
            } else {
                hasLeftFiles = true
            }
        } else if let obstacle = pass.obstacle {
            _ = setShortage(true, forExports: pass.isForExports)
            result.obstacle = obstacle
        } else if pass.batch.count == pass.candidates.count {
            result.endsShortage = setShortage(false, forExports: pass.isForExports)
        }
        // The file that others were left for does not wait, and a file behind it does.
        if hasLeftFiles, pass.hasRefused || !pass.batch.isEmpty {
            hasLeftFiles = false
            needsWake = true
        }
        return result
    }

    /// Ends a pass that failed: its files wait again. It wakes no worker, since the next pass would fail as well.
    package mutating func cancel(_ pass: inout Pass) {
        endExamination(&pass)
        for ticket in pass.batch {
            underWay.remove(ticket.id)
            forget(ticket.reservation)
        }
        pass.batch = []
    }

    /// There are no candidates, and no file is under way.
    ///
    /// - Returns: Whether the shortage of space is over.
    package mutating func endShortage(forExports: Bool) -> Bool { setShortage(false, forExports: forExports) }

    /// The copy of a file has ended, successfully or not.
    package mutating func end(_ ticket: Ticket) {
        underWay.remove(ticket.id)
        release(ticket.reservation)
    }

    private func isSmall(_ candidate: Candidate, _ pass: Pass) -> Bool {
        candidate.size <= Self.smallFile && !pass.isForExports
    }

    private mutating func admit(
        _ candidate: Candidate, _ reservation: StagingBudget.Reservation, _ pass: inout Pass
    ) -> Step {
        underWay.insert(candidate.id)
        reserved = reserved + reservation
        pass.batch.append(Ticket(id: candidate.id, reservation: reservation))
        // A large file is copied alone.
        if !isSmall(candidate, pass) { pass.next = pass.candidates.count }
        return .admit(candidate.id)
    }

    /// Keeps other workers from this file during the wait for an answer about it.
    private mutating func examine(_ candidate: Candidate, _ pass: inout Pass) {
        underWay.insert(candidate.id)
        examined.insert(candidate.id)
        pass.examined = candidate
    }

    private mutating func endExamination(_ pass: inout Pass) {
        guard let candidate = pass.examined else { return }
        underWay.remove(candidate.id)
        examined.remove(candidate.id)
    }

    /// - Returns: Whether this ends the shortage.
    private mutating func setShortage(_ isOn: Bool, forExports: Bool) -> Bool {
        let wasShort = isShort
        if forExports { shortage.exports = isOn } else { shortage.copies = isOn }
        return wasShort && !isShort
    }
}
