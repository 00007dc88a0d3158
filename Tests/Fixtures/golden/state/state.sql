PRAGMA application_id = 1936487785;
BEGIN;
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
, keeping TEXT NOT NULL DEFAULT 'copy', staged_size INTEGER, source_sha256 BLOB, release_token TEXT) STRICT;
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
, named TEXT, trouble TEXT, troubled_at INTEGER, tried_again INTEGER NOT NULL DEFAULT 0, named_url TEXT, left_there INTEGER NOT NULL DEFAULT 0, failing_since INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoint (
    upload TEXT PRIMARY KEY REFERENCES upload (id),
    body TEXT NOT NULL                     -- JSON object of texts
) STRICT, WITHOUT ROWID;
CREATE TABLE part (
    upload TEXT NOT NULL REFERENCES upload (id),
    number INTEGER NOT NULL,               -- from 0
    size INTEGER NOT NULL,                 -- bytes
    tag TEXT NOT NULL,                     -- what the remote wants to hear of it in the end
    PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE failure (
    id INTEGER PRIMARY KEY,
    upload TEXT NOT NULL REFERENCES upload (id),
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    body TEXT NOT NULL                     -- JSON, Failure
) STRICT;
CREATE TABLE usage (
    hour INTEGER NOT NULL,                 -- when it began, by the clock on the wall, ms since 1970
    ends INTEGER NOT NULL,                 -- and when it ended
    destination TEXT NOT NULL,
    folder TEXT NOT NULL,                  -- empty: for no file
    network TEXT NOT NULL,                 -- NetworkClass
    bytes INTEGER NOT NULL,
    files INTEGER NOT NULL,
    counted INTEGER, received INTEGER NOT NULL DEFAULT 0,                       -- another hour in which it counts: its own was still to come then
    PRIMARY KEY (hour, destination, folder, network)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_step (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hour INTEGER NOT NULL,
    destination TEXT NOT NULL,
    folder TEXT NOT NULL,
    network TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    files INTEGER NOT NULL
, links TEXT, received INTEGER NOT NULL DEFAULT 0) STRICT;
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
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,                   -- ms since 1970
    type TEXT NOT NULL,
    upload TEXT,
    detail TEXT NOT NULL                   -- JSON object of texts
) STRICT;
CREATE TABLE hook (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL                   -- of the last event that is told, waits in `notice`, or was not wanted
) STRICT, WITHOUT ROWID;
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
CREATE TABLE remote_delete (
    id INTEGER PRIMARY KEY,
    upload TEXT NOT NULL,
    destination TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    tries INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    earlier INTEGER NOT NULL               -- 1: the upload went on without them
) STRICT;
CREATE TABLE pause (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE reception (asset INTEGER PRIMARY KEY) STRICT;
CREATE TABLE turn (
    destination TEXT NOT NULL,             -- '' for copies into staging
    folder TEXT NOT NULL,
    last INTEGER NOT NULL,                 -- number of its last turn there, from 1
    PRIMARY KEY (destination, folder)
) STRICT, WITHOUT ROWID;
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE tally (
    destination TEXT NOT NULL,
    state TEXT NOT NULL,
    folder TEXT NOT NULL,
    uploads INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (destination, state, folder)
) STRICT, WITHOUT ROWID;
CREATE TABLE staged_total (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL) STRICT;
CREATE TABLE media (
    asset INTEGER PRIMARY KEY REFERENCES asset (id),
    recorded INTEGER,                      -- ms since 1970
    duration INTEGER,                      -- ms
    width INTEGER,                         -- pixels as shown
    height INTEGER,
    make TEXT,
    model TEXT
) STRICT;
CREATE TABLE part_digest (
    asset INTEGER PRIMARY KEY REFERENCES asset (id),
    digests BLOB NOT NULL                  -- PartDigests
) STRICT;
CREATE TABLE folder_identity (
    path BLOB PRIMARY KEY,
    file_system TEXT,              -- UUID or mount source
    inode INTEGER NOT NULL,
    born INTEGER,                  -- ns since 1970
    owner INTEGER NOT NULL         -- number of the user
) WITHOUT ROWID;
CREATE TABLE waste (
    upload TEXT NOT NULL REFERENCES upload (id),
    at INTEGER NOT NULL,                   -- ms since 1970; 0: longer ago than a day
    bytes INTEGER NOT NULL,
    PRIMARY KEY (upload, at)
) STRICT, WITHOUT ROWID;
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (1, 'archive', CAST('{ROOT}/drop/archive' AS BLOB), CAST('large.mp4' AS BLOB), 5000000, 1795659046627505570, 1795659046647505570, 16573381, 1795659046627505570, 'ext4:/dev/vda', 'lease', 'staged', X'f63214a18dff7c93ad439369eef8888fc26d0dd5b860f0a7415843d9a2b30af3', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659046627505570, 1795659046854, 1795659046894, NULL, 0, 'copy', NULL, NULL, 'b4698fb7ceed382a');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (2, 'nas', CAST('{ROOT}/drop/nas' AS BLOB), CAST('small 1.mp4' AS BLOB), 3000, 1795659047423505562, 1795659047423505562, 16574148, 1795659047423505562, 'ext4:/dev/vda', 'lease', 'dropped', X'46f684cf0f505393fa8ba6adc96dd845d4884b07edf4bedd2ab0a12c02c73f8f', 'keep', NULL, 'kept', NULL, NULL, 0, -1795659047423505562, 1795659047628, 1795659047654, 1795659047801, 0, 'copy', NULL, NULL, 'dc0aaaffe86dc9ff');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (3, 'nas', CAST('{ROOT}/drop/nas' AS BLOB), CAST('sub/small 2.mp4' AS BLOB), 4000, 1795659047426456954, 1795659047427235486, 16574161, 1795659047423505562, 'ext4:/dev/vda', 'lease', 'dropped', X'd21964c8e521b175e2ccf8485486b4296cc7f4a0fa64424e2026d3469d8234b5', 'keep', NULL, 'kept', NULL, NULL, 0, -1795659047426456954, 1795659047636, 1795659047677, 1795659047801, 0, 'copy', NULL, NULL, '8f1c525074b807a3');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (4, 'moved', CAST('{ROOT}/drop/moved' AS BLOB), CAST('away.mp4' AS BLOB), 5000, 1795659047429818677, 1795659047429818677, 16574228, 1795659047429063638, 'ext4:/dev/vda', 'lease', 'dropped', X'f8b913625eac34968f866ed1010a1f1b6e7059b3fd5e7fa56be4f1886f835eae', 'move', '{ROOT}/done/{relative}', 'released', 'moved to {ROOT}/done/away.mp4', NULL, 0, -1795659047429818677, 1795659047637, 1795659047677, NULL, 0, 'copy', NULL, NULL, 'edecf04aa550e5c3');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (5, 'limited', CAST('{ROOT}/drop/limited' AS BLOB), CAST('1.mp4' AS BLOB), 5000, 1795659047430573395, 1795659047430573395, 16574244, 1795659047429818677, 'ext4:/dev/vda', 'lease', 'dropped', X'1847808acac0cf29b4d59f99f3c463bd678ad08664ab483836fa724aaef28429', 'keep', NULL, 'kept', NULL, NULL, 0, -1795659047430573395, 1795659047637, 1795659047677, 1795659047811, 0, 'copy', NULL, NULL, '85a863662736e354');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (6, 'both', CAST('{ROOT}/drop/both' AS BLOB), CAST('clip.mp4' AS BLOB), 20000, 1795659047427505562, 1795659047427505562, 16574200, 1795659047427505562, 'ext4:/dev/vda', 'lease', 'dropped', X'2e7a96bb50c6824566ece0d53d0b06f69b2d5b80956dc7726fe0ebe52695f715', 'delete', NULL, 'released', 'deleted', 6, 0, -1795659047427505562, 1795659048636, 1795659048675, NULL, 0, 'copy', NULL, NULL, 'f735612bf6d4b80d');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (7, 'both', CAST('{ROOT}/drop/both' AS BLOB), CAST('clip.xml' AS BLOB), 300, 1795659047429063638, 1795659047429063638, 16574212, 1795659047427505562, 'ext4:/dev/vda', 'lease', 'dropped', X'409246736d083cafb75e9c66d5fc77f5ca0dfaf22435ed2aba9eee14b6571874', 'delete', NULL, 'released', 'deleted', 6, 0, -1795659047429063638, 1795659048637, 1795659048674, NULL, 0, 'copy', NULL, NULL, 'bac4e9dd6b63d8c8');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (8, 'limited', CAST('{ROOT}/drop/limited' AS BLOB), CAST('2.mp4' AS BLOB), 400000, 1795659049095505545, 1795659049103505544, 16574435, 1795659049095505545, 'ext4:/dev/vda', 'lease', 'staged', X'bfe6a2298557065af00a63fe4ebbd0e6f0ba4d9b96fe8ff70f4e0150b8f16fe8', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049095505545, 1795659049311, 1795659049385, NULL, 0, 'copy', NULL, NULL, 'a052998b4bc25cb8');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (9, 'twice', CAST('{ROOT}/drop/twice' AS BLOB), CAST('same.mp4' AS BLOB), 5000, 1795659049104664800, 1795659049104664800, 16574451, 1795659049103505544, 'ext4:/dev/vda', 'lease', 'dropped', X'f8b913625eac34968f866ed1010a1f1b6e7059b3fd5e7fa56be4f1886f835eae', 'leave', NULL, 'kept', NULL, NULL, 0, -1795659049104664800, 1795659049312, 1795659049384, NULL, 0, 'copy', NULL, NULL, 'd2263546d977919d');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (10, 'refused', CAST('{ROOT}/drop/refused' AS BLOB), CAST('no.mp4' AS BLOB), 2000, 1795659049105193206, 1795659049105193206, 16574471, 1795659049104664800, 'ext4:/dev/vda', 'lease', 'staged', X'be45f7be942a6d4c3f8d62468162e301977d655300009b87076b4dfcb20de735', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049105193206, 1795659049312, 1795659049385, NULL, 0, 'copy', NULL, NULL, '1a38932fca0ec7d0');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (11, 'away', CAST('{ROOT}/drop/away' AS BLOB), CAST('waits.mp4' AS BLOB), 2000, 1795659049105612588, 1795659049105612588, 16574484, 1795659049105193206, 'ext4:/dev/vda', 'lease', 'staged', X'e98c556693a9d3124de2c77ca3f7d1c97090634a75258ecc179a3ad60e954f73', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049105612588, 1795659049312, 1795659049385, NULL, 0, 'copy', NULL, NULL, 'f59016cc90340f93');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (12, 'away', CAST('{ROOT}/drop/away' AS BLOB), CAST('paused.mp4' AS BLOB), 2500, 1795659049106040537, 1795659049106040537, 16574501, 1795659049105612588, 'ext4:/dev/vda', 'lease', 'staged', X'acaf3f7f976bc7144daa1907eda0f9f65e5907b686950f7d6d69cadd11ff56fe', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049106040537, 1795659049312, 1795659049385, NULL, 0, 'copy', NULL, NULL, 'f2d1356f3216937b');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (13, 'away', CAST('{ROOT}/drop/away' AS BLOB), CAST('given up.mp4' AS BLOB), 2600, 1795659049106425125, 1795659049106425125, 16574516, 1795659049106040537, 'ext4:/dev/vda', 'lease', 'dropped', X'228bfff209047494152f6999daf070867e6b48c7f3c82314d2f8dd5e713399ee', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049106425125, 1795659049313, 1795659049385, NULL, 0, 'copy', NULL, NULL, 'a73640d34458e4e0');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (14, 'place', CAST('{ROOT}/drop/place' AS BLOB), CAST('there.mp4' AS BLOB), 7000, 1795659049106896444, 1795659049106896444, 16574532, 1795659049106425125, 'ext4:/dev/vda', 'lease', 'staged', X'd74c8fd9fdc3d555592e544190f0c27e13df84aac0df6f9e1d620f4f2268ed3f', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049106896444, 1795659049313, 1795659049385, NULL, 0, 'in-place', NULL, NULL, 'edd268734d38bbbd');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (15, 'export', CAST('{ROOT}/drop/export' AS BLOB), CAST('made.mp4' AS BLOB), 7000, 1795659049107364347, 1795659049107364347, 16574547, 1795659049106896444, 'ext4:/dev/vda', 'lease', 'arrived', NULL, 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659049107364347, 1795659049313, NULL, NULL, 0, 'export', NULL, NULL, NULL);
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (16, 'nas', CAST('{ROOT}/drop/nas' AS BLOB), CAST('camera.mov' AS BLOB), 3939, 1795659049710135827, 1795659049711505538, 16574802, 1795659049707505538, 'ext4:/dev/vda', 'lease', 'dropped', X'2b04976a8a51a570de46eb06ac5aa5136c334cca930b2d02bf8f60b6a3abf1b6', 'keep', NULL, 'kept', NULL, NULL, 0, -1795659049710135827, 1795659049914, 1795659049925, 1795659050008, 0, 'copy', NULL, NULL, '4e6dc3712bfc319e');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (17, 'away', CAST('{ROOT}/drop/away' AS BLOB), CAST('report.bin' AS BLOB), 900, 1795659051291505522, 1795659051291505522, 16575218, 1795659051291505522, 'ext4:/dev/vda', 'added', 'staged', X'03bc2772938269e7f19f8e3117042e03ddd30d71ffd4cf69e8a5247376a1b602', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659051291505522, 1795659051384, 1795659051393, NULL, 0, 'copy', NULL, NULL, '0bebaacf2f748bc5');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (18, 'bucket', CAST('{ROOT}/drop/bucket' AS BLOB), CAST('cancelled.mp4' AS BLOB), 12000000, 1795659052163505513, 1795659052215505512, 16575282, 1795659052163505513, 'ext4:/dev/vda', 'lease', 'dropped', X'b00b5d5039a40f0efa4b9077b3a0bbc4ebe3a7fa6c162bf2fc5cbe1510259b50', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659052163505513, 1795659052419, 1795659052469, NULL, 0, 'copy', NULL, NULL, '6289c132135bbf12');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (19, 'nas', CAST('{ROOT}/drop/nas' AS BLOB), CAST('large.mp4' AS BLOB), 1200000, 1795659056047505473, 1795659056051505473, 16572471, 1795659056047505473, 'ext4:/dev/vda', 'lease', 'staged', X'7f51cadad189dd8010e96ca366d1e5fe11b1a0fead5ffebfcc5a75cd231d9689', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659056047505473, 1795659056260, 1795659056287, NULL, 0, 'copy', NULL, NULL, '8cff3491a8520018');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (20, 'form', CAST('{ROOT}/drop/form' AS BLOB), CAST('large.mp4' AS BLOB), 1200000, 1795659056095505472, 1795659056099505472, 16576132, 1795659056095505472, 'ext4:/dev/vda', 'lease', 'staged', X'f04e792fe1f8347b98fd1701781770f889cc5ae9a00b52e1b6f3ae25f8ff8282', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659056095505472, 1795659056306, 1795659056332, NULL, 0, 'copy', NULL, NULL, '1b2354a08a7d7073');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (21, 'video', CAST('{ROOT}/drop/video' AS BLOB), CAST('large.mp4' AS BLOB), 1200000, 1795659056143505472, 1795659056143505472, 16572423, 1795659056143505472, 'ext4:/dev/vda', 'lease', 'staged', X'15567dbb405616d7b20907ccf08e568036c4dc463a01c24d6b3d51270ff13a44', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659056143505472, 1795659056355, 1795659056483, NULL, 0, 'copy', NULL, NULL, '1b0bcb7d00732430');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (22, 'oss', CAST('{ROOT}/drop/oss' AS BLOB), CAST('large.mp4' AS BLOB), 2000000, 1795659056195505471, 1795659056195505471, 16572477, 1795659056195505471, 'ext4:/dev/vda', 'lease', 'staged', X'00e0998da841e29f1a57a735213263598276b2ffb39443b9f9eb56b37840b384', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659056195505471, 1795659056448, 1795659057538, NULL, 0, 'copy', NULL, NULL, '695898d655464ff2');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (23, 'vod', CAST('{ROOT}/drop/vod' AS BLOB), CAST('large.mp4' AS BLOB), 2000000, 1795659056235505471, 1795659056235505471, 16576163, 1795659056235505471, 'ext4:/dev/vda', 'lease', 'staged', X'cb9fb1b1d74f9fc19d6a3e3591dd1b57884feb1d1cc6cc91b133d702ef09d9ea', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659056235505471, 1795659056469, 1795659057542, NULL, 0, 'copy', NULL, NULL, '3aedd8a53fe4642d');
INSERT INTO asset (id, folder, root, relative, size, modified, changed, inode, born, file_system, settled_by, state, sha256, action, target, source_state, source_note, unit, priority, sort, arrived_at, staged_at, kept_at, due, keeping, staged_size, source_sha256, release_token) VALUES (24, 'bucket', CAST('{ROOT}/drop/bucket' AS BLOB), CAST('large.mp4' AS BLOB), 17000000, 1795659057303505460, 1795659057311505460, 16572510, 1795659057303505460, 'ext4:/dev/vda', 'lease', 'staged', X'8fca6c06b6ed48ad5a2b06cbbe985dc4bc691cf36aeabe0f64ebe9426a1df07d', 'keep', NULL, 'untouched', NULL, NULL, 0, -1795659057303505460, 1795659057528, 1795659057782, NULL, 0, 'copy', NULL, NULL, '34b4f89339ab4d74');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence (name, seq) VALUES ('event', 114);
INSERT INTO sqlite_sequence (name, seq) VALUES ('asset', 25);
INSERT INTO sqlite_sequence (name, seq) VALUES ('usage_step', 26);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX7Y6KRBE3TNPS9XTR040', 1, 'archive', 'archive', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 5000000, 1795659046627505570, 0, -1795659046627505570, 'queued', 1, 0, NULL, 46210528801061, NULL, NULL, 0, 3145728, NULL, NULL, NULL, 1795659046855, 1795659046910, NULL, NULL, NULL, NULL, 'no_marker', 1795659047317, 0, NULL, 0, 98);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX8PCX6ZW22Q15DK0EFBW', 2, 'nas', 'nas', CAST('small 1.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 3000, 1795659047423505562, 0, -1795659047423505562, 'removed', 1, 0, NULL, 0, NULL, NULL, 3000, 3000, '{"verifiedBy":"offset","warnings":[]}', NULL, NULL, 1795659047628, 1795659047716, 1795659047778, 'completed', 559, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX8PN8W95PFX3FS77XM1R', 3, 'nas', 'nas', CAST('sub/small 2.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 4000, 1795659047426456954, 0, -1795659047426456954, 'completed', 1, 0, NULL, 0, NULL, NULL, 4000, 4000, '{"verifiedBy":"offset","warnings":[]}', NULL, NULL, 1795659047637, 1795659047710, 1795659047783, NULL, 564, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX8PN8Y6NJKG3R66EXQRZ', 4, 'moved', 'copies', CAST('moved/away.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 5000, 1795659047429818677, 0, -1795659047429818677, 'completed', 1, 0, NULL, 0, NULL, NULL, 5000, 0, '{"url":"{ROOT}/copies/moved/away.mp4","verifiedBy":"digest","warnings":[]}', NULL, NULL, 1795659047637, 1795659047729, 1795659047756, NULL, 537, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX8PN8ZEQ9XFNFPNVHFP8', 5, 'limited', 'capped', CAST('limited/1.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 5000, 1795659047430573395, 0, -1795659047430573395, 'completed', 1, 0, NULL, 0, NULL, NULL, 5000, 5000, '{"verifiedBy":"offset","warnings":[]}', NULL, NULL, 1795659047637, 1795659047736, 1795659047805, NULL, 586, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX9NWP02JCHH61B39EZE6', 6, 'both', 'nas', CAST('both/clip.mp4' AS BLOB), 'video/mp4', 'clip.mp4', '{"site":"north"}', '{"camera":"both"}', '{}', NULL, 20000, 1795659047427505562, 0, -1795659047427505562, 'completed', 1, 0, NULL, 0, NULL, NULL, 20000, 20000, '{"verifiedBy":"offset","warnings":[]}', NULL, NULL, 1795659048636, 1795659048685, 1795659048928, NULL, 1709, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX9NXHDGEVZ1FCYNBKFXQ', 6, 'both', 'copies', CAST('both/clip.mp4' AS BLOB), 'video/mp4', 'clip.mp4', '{"site":"north"}', '{"camera":"both"}', '{}', NULL, 20000, 1795659047427505562, 0, -1795659047427505562, 'completed', 1, 0, NULL, 0, NULL, NULL, 20000, 0, '{"url":"{ROOT}/copies/both/clip.mp4","verifiedBy":"digest","warnings":[]}', NULL, NULL, 1795659048637, 1795659048682, 1795659048702, NULL, 1483, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX9NXHF66XF154K7EMGRJ', 7, 'both', 'nas', CAST('both/clip.xml' AS BLOB), 'application/xml', 'clip.xml', '{"site":"north"}', '{"camera":"both"}', '{}', NULL, 300, 1795659047429063638, 0, -1795659047429063638, 'completed', 1, 0, NULL, 0, NULL, NULL, 300, 300, '{"verifiedBy":"offset","warnings":[]}', NULL, NULL, 1795659048637, 1795659048679, 1795659048728, NULL, 1509, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASX9NXHGCYW7HKXEZED0BR', 7, 'both', 'copies', CAST('both/clip.xml' AS BLOB), 'application/xml', 'clip.xml', '{"site":"north"}', '{"camera":"both"}', '{}', NULL, 300, 1795659047429063638, 0, -1795659047429063638, 'completed', 1, 0, NULL, 0, NULL, NULL, 300, 0, '{"url":"{ROOT}/copies/both/clip.xml","verifiedBy":"digest","warnings":[]}', NULL, NULL, 1795659048637, 1795659048682, 1795659048701, NULL, 1482, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB056DW44MDKRRR95SF', 8, 'limited', 'capped', CAST('limited/2.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 400000, 1795659049095505545, 0, -1795659049095505545, 'queued', 1, 0, NULL, 0, NULL, NULL, 246128, 246128, NULL, NULL, NULL, 1795659049312, 1795659049409, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB057N1WJ03S789CQ6T', 9, 'twice', 'copies', CAST('twice/same.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 5000, 1795659049104664800, 0, -1795659049104664800, 'completed', 1, 0, NULL, 0, NULL, NULL, 5000, 0, '{"url":"{ROOT}/copies/moved/away.mp4","verifiedBy":"digest","warnings":["not sent again: the same content was uploaded as away.mp4 of folder moved at 2026-11-26T02:10:47.756Z; the source is kept"]}', NULL, NULL, 1795659049312, NULL, 1795659049384, NULL, 2165, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB0597XJ62NCYRZVZN6', 10, 'refused', 'refused', CAST('no.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 2000, 1795659049105193206, 0, -1795659049105193206, 'failed', 2, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795659049312, 1795659049448, 1795659050189, NULL, 2970, NULL, 'http_413', 1795659050189, 0, NULL, 0, 2970);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB05ACHKYGD2ZYX5PTK', 11, 'away', 'away', CAST('waits.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 2000, 1795659049105612588, 0, -1795659049105612588, 'queued', 1, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795659049312, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB05BD7CNZC1XYJVKNZ', 12, 'away', 'away', CAST('paused.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 2500, 1795659049106040537, 0, -1795659049106040537, 'queued', 1, 0, 1795659050479, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795659049313, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB1WBP2QEFJT495XE76', 13, 'away', 'away', CAST('given up.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 2600, 1795659049106425125, 0, -1795659049106425125, 'cancelled', 1, 0, NULL, 0, NULL, NULL, 0, 0, NULL, 'none', NULL, 1795659049313, NULL, 1795659050782, NULL, 3563, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB1WDGVA6WAHFMED1RS', 14, 'place', 'away', CAST('place/there.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 7000, 1795659049106896444, 0, -1795659049106896444, 'queued', 1, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795659049313, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAB1WFDXQWN8X5Z4PBT5', 15, 'export', 'copies', CAST('export/made.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 7000, 1795659049107364347, 0, -1795659049107364347, 'staging', 1, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795659049313, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXAXTYNJ106TEHF76B51T', 16, 'nas', 'nas', CAST('camera.mov' AS BLOB), 'video/quicktime', NULL, '{}', '{}', '{}', NULL, 3939, 1795659049710135827, 0, -1795659049710135827, 'completed', 1, 0, NULL, 0, NULL, NULL, 3939, 3939, '{"verifiedBy":"offset","warnings":[]}', NULL, NULL, 1795659049914, 1795659049929, 1795659049980, NULL, 2762, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXCBREVM02RFGY1QY8NWH', 17, 'away', 'away', CAST('report.bin' AS BLOB), 'application/octet-stream', 'report-1', '{"case":"7"}', '{}', '{"X-Case":"7"}', NULL, 900, 1795659051291505522, 0, -1795659051291505522, 'queued', 1, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795659051384, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXDC34ERRK0KH3G98EQ47', 18, 'bucket', 'bucket', CAST('cancelled.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 12000000, 1795659052163505513, 0, -1795659052163505513, 'cancelled', 1, 0, NULL, 0, NULL, NULL, 5242880, 5242880, NULL, 'pending', NULL, 1795659052419, 1795659052474, 1795659055987, NULL, 8768, 'cancelled.mp4', NULL, NULL, 0, '{S3}/bucket/cancelled.mp4', 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXH4472EQFRTPZFH45M7Z', 19, 'nas', 'nas', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 1200000, 1795659056047505473, 0, -1795659056047505473, 'uploading', 1, 0, NULL, 0, '5352-4d6cc666e67426c2', 1795659056321, 262144, 262144, NULL, NULL, NULL, 1795659056260, 1795659056321, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXH5JSS7PSE89XEGKN7JX', 20, 'form', 'form', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 1200000, 1795659056095505472, 0, -1795659056095505472, 'uploading', 1, 0, NULL, 0, '5352-4d6cc666e67426c2', 1795659056368, 300000, 300000, NULL, NULL, NULL, 1795659056306, 1795659056368, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXH74ZCV95BC3AM5B9XRE', 21, 'video', 'video', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 1200000, 1795659056143505472, 0, -1795659056143505472, 'uploading', 1, 0, NULL, 0, '5352-4d6cc666e67426c2', 1795659056587, 262144, 262144, NULL, NULL, NULL, 1795659056356, 1795659056587, NULL, NULL, NULL, '/videos/1', NULL, NULL, 0, 'https://vimeo.example/1', 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXHA0M8WDRAQTJG257DGQ', 22, 'oss', 'oss', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 2000000, 1795659056195505471, 0, -1795659056195505471, 'uploading', 1, 0, NULL, 0, '5352-4d6cc666e67426c2', 1795659057554, 262144, 262144, NULL, NULL, NULL, 1795659056448, 1795659057554, NULL, NULL, NULL, 'large.mp4', NULL, NULL, 0, '{OSS}/cameras/large.mp4', 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXHANRZDHD7WTE8NP21MH', 23, 'vod', 'vod', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 2000000, 1795659056235505471, 0, -1795659056235505471, 'uploading', 1, 0, NULL, 0, '5352-4d6cc666e67426c2', 1795659057564, 262144, 262144, NULL, NULL, NULL, 1795659056469, 1795659057564, NULL, NULL, NULL, 'da2f4149852549ae97060f20ad261ae3', NULL, NULL, 0, NULL, 0, NULL);
INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, headers, url, size, modified, rank, sort, state, generation, attempt, paused_at, backoff_until, lease_owner, leased_at, acked, sent, remote, remote_delete, approved, created_at, started_at, finished_at, ended, ran_at, named, trouble, troubled_at, tried_again, named_url, left_there, failing_since) VALUES ('01M8ASXJBRSJKH8W5Y6F81JRX0', 24, 'bucket', 'bucket', CAST('large.mp4' AS BLOB), 'video/mp4', NULL, '{}', '{}', '{}', NULL, 17000000, 1795659057303505460, 0, -1795659057303505460, 'uploading', 1, 0, NULL, 0, '5352-4d6cc666e67426c2', 1795659057798, 5242880, 5242880, NULL, NULL, NULL, 1795659057529, 1795659057798, NULL, NULL, NULL, 'large.mp4', NULL, NULL, 0, '{S3}/bucket/large.mp4', 0, NULL);
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASX7Y6KRBE3TNPS9XTR040', '{"part":".large.mp4.sluice-01M8ASX7Y6KRBE3TNPS9XTR040-1.part","sha256":"f63214a18dff7c93ad439369eef8888fc26d0dd5b860f0a7415843d9a2b30af3"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXAB056DW44MDKRRR95SF', '{"offset":"246128","reach":"246128","sent_from":"246128","sent_size":"153872","sent_to":"246128","server":"{NAS}","taken":"246128","url":"{NAS}/files/8f202a1a8d792623e031f37ac55c95d0"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXH4472EQFRTPZFH45M7Z', '{"offset":"262144","reach":"393216","server":"{NAS}","taken":"262144","url":"{NAS}/files/70e19e2f7540d6b03dfdd5e31fd148bf"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXH5JSS7PSE89XEGKN7JX', '{"begun":"1","id":"1200000-largemp4-c17296dd938d12f1","part_size":"100000","preset":"resumable","rule":"merge","server":"{FORM}","sha256":"f04e792fe1f8347b98fd1701781770f889cc5ae9a00b52e1b6f3ae25f8ff8282","size":"1200000"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXH74ZCV95BC3AM5B9XRE', '{"flow":"tus","link":"https://vimeo.example/1","offset":"262144","reach":"393216","server":"{VIMEO}","taken":"262144","url":"{VIMEOBYTES}/upload/1?signature=s1","video":"/videos/1","video_size":"1200000"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXHA0M8WDRAQTJG257DGQ', '{"asked_at":"1795659057604","begun":"1","checksum":"crc64","key":"large.mp4","part_size":"262144","rule":"short","server":"{OSSHOST}/cameras","sha256":"00e0998da841e29f1a57a735213263598276b2ffb39443b9f9eb56b37840b384","size":"2000000","upload":"FB7A08B2DE709229C1A6E6F496057061"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXHANRZDHD7WTE8NP21MH', '{"asked_at":"1795659058305","begun":"1","bucket":"outin-emulated","checksum":"crc64","file":"large.mp4","grant_end":"1795662058000","grant_id":"STS.N7b888b224f97673b4d61","grant_secret":"uHZUXaWT_ZuVGJRdUWniGBdjgO3mnne1ikRh3RfP","grant_token":"CAIS+/8iBxNssd4A/1DUtMyJoTmR0AweHoaLUeCnS+9RbQQLlTHhHie1nMUD/ae/yfuqjLQT9E4fARmMXhNcqB6qjugA==","grant_until":"1795662058000","key":"sv/5d04f603/5d04f603.mp4","media":"da2f4149852549ae97060f20ad261ae3","media_count":"1","media_endpoint":"{OSS}","media_region":"cn-shanghai","part_size":"262144","reference":"sluice-b4035b0d7753487dd93e944671134fb01cc27cc0","rule":"short","server":"{OSSHOST}/outin-emulated","sha256":"cb9fb1b1d74f9fc19d6a3e3591dd1b57884feb1d1cc6cc91b133d702ef09d9ea","size":"2000000","sort":"video","upload":"0BD9D7AC980CDE2FFEEE3366269BC5F7"}');
INSERT INTO checkpoint (upload, body) VALUES ('01M8ASXJBRSJKH8W5Y6F81JRX0', '{"asked_at":"1795659057821","begun":"1","checksum":"md5","key":"large.mp4","part_size":"5242880","rule":"short","server":"{S3HOST}/bucket","sha256":"8fca6c06b6ed48ad5a2b06cbbe985dc4bc691cf36aeabe0f64ebe9426a1df07d","size":"17000000","upload":"2~2/+=%"}');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXH5JSS7PSE89XEGKN7JX', 0, 100000, '');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXH5JSS7PSE89XEGKN7JX', 1, 100000, '');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXH5JSS7PSE89XEGKN7JX', 2, 100000, '');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXHA0M8WDRAQTJG257DGQ', 0, 262144, '"83E23D9FE24731D9B5473712B057E282"	3940160895365334515');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXHANRZDHD7WTE8NP21MH', 0, 262144, '"B7315B814425C9145F837AC7164630E5"	10636564664334985214');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXJBRSJKH8W5Y6F81JRX0', 0, 5242880, '"1-5242880-9"');
INSERT INTO failure (id, upload, generation, attempt, body) VALUES (1, '01M8ASX7Y6KRBE3TNPS9XTR040', 1, 1, '{"at":1795659047308,"code":"no_marker","kind":"transient","message":"archive: {ROOT}/archive/.there is not there, so nothing is written: mount what belongs there, or make that file","retryable":true}');
INSERT INTO failure (id, upload, generation, attempt, body) VALUES (2, '01M8ASXAB0597XJ62NCYRZVZN6', 1, 1, '{"at":1795659049487,"code":"http_413","http":413,"kind":"permanent","message":"refused: {REFUSEDHOST} answered 413 to creation: larger than this server takes","retryable":false}');
INSERT INTO failure (id, upload, generation, attempt, body) VALUES (3, '01M8ASXAB0597XJ62NCYRZVZN6', 2, 1, '{"at":1795659050187,"code":"http_413","http":413,"kind":"permanent","message":"refused: {REFUSEDHOST} answered 413 to creation: larger than this server takes","retryable":false}');
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'away', '', 'any', 216, 0, NULL, 180);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'bucket', '', 'any', 1806, 0, NULL, 1004);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'bucket', 'bucket', 'any', 5632769, 1, NULL, 5615);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'capped', '', 'any', 163, 0, NULL, 245);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'capped', 'limited', 'any', 253892, 2, NULL, 1791);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'copies', 'both', 'local', 20300, 2, NULL, 20300);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'copies', 'moved', 'local', 5000, 1, NULL, 5000);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'hook told', '', 'any', 648, 0, NULL, 540);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'nas', '', 'any', 531, 0, NULL, 525);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'nas', 'both', 'any', 23422, 2, NULL, 2130);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'nas', 'nas', 'any', 15032, 3, NULL, 3219);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'refused', '', 'any', 531, 0, NULL, 428);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'refused', 'refused', 'any', 1110, 0, NULL, 296);
INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, counted, received) VALUES (1795658400000, 1795662000000, 'video', '', 'any', 613, 0, NULL, 763);
INSERT INTO usage_step (id, hour, destination, folder, network, bytes, files, links, received) VALUES (18, 1795658400000, 'nas', 'nas', 'any', 1602680, 1, '00000000-0000-4000-8000-000000000000-net:[4026531833] 45918542380061 eth0:4:3928216:1784064140 ifb0:2:0:0 ifb1:3:0:0 lo:1:119354863334:119354863334', 116551);
INSERT INTO usage_step (id, hour, destination, folder, network, bytes, files, links, received) VALUES (19, 1795658400000, 'form', 'form', 'any', 1602680, 1, '00000000-0000-4000-8000-000000000000-net:[4026531833] 45918589358728 eth0:4:3928216:1784064140 ifb0:2:0:0 ifb1:3:0:0 lo:1:119354868180:119354868180', 116551);
INSERT INTO usage_step (id, hour, destination, folder, network, bytes, files, links, received) VALUES (22, 1795658400000, 'video', 'video', 'any', 1602680, 1, '00000000-0000-4000-8000-000000000000-net:[4026531833] 45918807537987 eth0:4:3928216:1784064140 ifb0:2:0:0 ifb1:3:0:0 lo:1:119354954916:119354954916', 116551);
INSERT INTO usage_step (id, hour, destination, folder, network, bytes, files, links, received) VALUES (23, 1795658400000, 'oss', 'oss', 'any', 2452680, 1, '00000000-0000-4000-8000-000000000000-net:[4026531833] 45919775463883 eth0:4:3928216:1784064140 ifb0:2:0:0 ifb1:3:0:0 lo:1:119355628951:119355628951', 169676);
INSERT INTO usage_step (id, hour, destination, folder, network, bytes, files, links, received) VALUES (24, 1795658400000, 'vod', 'vod', 'any', 2452680, 1, '00000000-0000-4000-8000-000000000000-net:[4026531833] 45919784432729 eth0:4:3928216:1784064140 ifb0:2:0:0 ifb1:3:0:0 lo:1:119355629435:119355629435', 169676);
INSERT INTO usage_step (id, hour, destination, folder, network, bytes, files, links, received) VALUES (25, 1795658400000, 'bucket', 'bucket', 'any', 18390180, 1, '00000000-0000-4000-8000-000000000000-net:[4026531833] 45920019757873 eth0:4:3928216:1784064140 ifb0:2:0:0 ifb1:3:0:0 lo:1:119355771592:119355771592', 1165770);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('archive', CAST('large.mp4' AS BLOB), 5000000, 1795659046627505570, 16573381, 1795659046627505570, 'ext4:/dev/vda', 1, NULL, 1795659046855);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('away', CAST('given up.mp4' AS BLOB), 2600, 1795659049106425125, 16574516, 1795659049106040537, 'ext4:/dev/vda', 13, NULL, 1795659049313);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('away', CAST('paused.mp4' AS BLOB), 2500, 1795659049106040537, 16574501, 1795659049105612588, 'ext4:/dev/vda', 12, NULL, 1795659049313);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('away', CAST('report.bin' AS BLOB), 900, 1795659051291505522, 16575218, 1795659051291505522, 'ext4:/dev/vda', 17, NULL, 1795659051384);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('away', CAST('waits.mp4' AS BLOB), 2000, 1795659049105612588, 16574484, 1795659049105193206, 'ext4:/dev/vda', 11, NULL, 1795659049312);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('both', CAST('clip.mp4' AS BLOB), 20000, 1795659047427505562, 16574200, 1795659047427505562, 'ext4:/dev/vda', 6, X'2e7a96bb50c6824566ece0d53d0b06f69b2d5b80956dc7726fe0ebe52695f715', 1795659048637);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('both', CAST('clip.xml' AS BLOB), 300, 1795659047429063638, 16574212, 1795659047427505562, 'ext4:/dev/vda', 7, X'409246736d083cafb75e9c66d5fc77f5ca0dfaf22435ed2aba9eee14b6571874', 1795659048637);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('bucket', CAST('cancelled.mp4' AS BLOB), 12000000, 1795659052163505513, 16575282, 1795659052163505513, 'ext4:/dev/vda', 18, NULL, 1795659052419);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('bucket', CAST('large.mp4' AS BLOB), 17000000, 1795659057303505460, 16572510, 1795659057303505460, 'ext4:/dev/vda', 24, NULL, 1795659057529);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('export', CAST('made.mp4' AS BLOB), 7000, 1795659049107364347, 16574547, 1795659049106896444, 'ext4:/dev/vda', 15, NULL, 1795659049313);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('form', CAST('large.mp4' AS BLOB), 1200000, 1795659056095505472, 16576132, 1795659056095505472, 'ext4:/dev/vda', 20, NULL, 1795659056306);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('limited', CAST('1.mp4' AS BLOB), 5000, 1795659047430573395, 16574244, 1795659047429818677, 'ext4:/dev/vda', 5, X'1847808acac0cf29b4d59f99f3c463bd678ad08664ab483836fa724aaef28429', 1795659047637);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('limited', CAST('2.mp4' AS BLOB), 400000, 1795659049095505545, 16574435, 1795659049095505545, 'ext4:/dev/vda', 8, NULL, 1795659049312);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('moved', CAST('away.mp4' AS BLOB), 5000, 1795659047429818677, 16574228, 1795659047429063638, 'ext4:/dev/vda', 4, X'f8b913625eac34968f866ed1010a1f1b6e7059b3fd5e7fa56be4f1886f835eae', 1795659047637);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('nas', CAST('camera.mov' AS BLOB), 3939, 1795659049710135827, 16574802, 1795659049707505538, 'ext4:/dev/vda', 16, X'2b04976a8a51a570de46eb06ac5aa5136c334cca930b2d02bf8f60b6a3abf1b6', 1795659049914);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('nas', CAST('large.mp4' AS BLOB), 1200000, 1795659056047505473, 16572471, 1795659056047505473, 'ext4:/dev/vda', 19, NULL, 1795659056261);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('nas', CAST('small 1.mp4' AS BLOB), 3000, 1795659047423505562, 16574148, 1795659047423505562, 'ext4:/dev/vda', 2, X'46f684cf0f505393fa8ba6adc96dd845d4884b07edf4bedd2ab0a12c02c73f8f', 1795659047629);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('nas', CAST('sub/small 2.mp4' AS BLOB), 4000, 1795659047426456954, 16574161, 1795659047423505562, 'ext4:/dev/vda', 3, X'd21964c8e521b175e2ccf8485486b4296cc7f4a0fa64424e2026d3469d8234b5', 1795659047637);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('oss', CAST('large.mp4' AS BLOB), 2000000, 1795659056195505471, 16572477, 1795659056195505471, 'ext4:/dev/vda', 22, NULL, 1795659056449);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('place', CAST('there.mp4' AS BLOB), 7000, 1795659049106896444, 16574532, 1795659049106425125, 'ext4:/dev/vda', 14, NULL, 1795659049313);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('refused', CAST('no.mp4' AS BLOB), 2000, 1795659049105193206, 16574471, 1795659049104664800, 'ext4:/dev/vda', 10, NULL, 1795659049312);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('twice', CAST('same.mp4' AS BLOB), 5000, 1795659049104664800, 16574451, 1795659049103505544, 'ext4:/dev/vda', 9, X'f8b913625eac34968f866ed1010a1f1b6e7059b3fd5e7fa56be4f1886f835eae', 1795659049312);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('video', CAST('large.mp4' AS BLOB), 1200000, 1795659056143505472, 16572423, 1795659056143505472, 'ext4:/dev/vda', 21, NULL, 1795659056356);
INSERT INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, sha256, seen_at) VALUES ('vod', CAST('large.mp4' AS BLOB), 2000000, 1795659056235505471, 16576163, 1795659056235505471, 'ext4:/dev/vda', 23, NULL, 1795659056469);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (1, '01M8ASX8PN8Y6NJKG3R66EXQRZ', 1, NULL, 'moved', CAST('away.mp4' AS BLOB), 5000, X'f8b913625eac34968f866ed1010a1f1b6e7059b3fd5e7fa56be4f1886f835eae', 'copies', '{"url":"{ROOT}/copies/moved/away.mp4","verifiedBy":"digest","warnings":[]}', NULL, 'completed', NULL, 1, 1795659047637, 1795659047756);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (2, '01M8ASX8PCX6ZW22Q15DK0EFBW', 1, NULL, 'nas', CAST('small 1.mp4' AS BLOB), 3000, X'46f684cf0f505393fa8ba6adc96dd845d4884b07edf4bedd2ab0a12c02c73f8f', 'nas', '{"verifiedBy":"offset","warnings":[]}', NULL, 'completed', NULL, 1, 1795659047628, 1795659047778);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (3, '01M8ASX8PN8W95PFX3FS77XM1R', 1, NULL, 'nas', CAST('sub/small 2.mp4' AS BLOB), 4000, X'd21964c8e521b175e2ccf8485486b4296cc7f4a0fa64424e2026d3469d8234b5', 'nas', '{"verifiedBy":"offset","warnings":[]}', NULL, 'completed', NULL, 1, 1795659047637, 1795659047783);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (4, '01M8ASX8PN8ZEQ9XFNFPNVHFP8', 1, NULL, 'limited', CAST('1.mp4' AS BLOB), 5000, X'1847808acac0cf29b4d59f99f3c463bd678ad08664ab483836fa724aaef28429', 'capped', '{"verifiedBy":"offset","warnings":[]}', NULL, 'completed', NULL, 1, 1795659047637, 1795659047805);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (5, '01M8ASX9NXHGCYW7HKXEZED0BR', 1, 'clip.xml', 'both', CAST('clip.xml' AS BLOB), 300, X'409246736d083cafb75e9c66d5fc77f5ca0dfaf22435ed2aba9eee14b6571874', 'copies', '{"url":"{ROOT}/copies/both/clip.xml","verifiedBy":"digest","warnings":[]}', NULL, 'completed', NULL, 1, 1795659048637, 1795659048702);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (6, '01M8ASX9NXHDGEVZ1FCYNBKFXQ', 1, 'clip.mp4', 'both', CAST('clip.mp4' AS BLOB), 20000, X'2e7a96bb50c6824566ece0d53d0b06f69b2d5b80956dc7726fe0ebe52695f715', 'copies', '{"url":"{ROOT}/copies/both/clip.mp4","verifiedBy":"digest","warnings":[]}', NULL, 'completed', NULL, 1, 1795659048637, 1795659048702);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (7, '01M8ASX9NXHF66XF154K7EMGRJ', 1, 'clip.xml', 'both', CAST('clip.xml' AS BLOB), 300, X'409246736d083cafb75e9c66d5fc77f5ca0dfaf22435ed2aba9eee14b6571874', 'nas', '{"verifiedBy":"offset","warnings":[]}', NULL, 'completed', NULL, 1, 1795659048637, 1795659048728);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (8, '01M8ASX9NWP02JCHH61B39EZE6', 1, 'clip.mp4', 'both', CAST('clip.mp4' AS BLOB), 20000, X'2e7a96bb50c6824566ece0d53d0b06f69b2d5b80956dc7726fe0ebe52695f715', 'nas', '{"verifiedBy":"offset","warnings":[]}', NULL, 'completed', NULL, 1, 1795659048636, 1795659048928);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (9, '01M8ASXAB057N1WJ03S789CQ6T', 1, NULL, 'twice', CAST('same.mp4' AS BLOB), 5000, X'f8b913625eac34968f866ed1010a1f1b6e7059b3fd5e7fa56be4f1886f835eae', 'copies', '{"url":"{ROOT}/copies/moved/away.mp4","verifiedBy":"digest","warnings":["not sent again: the same content was uploaded as away.mp4 of folder moved at 2026-11-26T02:10:47.756Z; the source is kept"]}', NULL, 'completed', NULL, 1, 1795659049312, 1795659049384);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (10, '01M8ASXAB0597XJ62NCYRZVZN6', 1, NULL, 'refused', CAST('no.mp4' AS BLOB), 2000, X'be45f7be942a6d4c3f8d62468162e301977d655300009b87076b4dfcb20de735', 'refused', NULL, NULL, 'failed', 'http_413', 1, 1795659049312, 1795659049490);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (11, '01M8ASXAXTYNJ106TEHF76B51T', 1, NULL, 'nas', CAST('camera.mov' AS BLOB), 3939, X'2b04976a8a51a570de46eb06ac5aa5136c334cca930b2d02bf8f60b6a3abf1b6', 'nas', '{"verifiedBy":"offset","warnings":[]}', NULL, 'completed', NULL, 1, 1795659049914, 1795659049981);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (12, '01M8ASXAB0597XJ62NCYRZVZN6', 2, NULL, 'refused', CAST('no.mp4' AS BLOB), 2000, X'be45f7be942a6d4c3f8d62468162e301977d655300009b87076b4dfcb20de735', 'refused', NULL, NULL, 'failed', 'http_413', 1, 1795659049312, 1795659050189);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (13, '01M8ASXAB1WBP2QEFJT495XE76', 1, NULL, 'away', CAST('given up.mp4' AS BLOB), 2600, X'228bfff209047494152f6999daf070867e6b48c7f3c82314d2f8dd5e713399ee', 'away', NULL, NULL, 'cancelled', NULL, 1, 1795659049313, 1795659050782);
INSERT INTO history (id, upload, generation, key, folder, relative, size, sha256, destination, remote, remote_id, outcome, code, attempts, created_at, finished_at) VALUES (14, '01M8ASXDC34ERRK0KH3G98EQ47', 1, NULL, 'bucket', CAST('cancelled.mp4' AS BLOB), 12000000, X'b00b5d5039a40f0efa4b9077b3a0bbc4ebe3a7fa6c162bf2fc5cbe1510259b50', 'bucket', NULL, NULL, 'cancelled', NULL, 1, 1795659052419, 1795659055988);
INSERT INTO event (seq, at, type, upload, detail) VALUES (1, 1795659046209, 'loaded', NULL, '{"ongoing":"0"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (2, 1795659046855, 'added', '01M8ASX7Y6KRBE3TNPS9XTR040', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (3, 1795659046895, 'state', '01M8ASX7Y6KRBE3TNPS9XTR040', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (4, 1795659046910, 'state', '01M8ASX7Y6KRBE3TNPS9XTR040', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (5, 1795659047220, 'state', '01M8ASX7Y6KRBE3TNPS9XTR040', '{"from":"uploading","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (6, 1795659047244, 'loaded', NULL, '{"ongoing":"1"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (7, 1795659047282, 'state', '01M8ASX7Y6KRBE3TNPS9XTR040', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (8, 1795659047317, 'state', '01M8ASX7Y6KRBE3TNPS9XTR040', '{"from":"uploading","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (9, 1795659047629, 'added', '01M8ASX8PCX6ZW22Q15DK0EFBW', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (10, 1795659047637, 'added', '01M8ASX8PN8W95PFX3FS77XM1R', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (11, 1795659047637, 'added', '01M8ASX8PN8Y6NJKG3R66EXQRZ', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (12, 1795659047637, 'added', '01M8ASX8PN8ZEQ9XFNFPNVHFP8', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (13, 1795659047655, 'state', '01M8ASX8PCX6ZW22Q15DK0EFBW', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (14, 1795659047677, 'state', '01M8ASX8PN8Y6NJKG3R66EXQRZ', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (15, 1795659047677, 'state', '01M8ASX8PN8ZEQ9XFNFPNVHFP8', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (16, 1795659047677, 'state', '01M8ASX8PN8W95PFX3FS77XM1R', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (17, 1795659047710, 'state', '01M8ASX8PN8W95PFX3FS77XM1R', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (18, 1795659047716, 'state', '01M8ASX8PCX6ZW22Q15DK0EFBW', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (19, 1795659047729, 'state', '01M8ASX8PN8Y6NJKG3R66EXQRZ', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (20, 1795659047736, 'state', '01M8ASX8PN8ZEQ9XFNFPNVHFP8', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (21, 1795659047756, 'completed', '01M8ASX8PN8Y6NJKG3R66EXQRZ', '{"from":"uploading","to":"completed","url":"{ROOT}/copies/moved/away.mp4"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (22, 1795659047778, 'completed', '01M8ASX8PCX6ZW22Q15DK0EFBW', '{"from":"uploading","to":"completed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (23, 1795659047783, 'completed', '01M8ASX8PN8W95PFX3FS77XM1R', '{"from":"uploading","to":"completed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (24, 1795659047788, 'source', '01M8ASX8PN8Y6NJKG3R66EXQRZ', '{"note":"moved to {ROOT}/done/away.mp4","state":"released"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (25, 1795659047801, 'source', '01M8ASX8PCX6ZW22Q15DK0EFBW', '{"note":"","state":"kept"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (26, 1795659047801, 'source', '01M8ASX8PN8W95PFX3FS77XM1R', '{"note":"","state":"kept"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (27, 1795659047805, 'completed', '01M8ASX8PN8ZEQ9XFNFPNVHFP8', '{"from":"uploading","to":"completed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (28, 1795659047811, 'source', '01M8ASX8PN8ZEQ9XFNFPNVHFP8', '{"note":"","state":"kept"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (29, 1795659048636, 'added', '01M8ASX9NWP02JCHH61B39EZE6', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (30, 1795659048637, 'added', '01M8ASX9NXHDGEVZ1FCYNBKFXQ', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (31, 1795659048637, 'added', '01M8ASX9NXHF66XF154K7EMGRJ', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (32, 1795659048637, 'added', '01M8ASX9NXHGCYW7HKXEZED0BR', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (33, 1795659048674, 'state', '01M8ASX9NXHF66XF154K7EMGRJ', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (34, 1795659048674, 'state', '01M8ASX9NXHGCYW7HKXEZED0BR', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (35, 1795659048675, 'state', '01M8ASX9NWP02JCHH61B39EZE6', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (36, 1795659048675, 'state', '01M8ASX9NXHDGEVZ1FCYNBKFXQ', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (37, 1795659048679, 'state', '01M8ASX9NXHF66XF154K7EMGRJ', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (38, 1795659048682, 'state', '01M8ASX9NXHGCYW7HKXEZED0BR', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (39, 1795659048682, 'state', '01M8ASX9NXHDGEVZ1FCYNBKFXQ', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (40, 1795659048685, 'state', '01M8ASX9NWP02JCHH61B39EZE6', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (41, 1795659048701, 'completed', '01M8ASX9NXHGCYW7HKXEZED0BR', '{"from":"uploading","to":"completed","url":"{ROOT}/copies/both/clip.xml"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (42, 1795659048702, 'completed', '01M8ASX9NXHDGEVZ1FCYNBKFXQ', '{"from":"uploading","to":"completed","url":"{ROOT}/copies/both/clip.mp4"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (43, 1795659048728, 'completed', '01M8ASX9NXHF66XF154K7EMGRJ', '{"from":"uploading","to":"completed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (44, 1795659048928, 'completed', '01M8ASX9NWP02JCHH61B39EZE6', '{"from":"uploading","to":"completed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (45, 1795659048937, 'source', '01M8ASX9NXHF66XF154K7EMGRJ', '{"note":"deleted","state":"released"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (46, 1795659048937, 'source', '01M8ASX9NXHGCYW7HKXEZED0BR', '{"note":"deleted","state":"released"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (47, 1795659048940, 'source', '01M8ASX9NWP02JCHH61B39EZE6', '{"note":"deleted","state":"released"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (48, 1795659048940, 'source', '01M8ASX9NXHDGEVZ1FCYNBKFXQ', '{"note":"deleted","state":"released"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (49, 1795659049312, 'added', '01M8ASXAB056DW44MDKRRR95SF', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (50, 1795659049312, 'added', '01M8ASXAB057N1WJ03S789CQ6T', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (51, 1795659049312, 'added', '01M8ASXAB0597XJ62NCYRZVZN6', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (52, 1795659049312, 'added', '01M8ASXAB05ACHKYGD2ZYX5PTK', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (53, 1795659049313, 'added', '01M8ASXAB05BD7CNZC1XYJVKNZ', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (54, 1795659049313, 'added', '01M8ASXAB1WBP2QEFJT495XE76', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (55, 1795659049313, 'added', '01M8ASXAB1WDGVA6WAHFMED1RS', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (56, 1795659049313, 'added', '01M8ASXAB1WFDXQWN8X5Z4PBT5', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (57, 1795659049384, 'state', '01M8ASXAB057N1WJ03S789CQ6T', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (58, 1795659049384, 'state', '01M8ASXAB057N1WJ03S789CQ6T', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (59, 1795659049384, 'completed', '01M8ASXAB057N1WJ03S789CQ6T', '{"from":"uploading","to":"completed","url":"{ROOT}/copies/moved/away.mp4"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (60, 1795659049385, 'state', '01M8ASXAB0597XJ62NCYRZVZN6', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (61, 1795659049385, 'state', '01M8ASXAB1WBP2QEFJT495XE76', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (62, 1795659049385, 'state', '01M8ASXAB1WDGVA6WAHFMED1RS', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (63, 1795659049385, 'state', '01M8ASXAB056DW44MDKRRR95SF', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (64, 1795659049385, 'state', '01M8ASXAB05BD7CNZC1XYJVKNZ', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (65, 1795659049385, 'state', '01M8ASXAB05ACHKYGD2ZYX5PTK', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (66, 1795659049409, 'state', '01M8ASXAB056DW44MDKRRR95SF', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (67, 1795659049424, 'source', '01M8ASXAB057N1WJ03S789CQ6T', '{"note":"","state":"kept"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (68, 1795659049448, 'state', '01M8ASXAB0597XJ62NCYRZVZN6', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (69, 1795659049490, 'failed', '01M8ASXAB0597XJ62NCYRZVZN6', '{"from":"uploading","to":"failed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (70, 1795659049510, 'state', '01M8ASXAB056DW44MDKRRR95SF', '{"from":"uploading","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (71, 1795659049517, 'quota_reached', NULL, '{"counts":"bytes","destination":"capped","direction":"sent","from":"2026-11-01T00:00:00.000Z","limit":"307200","network":"any","percent":"82","place":"destinations.capped","quota":"307 kB a month","threshold":"80","until":"2026-12-01T00:00:00.000Z","used":"254055"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (72, 1795659049517, 'quota_reached', NULL, '{"counts":"bytes","destination":"capped","direction":"sent","from":"2026-11-01T00:00:00.000Z","limit":"307200","network":"any","percent":"82","place":"destinations.capped","quota":"307 kB a month","threshold":"100","until":"2026-12-01T00:00:00.000Z","used":"254055"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (73, 1795659049914, 'added', '01M8ASXAXTYNJ106TEHF76B51T', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (74, 1795659049925, 'state', '01M8ASXAXTYNJ106TEHF76B51T', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (75, 1795659049929, 'state', '01M8ASXAXTYNJ106TEHF76B51T', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (76, 1795659049981, 'completed', '01M8ASXAXTYNJ106TEHF76B51T', '{"from":"uploading","to":"completed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (77, 1795659050008, 'source', '01M8ASXAXTYNJ106TEHF76B51T', '{"note":"","state":"kept"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (78, 1795659050135, 'state', '01M8ASXAB0597XJ62NCYRZVZN6', '{"from":"failed","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (79, 1795659050141, 'state', '01M8ASXAB0597XJ62NCYRZVZN6', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (80, 1795659050151, 'attempt', '01M8ASXAB0597XJ62NCYRZVZN6', '{"attempt":"1","code":"http_413"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (81, 1795659050189, 'failed', '01M8ASXAB0597XJ62NCYRZVZN6', '{"from":"uploading","to":"failed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (82, 1795659050479, 'state', '01M8ASXAB05BD7CNZC1XYJVKNZ', '{"hold":"operator","reason":"paused"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (83, 1795659050573, 'paused', NULL, '{"name":"export","scope":"folder"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (84, 1795659050669, 'paused', NULL, '{"name":"refused","scope":"destination"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (85, 1795659050782, 'cancelled', '01M8ASXAB1WBP2QEFJT495XE76', '{"from":"queued","to":"cancelled"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (86, 1795659050892, 'removed', '01M8ASX8PCX6ZW22Q15DK0EFBW', '{"list":"completed","reason":"dismissed"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (87, 1795659051061, 'allowed', '01M8ASXAB05ACHKYGD2ZYX5PTK', '{"by":"root","kind":"metered","name":"01M8ASXAB05ACHKYGD2ZYX5PTK","scope":"upload","until":"2027-02-24T02:10:51.061Z"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (88, 1795659051062, 'allowed', '01M8ASXAB05ACHKYGD2ZYX5PTK', '{"by":"root","kind":"quota","name":"01M8ASXAB05ACHKYGD2ZYX5PTK","scope":"upload","until":"2027-02-24T02:10:51.061Z"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (89, 1795659051183, 'allowed', NULL, '{"by":"root","kind":"window","name":"away","scope":"folder","until":"2027-02-24T02:10:51.181Z"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (90, 1795659051277, 'allowed', NULL, '{"by":"root","kind":"rate","name":"","scope":"all","until":"2027-02-24T02:10:51.277Z"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (91, 1795659051384, 'added', '01M8ASXCBREVM02RFGY1QY8NWH', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (92, 1795659051393, 'state', '01M8ASXCBREVM02RFGY1QY8NWH', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (93, 1795659052419, 'added', '01M8ASXDC34ERRK0KH3G98EQ47', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (94, 1795659052469, 'state', '01M8ASXDC34ERRK0KH3G98EQ47', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (95, 1795659052474, 'state', '01M8ASXDC34ERRK0KH3G98EQ47', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (96, 1795659055987, 'cancelled', '01M8ASXDC34ERRK0KH3G98EQ47', '{"from":"uploading","remote_id":"cancelled.mp4","to":"cancelled","url":"{S3}/bucket/cancelled.mp4"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (97, 1795659056261, 'added', '01M8ASXH4472EQFRTPZFH45M7Z', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (98, 1795659056287, 'state', '01M8ASXH4472EQFRTPZFH45M7Z', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (99, 1795659056306, 'added', '01M8ASXH5JSS7PSE89XEGKN7JX', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (100, 1795659056322, 'state', '01M8ASXH4472EQFRTPZFH45M7Z', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (101, 1795659056332, 'state', '01M8ASXH5JSS7PSE89XEGKN7JX', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (102, 1795659056356, 'added', '01M8ASXH74ZCV95BC3AM5B9XRE', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (103, 1795659056369, 'state', '01M8ASXH5JSS7PSE89XEGKN7JX', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (104, 1795659056449, 'added', '01M8ASXHA0M8WDRAQTJG257DGQ', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (105, 1795659056469, 'added', '01M8ASXHANRZDHD7WTE8NP21MH', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (106, 1795659056483, 'state', '01M8ASXH74ZCV95BC3AM5B9XRE', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (107, 1795659056587, 'state', '01M8ASXH74ZCV95BC3AM5B9XRE', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (108, 1795659057529, 'added', '01M8ASXJBRSJKH8W5Y6F81JRX0', '{}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (109, 1795659057539, 'state', '01M8ASXHA0M8WDRAQTJG257DGQ', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (110, 1795659057542, 'state', '01M8ASXHANRZDHD7WTE8NP21MH', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (111, 1795659057555, 'state', '01M8ASXHA0M8WDRAQTJG257DGQ', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (112, 1795659057564, 'state', '01M8ASXHANRZDHD7WTE8NP21MH', '{"from":"queued","to":"uploading"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (113, 1795659057782, 'state', '01M8ASXJBRSJKH8W5Y6F81JRX0', '{"from":"staging","to":"queued"}');
INSERT INTO event (seq, at, type, upload, detail) VALUES (114, 1795659057799, 'state', '01M8ASXJBRSJKH8W5Y6F81JRX0', '{"from":"queued","to":"uploading"}');
INSERT INTO hook (name, seq) VALUES ('told', 96);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 69, 1795659049490, '01M8ASXAB0597XJ62NCYRZVZN6', '{"detail":{"from":"uploading","to":"failed"},"op":{"attempt":0,"context":{},"created_at":"2026-11-26T02:10:49.312Z","destination":"refused","error":{"at":"2026-11-26T02:10:49.487Z","class":"permanent","code":"http_413","http":413,"message":"refused: {REFUSEDHOST} answered 413 to creation: larger than this server takes","retryable":false},"expires_at":"2026-12-26T02:10:49.490Z","finished_at":"2026-11-26T02:10:49.490Z","folder":"refused","generation":1,"holds":[],"id":"01M8ASXAB0597XJ62NCYRZVZN6","list":"failed","name":"no.mp4","path":"{ROOT}/drop/refused/no.mp4","priority":0,"progress":{"acked":0,"fraction":0,"sent":0,"total":2000},"relative":"no.mp4","settled_by":"lease","sha256":"be45f7be942a6d4c3f8d62468162e301977d655300009b87076b4dfcb20de735","size":2000,"source_action":"keep","source_state":"pending","started_at":"2026-11-26T02:10:49.448Z","state":"failed","warnings":[]},"seq":69,"ts":"2026-11-26T02:10:49.490Z","type":"failed"}
', 1, 25);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 81, 1795659050189, '01M8ASXAB0597XJ62NCYRZVZN6', '{"detail":{"from":"uploading","to":"failed"},"op":{"attempt":0,"context":{},"created_at":"2026-11-26T02:10:49.312Z","destination":"refused","error":{"at":"2026-11-26T02:10:50.187Z","class":"permanent","code":"http_413","http":413,"message":"refused: {REFUSEDHOST} answered 413 to creation: larger than this server takes","retryable":false},"expires_at":"2026-12-26T02:10:50.189Z","finished_at":"2026-11-26T02:10:50.189Z","folder":"refused","generation":2,"holds":[],"id":"01M8ASXAB0597XJ62NCYRZVZN6","list":"failed","name":"no.mp4","path":"{ROOT}/drop/refused/no.mp4","priority":0,"progress":{"acked":0,"fraction":0,"sent":0,"total":2000},"relative":"no.mp4","settled_by":"lease","sha256":"be45f7be942a6d4c3f8d62468162e301977d655300009b87076b4dfcb20de735","size":2000,"source_action":"keep","source_state":"pending","started_at":"2026-11-26T02:10:49.448Z","state":"failed","warnings":[]},"seq":81,"ts":"2026-11-26T02:10:50.189Z","type":"failed"}
', 0, 0);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 83, 1795659050573, NULL, '{"detail":{"name":"export","scope":"folder"},"seq":83,"ts":"2026-11-26T02:10:50.573Z","type":"paused"}
', 1, 11);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 84, 1795659050669, NULL, '{"detail":{"name":"refused","scope":"destination"},"seq":84,"ts":"2026-11-26T02:10:50.669Z","type":"paused"}
', 1, 5919);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 85, 1795659050782, '01M8ASXAB1WBP2QEFJT495XE76', '{"detail":{"from":"queued","to":"cancelled"},"op":{"attempt":0,"context":{},"created_at":"2026-11-26T02:10:49.313Z","destination":"away","expires_at":"2026-11-26T03:10:50.782Z","finished_at":"2026-11-26T02:10:50.782Z","folder":"away","generation":1,"holds":[],"id":"01M8ASXAB1WBP2QEFJT495XE76","list":"cancelled","name":"given up.mp4","path":"{ROOT}/drop/away/given up.mp4","priority":0,"progress":{"acked":0,"fraction":0,"sent":0,"total":2600},"relative":"given up.mp4","remote_delete":"none","settled_by":"lease","sha256":"228bfff209047494152f6999daf070867e6b48c7f3c82314d2f8dd5e713399ee","size":2600,"source_action":"keep","source_state":"pending","state":"cancelled","warnings":[]},"seq":85,"ts":"2026-11-26T02:10:50.782Z","type":"cancelled"}
', 0, 0);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 86, 1795659050892, '01M8ASX8PCX6ZW22Q15DK0EFBW', '{"detail":{"list":"completed","reason":"dismissed"},"op":{"attempt":0,"context":{},"created_at":"2026-11-26T02:10:47.628Z","destination":"nas","expires_at":"2027-02-24T02:10:47.778Z","finished_at":"2026-11-26T02:10:47.778Z","folder":"nas","generation":1,"holds":[],"id":"01M8ASX8PCX6ZW22Q15DK0EFBW","list":"history","name":"small 1.mp4","path":"{ROOT}/drop/nas/small 1.mp4","priority":0,"progress":{"acked":3000,"fraction":1,"sent":3000,"total":3000},"relative":"small 1.mp4","remote":{"verified_by":"offset"},"settled_by":"lease","sha256":"46f684cf0f505393fa8ba6adc96dd845d4884b07edf4bedd2ab0a12c02c73f8f","size":3000,"source_action":"keep","source_state":"kept","started_at":"2026-11-26T02:10:47.716Z","state":"completed","warnings":[]},"seq":86,"ts":"2026-11-26T02:10:50.892Z","type":"removed"}
', 0, 0);
INSERT INTO notice (hook, seq, at, upload, body, tries, waited) VALUES ('told', 96, 1795659055987, '01M8ASXDC34ERRK0KH3G98EQ47', '{"detail":{"from":"uploading","remote_id":"cancelled.mp4","to":"cancelled","url":"{S3}/bucket/cancelled.mp4"},"op":{"attempt":0,"context":{},"created_at":"2026-11-26T02:10:52.419Z","destination":"bucket","expires_at":"2026-11-26T03:10:55.987Z","finished_at":"2026-11-26T02:10:55.987Z","folder":"bucket","generation":1,"holds":[],"id":"01M8ASXDC34ERRK0KH3G98EQ47","list":"cancelled","name":"cancelled.mp4","path":"{ROOT}/drop/bucket/cancelled.mp4","priority":0,"progress":{"acked":5242880,"eta":4,"fraction":0.45200066666666666,"rate":1539692,"sent":5424008,"total":12000000},"relative":"cancelled.mp4","remote":{"id":"cancelled.mp4","url":"{S3}/bucket/cancelled.mp4"},"remote_delete":"pending","settled_by":"lease","sha256":"b00b5d5039a40f0efa4b9077b3a0bbc4ebe3a7fa6c162bf2fc5cbe1510259b50","size":12000000,"source_action":"keep","source_state":"pending","started_at":"2026-11-26T02:10:52.474Z","state":"cancelled","warnings":[]},"seq":96,"ts":"2026-11-26T02:10:55.987Z","type":"cancelled"}
', 0, 0);
INSERT INTO remote_delete (id, upload, destination, checkpoint, tries, created_at, earlier) VALUES (1, '01M8ASXDC34ERRK0KH3G98EQ47', 'bucket', '{"asked_at":"1795659052481","begun":"1","checksum":"md5","key":"cancelled.mp4","part_size":"5242880","rule":"short","server":"{S3HOST}/bucket","sha256":"b00b5d5039a40f0efa4b9077b3a0bbc4ebe3a7fa6c162bf2fc5cbe1510259b50","size":"12000000","upload":"2~1/+=%"}', 2, 1795659055986, 0);
INSERT INTO pause (scope, name, since, until) VALUES ('destination', 'refused', 1795659050669, NULL);
INSERT INTO pause (scope, name, since, until) VALUES ('folder', 'export', 1795659050573, 1803435050573);
INSERT INTO exception (scope, name, kind, since, until, who, value) VALUES ('all', '', 'rate', 1795659051277, 1803435051277, 'root', 9000000);
INSERT INTO exception (scope, name, kind, since, until, who, value) VALUES ('folder', 'away', 'window', 1795659051181, 1803435051181, 'root', NULL);
INSERT INTO exception (scope, name, kind, since, until, who, value) VALUES ('upload', '01M8ASXAB05ACHKYGD2ZYX5PTK', 'metered', 1795659051061, 1803435051061, 'root', NULL);
INSERT INTO exception (scope, name, kind, since, until, who, value) VALUES ('upload', '01M8ASXAB05ACHKYGD2ZYX5PTK', 'quota', 1795659051061, 1803435051061, 'root', NULL);
INSERT INTO reception (asset) VALUES (25);
INSERT INTO turn (destination, folder, last) VALUES ('', 'archive', 1);
INSERT INTO turn (destination, folder, last) VALUES ('', 'away', 16);
INSERT INTO turn (destination, folder, last) VALUES ('', 'both', 7);
INSERT INTO turn (destination, folder, last) VALUES ('', 'bucket', 23);
INSERT INTO turn (destination, folder, last) VALUES ('', 'form', 19);
INSERT INTO turn (destination, folder, last) VALUES ('', 'limited', 12);
INSERT INTO turn (destination, folder, last) VALUES ('', 'moved', 3);
INSERT INTO turn (destination, folder, last) VALUES ('', 'nas', 18);
INSERT INTO turn (destination, folder, last) VALUES ('', 'oss', 21);
INSERT INTO turn (destination, folder, last) VALUES ('', 'place', 11);
INSERT INTO turn (destination, folder, last) VALUES ('', 'refused', 9);
INSERT INTO turn (destination, folder, last) VALUES ('', 'twice', 8);
INSERT INTO turn (destination, folder, last) VALUES ('', 'video', 20);
INSERT INTO turn (destination, folder, last) VALUES ('', 'vod', 22);
INSERT INTO turn (destination, folder, last) VALUES ('archive', 'archive', 2);
INSERT INTO turn (destination, folder, last) VALUES ('bucket', 'bucket', 2);
INSERT INTO turn (destination, folder, last) VALUES ('capped', 'limited', 2);
INSERT INTO turn (destination, folder, last) VALUES ('copies', 'both', 3);
INSERT INTO turn (destination, folder, last) VALUES ('copies', 'moved', 1);
INSERT INTO turn (destination, folder, last) VALUES ('form', 'form', 1);
INSERT INTO turn (destination, folder, last) VALUES ('nas', 'both', 4);
INSERT INTO turn (destination, folder, last) VALUES ('nas', 'nas', 6);
INSERT INTO turn (destination, folder, last) VALUES ('oss', 'oss', 1);
INSERT INTO turn (destination, folder, last) VALUES ('refused', 'refused', 2);
INSERT INTO turn (destination, folder, last) VALUES ('video', 'video', 1);
INSERT INTO turn (destination, folder, last) VALUES ('vod', 'vod', 1);
INSERT INTO setting (name, value) VALUES ('order', 'newest-first');
INSERT INTO setting (name, value) VALUES ('quota marks', '{"stretches":[{"from":1793491200000,"level":100,"name":"destinations.capped: sent bytes month 1 any","told":[{"limit":307200,"threshold":80},{"limit":307200,"threshold":100}],"until":1796083200000}]}');
INSERT INTO setting (name, value) VALUES ('speed bucket', '1532943');
INSERT INTO setting (name, value) VALUES ('speed capped', '144081');
INSERT INTO setting (name, value) VALUES ('speed nas', '22160');
INSERT INTO setting (name, value) VALUES ('used up 1793491200000 destinations.capped: 307 kB a month', '1795659049424');
INSERT INTO setting (name, value) VALUES ('watched:archive', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:away', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:both', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:bucket', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:export', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:form', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:limited', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:moved', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:nas', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:oss', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:place', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:refused', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:twice', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:video', '2026-11-26T02:10:46.332Z');
INSERT INTO setting (name, value) VALUES ('watched:vod', '2026-11-26T02:10:46.332Z');
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('archive', 'queued', 'archive', 1, 5000000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('archive', 'staging', 'archive', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('archive', 'uploading', 'archive', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('away', 'cancelled', 'away', 1, 2600);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('away', 'queued', 'away', 3, 5400);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('away', 'queued', 'place', 1, 7000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('away', 'staging', 'away', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('away', 'staging', 'place', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('bucket', 'cancelled', 'bucket', 1, 12000000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('bucket', 'queued', 'bucket', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('bucket', 'staging', 'bucket', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('bucket', 'uploading', 'bucket', 1, 17000000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('capped', 'completed', 'limited', 1, 5000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('capped', 'queued', 'limited', 1, 400000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('capped', 'staging', 'limited', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('capped', 'uploading', 'limited', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'completed', 'both', 2, 20300);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'completed', 'moved', 1, 5000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'completed', 'twice', 1, 5000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'queued', 'both', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'queued', 'moved', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'queued', 'twice', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'staging', 'both', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'staging', 'export', 1, 7000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'staging', 'moved', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'staging', 'twice', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'uploading', 'both', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'uploading', 'moved', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('copies', 'uploading', 'twice', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('form', 'queued', 'form', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('form', 'staging', 'form', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('form', 'uploading', 'form', 1, 1200000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'completed', 'both', 2, 20300);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'completed', 'nas', 2, 7939);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'queued', 'both', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'queued', 'nas', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'removed', 'nas', 1, 3000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'staging', 'both', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'staging', 'nas', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'uploading', 'both', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('nas', 'uploading', 'nas', 1, 1200000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('oss', 'queued', 'oss', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('oss', 'staging', 'oss', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('oss', 'uploading', 'oss', 1, 2000000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('refused', 'failed', 'refused', 1, 2000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('refused', 'queued', 'refused', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('refused', 'staging', 'refused', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('refused', 'uploading', 'refused', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('video', 'queued', 'video', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('video', 'staging', 'video', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('video', 'uploading', 'video', 1, 1200000);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('vod', 'queued', 'vod', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('vod', 'staging', 'vod', 0, 0);
INSERT INTO tally (destination, state, folder, uploads, bytes) VALUES ('vod', 'uploading', 'vod', 1, 2000000);
INSERT INTO staged_total (one, bytes) VALUES (1, 30007400);
INSERT INTO media (asset, recorded, duration, width, height, make, model) VALUES (16, 1714558830000, 1000, 64, 48, 'Acme', 'Trail 9');
INSERT INTO part_digest (asset, digests) VALUES (22, X'01000004000000000000010000000000008d58f78262814753d26e24a05e1f6583b067c42c6b80547f57000714b1a25057fa166fa3deeab3b197fac1761b7ee0d249aeedf7263377275578e87435415fcae7dd5218312369e4ba9b10efa9a50590af41a8b3ee4f93dece80a5bb98e247d5a6dfdaba3e317fad99f2ba5e0117a35fa72667f212df1bf8b6d9f69ef310f0e736a89c0ca319d360450cb553b329207e8e214293cad3b0a7ce56532245b7090a4335e330bdc2c3caf88b92cc62e99b293451c7c5a3a1359cdd14d784bef194269d26397016a44385932d85401167a5abb5955720a7e2f476ad2c00051846f8983236ed375eea679a95ebae6cf41ab4acde66009a9c1356b412ed227a006bfa79020000040000000000800000000000000083e23d9fe24731d9b5473712b057e28205348e4a43cad2c37e6bc28103557592e6c37ba9e2da7c447ba56e674a0d9646797acde62afa3f697bcc9e4a2714ba50265387d16cb637eee8d37596407620ffea59c1f73f4570a9205859438379e4b42ebe02cae6440f96844fe204bacc2eb535511a49e827cf1970f463342f6f671d050000040000000000400000000000000036ae43755e22c5f3653ee7b83a490005918f0aef96f54e1fc21fae22f29e8be9fe30a0c13dceedfaada0040c59a5280c5911e95bf5196616dca9e24404993999');
INSERT INTO part_digest (asset, digests) VALUES (23, X'0100000400000000000001000000000000b22fd22508a4897293d7754ec6a3157574e8de9d8ad7339f056e4fac5d0d6f25eef17fba1e2f54cffe98d79418b608d50504fc7733205fabb68e47b7c301e9c604a4c488ed188c9d71bc128b1c13e6197b5fac5dff27da62da4388f63ef037bf5490a5db07556d97dc7f456b11bb5d8caf8692068de76990e03640e8de695b09a5dafe863981f63b0c74f4520af59e9d1c3ad62e3f7d62eed376acb3d4cdfcdc9fbbc56ad1d83a4bc14a8bed1db4e5cb39c4293f49ad224dfbdb9895a085b5811326ef9cddd2e2a98663f6d6d828b026b908c12c107625a95cbbf5a7ecff239f829f2e54968750baf2447de691a392f73fad5861f7e532f7376725f681bb5dcb0200000400000000008000000000000000b7315b814425c9145f837ac7164630e54a906a5045edac5ca1778d387933763ea1884f8133ac032b7600fc6837dd03d885030e6817e22fecb355f0a9df3b9db468ced1651c1ebe43d56333d4f75d14fde5e4eb82ae0f4681c832d5a407dbadbb2a4d94eaff64f6f8584256528828d6aae0d1a9afdbe6397e172407d50ceaef660500000400000000004000000000000000939cab351028a7fec00c0ff87443620834bde2afd8ff2c12672d4662bc94e9e45b02488173c48ff70892ec4c17af4a01fc23011bbb13041bd9868208b706f417');
INSERT INTO part_digest (asset, digests) VALUES (24, X'010000500000000000800000000000000064068f2f96e0d8ba8004c87621b8cb3dfca7ea3b6d8fc080c4725b162962defc1a787806d762282a158ecda121ed2d29bf391cc94cd44ec653a064a7a7eb563c9b01167db6a0a49b50fddfc8879d28d2e43cd07d3456da4a497a0e196fb309cb2420f00a711b9885f33372afceff63c3d225774042a36766ae16d3355af1be7b02000050000000000040000000000000002ae73074eab8873b5a7b8f30d285752ea8e7f8b16d10aa3dd2d0805385f61bbaf59e43c9bb91d88b4962206f485b564923468e3fa9d84a55b2f15b20b2a88df6');
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/archive' AS BLOB), 'ext4:/dev/vda', 16573557, 1795659045977344818, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/away' AS BLOB), 'ext4:/dev/vda', 16573732, 1795659045979505577, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/both' AS BLOB), 'ext4:/dev/vda', 16573589, 1795659045977815737, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/bucket' AS BLOB), 'ext4:/dev/vda', 16572871, 1795659045971505577, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/export' AS BLOB), 'ext4:/dev/vda', 16573668, 1795659045978835229, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/form' AS BLOB), 'ext4:/dev/vda', 16573429, 1795659045975482333, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/limited' AS BLOB), 'ext4:/dev/vda', 16573763, 1795659045980533038, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/moved' AS BLOB), 'ext4:/dev/vda', 16573829, 1795659045981484914, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/nas' AS BLOB), 'ext4:/dev/vda', 16572839, 1795659045971505577, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/oss' AS BLOB), 'ext4:/dev/vda', 16573490, 1795659045976521922, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/place' AS BLOB), 'ext4:/dev/vda', 16573621, 1795659045978257100, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/refused' AS BLOB), 'ext4:/dev/vda', 16573701, 1795659045979505577, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/twice' AS BLOB), 'ext4:/dev/vda', 16573797, 1795659045981007062, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/video' AS BLOB), 'ext4:/dev/vda', 16573460, 1795659045975505577, 0);
INSERT INTO folder_identity (path, file_system, inode, born, owner) VALUES (CAST('{ROOT}/drop/vod' AS BLOB), 'ext4:/dev/vda', 16573524, 1795659045976921979, 0);
CREATE INDEX asset_relative ON asset (relative);
CREATE INDEX asset_unsettled ON asset (id) WHERE state = 'unsettled';
CREATE INDEX asset_leaf ON asset (substr(relative, 1 + length(CAST(rtrim(CAST(relative AS TEXT), replace(CAST(relative AS TEXT), '/', '')) AS BLOB))));
CREATE INDEX asset_due ON asset (id) WHERE due = 1;
CREATE INDEX asset_unit ON asset (unit) WHERE unit IS NOT NULL;
CREATE INDEX asset_kept ON asset (folder, kept_at) WHERE kept_at IS NOT NULL;
CREATE INDEX upload_next ON upload (destination, folder, rank, sort, id, backoff_until)
    WHERE state = 'queued' AND paused_at IS NULL;
CREATE INDEX upload_class ON upload (destination, folder, state, id);
CREATE INDEX upload_paused ON upload (id) WHERE paused_at IS NOT NULL;
CREATE INDEX upload_asset ON upload (asset);
CREATE INDEX upload_list ON upload (state, id);
CREATE INDEX upload_age ON upload (state, ran_at) WHERE ran_at IS NOT NULL;
CREATE INDEX upload_remote_id ON upload (CASE WHEN json_valid(remote) THEN json_extract(remote, '$.id') END) WHERE remote IS NOT NULL;
CREATE INDEX upload_remote_url ON upload (CASE WHEN json_valid(remote) THEN json_extract(remote, '$.url') END) WHERE remote IS NOT NULL;
CREATE INDEX upload_backoff ON upload (backoff_until) WHERE backoff_until > 0;
CREATE UNIQUE INDEX upload_key ON upload (key, destination)
    WHERE key IS NOT NULL AND state IN ('staging', 'queued', 'uploading');
CREATE INDEX upload_by_key ON upload (key) WHERE key IS NOT NULL;
CREATE TRIGGER part_out AFTER DELETE ON checkpoint BEGIN
    DELETE FROM part WHERE upload = old.upload;
END;
CREATE INDEX failure_upload ON failure (upload, id);
CREATE INDEX usage_counted ON usage (counted) WHERE counted IS NOT NULL;
CREATE INDEX tombstone_seen ON tombstone (seen_at);
CREATE INDEX history_upload ON history (upload);
CREATE INDEX history_remote ON history (destination, remote_id) WHERE remote_id IS NOT NULL;
CREATE INDEX history_content ON history (sha256, destination, folder, relative) WHERE outcome = 'completed';
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
CREATE INDEX asset_to_copy ON asset (folder, priority DESC, sort, id)
    WHERE state = 'arrived' AND keeping <> 'export';
CREATE INDEX asset_to_export ON asset (folder, priority DESC, sort, id)
    WHERE state = 'arrived' AND keeping = 'export';
CREATE INDEX asset_in_place ON asset (folder, file_system) WHERE keeping = 'in-place' AND state = 'staged';
CREATE INDEX upload_begun ON upload (destination, id) WHERE state = 'queued' AND started_at IS NOT NULL;
CREATE TRIGGER staged_move AFTER UPDATE OF state, size, staged_size ON asset WHEN new.keeping <> 'in-place' BEGIN
    UPDATE staged_total SET bytes = bytes
        - CASE WHEN old.state = 'staged' THEN coalesce(old.staged_size, old.size) ELSE 0 END
        + CASE WHEN new.state = 'staged' THEN coalesce(new.staged_size, new.size) ELSE 0 END;
END;
CREATE TRIGGER part_digest_end AFTER UPDATE OF state ON asset WHEN old.state = 'staged' AND new.state <> 'staged'
BEGIN
    DELETE FROM part_digest WHERE asset = old.id;
END;
CREATE INDEX upload_named ON upload (named) WHERE named IS NOT NULL;
CREATE INDEX upload_named_url ON upload (named_url) WHERE named_url IS NOT NULL;
PRAGMA user_version = 12;
COMMIT;
