package import Core
internal import Linux

// The contents of a bucket.

extension S3Emulator {
    package struct Object: Sendable {
        package var bytes: [UInt8]
        package var headers: [String: String] = [:]
        package var etag = ""

        package init(bytes: [UInt8], headers: [String: String] = [:], etag: String = "") {
            self.bytes = bytes
            self.headers = headers
            self.etag = etag
        }
    }

    package struct Part: Sendable {
        package var bytes: [UInt8]
        package var etag: String
        package var checksum: String?
    }

    package struct Upload: Sendable {
        package var key: String
        package var headers: [String: String]
        package var parts: [Int: Part] = [:]
        package var begunAt: WallTime

        package init(key: String, headers: [String: String] = [:], begunAt: WallTime = SystemClocks().wall()) {
            self.key = key
            self.headers = headers
            self.begunAt = begunAt
        }
    }
}
