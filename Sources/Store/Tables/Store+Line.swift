internal import Core

// The queue of claims for a destination.

extension Store {
    /// The next uploads of the folders that wait for one destination, for the length of a transaction. A folder that is
    /// passed over is not read through, however many uploads it has, and after a claim only its own folder is queried
    /// again.
    struct Line {
        let destination: String
        /// Folders that skip duplicates.
        let alike: Set<String>
        /// Free bytes at the destination; `nil` when unknown.
        fileprivate var left: Int64?
        /// Folders of which only begun uploads may go.
        fileprivate let begunOnly: Set<String>
        /// Boot-time ns.
        let now: Int64
        /// By folder.
        fileprivate var offers: [String: FolderTurns.Offer<String>] = [:]

        var isEmpty: Bool { offers.isEmpty }

        /// A begun upload may have its space there already, and is not checked.
        func hasRoom(for candidate: Candidate) -> Bool {
            left.map { candidate.checkpoint != nil || candidate.missing <= $0 } ?? true
        }

        mutating func took(_ candidate: Candidate) { left = left.map { max(min($0, 0), $0 - candidate.missing) } }
    }

    /// An upload with the data that its claim needs.
    struct Candidate {
        let upload: UploadRecord
        let asset: AssetRecord
        let checkpoint: Checkpoint?
        var missing: Int64 { upload.missing }
        /// Begun uploads, and those in place, go alone: a source in place is checked, which is done for each file by
        /// itself.
        var goesAlone: Bool { checkpoint != nil || asset.stagingMode == .inPlace }
    }

    /// - Parameters:
    ///   - isOpen: Whether uploads of a folder may be claimed.
    ///   - begunOnly: Folders of which only begun uploads may be claimed.
    ///   - left: Free bytes at the destination; `nil` when unknown.
    ///   - alike: Folders that skip duplicates.
    func line(
        to destination: String, from isOpen: (String) -> Bool, begunOnly: Set<String> = [], within left: Int64?,
        alike: [String], _ now: Int64
    ) throws -> Line {
        var line = Line(
            destination: destination, alike: Set(alike), left: left, begunOnly: begunOnly, now: now)
        let folders = try connection.all(
            "SELECT folder FROM tally WHERE destination = ?1 AND state = 'queued' AND uploads > 0", [.text(destination)]
        ) { $0.text(0) }
        for folder in folders where isOpen(folder) { line.offers[folder] = try offer(of: folder, in: line) }
        return line
    }

    /// The upload whose turn it is. A folder that fills a bundle continues as long as its next file fits into it.
    func next(in line: Line, _ turns: FolderTurns, _ room: BatchLimits) throws -> Candidate? {
        if let same = turns.again(line.offers.values), let candidate = try candidate(same.id),
            room.joins(
                size: candidate.asset.stagedSize, isBegun: candidate.goesAlone, of: candidate.upload.folder)
        {
            return candidate
        }
        return try turns.next(line.offers.values).flatMap { try candidate($0.id) }
    }

    /// Removes the first of `folder` from the line. Other uploads that skip duplicates may have to wait for it now.
    func leave(_ line: inout Line, _ folder: String) throws {
        for other in line.offers.keys where other == folder || line.alike.contains(other) {
            line.offers[other] = try offer(of: other, in: line)
        }
    }

    private func offer(of folder: String, in line: Line) throws -> FolderTurns.Offer<String>? {
        // Few are begun, however many wait.
        let isBegunOnly = line.begunOnly.contains(folder)
        let isNext = """
            FROM \(isBegunOnly ? "checkpoint CROSS JOIN upload ON id = checkpoint.upload" : "upload INDEXED BY upload_next")
            WHERE destination = ?1 AND folder = ?2 AND state = 'queued' AND paused_at IS NULL
            AND backoff_until <= ?3 \(line.alike.contains(folder) ? Self.isAlone : "")
            ORDER BY rank, sort, id
            """
        func first(_ sql: String, _ more: [Connection.Value] = []) throws -> FolderTurns.Offer<String>? {
            try connection.first(sql, [.text(line.destination), .text(folder), .integer(line.now)] + more) {
                FolderTurns.Offer(folder: folder, rank: $0.integer(0), id: $0.text(1))
            }
        }
        let next = try first("SELECT rank, id \(isNext) LIMIT 1")
        guard let next, let left = line.left, let candidate = try candidate(next.id), !line.hasRoom(for: candidate)
        else { return next }
        return try first(
            """
            SELECT rank, id FROM (SELECT rank, sort, id, size - acked AS missing \(isNext) LIMIT \(Self.furthestFit))
            WHERE missing <= ?4 OR EXISTS (SELECT 1 FROM checkpoint WHERE upload = id)
            ORDER BY rank, sort, id LIMIT 1
            """, [.integer(left)])
    }

    /// Uploads of a folder that are examined for one that fits: a folder with more that do not fit waits for space.
    private static let furthestFit = 200

    /// The first upload that waits for a destination only because it lacks more than `left` bytes there.
    package func first(
        waitingFor destination: String, lacking left: Int64, from isOpen: @Sendable (String) -> Bool
    ) throws -> (upload: UploadRecord, asset: AssetRecord)? {
        let line = try line(
            to: destination, from: isOpen, within: nil, alike: [], clocks.monotonic().nanoseconds)
        for offer in line.offers.values.sorted(by: { ($0.rank, $0.id) < ($1.rank, $1.id) }) {
            guard let next = try candidate(offer.id), next.checkpoint == nil, next.missing > left else { continue }
            return (next.upload, next.asset)
        }
        return nil
    }

    private func candidate(_ id: String) throws -> Candidate? {
        guard let upload = try upload(id), let asset = try asset(upload.asset) else { return nil }
        return Candidate(upload: upload, asset: asset, checkpoint: try checkpoint(id))
    }
}
