import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// One type with the fields of an engine or a dialect, without its static type.
private struct DeclaredType: Sendable, CustomTestStringConvertible {
    let name: String
    /// The text of a value for each field that it declares, as it stands in a stored checkpoint.
    let examples: [String: String]
    /// Fields by the name in a stored checkpoint.
    let fields: [String: any AnyField]
    var testDescription: String { name }

    init<Fields: CheckpointFields>(_ name: String, _ fields: Fields, _ examples: [String: String]) {
        self.name = name
        self.examples = examples
        let all = Mirror(reflecting: fields).children.compactMap { $0.value as? any AnyField }
        self.fields = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
    }
}

private protocol AnyField: Sendable {
    var name: String { get }
    /// Reads the value, and sets it again.
    func rewrite(_ checkpoint: inout Checkpoint)
    /// Sets the value of an empty checkpoint.
    func reset(_ checkpoint: inout Checkpoint)
}

extension CheckpointField: AnyField {
    func rewrite(_ checkpoint: inout Checkpoint) { checkpoint[self] = checkpoint[self] }
    func reset(_ checkpoint: inout Checkpoint) { checkpoint[self] = Checkpoint()[self] }
}

private let declared = [
    DeclaredType(
        "both engines", EngineFields.all,
        [
            "creating": "1", "orphans": "2", "restarts": "3", "gone_seen": "1", "damaged": "2", "reuploaded": "1",
            "ended_in": "1", "refused_status": "413", "refused_words": "too \"large\"", "refused_in": "2",
            "final_answer": "1", "unclear_end": "502", "refused_before": "413", "assumed": "1", "doubled": "1",
            "held_before": "1",
            "whole_lost": "1", "of_another": "1", "left_to_others": "a, b", "perhaps_twice": "before",
        ]),
    DeclaredType(
        "the offset engine", OffsetCheckpoint.fields,
        [
            "url": "http://nas/files/1", "server": "http://nas", "expires": "1795659057821", "offset": "262144",
            "taken": "262144", "answered": "1",
            "concluding": "offset_unanswered", "reach": "300000", "may_be_whole": "1", "delivered_whole": "1",
            "refused_url": "http://nas/files/0", "rejections": "1", "regressions": "2", "missing_in": "1",
            "foreign_seen": "1", "doubts": "2", "damaged_at": "100", "conflicts": "4",
            "conflict_since": "1795659060000", "conflict_peak": "9", "blind_looks": "1",
            "blind_since": "1795659060000", "sent_from": "0", "sent_to": "37856", "sent_size": "65536", "losses": "1",
            "small_loss": "70000", "last_byte_again": "1",
        ]),
    DeclaredType(
        "the parts engine", PartsCheckpoint.fields,
        [
            "begun": "1", "found_again": "1", "part_size": "100000", "rule": "merge", "size": "1200000",
            "sha256": "f04e79", "sending": "3", "completing": "1", "done": "11", "done_url": "http://form/1",
            "done_by": "acknowledgement", "reconfirmed": "1", "last_left": "1", "end_unanswered": "1", "reach": "7",
            "final_sent": "1", "delivered": "1", "beginnings": "2", "lost": "1", "completions_refused": "1",
            "denied": "1", "remains": "1", "part_cuts": "2", "part_cut_size": "16777216",
        ]),
    DeclaredType(
        "the whole engine", WholeCheckpoint.fields,
        ["part": "front/.a.mp4.sluice-01-1.part", "sha256": "f63214", "offset": "3145728"]),
    DeclaredType(
        "tus in sections", ConcatenationCheckpoint.fields,
        [
            "section_ends": "8388608\n17825792", "section_content": "f04e79", "single": "1", "joining": "1",
            "join_refused": "1", "join_answer": "nas answered 500",
            "joined_at": "1795659057821", "location": "/files/24e5",
        ]),
    DeclaredType("Bunny Stream", BunnyCheckpoint.fields, ["video": "0273f24a"]),
    DeclaredType(
        "Resumable Uploads for HTTP", ResumableHTTPCheckpoint.fields,
        [
            "interop": "9", "complete": "1", "complete_unanswered": "1", "complete_unmarked": "1",
            "final_url": "http://nas/a.mp4", "max_append": "300", "min_append": "100", "patch_refused": "1",
        ]),
    DeclaredType(
        "tus", TusCheckpoint.fields,
        [
            "patch_refused": "1", "object_id": "cab807e0", "method_override": "1", "creation_body_refused": "1",
            "creation_at": "1 24e5", "creation_repeats": "1", "next_creation": "1795659057821",
        ]),
    DeclaredType(
        "Vimeo", VimeoCheckpoint.fields,
        [
            "flow": "four-step", "video": "/videos/9", "link": "https://vimeo.example/9", "video_size": "1200000",
            "found": "1", "asked_at": "1795659057821", "asked_by": "box", "asked_size": "1200000", "asked_name": "",
            "seen": "/videos/9", "seen_at": "1795659057821", "complete": "/users/1/uploads/2",
            "ticket_at": "1795659057821", "ending_at": "1795659057821", "ending_size": "1200000", "settled": "1",
            "settings_tries": "2", "missing": "1", "polls": "3", "waits_since": "1795659057821",
        ]),
    DeclaredType(
        "a picture at Vimeo", VimeoPictureCheckpoint.fields,
        [
            "url": "http://vimeo/1", "server": "http://vimeo", "picture": "/videos/9/pictures/1", "sent": "1",
            "losses": "2",
        ]),
    DeclaredType(
        "S3 and OSS", S3Checkpoint.fields,
        [
            "server": "s3.example/bucket", "key": "a b/c.mp4", "upload": "2~9/+=%", "checksum": "crc64nvme",
            "asked_at": "1795659057821", "taken_names": "1",
        ]),
    DeclaredType(
        "Apsara VOD", ApsaraCheckpoint.fields,
        [
            "sort": "video", "media": "da2f", "media_endpoint": "https://oss.example", "bucket": "outin",
            "key": "sv/5d.mp4", "media_region": "cn-shanghai", "image_url": "https://img.example/1",
            "grant_id": "STS.N", "grant_secret": "s", "grant_token": "t", "grant_end": "1795662058000",
            "grant_until": "1795662058001", "reference": "sluice-b4", "asking": "1", "media_count": "1",
            "lost_media": "2", "left_media": "3", "file": "large.mp4", "former": "aa", "failed_media": "aa, bb",
            "twice_media": "cc", "transferred": "parts", "warnings": "one\ntwo", "missing": "1", "missing_in": "1",
            "polls": "4", "waits_since": "1795659057821",
        ]),
    DeclaredType(
        "a chunked form", FormCheckpoint.fields,
        [
            "server": "http://form", "preset": "resumable", "id": "12-a", "token": "t", "name": "front/clip.mp4",
            "mime": "video/mp4",
        ]),
]

@Suite("Typed checkpoints")
struct TypedCheckpointTests {
    @Test("each field has the name that is stored", arguments: declared)
    fileprivate func names(_ type: DeclaredType) {
        #expect(Set(type.fields.keys) == Set(type.examples.keys))
    }

    @Test("each field is written as it was read, byte for byte, and no other field changes", arguments: declared)
    fileprivate func roundTrips(_ type: DeclaredType) {
        let stored = Checkpoint(type.examples.merging(["of_a_newer_program": "{\"a\": 1}"]) { $1 })
        for (name, field) in type.fields {
            var checkpoint = stored
            field.rewrite(&checkpoint)
            #expect(checkpoint == stored, "\(name)")
            field.reset(&checkpoint)
            var without = stored
            without.remove([name])
            #expect(checkpoint == without, "\(name)")
        }
    }

    @Test("every field of the stored checkpoints of an older program is written as it was read")
    func goldenCheckpoints() throws {
        let known = Dictionary(grouping: declared.flatMap(\.fields), by: \.key).mapValues { $0.map(\.value) }
        var seen: Set<String> = []
        let checkpoints = try Self.goldenCheckpoints()
        #expect(checkpoints.count >= 11)
        for stored in checkpoints {
            for (name, text) in stored.fields {
                seen.insert(name)
                let fields = try #require(known[name], "no type declares \(name)")
                // Several types may give different meanings to a name. At least one of them has read this text.
                let isKept = fields.contains { field in
                    var checkpoint = stored
                    field.rewrite(&checkpoint)
                    return checkpoint == stored
                }
                // A handwritten file has a few values that no program writes.
                let isForeign = name == "flow" && text == "ticket" || name == "asked_by" && text == "1"
                #expect(isKept || isForeign, "\(name): \(text)")
            }
        }
        #expect(
            seen.isSuperset(of: ["part", "taken", "begun", "video", "upload", "grant_secret", "preset", "picture"]))
    }

    @Test("a text that cannot be read counts as absent, and stays until the value is set")
    func unreadableTexts() {
        var checkpoint = PartsCheckpoint(
            Checkpoint(["orphans": "many", "rule": "spiral", "begun": "yes", "refused_status": "x", "ended_in": "2"]))
        #expect(checkpoint.orphans == nil && checkpoint.has(\.orphans) && checkpoint.rule == nil)
        #expect(checkpoint.isBegun && checkpoint.refusedStatus == nil)
        #expect(checkpoint.text(of: \.refusedStatus) == "x" && checkpoint.givenUpIn == 2)
        checkpoint.isCompleting = true
        #expect(checkpoint.stored["orphans"] == "many" && checkpoint.stored["begun"] == "yes")
        #expect(checkpoint.increment(\.orphans) == 1)
        #expect(checkpoint.stored["orphans"] == "1")
    }

    @Test(
        "a counter starts at 1, and a damaged one is limited",
        arguments: [
            (nil, 1), ("0", 1), ("41", 42), ("-7", 1), ("9223372036854775807", (1 << 40) + 1), ("", 1),
        ] as [(String?, Int64)])
    func counters(_ text: String?, _ next: Int64) {
        var checkpoint = OffsetCheckpoint()
        checkpoint.stored["regressions"] = text
        #expect(checkpoint.increment(\.regressions) == next)
        #expect(checkpoint.stored["regressions"] == "\(next)")
    }

    @Test("a dialect's fields and the engine's are in one checkpoint")
    func lenses() {
        var checkpoint = PartsCheckpoint()
        checkpoint.isBegun = true
        checkpoint.s3.key = "a/b"
        checkpoint.apsara.increment(\.mediaCount)
        #expect(checkpoint.stored.fields == ["begun": "1", "key": "a/b", "media_count": "1"])
        #expect(checkpoint.apsara.key == "a/b")
        checkpoint.s3.key = nil
        checkpoint.isBegun = false
        #expect(checkpoint.stored.fields == ["media_count": "1"])
    }

    @Test("fields that stay when an upload starts again are kept unchanged")
    func lasting() {
        let old = OffsetCheckpoint(
            Checkpoint([
                "orphans": "x", "reuploaded": "1", "rejections": "1", "restarts": "4", "refused_before": "413",
                "whole_lost": "2", "left_to_others": "a", "perhaps_twice": "b", "url": "c", "taken": "1",
                "of_a_newer_program": "1",
            ]))
        #expect(
            old.stored.keeping(OffsetCheckpoint.lasting).fields == [
                "orphans": "x", "reuploaded": "1", "rejections": "1", "restarts": "4", "refused_before": "413",
                "whole_lost": "2", "left_to_others": "a", "perhaps_twice": "b",
            ])
        #expect(
            Set(PartsCheckpoint.lasting) == [
                "orphans", "found_again", "reuploaded", "restarts", "beginnings", "lost", "remains", "doubled",
                "refused_before", "denied", "left_to_others",
            ])
        #expect(
            Set(ApsaraCheckpoint.lasting) == [
                "reference", "media_count", "lost_media", "left_media", "former", "failed_media", "twice_media",
            ])
    }

    @Test("the parts of a file are read as recorded, and only for a file of the same size")
    func storedPlans() throws {
        let file = StagedFile(path: "staged", size: 1000, sha256: [0xab, 0xcd])
        let order = UploadOrder(
            id: "1", generation: 1, file: file, name: "a", mediaType: "", modified: 0, metadata: [:], checkpoint: nil)
        let plan = try #require(PartPlan(size: 1000, partSize: 300, rule: .merge))
        var checkpoint = PartsCheckpoint()
        checkpoint.set(plan, order)
        #expect(
            checkpoint.stored.fields == ["part_size": "300", "rule": "merge", "size": "1000", "sha256": "abcd"])
        #expect(checkpoint.plan(of: order)?.count == plan.count)
        var other = order
        other.file.size = 999
        #expect(checkpoint.plan(of: other) == nil)
        checkpoint.stored["rule"] = "spiral"
        #expect(checkpoint.plan(of: order) == nil)
    }

    /// The checkpoints in the database of an older program (Tests/Fixtures/golden).
    private static func goldenCheckpoints() throws -> [Checkpoint] {
        let folder = Repository.root.appending("Tests/Fixtures/golden/state")
        return try ["state.sql", "more.sql"].flatMap { name in
            let text = String(decoding: try Files.read(folder.appending(FilePath(name)), limit: 8 << 20), as: UTF8.self)
            return text.split(separator: "\n").compactMap { line -> Checkpoint? in
                // A row: the upload, and the text of its checkpoint.
                guard line.contains("INSERT INTO checkpoint (") || line.dropFirst(32).hasPrefix("', '{\""),
                    let start = line.firstRange(of: "'{"), let end = line.firstRange(of: "}'"),
                    case .object(let object)? = JSONValue.read(
                        Array(line[start.lowerBound..<end.upperBound].utf8.dropFirst().dropLast()))
                else { return nil }
                return Checkpoint(object.compactMapValues(\.string))
            }
        }
    }
}
