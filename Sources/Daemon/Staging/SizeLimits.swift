internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Finds files that are larger than the only destination takes that they go to, before they are copied.
///
/// A destination is asked at most once an hour, and again before a file is refused. An answer that does not come delays
/// no other file: the file is copied, and its upload reports the limit.
actor SizeLimits {
    private struct Answer {
        /// `nil` for no limit, or none that is known.
        var limit: Int64?
        var askedAt: MonotonicTime
        /// `nil`: it has not answered yet.
        var answeredAt: MonotonicTime?
        /// Until then it is not asked again for a file that fits.
        var until: MonotonicTime
        /// Of the settings.
        var since: WallTime
    }

    private let context: Context
    private let scheduler: Scheduler
    private var answers: [String: Answer] = [:]

    private static let lasting = Duration.seconds(3600)
    private static let retry = Duration.seconds(600)
    /// A younger answer is enough to refuse a file.
    private static let fresh = Duration.seconds(60)

    init(context: Context, scheduler: Scheduler) {
        self.context = context
        self.scheduler = scheduler
    }

    /// The failure of a file that would be copied in vain; `nil` for any other.
    func refusal(of asset: AssetRecord) async throws -> Failure? {
        // The size of an export is not known before.
        let limited = context.destinations.filter { $0.value.limitsSize }
        if limited.isEmpty || asset.stagingMode == .export { return nil }
        // A small copy costs less than a request.
        let isSmall = asset.size <= StagingAdmission.smallFile
        if isSmall, !limited.contains(where: { known($0.key, $0.value) ?? .max < asset.size }) { return nil }
        let uploads = try await context.store.read { try $0.uploads.of(asset.id) }.filter { !$0.state.isTerminal }
        guard let first = uploads.first, uploads.allSatisfy({ $0.destination == first.destination }),
            let destination = limited[first.destination]
        else { return nil }
        let name = first.destination
        let since = context.configuration.value.since
        // A reload may have changed the server.
        if answers[name]?.since != since { answers[name] = nil }
        let now = context.clocks.monotonic()
        var limit = known(name, destination)
        let answer = answers[name]
        func isFresh(_ time: MonotonicTime?) -> Bool { time.map { now.since($0) <= Self.fresh } ?? false }
        if let old = limit, asset.size > old {
            if !isFresh(answer?.answeredAt) {
                // An old limit refuses no file: the server may take larger ones by now.
                guard !isFresh(answer?.askedAt), await ask(name, destination, first.files, since) else { return nil }
                limit = known(name, destination)
            }
        } else if !isSmall, answer.map({ now >= $0.until }) ?? true {
            guard await ask(name, destination, first.files, since) else { return nil }
            limit = known(name, destination)
        }
        guard let limit, asset.size > limit else { return nil }
        return Failure(
            .permanent, code: .maxSizeExceeded,
            message:
                "\(name): the file has \(asset.size) bytes, and the server takes at most \(limit); it was not copied into "
                + "the staging folder",
            at: context.clocks.wall(), retryable: false)
    }

    /// What the destination has said, to uploads or to a question here.
    private func known(_ name: String, _ destination: any Destination) -> Int64? {
        destination.sizeLimit ?? answers[name]?.limit
    }

    /// - Returns: Whether an answer came.
    private func ask(
        _ name: String, _ destination: any Destination, _ files: FileClass, _ since: WallTime
    ) async -> Bool {
        let now = context.clocks.monotonic()
        let earlier = answers[name]
        // Other workers do not wait for the same answer.
        answers[name] = Answer(
            limit: earlier?.limit, askedAt: now, answeredAt: earlier?.answeredAt,
            until: now.advanced(by: Self.retry), since: since)
        let asked = await scheduler.requests.run(.space(files: [files]), at: name) { permit in
            let context = RequestContext(permit: permit, headers: [:])
            do throws(UploadError) {
                return Result<Int64?, UploadError>.success(try await destination.querySizeLimit(context: context))
            } catch { return .failure(error) }
        }
        switch asked {
        // A later file asks when policy permits it.
        case .failure: answers[name] = earlier
        case .success(let ended):
            switch ended.answer {
            case .success(let limit):
                answers[name] = Answer(
                    limit: limit, askedAt: now, answeredAt: now, until: now.advanced(by: Self.lasting), since: since)
                return true
            case .failure(let error):
                context.log.debug(
                    "cannot read the size limit of a destination",
                    ["destination": name, "reason": error.failure.message])
            }
        }
        return false
    }
}
