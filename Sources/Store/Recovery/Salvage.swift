package import Core
internal import Linux

// Facts that can still be read from a damaged database. Each row is checked before it counts, and none leads to a
// removal.

/// The old database's record of one upload.
package struct Evidence: Sendable, Hashable {
    package enum Stage: String, Sendable {
        /// It was verified at the destination.
        case sent
        /// It was being sent, or waited.
        case going
        /// A person paused or cancelled it.
        case cancelled
        /// The file was skipped when the folder was first watched.
        case skipped
    }
    package var stage: Stage
    package var size: Int64
    /// `nil` where the row has none.
    package var modified: Int64?
    package var sha256: [UInt8]?
    package var upload: String?
    package var remote: RemoteObject?
    package var checkpoint: Checkpoint?
    package var generation: Int
    package var acked: Int64

    /// Whether the row is about this version of the file.
    package func fits(size: Int64, modified: Int64, sha256: [UInt8]?) -> Bool {
        guard self.size == size else { return false }
        // The content decides where both digests are known; a flipped bit in a row matches no digest.
        if let mine = self.sha256, let sha256 { return mine == sha256 }
        return self.modified == modified
    }
}

/// A table of the old database, as evidence.
enum SalvageTable {
    case uploads, history, skipped, skippedEarlier

    /// Every column by the name that ``SalvagedRow`` reads it by; `?1` is the end of the last piece.
    func sql(backwards: Bool) -> String {
        let (step, order) = backwards ? ("<", "DESC") : (">", "ASC")
        switch self {
        case .uploads:
            return """
                SELECT u.id, a.folder, a.relative, u.destination,
                CASE WHEN u.ended = 'completed' THEN u.ended WHEN u.paused_at IS NULL OR u.state = 'completed' THEN u.state
                ELSE 'cancelled' END, a.size, a.modified, a.sha256, u.id, u.remote,
                (SELECT body FROM checkpoint c WHERE c.upload = u.id), u.generation, min(u.acked, a.size)
                FROM upload u CROSS JOIN asset a ON a.id = u.asset
                WHERE u.id \(step) ?1 ORDER BY u.id \(order) LIMIT 200
                """
        case .history:
            return """
                SELECT id, folder, relative, destination, outcome, size, NULL, sha256, upload, remote, NULL, generation, 0
                FROM history NOT INDEXED WHERE id \(step) ?1 AND outcome = 'completed' ORDER BY id \(order) LIMIT 200
                """
        case .skipped, .skippedEarlier:
            let table = if case .skipped = self { "tombstone" } else { "displaced_tombstone" }
            return """
                SELECT folder || char(10) || hex(relative), folder, relative, '', 'skipped', size, modified, NULL, NULL,
                NULL, NULL, 1, 0 FROM \(table) WHERE asset IS NULL AND ?1 IS NOT NULL
                """
        }
    }

    func start(backwards: Bool) -> Connection.Value {
        switch self {
        case .history: .integer(backwards ? .max : .min)
        case .uploads, .skipped, .skippedEarlier: .text(backwards ? "~" : "")
        }
    }

    /// Whether the database is to have the table: one that an earlier program left may lack the last.
    func isExpected(in connection: Connection) -> Bool {
        guard case .skippedEarlier = self else { return true }
        do {
            let query = "SELECT 1 FROM sqlite_schema WHERE name = 'displaced_tombstone'"
            return try connection.first(query) { _ in true } == true
        } catch {
            // The walk finds out, and counts the table as not read.
            return true
        }
    }
}

struct SalvagedRow: Sendable {
    let folder: String
    let relative: [UInt8]
    let destination: String
    let stage: Evidence.Stage
    let size: Int64
    let modified: Int64?
    let sha256: [UInt8]?
    let upload: String?
    let remote: String?
    let checkpoint: String?
    let generation: Int64
    let acked: Int64

    /// `nil` for a row that no program has written.
    init?(_ row: Connection.Row) {
        let state = row.text(4)
        if state == Evidence.Stage.skipped.rawValue {
            stage = .skipped
        } else {
            switch UploadState(rawValue: state) {
            case .completed: stage = .sent
            case .staging, .queued, .uploading, .failed: stage = .going
            // An upload that failed and was dismissed was not sent, as a cancelled one was not.
            case .cancelled, .removed: stage = .cancelled
            // Of a newer program: what became of it is asked of the destination.
            case nil where state.isStoredWord: stage = .going
            case nil: return nil
            }
        }
        folder = row.text(1)
        relative = row.blob(2)
        destination = row.text(3)
        size = row.integer(5)
        modified = row.optionalInteger(6)
        sha256 = row.optionalBlob(7)
        upload = row.optionalText(8)
        remote = row.optionalText(9)
        checkpoint = row.optionalText(10)
        generation = row.integer(11)
        acked = row.integer(12)
        guard !folder.isEmpty, !relative.isEmpty, size >= 0, (1...1_000_000).contains(generation),
            (0...size).contains(acked), sha256.map({ $0.count == 32 }) ?? true,
            upload.map({ UploadID($0) != nil }) ?? true, modified != nil || sha256 != nil
        else { return nil }
    }

    func insert(_ connection: Connection) throws(StoreError) {
        try connection.run(
            "INSERT INTO evidence VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            [
                .text(folder), .blob(relative), .text(destination), .text(stage.rawValue), .integer(size),
                .init(modified), .init(sha256), .init(upload), .init(remote), .init(checkpoint), .integer(generation),
                .integer(acked),
            ])
    }
}

/// Reads a table in pieces, up to its end or the first page that cannot be read.
struct SalvageWalk {
    private let table: SalvageTable
    private let connection: Connection
    private let backwards: Bool
    private var at: Connection.Value
    private var isOver = false
    private(set) var isWhole = false

    init(_ table: SalvageTable, _ connection: Connection, backwards: Bool) {
        self.table = table
        self.connection = connection
        self.backwards = backwards
        at = table.start(backwards: backwards)
    }

    mutating func next() -> [SalvagedRow]? {
        if isOver { return nil }
        var rows: [SalvagedRow] = []
        var (last, read) = (at, 0)
        let isHistory = if case .history = table { true } else { false }
        do {
            try connection.query(table.sql(backwards: backwards), [at]) { row throws(StoreError) in
                while try row.next() {
                    read += 1
                    last = isHistory ? .integer(row.integer(0)) : .text(row.text(0))
                    if let made = SalvagedRow(row) { rows.append(made) }
                }
            }
            switch table {
            case .uploads, .history: break
            // Read in one piece.
            case .skipped, .skippedEarlier: read = 0
            }
            isOver = read == 0 || rows.isEmpty && read < 200
            isWhole = isOver
        } catch {
            // Rows that were read up to there count.
            isOver = true
        }
        at = last
        return rows
    }
}

extension String {
    /// Whether it may be a word of a newer program, such as a state: damage seldom leaves one.
    var isStoredWord: Bool {
        (3...20).contains(utf8.count) && utf8.allSatisfy { $0 == UInt8(ascii: "_") || (0x61...0x7A).contains($0) }
    }
}
