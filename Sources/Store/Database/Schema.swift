internal import CSQLite
internal import Core

/// The database's schema, as numbered steps. `PRAGMA user_version` is the number of steps taken.
///
/// A step that was released is never edited: the next change is the next step.
enum Schema {
    /// `PRAGMA application_id`: "slui" in ASCII.
    private static let mark: Int64 = 0x736C_7569
    static let steps: [String] = [
        first, media, stagingMode, partDigests, named, trouble, namedAddress, leftThere, sources,
        stepLinks, received, waste, furthest, failingTime, cards, masks, stepQuotas,
        interfaceCounts, alternatives, groupNames, checkpointExpiry, displacedTombstones,
    ]
    /// SQLITE_MISUSE: the code of the error for a database that a newer version wrote.
    static let tooNew: Int32 = 21

    /// Takes the steps that `connection` has not taken yet, each in its own transaction.
    ///
    /// - Parameter mayBegin: Whether an empty database counts as a new one; otherwise it has lost its contents.
    /// - Throws: ``StoreError`` with `SQLITE_MISUSE` when a newer version wrote the file.
    static func migrate(_ connection: Connection, mayBegin: Bool) throws(StoreError) {
        let objects = try connection.first("SELECT count(*) FROM sqlite_schema") { $0.integer(0) } ?? 0
        if objects > 0 || !mayBegin { try verify(connection) }
        for number in try version(of: connection)..<steps.count {
            // The text stands on lines of its own: a comment at the end of a step would hide the rest.
            try connection.execute(
                "BEGIN IMMEDIATE;\n\(steps[number])\nPRAGMA user_version = \(number + 1); COMMIT;")
        }
        // Databases older than this mark have none.
        let id = try connection.first("PRAGMA application_id") { $0.integer(0) }
        if id != mark { try connection.execute("PRAGMA application_id = \(mark)") }
    }

    private static func version(of connection: Connection) throws(StoreError) -> Int {
        let taken = try connection.first("PRAGMA user_version") { Int($0.integer(0)) } ?? 0
        guard taken <= steps.count else {
            throw StoreError(
                code: tooNew,
                message:
                    "the database is of version \(taken), this program knows versions up to \(steps.count): use the newer program, or another state folder",
                sql: "PRAGMA user_version")
        }
        return taken
    }

    /// Refuses a database that is not ours, or lacks a part of its schema.
    ///
    /// Cheap enough for every start: it reads a few pages. A damaged page of rows is noticed when it is read.
    static func verify(_ connection: Connection) throws(StoreError) {
        func refuse(_ what: String) -> StoreError {
            StoreError(code: SQLITE_CORRUPT, message: what, sql: "SELECT FROM sqlite_schema")
        }
        let id = try connection.first("PRAGMA application_id") { $0.integer(0) } ?? 0
        guard id == 0 || id == mark else { throw refuse("it is the database of another program") }
        let taken = try version(of: connection)
        guard taken > 0 else { throw refuse("its version is missing") }
        let model = try Connection(path: ":memory:")
        for number in 0..<taken { try model.execute(steps[number]) }
        let parts = "SELECT type || ' ' || name, sql FROM sqlite_schema"
        let found = Dictionary(
            try connection.all(parts) { ($0.text(0), $0.optionalText(1)) }, uniquingKeysWith: { first, _ in first })
        for (name, sql) in try model.all(parts, [], { ($0.text(0), $0.optionalText(1)) }) {
            guard let there = found[name] else { throw refuse("the \(name) is missing") }
            guard there == sql else { throw refuse("the \(name) has another form than this program's") }
        }
    }

    private static let first = """
        -- One finished file as seen once.
        CREATE TABLE asset (
            id INTEGER PRIMARY KEY AUTOINCREMENT,  -- also the name of its staged copy; never used again
            folder TEXT NOT NULL,
            root BLOB NOT NULL,                    -- the folder's path when it was seen
            relative BLOB NOT NULL,                -- path below root, bytes
            size INTEGER NOT NULL,                 -- bytes
            modified INTEGER NOT NULL,             -- mtime, ns since 1970
            changed INTEGER NOT NULL,              -- ctime, ns since 1970
            inode INTEGER,                         -- NULL where the file system does not keep it
            born INTEGER,                          -- birth time, ns since 1970
            file_system TEXT,                      -- UUID or mount source, never a device number
            settled_by TEXT NOT NULL,
            state TEXT NOT NULL,                   -- AssetState
            sha256 BLOB,                           -- of the staged bytes
            action TEXT NOT NULL,                  -- keep | leave | delete | move
            target TEXT,                           -- template, for move
            source_state TEXT NOT NULL,            -- SourceState
            source_note TEXT,                      -- what happened to the source, or why not
            unit INTEGER,                          -- those that travel together have the id of the first of them
            priority INTEGER NOT NULL,
            sort INTEGER NOT NULL,                 -- that of the first of its uploads
            arrived_at INTEGER NOT NULL,           -- ms since 1970
            staged_at INTEGER,
            kept_at INTEGER,                       -- since when it is verified and may go one day, ms since 1970
            due INTEGER NOT NULL DEFAULT 0         -- 1: its uploads are over, the release is to look at it
        ) STRICT;
        CREATE INDEX asset_relative ON asset (relative);
        -- Files that are to settle again are few, whatever waits to be copied.
        CREATE INDEX asset_unsettled ON asset (id) WHERE state = 'unsettled';
        -- By the last name of the path.
        CREATE INDEX asset_leaf ON asset (\(leaf));
        CREATE INDEX asset_due ON asset (id) WHERE due = 1;
        CREATE INDEX asset_unit ON asset (unit) WHERE unit IS NOT NULL;
        -- The oldest of a folder go first.
        CREATE INDEX asset_kept ON asset (folder, kept_at) WHERE kept_at IS NOT NULL;

        -- An asset on its way to one destination.
        CREATE TABLE upload (
            id TEXT PRIMARY KEY,                   -- ULID
            asset INTEGER NOT NULL REFERENCES asset (id),
            folder TEXT NOT NULL,
            destination TEXT NOT NULL,
            name BLOB NOT NULL,                    -- remote name, bytes
            media_type TEXT NOT NULL,
            key TEXT,
            context TEXT NOT NULL,                 -- JSON object of texts
            metadata TEXT NOT NULL,                -- JSON object of texts
            headers TEXT NOT NULL,                 -- JSON object of texts: further request headers, until it is complete
            url TEXT,                              -- where to create it, in place of the destination's own address
            size INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            rank INTEGER NOT NULL,                 -- -priority: lower goes first
            sort INTEGER NOT NULL,                 -- by the configured order: lower goes first
            state TEXT NOT NULL,                   -- UploadState
            generation INTEGER NOT NULL,
            attempt INTEGER NOT NULL,              -- attempts used in this generation
            paused_at INTEGER,                     -- operator hold, ms since 1970
            backoff_until INTEGER NOT NULL,        -- boot-time ns; cleared at start
            lease_owner TEXT,
            leased_at INTEGER,
            acked INTEGER NOT NULL,                -- bytes that the server confirmed
            sent INTEGER NOT NULL DEFAULT 0,       -- bytes up to which it was sent when its last attempt ended
            remote TEXT,                           -- JSON, RemoteObject
            remote_delete TEXT,                    -- none | pending | done | unsupported
            approved INTEGER,                      -- the generation that `before_upload` has let go; negative, skipped
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            finished_at INTEGER,
            ended TEXT,                            -- the list that it has left, of one that is removed
            ran_at INTEGER                         -- when it was over, by the time that the daemon has run, ms
        ) STRICT, WITHOUT ROWID;
        -- By class, so that a folder that is passed over is not read through.
        CREATE INDEX upload_next ON upload (destination, folder, rank, sort, id, backoff_until)
            WHERE state = 'queued' AND paused_at IS NULL;
        CREATE INDEX upload_class ON upload (destination, folder, state, id);
        CREATE INDEX upload_paused ON upload (id) WHERE paused_at IS NOT NULL;
        CREATE INDEX upload_asset ON upload (asset);
        CREATE INDEX upload_list ON upload (state, id);
        -- Those that are over, by their age.
        CREATE INDEX upload_age ON upload (state, ran_at) WHERE ran_at IS NOT NULL;
        -- By what the remote calls it.
        CREATE INDEX upload_remote_id ON upload (\(remoteName("id"))) WHERE remote IS NOT NULL;
        CREATE INDEX upload_remote_url ON upload (\(remoteName("url"))) WHERE remote IS NOT NULL;
        CREATE INDEX upload_backoff ON upload (backoff_until) WHERE backoff_until > 0;
        CREATE UNIQUE INDEX upload_key ON upload (key, destination)
            WHERE key IS NOT NULL AND state IN ('staging', 'queued', 'uploading');
        CREATE INDEX upload_by_key ON upload (key) WHERE key IS NOT NULL;

        -- What a destination needs to go on after a crash.
        CREATE TABLE checkpoint (
            upload TEXT PRIMARY KEY REFERENCES upload (id),
            body TEXT NOT NULL                     -- JSON object of texts
        ) STRICT, WITHOUT ROWID;

        -- What the remote has acknowledged of an upload that goes in numbered parts: a row each, so that one more costs
        -- one more, however many there are.
        CREATE TABLE part (
            upload TEXT NOT NULL REFERENCES upload (id),
            number INTEGER NOT NULL,               -- from 0
            size INTEGER NOT NULL,                 -- bytes
            tag TEXT NOT NULL,                     -- what the remote wants to hear of it in the end
            PRIMARY KEY (upload, number)
        ) STRICT, WITHOUT ROWID;
        -- Parts are of what the checkpoint names, and mean nothing without it. (A checkpoint that is replaced is not deleted.)
        CREATE TRIGGER part_out AFTER DELETE ON checkpoint BEGIN
            DELETE FROM part WHERE upload = old.upload;
        END;

        -- What went wrong, newest last; the last one of a failed upload is why it failed.
        CREATE TABLE failure (
            id INTEGER PRIMARY KEY,
            upload TEXT NOT NULL REFERENCES upload (id),
            generation INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            body TEXT NOT NULL                     -- JSON, Failure
        ) STRICT;
        CREATE INDEX failure_upload ON failure (upload, id);

        -- What was sent, retransmissions included: a row for an hour, and for a whole day of what is long ago.
        CREATE TABLE usage (
            hour INTEGER NOT NULL,                 -- when it began, by the clock on the wall, ms since 1970
            ends INTEGER NOT NULL,                 -- and when it ended
            destination TEXT NOT NULL,
            folder TEXT NOT NULL,                  -- empty: for no file
            network TEXT NOT NULL,                 -- NetworkClass
            bytes INTEGER NOT NULL,
            files INTEGER NOT NULL,
            counted INTEGER,                       -- another hour in which it counts: its own was still to come then
            PRIMARY KEY (hour, destination, folder, network)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX usage_counted ON usage (counted) WHERE counted IS NOT NULL;

        -- What transfers that run may send, and perhaps have: sent, for all that is known after a crash.
        CREATE TABLE usage_step (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            hour INTEGER NOT NULL,
            destination TEXT NOT NULL,
            folder TEXT NOT NULL,
            network TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            files INTEGER NOT NULL
        ) STRICT;

        -- What stops a file from being picked up again: one row a path, of the version seen last.
        CREATE TABLE tombstone (
            folder TEXT NOT NULL,
            relative BLOB NOT NULL,
            size INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            inode INTEGER,
            born INTEGER,
            file_system TEXT,
            asset INTEGER,                         -- NULL: was there before the folder was watched
            sha256 BLOB,                           -- once an upload of it is complete
            seen_at INTEGER NOT NULL,              -- ms since 1970, renewed while the source stands
            PRIMARY KEY (folder, relative)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX tombstone_seen ON tombstone (seen_at);

        -- One compact row for each finished upload.
        CREATE TABLE history (
            id INTEGER PRIMARY KEY,
            upload TEXT NOT NULL,
            generation INTEGER NOT NULL,
            key TEXT,
            folder TEXT NOT NULL,
            relative BLOB NOT NULL,
            size INTEGER NOT NULL,
            sha256 BLOB,
            destination TEXT NOT NULL,
            remote TEXT,
            remote_id TEXT,                        -- the destination's name for it, where it has one
            outcome TEXT NOT NULL,
            code TEXT,
            attempts INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            finished_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX history_upload ON history (upload);
        CREATE INDEX history_remote ON history (destination, remote_id) WHERE remote_id IS NOT NULL;
        -- By content and path: a million files of the same content are not looked through for one path.
        CREATE INDEX history_content ON history (sha256, destination, folder, relative) WHERE outcome = 'completed';

        -- Every transition, written in the transaction that makes it.
        CREATE TABLE event (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,                   -- ms since 1970
            type TEXT NOT NULL,
            upload TEXT,
            detail TEXT NOT NULL                   -- JSON object of texts
        ) STRICT;

        -- How far each hook was told of events.
        CREATE TABLE hook (
            name TEXT PRIMARY KEY,
            seq INTEGER NOT NULL                   -- of the last event that is told, waits in `notice`, or was not wanted
        ) STRICT, WITHOUT ROWID;

        -- What hooks are still to be told.
        CREATE TABLE notice (
            hook TEXT NOT NULL,
            seq INTEGER NOT NULL,                  -- of the event
            at INTEGER NOT NULL,                   -- of the event, ms since 1970
            upload TEXT,
            body TEXT NOT NULL,                    -- the event as JSON
            tries INTEGER NOT NULL,
            waited INTEGER NOT NULL,               -- ms of our own time until the last try
            PRIMARY KEY (hook, seq)
        ) STRICT, WITHOUT ROWID;

        -- Remote remains of cancelled uploads, and of beginnings that others took the place of: to be removed.
        CREATE TABLE remote_delete (
            id INTEGER PRIMARY KEY,
            upload TEXT NOT NULL,
            destination TEXT NOT NULL,
            checkpoint TEXT NOT NULL,
            tries INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            earlier INTEGER NOT NULL               -- 1: the upload went on without them
        ) STRICT;

        -- Pauses that a person set: scope 'all', 'folder' or 'destination'.
        CREATE TABLE pause (
            scope TEXT NOT NULL,
            name TEXT NOT NULL,
            since INTEGER NOT NULL,
            until INTEGER,
            PRIMARY KEY (scope, name)
        ) STRICT, WITHOUT ROWID;

        -- What a person lets something off for a while: scope 'upload' or 'folder', kind of Core.Excuse; and with scope 'all'
        -- and kind 'rate' a limit in bytes a second.
        CREATE TABLE exception (
            scope TEXT NOT NULL,
            name TEXT NOT NULL,
            kind TEXT NOT NULL,
            since INTEGER NOT NULL,
            until INTEGER NOT NULL,
            who TEXT NOT NULL,
            value INTEGER,
            PRIMARY KEY (scope, name, kind)
        ) STRICT, WITHOUT ROWID;

        -- Numbers of assets whose bytes are still coming in: nobody was told that they are taken.
        CREATE TABLE reception (asset INTEGER PRIMARY KEY) STRICT;

        -- Whose turn it is, of the folders that have something to send to one destination, or to be copied.
        CREATE TABLE turn (
            destination TEXT NOT NULL,             -- '' for copies into staging
            folder TEXT NOT NULL,
            last INTEGER NOT NULL,                 -- number of its last turn there, from 1
            PRIMARY KEY (destination, folder)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

        -- How many uploads stand where, so that `status` counts no rows. Kept by triggers: whoever changes an upload
        -- changes the tally in the same transaction and cannot forget it.
        CREATE TABLE tally (
            destination TEXT NOT NULL,
            state TEXT NOT NULL,
            folder TEXT NOT NULL,
            uploads INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (destination, state, folder)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER tally_in AFTER INSERT ON upload BEGIN
            INSERT INTO tally VALUES (new.destination, new.state, new.folder, 1, new.size)
            ON CONFLICT DO UPDATE SET uploads = uploads + 1, bytes = bytes + new.size;
        END;
        CREATE TRIGGER tally_out AFTER DELETE ON upload BEGIN
            UPDATE tally SET uploads = uploads - 1, bytes = bytes - old.size
            WHERE destination = old.destination AND state = old.state AND folder = old.folder;
        END;
        CREATE TRIGGER tally_move AFTER UPDATE OF state, size ON upload
        WHEN old.state <> new.state OR old.size <> new.size BEGIN
            UPDATE tally SET uploads = uploads - 1, bytes = bytes - old.size
            WHERE destination = old.destination AND state = old.state AND folder = old.folder;
            INSERT INTO tally VALUES (new.destination, new.state, new.folder, 1, new.size)
            ON CONFLICT DO UPDATE SET uploads = uploads + 1, bytes = bytes + new.size;
        END;

        -- Bytes of staged copies, in the same manner.
        CREATE TABLE staged_total (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL) STRICT;
        INSERT INTO staged_total VALUES (1, 0);
        CREATE TRIGGER staged_move AFTER UPDATE OF state, size ON asset BEGIN
            UPDATE staged_total SET bytes = bytes
                - CASE WHEN old.state = 'staged' THEN old.size ELSE 0 END
                + CASE WHEN new.state = 'staged' THEN new.size ELSE 0 END;
        END;
        """

    /// The remote's name for an upload, in SQL over a row of `upload`; `NULL` for a damaged text. The index and the
    /// query use the same text.
    static func remoteName(_ field: String) -> String {
        "CASE WHEN json_valid(remote) THEN json_extract(remote, '$.\(field)') END"
    }

    /// The last component of an asset's path, in SQL over a row of `asset`: the rest after removing everything up to
    /// the last `/`. The index and the query use the same text, or SQLite does not match them.
    static let leaf = """
        substr(relative, 1 + length(CAST(rtrim(CAST(relative AS TEXT), replace(CAST(relative AS TEXT), '/', '')) AS BLOB)))
        """
}
