import Core
import Credentials
import Digests
import TestKit
import Testing
import Transport

@testable import Destinations

/// The parts of the dialect that need no service.
@Suite("s3: components")
struct S3ComponentTests {
    private let folder = TemporaryFolder()

    private func api(_ preset: String = "aws", _ more: [String: SettingValue] = [:]) throws -> S3API {
        var values = S3End.values("http://127.0.0.1:9", ["preset": .text(preset)])
        for (key, value) in more { values[key] = value }
        return try S3(
            values,
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: ManualClocks(), name: "archive",
                log: { _ in })
        ).api
    }

    private func order(_ name: FilePath, _ content: [UInt8] = Array("content".utf8)) throws -> UploadOrder {
        let path = try folder.write("staged", content)
        return UploadOrder(
            id: "01", generation: 1,
            file: StagedFile(path: path, size: Int64(content.count), sha256: Hasher.digest(.sha256, of: content)),
            name: name, mediaType: "video/mp4", modified: 1_700_000_000_000_000_000,
            metadata: ["site": "north", "mtime": "left out", "place": "Köln"], checkpoint: nil)
    }

    @Test("the second name has a number, and the last one the digest of the content")
    func names() throws {
        let naming = S3Naming(api: try api(), isSingle: true)
        let order = try order("front/clip.mp4")
        #expect(try naming.key(order, 1) == "front/clip.mp4")
        #expect(try naming.key(order, 2) == order.name.numbered(2))
        let digest = hexadecimal(order.file.sha256).prefix(16)
        #expect(try naming.contentKey(order).display == "front/clip (\(digest)).mp4")
    }

    @Test("a name longer than a key can be is an error of that file")
    func longName() throws {
        let naming = S3Naming(api: try api(), isSingle: true)
        let long = try order(FilePath(String(repeating: "folder/", count: 200) + "clip.mp4"))
        let error = try #require(throws: UploadError.self) { try naming.key(long, 1) }
        #expect(error.failure.code == .nameTooLong && error.remedy == .failUpload)
    }

    @Test("conditional writes protect single requests of some services, and multipart uploads of fewer")
    func guarded() throws {
        for (preset, single, parts) in [("aws", true, true), ("ceph", true, false), ("b2", false, false)] {
            let api = try api(preset)
            #expect(S3Naming(api: api, isSingle: true).isGuarded == single, "\(preset)")
            #expect(S3Naming(api: api, isSingle: false).isGuarded == parts, "\(preset)")
        }
    }

    @Test("a key reserved by another upload is free when that has ended")
    func reservation() throws {
        let api = try api()
        let naming = S3Naming(api: api, isSingle: true)
        var other = try order("a")
        other.id = "02"
        try naming.reserve("a", try order("a"))
        #expect(throws: UploadError.self) { try naming.reserve("a", other) }
        api.bucket.release(of: ["01"])
        try naming.reserve("a", other)
    }

    @Test("an ETag proves the bytes only if the service's ETags are MD5s")
    func evidence() throws {
        let md5 = Hasher.digest(.md5, of: Array("content".utf8))
        let etag = "\"\(hexadecimal(md5))\""
        let known = S3ObjectComparison(api: try api("aws"), isSingle: true)
        guard case .same = known.evidence(of: etag, isHidden: false, against: md5) else {
            Issue.record("the ETag does not count as the same")
            return
        }
        guard case .other = known.evidence(of: etag, isHidden: false, against: Array(md5.reversed())) else {
            Issue.record("the ETag does not count as another")
            return
        }
        let unknown = S3ObjectComparison(api: try api("other"), isSingle: true)
        guard case .unclear = unknown.evidence(of: etag, isHidden: false, against: Array(md5.reversed())) else {
            Issue.record("the ETag does not count as unclear")
            return
        }
        let opaque = S3ObjectComparison(api: try api("r2"), isSingle: true)
        for (comparison, isHidden) in [(opaque, false), (known, true)] {
            guard case .absent = comparison.evidence(of: etag, isHidden: isHidden, against: md5) else {
                Issue.record("the ETag counts as a proof")
                return
            }
        }
    }

    @Test("the ETag of a multipart object ends with the number of parts")
    func joinedTags() {
        let digits = String(repeating: "ab", count: 16)
        #expect(S3ObjectComparison.joinedTag("\"\(digits)-3\"", 3) == digits)
        for tag in [nil, "", "\"\(digits)\"", "\"\(digits)-4\"", "\"abcd-3\"", "\"\(digits)-3-3\""] {
            #expect(S3ObjectComparison.joinedTag(tag, 3) == nil, "\(tag ?? "none")")
        }
    }

    @Test("an object with our digest is this file or damaged, and one without it is compared by its bytes")
    func comparison() async throws {
        let comparison = S3ObjectComparison(api: try api("aws"), isSingle: true)
        let order = try order("a")
        let plan = try #require(PartPlan(size: order.file.size, partSize: order.file.size))
        let (sha256, md5) = (
            hexadecimal(order.file.sha256), hexadecimal(Hasher.digest(.md5, of: Array("content".utf8)))
        )
        func compare(_ size: Int64, _ etag: String?, _ sha256: String?) async throws -> String {
            let object = S3API.Object(size: size, etag: etag, sha256: sha256)
            return switch try await comparison.compare(object, at: "a", with: order.file, plan, isOurs: false) {
            case .same: "same"
            case .other: "other"
            case .damaged(let error): error.failure.code.rawValue
            }
        }
        #expect(try await compare(7, md5, sha256) == "same")
        #expect(try await compare(6, md5, sha256) == "object_damaged")
        #expect(try await compare(7, String(md5.reversed()), sha256) == "object_damaged")
        #expect(try await compare(7, md5, "00") == "other")
        #expect(try await compare(7, md5, nil) == "same")
        #expect(try await compare(7, String(md5.reversed()), nil) == "other")
        #expect(try await compare(6, md5, nil) == "other")
    }

    @Test("the sizes of another program's parts follow from their number: ours first, then those that are usual")
    func likelySizes() {
        func sizes(_ size: Int64, _ count: Int64) -> [Int64] {
            S3PartSizes.likely(for: size, in: count, ours: 16 << 20).map { $0 >> 20 }
        }
        #expect(sizes(20 << 20, 4) == [5])
        #expect(sizes((20 << 20) + 1, 4) == [6])
        #expect(sizes(32 << 20, 2) == [16, 20, 25])
        // rclone's parts of a file that has more than 10,000 of 5 MiB.
        #expect(sizes((60_000 << 20) - 1, 10_000) == [6])
        #expect(sizes(1, 1) == [16, 5, 8, 10, 15, 20, 25, 32, 50, 64, 100, 128, 256, 512, 1])
        for (size, count) in [(0, 1), (1, 0), (1, 2), (.max, .max), (1, .max), (.max, 1)] as [(Int64, Int64)] {
            #expect(S3PartSizes.likely(for: size, in: count, ours: 16 << 20).allSatisfy { $0 > 0 })
        }
    }

    @Test(
        "an object that another program made of parts of its own size is this file if its ETag is that of these parts",
        arguments: [5, 8, 7, 3])
    func foreignParts(mebibytes: Int) async throws {
        let content = noise((20 << 20) + 1)
        let order = try order("a", content)
        let comparison = S3ObjectComparison(api: try api("other"), isSingle: false)
        let plan = try #require(PartPlan(size: order.file.size, partSize: 16 << 20))
        let part = mebibytes << 20
        let digests = stride(from: 0, to: content.count, by: part).map {
            Hasher.digest(.md5, of: Array(content[$0..<min(content.count, $0 + part)]))
        }
        func isSame(_ tag: String) async throws -> Bool {
            let object = S3API.Object(size: order.file.size, etag: "\"\(tag)-\(digests.count)\"", sha256: nil)
            let result = try await comparison.compare(object, at: "a", with: order.file, plan, isOurs: false)
            if case .same = result { return true }
            return false
        }
        let tag = hexadecimal(Hasher.digest(.md5, of: digests.flatMap { $0 }))
        #expect(try await isSame(tag))
        #expect(try await !isSame(String(tag.reversed())))
    }

    @Test("digests are sent for the checksum, and for bytes that the connection does not protect")
    func digestKinds() throws {
        let plain = try api()
        #expect(S3PartDigests(api: plain, isSingle: false).kinds(for: .crc64nvme) == [.sha256, .crc64nvme])
        #expect(S3PartDigests(api: plain, isSingle: false).kinds(for: .crc64) == [.sha256, .crc64xz, .md5])
        let secure = try api("aws", ["endpoint": .text("https://127.0.0.1:9")])
        #expect(S3PartDigests(api: secure, isSingle: false).kinds(for: .md5) == [.md5])
        #expect(S3PartDigests(api: secure, isSingle: true).kinds(for: .none) == [.sha256])
    }

    @Test("parts are equal if their ETags are, whatever their checksum")
    func sameParts() {
        #expect(S3PartList.isSame("\"a\"\tcrc", "\"a\""))
        #expect(!S3PartList.isSame("\"a\"\tcrc", "\"b\"\tcrc"))
    }

    @Test("an object is created with its type, its digest and the folder's metadata")
    func headers() throws {
        let order = try order("a")
        let made = S3ObjectHeaders.make(order, try api().settings).map { "\($0.name): \($0.value)" }
        #expect(
            made == [
                "Content-Type: video/mp4", "x-amz-meta-sluice-sha256: \(hexadecimal(order.file.sha256))",
                "x-amz-meta-mtime: 1700000000", "x-amz-meta-place: =?UTF-8?B?S8O2bG4=?=", "x-amz-meta-site: north",
            ])
    }

    @Test("an unseen result has a warning, and its content is known from then on")
    func results() throws {
        let api = try api()
        let order = try order("a")
        let plan = try #require(PartPlan(size: order.file.size, partSize: order.file.size))
        var checkpoint = PartsCheckpoint()
        checkpoint.s3.key = "a"
        let piece = PartsContext(order: order, plan: plan, checkpoint: checkpoint)
        #expect(S3VerifiedObject.make(piece, at: api, verifiedBy: "parts").warnings.isEmpty)
        #expect(api.isThere("a", with: order.file.sha256) && api.isTaken("a", from: []))
        for how in [S3VerifiedObject.byName, S3VerifiedObject.byAnswer] {
            #expect(S3VerifiedObject.make(piece, at: api, verifiedBy: how).warnings.count == 1)
        }
    }
}
