internal import Core
internal import Linux

/// One attempt. Owned by one task from beginning to end; the tasks that send parts get and return values.
final class PartsUpload {
    let engine: PartsEngine
    let order: UploadOrder
    let reporter: any UploadReporter
    /// The status of the staged copy when the attempt began.
    private let status: FileStatus
    var checkpoint: PartsCheckpoint
    /// Empty until the upload is opened.
    private(set) var plan: PartPlan?
    var bounds: PartsBounds
    private(set) var accepted: [Int: AcknowledgedPart] = [:]
    private(set) var acked: Int64 = 0
    let flight = PartsInFlight()
    let along: ArrivedPartsDigest
    /// Parts that are known to have the staged content, regardless of the copy's present state.
    var proven: Set<Int> = []
    private var renewals = 0
    /// How often an answer changed the fields for later requests.
    var renamings = 0
    /// Parts that arrived since then, in order.
    var arrivals: [Int] = []
    /// The upload was continued, and nothing was sent since.
    var isResuming = false
    /// The staged copy was compared with its digest in this attempt.
    var wasCopyChecked = false
    /// The connection has cut a part in this attempt.
    var wasCut = false
    /// When the upload was continued, the remote may have had all of it.
    private(set) var wasPerhapsWhole = false

    var dialect: any PartsDialect { engine.dialect }

    init(_ engine: PartsEngine, _ order: UploadOrder, _ reporter: any UploadReporter, _ status: FileStatus) {
        self.engine = engine
        self.order = order
        self.reporter = reporter
        self.status = status
        along = ArrivedPartsDigest(order.file.place)
        checkpoint = order.partsCheckpoint
        bounds = PartsBounds(PartsCheckpoint(), count: 0, tracksReach: false)
    }

    /// Durable when it returns.
    func record() async throws {
        bounds.store(in: &checkpoint)
        try await reporter.record(checkpoint.stored)
    }

    func run() async throws(Exit) -> RemoteObject {
        do {
            reporter.entered(.opening)
            try await checkQuota()
            let plan = try await open()
            self.plan = plan
            try await reconcile(plan)
            try await judgeRefusal(plan)
            while true {
                reporter.entered(.uploading)
                try await sendMissing(plan)
                reporter.entered(.finishing)
                if let object = try await complete(plan) { return object }
            }
        } catch let exit as Exit { throw exit } catch { throw .failed(error) }
    }

    func piece(_ plan: PartPlan) -> PartsContext { PartsContext(order: order, plan: plan, checkpoint: checkpoint) }

    func missing(of plan: PartPlan) -> [Int] { (0..<plan.count).filter { accepted[$0] == nil } }

    // MARK: Opening

    private func open() async throws -> PartPlan {
        if !checkpoint.isBegun { return try await create() }
        // A person wants the file sent again: earlier refusals and losses do not count.
        if FinalAnswer.isFromEarlierGeneration(checkpoint, order) {
            throw try await renewed("it is tried again", isWanted: true)
        }
        if !engine.resumes, renewals == 0, !isPerhapsWhole {
            throw try await renewed("the unfinished upload is not continued", isWanted: true)
        }
        guard dialect.isOurs(checkpoint) else { throw try await renewed("the destination is another server now") }
        guard let plan = storedPlan, checkpoint.sha256 == hexadecimal(order.file.sha256) else {
            throw try await renewed("the unfinished upload has other content")
        }
        bounds = PartsBounds(checkpoint, count: plan.count, tracksReach: dialect.tracksReach)
        wasPerhapsWhole = bounds.mayBeWhole
        accepted = [:]
        for part in try await reporter.parts()
        where part.index >= 0 && part.index < plan.count && plan[part.index].length == part.size {
            accepted[part.index] = part
        }
        acked = accepted.values.reduce(0) { $0 + $1.size }
        // Less than another cut part would cost.
        if acked < plan.partSize, PartCuts.isSuspected(checkpoint), try dialect.plan(order).partSize < plan.partSize {
            throw try await renewed("its parts are too large for the path", cause: .interruption)
        }
        isResuming = !accepted.isEmpty
        // Perhaps only the answer was lost.
        let isPerhapsThere =
            checkpoint.isCompleting
            || plan.count == 1 && !dialect.endsByRequest(plan) && checkpoint.mayBeWhole
        switch try await dialect.resumption(piece(plan), isPerhapsThere: isPerhapsThere) {
        case .goesOn: break
        case .finished(let object): throw Exit.finished(object)
        case .lost(let reason): throw try await renewed(reason)
        }
        if !dialect.repeatsSafely, let sending = checkpoint.partInDoubt, accepted[sending] == nil,
            !checkpoint.has(\.finishedPart)
        {
            if checkpoint.mayBeWhole, !dialect.endsByRequest(plan) { checkpoint.mayBeDoubled = true }
            let answer = (checkpoint.refusedMessage ?? checkpoint.unclearEnd).map { " (\($0))" } ?? ""
            throw try await renewed(
                "it is not known whether part \(sending + 1) has arrived\(answer), and this server takes no part twice",
                cause: .interruption)
        }
        return plan
    }

    /// The plan with which the upload was begun.
    var storedPlan: PartPlan? { checkpoint.plan(of: order) }

    private func create() async throws -> PartPlan {
        let plan = try dialect.plan(order)
        checkpoint.set(plan, order)
        let restarts = max(checkpoint.restarts ?? 0, checkpoint.beginnings ?? 0)
        if let object = try await dialect.chooseName(order, plan, &checkpoint, restarts: restarts) {
            throw Exit.finished(object)
        }
        let before = checkpoint
        if dialect.opensByRequest {
            if checkpoint.isCreating { checkpoint.increment(\.orphans) }
            checkpoint.isCreating = true
            try await reporter.record(checkpoint.stored)
        }
        do { try await dialect.begin(order, plan, &checkpoint) } catch let error as UploadError {
            if error.failure.code == .creationsUnknown {
                // No request was sent: the uncertainty is as before.
                checkpoint = before
                try await reporter.record(checkpoint.stored)
            } else if error.leavesNothingBehind, dialect.opensByRequest {
                checkpoint.isCreating = false
                try await reporter.record(checkpoint.stored)
            }
            throw error
        }
        checkpoint.isCreating = false
        checkpoint.isBegun = true
        // Recorded before the first byte: without a recorded name the upload would be paid for and lost.
        bounds = PartsBounds(PartsCheckpoint(), count: plan.count, tracksReach: dialect.tracksReach)
        try await record()
        if dialect.opensByRequest, let name = dialect.name(of: checkpoint) {
            try await reporter.recordName(name.id, at: name.url)
        }
        accepted = [:]
        acked = 0
        isResuming = false
        return plan
    }

    // MARK: The remote's parts

    /// Handles an upload with all parts at the remote whose last part was refused.
    private func judgeRefusal(_ plan: PartPlan) async throws {
        guard dialect.onlyCounts, checkpoint.has(\.refusedStatus) else { return }
        // The refusal stands until a part is accepted again: a later answer that one is missing may be an old one.
        guard missing(of: plan).isEmpty else { return }
        if engine.finalError == .fail, let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure) {
            throw refusal
        }
    }

    private func reconcile(_ plan: PartPlan) async throws {
        try await queryHeldParts(plan)
        // A remote that has completed the file has no parts of it any more, or all of them.
        if dialect.inquiry != .none, !accepted.isEmpty, accepted[plan.count - 1] == nil { wasPerhapsWhole = false }
    }

    private func queryHeldParts(_ plan: PartPlan) async throws {
        switch dialect.inquiry {
        case .none: return
        // There is nothing to ask for before the first part.
        case .list:
            guard order.partsCheckpoint.isBegun || renewals > 0 else { return }
            try await acceptHeldParts(Array(0..<plan.count), plan)
        case .each:
            let known = accepted.keys.sorted()
            let ends = Set([known.first, known.last].compactMap { $0 }).sorted()
            if !ends.isEmpty, try await acceptHeldParts(ends, plan) < ends.count {
                try await acceptHeldParts(known, plan)
            }
            // Queries beyond the known parts while the remote has more.
            var next = 0
            while true {
                let batch = Array(missing(of: plan).filter { $0 >= next }.prefix(engine.parallel))
                guard let last = batch.last, try await acceptHeldParts(batch, plan) == batch.count else { return }
                next = last + 1
            }
        }
    }

    /// Queries these parts, and uses the remote's answer.
    ///
    /// - Returns: How many of them it has.
    @discardableResult
    private func acceptHeldParts(_ indices: [Int], _ plan: PartPlan) async throws -> Int {
        guard !indices.isEmpty else { return 0 }
        let held: [AcknowledgedPart]
        switch try await dialect.held(among: indices, piece(plan)) {
        case .parts(let parts): held = parts
        case .unknown: return indices.count { accepted[$0] != nil }
        case .gone(let error): throw try await afterGone(error)
        }
        var found: [Int: AcknowledgedPart] = [:]
        for part in held where part.index >= 0 && part.index < plan.count && plan[part.index].length == part.size {
            found[part.index] = part
        }
        // Another upload of the same file may have this name, and may have been refused: the last part has to leave
        // here.
        if dialect.sharesName(plan), !bounds.mayBeWhole, !checkpoint.mayEndHaveLeft,
            found.removeValue(forKey: plan.count - 1) != nil
        {
            checkpoint.wasHeldBefore = true
        }
        // A part with another tag than the acknowledged one is another part.
        let lost = indices.filter { index in
            guard let mine = accepted[index] else { return false }
            guard let theirs = found[index] else { return true }
            return !mine.tag.isEmpty && !theirs.tag.isEmpty && !dialect.isSame(mine.tag, theirs.tag)
        }
        var new: [AcknowledgedPart] = []
        for part in indices.compactMap({ accepted[$0] == nil ? found[$0] : nil })
        where try await dialect.confirmsContent(for: part, plan[part.index], piece(plan)) { new.append(part) }
        if let alien = new.first(where: { !bounds.mayHaveLeft($0.index) }) {
            // Another writer's parts are not removed.
            checkpoint.isOfAnotherWriter = true
            throw try await renewed(
                "the server has part \(alien.index + 1), which was never sent from here: there is a second writer",
                isGone: true)
        }
        // The remote says that it has the last part, and no answer to that part was received.
        if dialect.onlyCounts, !dialect.endsByRequest(plan), new.contains(where: { $0.index == plan.count - 1 }),
            checkpoint.unclearEnd == nil, !checkpoint.has(\.refusedStatus)
        {
            checkpoint.isEndUnanswered = true
            try await record()
        }
        if !lost.isEmpty || !new.isEmpty { try await note(new, lost: lost) }
        if indices.contains(where: { accepted[$0] == nil }) { bounds.recordMissing() }
        return indices.count { accepted[$0] != nil }
    }

    /// Records which parts the remote has and lacks.
    func note(_ parts: [AcknowledgedPart], lost: [Int] = []) async throws {
        for index in lost { if let part = accepted.removeValue(forKey: index) { acked -= part.size } }
        for part in parts {
            acked += part.size - (accepted[part.index]?.size ?? 0)
            accepted[part.index] = part
            bounds.accepted(part.index)
        }
        flight.acknowledge(acked, ended: parts.map(\.index))
        try await reporter.recordParts(parts, lost: lost, acked: acked)
    }

    /// Checks that the staged copy is still the file from the beginning of the attempt.
    func checkCopy() async throws {
        guard try await order.file.checkStatus(dialect.failure).hasSameContent(as: status) else {
            throw order.file.changed("is another file than it was a moment ago", dialect.failure)
        }
    }

    // MARK: Starting again

    /// Handles a remote that does not know the upload.
    func afterGone(_ error: UploadError) async throws -> any Error {
        guard let plan = plan ?? storedPlan else { return error }
        if let object = try await dialect.found(piece(plan)) { return Exit.finished(object) }
        if engine.finalError == .fail, dialect.onlyCounts,
            let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure),
            refusal.failure.http.map({ ![404, 410].contains($0) }) ?? true
        {
            return refusal
        }
        if acked >= Self.muchProgress, checkpoint.increment(\.goneAnswers) < 3 {
            try await record()
            let words = "the upload with \(acked) bytes is not found; asking again"
            return dialect.error(.transient, .uploadMissing, words, .pending(after: .seconds(15)))
        }
        // If the remote got the request to assemble the file, it has all parts.
        let isCompleting = checkpoint.isCompleting
        let isAbsent = isPerhapsWhole ? try await dialect.isAbsent(piece(plan)) : false
        if isAbsent, renewals == 0, order.partsCheckpoint.isCompleting { checkpoint.wasReuploaded = true }
        if isAbsent || !bounds.mayBeWhole && !isCompleting {
            return try await renewed("the server no longer knows it", isGone: true, isWanted: true)
        }
        if engine.gone == .assumeComplete, bounds.isDelivered || isCompleting, !checkpoint.has(\.refusedStatus) {
            return Exit.finished(
                RemoteObject(
                    id: nil, url: nil, verifiedBy: "assumption", warnings: [FinalAnswer.assumption] + warnings))
        }
        if engine.gone == .hold || checkpoint.wasReuploaded {
            checkpoint.givenUpIn = order.generation
            try await record()
            return dialect.error(
                .protocol, .outcomeUnknown,
                "the upload is gone after its last byte may have been sent: it may be finished or lost"
                    + FinalAnswer.doubts(checkpoint).map { "; " + $0 }.joined(), .failUpload)
        }
        checkpoint.wasReuploaded = true
        return try await renewed("it is gone after its last byte may have been sent", isGone: true)
    }

    /// With this many acknowledged bytes, a single 404 does not discard them: a proxy may have lost its backend.
    private static let muchProgress: Int64 = 64 << 20
    /// After this many starts from the first part, the file is refused.
    static let maxRestarts: Int64 = 10

    /// Whether the file has to be looked for, even if a later attempt does not continue this one.
    var isPerhapsWhole: Bool {
        let endsByRequest = storedPlan.map { dialect.endsByRequest($0) } ?? dialect.completesByRequest
        return checkpoint.isCompleting || checkpoint.mayBeWhole && !endsByRequest
    }

    /// The cause of a new start.
    enum RenewalCause: Sendable {
        case remote, interruption
        /// The file's name belongs to another file. The next start has another name, and no reason to wait.
        case nameTaken
    }
    /// Names that one attempt may find taken.
    private static let maxTakenNames = 2

    /// Forgets the upload; the next run starts a new one.
    ///
    /// - Parameters:
    ///   - isGone: The server says that there is nothing.
    ///   - isWanted: Nothing went wrong: it does not count as a failure.
    func renewed(
        _ reason: String, isGone: Bool = false, isWanted: Bool = false, cause: RenewalCause = .remote
    ) async throws -> any Error {
        let old = checkpoint
        checkpoint = PartsCheckpoint(old.stored.keeping(PartsCheckpoint.lasting + dialect.lasting))
        // The remote may have the upload although it was given up.
        if FinalAnswer.isFromEarlierGeneration(old, order) {
            checkpoint.wasReuploaded = old.has(\.givenUpIn)
            checkpoint.denials = nil
            checkpoint.refusedBefore = old.text(of: \.refusedStatus) ?? checkpoint.refusedBefore
        }
        // Network interruptions are never blamed on the file.
        let restarts = isWanted || cause == .interruption ? 0 : checkpoint.increment(\.restarts)
        checkpoint.increment(\.beginnings)
        let lost = isGone && isWanted ? checkpoint.increment(\.losses) : checkpoint.losses ?? 0
        let wasBegun = old.isBegun
        // Also where the server said that it knows of none: it may be wrong, and a missing object is success.
        let isOthers = old.isOfAnotherWriter
        let remains = wasBegun && dialect.canAbort && dialect.isOurs(old) && !isOthers ? old : nil
        if wasBegun, !isGone, remains == nil { checkpoint.increment(\.remains) }
        if isOthers { FinalAnswer.recordLeft(dialect.name(of: old)?.id, in: &checkpoint) }
        accepted = [:]
        acked = 0
        flight.clear()
        try await reporter.renewed(checkpoint.stored, leaving: remains?.stored)
        if restarts > Self.maxRestarts {
            return dialect.error(
                .protocol, .uploadLost,
                "it was begun \(restarts) times and not finished, now because \(reason)"
                    + FinalAnswer.doubts(checkpoint).map { "; " + $0 }.joined(), .failUpload)
        }
        renewals += 1
        if renewals > (cause == .nameTaken ? Self.maxTakenNames : 1) {
            return dialect.error(
                .protocol, .uploadLost, "the upload was lost twice in a row: \(reason)",
                .pending(after: Backoff.ofLosses(max(restarts, checkpoint.restarts ?? 0) + lost)))
        }
        return Exit.renewed
    }

    /// Warnings for a person about a completed file.
    var warnings: [String] { PartsWarnings.of(checkpoint) }
}
