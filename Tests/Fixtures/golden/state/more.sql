-- Rows that a run of some seconds does not leave, written by hand: each state, type and field of a checkpoint that state.sql lacks.

-- A file that changed before it was copied, and a source whose release was begun.
INSERT INTO asset (id, folder, root, relative, size, modified, changed, settled_by, state, action, source_state, priority, sort, arrived_at)
VALUES (101, 'away', CAST('{ROOT}/drop/away' AS BLOB), CAST('changed.mp4' AS BLOB), 10, 1, 1, 'quiet', 'unsettled', 'keep', 'untouched', 0, 0, 1795659050000),
    (102, 'away', CAST('{ROOT}/drop/away' AS BLOB), CAST('going.mp4' AS BLOB), 10, 1, 1, 'container', 'dropped', 'delete', 'releasing', 0, 0, 1795659050000);

-- Paused uploads: nothing asks for them, and their checkpoints have every field that the engines know.
INSERT INTO upload (id, asset, folder, destination, name, media_type, context, metadata, headers, size, modified, rank, sort, state, generation,
    attempt, paused_at, backoff_until, acked, sent, created_at, started_at, trouble, troubled_at, tried_again, failing_since, left_there)
VALUES
    ('01M8ASXH4472EQFRTPZFH45M9A', 19, 'nas', 'nas', CAST('offset.mp4' AS BLOB), 'video/mp4', '{}', '{}', '{}', 1200000, 1, 0, 0, 'queued', 2,
        3, 1795659060000, 0, 262144, 300000, 1795659060000, 1795659060000, 'http_503', 1795659060000, 1, 500, 1),
    ('01M8ASXH4472EQFRTPZFH45M9B', 24, 'bucket', 'bucket', CAST('parts.mp4' AS BLOB), 'video/mp4', '{}', '{}', '{}', 17000000, 1, 0, 0, 'queued', 1,
        1, 1795659060000, 0, 5242880, 5242880, 1795659060000, 1795659060000, NULL, NULL, 0, NULL, 0),
    ('01M8ASXH4472EQFRTPZFH45M9C', 21, 'video', 'video', CAST('video.mp4' AS BLOB), 'video/mp4', '{}', '{}', '{}', 1200000, 1, 0, 0, 'queued', 1,
        0, 1795659060000, 0, 0, 0, 1795659060000, 1795659060000, NULL, NULL, 0, NULL, 0),
    ('01M8ASXH4472EQFRTPZFH45M9D', 101, 'away', 'away', CAST('changed.mp4' AS BLOB), 'video/mp4', '{}', '{}', '{}', 10, 1, 0, 0, 'staging', 1,
        0, 1795659060000, 0, 0, 0, 1795659060000, NULL, NULL, NULL, 0, NULL, 0),
    ('01M8ASXH4472EQFRTPZFH45M9E', 102, 'away', 'away', CAST('going.mp4' AS BLOB), 'video/mp4', '{}', '{}', '{}', 10, 1, 0, 0, 'completed', 1,
        0, NULL, 0, 10, 10, 1795659060000, 1795659060000, NULL, NULL, 0, NULL, 0);
UPDATE upload SET remote = '{"id":"going","verifiedBy":"offset","warnings":["a warning"]}', finished_at = 1795659061000, ran_at = 9000
WHERE id = '01M8ASXH4472EQFRTPZFH45M9E';
INSERT INTO checkpoint (upload, body) VALUES
    ('01M8ASXH4472EQFRTPZFH45M9A', '{"answered":"1","assumed":"1","blind_looks":"1","blind_since":"1795659060000","concluding":"offset_unanswered","conflict_peak":"262144","conflict_since":"1795659060000","conflicts":"2","creating":"1","damaged":"1","damaged_at":"100","ended_in":"1","foreign_seen":"1","gone_seen":"1","last_byte_again":"1","left_to_others":"other","losses":"2","missing_in":"1","of_another":"1","offset":"262144","orphans":"1","patch_refused":"1","perhaps_twice":"before","reach":"300000","reconfirmed":"1","refused_before":"413","refused_in":"1","refused_status":"413","refused_url":"{NAS}/files/other","refused_words":"too large","regressions":"1","rejections":"1","restarts":"1","reuploaded":"1","sent_from":"262144","sent_size":"37856","sent_to":"300000","server":"{NAS}","taken":"262144","unclear_end":"1","url":"{NAS}/files/none","whole_lost":"1"}'),
    ('01M8ASXH4472EQFRTPZFH45M9B', '{"asked_at":"1795659057821","asking":"1","beginnings":"2","begun":"1","checksum":"md5","complete":"1","completing":"1","completions_refused":"1","damaged":"1","denied":"1","doubled":"1","end_unanswered":"1","ended_in":"1","found_again":"1","gone_seen":"1","held_before":"1","key":"parts.mp4","last_left":"1","left_to_others":"other","lost":"1","orphans":"1","part_size":"5242880","refused_before":"403","remains":"1","restarts":"1","reuploaded":"1","rule":"short","server":"{S3HOST}/bucket","settled":"1","sha256":"8fca6c06b6ed48ad5a2b06cbbe985dc4bc691cf36aeabe0f64ebe9426a1df07d","size":"17000000","upload":"2~9/+=%"}'),
    ('01M8ASXH4472EQFRTPZFH45M9C', '{"asked_at":"1795659057821","asked_by":"1","asked_name":"video.mp4","asked_size":"1200000","creating":"1","ending_at":"1795659057821","ending_size":"1200000","flow":"ticket","link":"https://vimeo.example/9","picture":"/videos/9/pictures/1","seen":"/videos/9","seen_at":"1795659057821","server":"{VIMEO}","settings_tries":"1","ticket_at":"1795659057821","video":"/videos/9","video_size":"1200000"}');
INSERT INTO part (upload, number, size, tag) VALUES ('01M8ASXH4472EQFRTPZFH45M9B', 0, 5242880, '"9-5242880-9"');
INSERT INTO waste (upload, at, bytes) VALUES ('01M8ASXH4472EQFRTPZFH45M9A', 1795659060000, 37856), ('01M8ASXH4472EQFRTPZFH45M9A', 0, 1000);
INSERT INTO failure (upload, generation, attempt, body) VALUES
    ('01M8ASXH4472EQFRTPZFH45M9A', 1, 3, '{"at":1795659060000,"code":"http_413","http":413,"kind":"permanent","message":"too large","retryable":false}'),
    ('01M8ASXH4472EQFRTPZFH45M9A', 2, 1, '{"at":1795659060000,"code":"short_of_quota","isWait":true,"kind":"quota","message":"too early","retryable":true}');
INSERT INTO tombstone (folder, relative, size, modified, asset, seen_at) VALUES ('away', CAST('before.mp4' AS BLOB), 10, 1, NULL, 1795659050000);
INSERT INTO event (at, type, upload, detail) VALUES
    (1795659060001, 'attempt_failed', '01M8ASXH4472EQFRTPZFH45M9A', '{"error":"http_503","message":"not now"}'),
    (1795659060002, 'recovered', '01M8ASXH4472EQFRTPZFH45M9A', '{"after":"12","attempt":"2"}'),
    (1795659060003, 'credential', '01M8ASXH4472EQFRTPZFH45M9A', '{"reason":"refused","until":"2026-11-26T03:11:00.000Z"}'),
    (1795659060004, 'safe_to_remove', NULL, '{"failed":"0","folders":"nas","level":"verified","medium":"ext4:/dev/sdb1","path":"/media/card","unverified":"0"}'),
    (1795659060005, 'flushed', NULL, '{"count":"3","lists":"completed"}'),
    (1795659060006, 'resumed', NULL, '{"name":"nas","scope":"folder"}'),
    (1795659060007, 'remote_delete', '01M8ASXH4472EQFRTPZFH45M9A', '{"result":"done"}');

-- A folder notes an offset behind each 64 MiB, and the recorded file is smaller.
UPDATE checkpoint SET body = json_set(body, '$.offset', '3145728') WHERE upload = '01M8ASX7Y6KRBE3TNPS9XTR040';
UPDATE upload SET acked = 3145728 WHERE id = '01M8ASX7Y6KRBE3TNPS9XTR040';
