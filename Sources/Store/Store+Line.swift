internal import Core

// What stands first to be claimed.

extension Store {
    /// What the folders that wait for one destination would send next, for the length of a transaction: a folder that is
    /// passed over is not read through, however many uploads it has, and after a claim only its own folder is asked again.
    struct Line {
        let destination: String
        /// Folders that skip duplicates.
        let alike: Set<String>
        /// Boot-time ns.
        let now: Int64
        /// By folder.
        fileprivate var offers: [String: FolderTurns.Offer] = [:]

        var isEmpty: Bool { offers.isEmpty }
    }

    /// An upload with what its claim needs.
    struct Candidate {
        let upload: UploadRecord
        let asset: AssetRecord
        let checkpoint: Checkpoint?
        /// What was begun, and what is uploaded in place: that is watched, which is done for each file by itself.
        var goesAlone: Bool { checkpoint != nil || asset.keeping == .inPlace }
    }

    /// - Parameters:
    ///   - closed: Folders that are passed over.
    ///   - alike: Folders that skip duplicates.
    func line(to destination: String, passingOver closed: [String], alike: [String], _ now: Int64) throws -> Line {
        var line = Line(destination: destination, alike: Set(alike), now: now)
        let folders = try connection.all(
            "SELECT folder FROM tally WHERE destination = ?1 AND state = 'queued' AND uploads > 0", [.text(destination)]
        ) { $0.text(0) }
        for folder in folders where !closed.contains(folder) { line.offers[folder] = try offer(of: folder, in: line) }
        return line
    }

    /// The upload whose turn it is. A folder that fills a bundle goes on as long as its next file goes into it.
    func next(in line: Line, _ turns: FolderTurns, _ room: TransferRoom) throws -> Candidate? {
        if let same = turns.again(line.offers.values), let candidate = try candidate(same.id),
            room.joins(
                size: candidate.asset.stagedSize, isBegun: candidate.goesAlone, of: candidate.upload.folder)
        {
            return candidate
        }
        return try turns.next(line.offers.values).flatMap { try candidate($0.id) }
    }

    /// The first of `folder` left the line. Of what skips duplicates others may have to wait for it now.
    func leave(_ line: inout Line, _ folder: String) throws {
        for other in line.offers.keys where other == folder || line.alike.contains(other) {
            line.offers[other] = try offer(of: other, in: line)
        }
    }

    private func offer(of folder: String, in line: Line) throws -> FolderTurns.Offer? {
        try connection.first(
            """
            SELECT rank, id FROM upload INDEXED BY upload_next
            WHERE destination = ?1 AND folder = ?2 AND state = 'queued' AND paused_at IS NULL
            AND backoff_until <= ?3 \(line.alike.contains(folder) ? Self.isAlone : "")
            ORDER BY rank, sort, id LIMIT 1
            """, [.text(line.destination), .text(folder), .integer(line.now)]
        ) { FolderTurns.Offer(folder: folder, rank: $0.integer(0), id: $0.text(1)) }
    }

    private func candidate(_ id: String) throws -> Candidate? {
        guard let upload = try upload(id), let asset = try asset(upload.asset) else { return nil }
        return Candidate(upload: upload, asset: asset, checkpoint: try checkpoint(id))
    }
}
