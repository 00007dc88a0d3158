extension Schema {
    /// Assets that have no copy, or whose copy differs from the source's bytes.
    static let stagingMode = """
        ALTER TABLE asset ADD COLUMN keeping TEXT NOT NULL DEFAULT 'copy';  -- Keeping
        ALTER TABLE asset ADD COLUMN staged_size INTEGER;     -- bytes to upload, where these are not the source's
        ALTER TABLE asset ADD COLUMN source_sha256 BLOB;      -- of the source, where it is not what is uploaded

        -- An export takes its time and a copy does not: each is looked for without reading through the others.
        CREATE INDEX asset_to_copy ON asset (folder, priority DESC, sort, id)
            WHERE state = 'arrived' AND keeping <> 'export';
        CREATE INDEX asset_to_export ON asset (folder, priority DESC, sort, id)
            WHERE state = 'arrived' AND keeping = 'export';

        -- What is nowhere but at its source, though it is ready to be uploaded.
        CREATE INDEX asset_in_place ON asset (folder, file_system) WHERE keeping = 'in-place' AND state = 'staged';

        -- What was begun and waits again: where duplicates are skipped, others of the same content wait for it.
        CREATE INDEX upload_begun ON upload (destination, id) WHERE state = 'queued' AND started_at IS NOT NULL;

        DROP TRIGGER staged_move;
        CREATE TRIGGER staged_move AFTER UPDATE OF state, size, staged_size ON asset WHEN new.keeping <> 'in-place' BEGIN
            UPDATE staged_total SET bytes = bytes
                - CASE WHEN old.state = 'staged' THEN coalesce(old.staged_size, old.size) ELSE 0 END
                + CASE WHEN new.state = 'staged' THEN coalesce(new.staged_size, new.size) ELSE 0 END;
        END;
        """

    /// The answers of each upload's file to the questions of conditions. It is part of the class of an upload, by which
    /// claims and counts are made.
    static let masks = """
        ALTER TABLE upload ADD COLUMN mask TEXT NOT NULL DEFAULT '';
        DROP INDEX upload_next;
        CREATE INDEX upload_next ON upload (destination, folder, mask, rank, sort, id, backoff_until)
            WHERE state = 'queued' AND paused_at IS NULL;
        DROP INDEX upload_class;
        CREATE INDEX upload_class ON upload (destination, folder, state, mask, id);
        DROP TRIGGER tally_in;
        DROP TRIGGER tally_out;
        DROP TRIGGER tally_move;
        DROP TABLE tally;
        -- How many uploads stand where, so that `status` counts no rows. Triggers keep it: no statement that
        -- changes an upload can forget it.
        CREATE TABLE tally (
            destination TEXT NOT NULL,
            state TEXT NOT NULL,
            folder TEXT NOT NULL,
            mask TEXT NOT NULL,
            uploads INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (destination, state, folder, mask)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO tally SELECT destination, state, folder, mask, count(*), CAST(total(size) AS INTEGER)
        FROM upload GROUP BY 1, 2, 3, 4;
        CREATE TRIGGER tally_in AFTER INSERT ON upload BEGIN
            INSERT INTO tally VALUES (new.destination, new.state, new.folder, new.mask, 1, new.size)
            ON CONFLICT DO UPDATE SET uploads = uploads + 1, bytes = bytes + new.size;
        END;
        CREATE TRIGGER tally_out AFTER DELETE ON upload BEGIN
            UPDATE tally SET uploads = uploads - 1, bytes = bytes - old.size
            WHERE destination = old.destination AND state = old.state AND folder = old.folder AND mask = old.mask;
        END;
        CREATE TRIGGER tally_move AFTER UPDATE OF state, size, mask ON upload
        WHEN old.state <> new.state OR old.size <> new.size OR old.mask <> new.mask BEGIN
            UPDATE tally SET uploads = uploads - 1, bytes = bytes - old.size
            WHERE destination = old.destination AND state = old.state AND folder = old.folder AND mask = old.mask;
            INSERT INTO tally VALUES (new.destination, new.state, new.folder, new.mask, 1, new.size)
            ON CONFLICT DO UPDATE SET uploads = uploads + 1, bytes = bytes + new.size;
        END;
        """

    /// Uploads of a file of which one is enough. Those that wait for an earlier one are in an index of their own, so that
    /// a claim does not read through them.
    static let alternatives = """
        ALTER TABLE upload ADD COLUMN choice INTEGER;               -- uploads of an asset with the same number are alternatives
        ALTER TABLE upload ADD COLUMN standby INTEGER NOT NULL DEFAULT 0;    -- when it may go, by the time that daemons have run, ms
        DROP INDEX upload_next;
        CREATE INDEX upload_next ON upload (destination, folder, mask, rank, sort, id, backoff_until)
            WHERE state = 'queued' AND paused_at IS NULL AND standby = 0;
        CREATE INDEX upload_standby ON upload (standby) WHERE standby > 0;
        CREATE INDEX upload_standby_list ON upload (state, id) WHERE standby > 0;
        CREATE INDEX upload_standby_class ON upload (destination, folder, mask, state, standby)
            WHERE standby > 0 AND paused_at IS NULL;
        -- How many of them are not paused, and their bytes.
        ALTER TABLE tally ADD COLUMN standby INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tally ADD COLUMN standby_bytes INTEGER NOT NULL DEFAULT 0;
        DROP TRIGGER tally_in;
        DROP TRIGGER tally_out;
        DROP TRIGGER tally_move;
        CREATE TRIGGER tally_in AFTER INSERT ON upload BEGIN
            INSERT INTO tally VALUES (new.destination, new.state, new.folder, new.mask, 1, new.size,
                \(waits("new")), \(waits("new")) * new.size)
            ON CONFLICT DO UPDATE SET uploads = uploads + 1, bytes = bytes + new.size,
                standby = standby + \(waits("new")), standby_bytes = standby_bytes + \(waits("new")) * new.size;
        END;
        CREATE TRIGGER tally_out AFTER DELETE ON upload BEGIN
            UPDATE tally SET uploads = uploads - 1, bytes = bytes - old.size,
                standby = standby - \(waits("old")), standby_bytes = standby_bytes - \(waits("old")) * old.size
            WHERE destination = old.destination AND state = old.state AND folder = old.folder AND mask = old.mask;
        END;
        CREATE TRIGGER tally_move AFTER UPDATE OF state, size, mask, standby, paused_at ON upload
        WHEN old.state <> new.state OR old.size <> new.size OR old.mask <> new.mask
            OR \(waits("old")) <> \(waits("new")) BEGIN
            UPDATE tally SET uploads = uploads - 1, bytes = bytes - old.size,
                standby = standby - \(waits("old")), standby_bytes = standby_bytes - \(waits("old")) * old.size
            WHERE destination = old.destination AND state = old.state AND folder = old.folder AND mask = old.mask;
            INSERT INTO tally VALUES (new.destination, new.state, new.folder, new.mask, 1, new.size,
                \(waits("new")), \(waits("new")) * new.size)
            ON CONFLICT DO UPDATE SET uploads = uploads + 1, bytes = bytes + new.size,
                standby = standby + \(waits("new")), standby_bytes = standby_bytes + \(waits("new")) * new.size;
        END;
        """

    /// Files that are reported as one.
    static let groupNames = """
        ALTER TABLE asset ADD COLUMN group_name BLOB;   -- path below root of their directory or manifest; NULL for all others
        """

    /// When the remote may drop an unfinished upload. Few have such a time.
    static let checkpointExpiry = """
        ALTER TABLE checkpoint ADD COLUMN expires INTEGER AS (
            CASE WHEN json_valid(body) THEN CAST(json_extract(body, '$.expires') AS INTEGER) END);  -- ms since 1970
        CREATE INDEX checkpoint_expires ON checkpoint (expires) WHERE expires IS NOT NULL;
        """

    /// Tombstones of paths that files of another disk have taken since, as with memory cards that take turns in a slot.
    static let displacedTombstones = """
        CREATE TABLE displaced_tombstone (
            folder TEXT NOT NULL,
            file_system TEXT NOT NULL,
            relative BLOB NOT NULL,
            size INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            inode INTEGER,
            born INTEGER,
            asset INTEGER,
            sha256 BLOB,
            seen_at INTEGER NOT NULL,
            PRIMARY KEY (folder, file_system, relative)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX displaced_tombstone_path ON displaced_tombstone (relative, folder, seen_at);
        CREATE INDEX displaced_tombstone_seen ON displaced_tombstone (seen_at);
        """

    /// Whether a row of `upload` is on standby and not paused, in SQL: 1 or 0.
    private static func waits(_ row: String) -> String { "(\(row).standby > 0 AND \(row).paused_at IS NULL)" }
}
