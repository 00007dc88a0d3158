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
}
