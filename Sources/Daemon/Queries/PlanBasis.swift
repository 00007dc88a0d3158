internal import Core
internal import Destinations
internal import Store

/// The inputs of a plan, from one policy snapshot and the backlog. It makes no query.
struct PlanBasis {
    /// The inputs, without rates and without an end.
    let input: Plan.Input
    /// Uploads with exemptions of their own, each planned by itself after the queues of the backlog.
    let exemptCount: Int
    /// Uploads with exemptions of their own that the backlog does not contain.
    let leftOut: Set<String>

    /// - Parameter sent: The position of a running upload; `nil` for one that is not running.
    init(_ now: PolicySnapshot, _ backlog: [ClassBacklog], sent: (_ id: String) -> Int64?) {
        let (grants, short) = (now.grants, now.quotaWaits.all)
        var exempt: [Plan.Queue] = []
        var missing = Set(grants.uploads.keys)
        let queues = backlog.map { waiting in
            var queue = Plan.Queue(
                folder: waiting.folder, destination: waiting.destination, uploads: [],
                rest: waiting.rest + waiting.unstaged)
            queue.file = now.configuration.questions.answers(in: waiting.one.mask)
            queue.grants = grants.folders[waiting.folder] ?? []
            let destination = now.configuration.destinations[waiting.destination]
            // Only their sum is known, so they are treated as files of one size.
            if queue.rest.files > 0 {
                queue.piece = destination?.uncutPiece(ofSize: queue.rest.bytes / queue.rest.files)
            }
            for upload in waiting.first {
                let planned = Plan.Upload(
                    left: max(0, upload.size - (sent(upload.id) ?? upload.sent)), priority: upload.priority,
                    isUnderWay: upload.isRunning, isBegun: upload.isBegun,
                    // An upload that has begun continues with the pieces it was cut into.
                    piece: upload.isBegun
                        ? short[upload.id].map { IndivisibleRequest(costing: $0.bytes) }
                        : destination?.uncutPiece(ofSize: upload.size))
                guard let own = grants.uploads[upload.id] else {
                    queue.uploads.append(planned)
                    continue
                }
                missing.remove(upload.id)
                var single = Plan.Queue(folder: queue.folder, destination: queue.destination, uploads: [planned])
                single.file = queue.file
                single.grants = queue.grants + own
                exempt.append(single)
            }
            return queue
        }
        var input = now.question
        input.queues = queues + exempt
        (self.input, exemptCount, leftOut) = (input, exempt.count, missing)
    }
}
