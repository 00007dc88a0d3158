import Core
import Digests
import Testing
import Transport

@testable import Destinations

/// The vectors were computed with the vendor's own SDKs, and again by a second implementation.
@Suite("Signatures of OSS")
struct OSSSignatureTests {
    private static let lent = S3Key(
        id: "STS.NTestAccessKeyId0001", secret: "TestAccessKeySecret0123456789abcdef",
        token: "CAISfakeSecurityToken/with+plus==")
    private static let own = S3Key(id: "LTAI5tTestLongLivedKey", secret: "LongLivedSecret0123456789abcdef", token: nil)
    private static let name: FilePath = "sv/5a1b2c3d/5a1b2c3d-cam one+é視頻.mp4"
    private static let upload = "0004B9894A22E5B1888A1E29F8236E2D"
    private static let time = CivilTime(year: 2024, month: 7, day: 13, hour: 8, minute: 30, second: 5)?.moment()
    private static let notice =
        "eyJWb2QiOnsiVGl0bGUiOiJmcm9udCBkb29yIiwiVGFncyI6ImNhbTEsbmlnaHQiLCJDYXRlSWQiOiIxOSIsIklzUHJvY2VzcyI6InRydWUiLCJVc2VyRGF0YSI6eyJJc1Nob3dXYXRlck1hcmsiOiJmYWxzZSIsIlByaW9yaXR5IjoiNiJ9fX0="

    struct Vector: Sendable, CustomTestStringConvertible {
        var number: Int
        var isTemporary = true
        var method: String
        var query: [(String, String)] = []
        var headers: [(String, String)] = []
        var first: String
        var canonical: String
        var fourth: String
        var testDescription: String { "vector \(number)" }
    }

    static let vectors = [
        Vector(
            number: 1, method: "POST", query: [("uploads", "")], headers: [("Content-Type", "video/mp4")],
            first: "TDGmE117eMj6jjGRzrKMWPF8Vhw=",
            canonical: "74122625ddc6d5391796ad0763e4c8f7ce9c14d336cb74caef8201c7c2370161",
            fourth: "825df591a18745fc8e9fa871936522a13f7e90a15f32d65450fa3ff01ca9eb19"),
        Vector(
            number: 2, method: "PUT", query: [("partNumber", "1"), ("uploadId", upload)],
            headers: [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")], first: "mHl7LHNTnu2uew3GnRSKuFWsAqY=",
            canonical: "dd4bd7eae6202913c9bafee111363fbdbab948e19abb5ea9d6b1a6eb113b7432",
            fourth: "3b63d0a8f48740003c6a15f56ad383a616a29d7e23420562fa1ff89cfc90b6d9"),
        Vector(
            number: 3, method: "GET",
            query: [("uploadId", upload), ("max-parts", "1000"), ("part-number-marker", "2")],
            first: "aTf4lrRFXi3iWRE4kIN5cvpETeM=",
            canonical: "f576ad466a7adc1779a039786787ab01a4e3d5a7dad1569163c36c44d9830ba4",
            fourth: "954498fe4792b0ea5c0607908850deb81419336d8646ddaa2068482afa15b8d6"),
        Vector(
            number: 4, method: "POST", query: [("uploadId", upload)],
            headers: [("Content-Type", "application/xml"), ("x-oss-notification", notice)],
            first: "Io+2jUFaDNc+5YfeGArA9Cz5gFA=",
            canonical: "b6d5c93a6297a9a6bf2e699c56a1cb43ebe4ce8d3412e7f1d524ed2a22992c36",
            fourth: "b258b2b83fb238aa41b2b472510d7a71c6317f765fb95d7f6fca0e46610dbd4f"),
        Vector(
            number: 5, method: "DELETE", query: [("uploadId", upload)], first: "HWmddwc9ehSCLp13v04HTahck1Q=",
            canonical: "dfbf65b349897c742151d3e32bb0d9dd3f102b49934d90fd08fa67f11fe01a0b",
            fourth: "abe55438971cad7a77909340eae8e5e044e9013c74d599726fba08fbb0c4f837"),
        Vector(
            number: 6, method: "PUT",
            headers: [
                ("Content-Type", "image/jpeg"), ("x-oss-meta-cam", "Front Door"), ("x-oss-forbid-overwrite", "true"),
            ], first: "3EU0tDtP8bt7K0uxZLVdjYocHk8=",
            canonical: "178909857088ea345fb6351bed294c391be06f7348c52f0dde22cf44ed0454ea",
            fourth: "f0e8857798676ddb267ff9a88252d344796816091dd7f0fe6d81d48ee4802bb6"),
        Vector(
            number: 7, method: "POST", query: [("append", ""), ("position", "65536")],
            headers: [("Content-Type", "application/octet-stream")], first: "GcQzW3gKjjUaZzjAYI4oGpCMcSw=",
            canonical: "b788e03076e2a69814f587f85500cfe4c3feba32a43b140f64b99d42af08c6fb",
            fourth: "e4d07459b291e20fbcd2b750ea2bffac9de4898763934c557ab7cd76c0503484"),
        Vector(
            number: 8, isTemporary: false, method: "POST", query: [("uploads", "")],
            headers: [("Content-Type", "video/mp4")], first: "7oVtNq3sxtj35JhTSrTfOkGmtdw=",
            canonical: "a5adf43c8494350c56ca8b838426f00871a2f50710f1a0f8b94ff4606690815f",
            fourth: "f705702bb500cfd86d6b347f645986a1c8b00a85a9766379cb11e1ac82dd74be"),
        Vector(
            number: 9, isTemporary: false, method: "PUT", query: [("partNumber", "1"), ("uploadId", upload)],
            headers: [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")], first: "YWqEXOMPLgOuZV+ycvYTzJ9EFs8=",
            canonical: "38cb0a125905acdba8c908cad0eff82a31e394974bf82fdeae07fc4ee4fda1ab",
            fourth: "2e9193da4fd3f6730277bfa9c5971224b8bcb51bcfff16b8dc74bf1f2ef2e882"),
    ]

    private func headers(_ vector: Vector, _ version: BucketProtocolNames.Signing) throws -> [String: String] {
        let message = S3Message(
            method: vector.method, host: "outin-test-bucket.oss-cn-shanghai.aliyuncs.com",
            path: "/" + S3Message.path(of: Self.name), query: vector.query, headers: vector.headers,
            payload: S3Message.unsignedPayload, bucket: "outin-test-bucket", key: Self.name)
        let signature = OSSSignature(
            key: vector.isTemporary ? Self.lent : Self.own, region: "cn-shanghai", version: version)
        return Dictionary(signature.headers(of: message, at: try #require(Self.time)).map { ($0.0, $0.1) }) { $1 }
    }

    @Test("V1 signs like the vendor's clients", arguments: vectors)
    func first(_ vector: Vector) throws {
        let headers = try headers(vector, .v1)
        let key = vector.isTemporary ? Self.lent : Self.own
        #expect(headers["Authorization"] == "OSS \(key.id):\(vector.first)")
        #expect(headers["Date"] == "Sat, 13 Jul 2024 08:30:05 GMT")
        #expect(headers["x-oss-security-token"] == key.token)
    }

    @Test("V4 signs like the vendor's clients", arguments: vectors)
    func fourth(_ vector: Vector) throws {
        let headers = try headers(vector, .v4)
        let key = vector.isTemporary ? Self.lent : Self.own
        #expect(
            headers["Authorization"]
                == "OSS4-HMAC-SHA256 Credential=\(key.id)/20240713/cn-shanghai/oss/aliyun_v4_request, Signature=\(vector.fourth)"
        )
        #expect(headers["x-oss-date"] == "20240713T083005Z")
        let message = S3Message(
            method: vector.method, host: "", path: "", query: vector.query, payload: S3Message.unsignedPayload,
            bucket: "outin-test-bucket", key: Self.name)
        let text = OSSSignature(key: key, region: "cn-shanghai", version: .v4).canonical(
            message, headers.filter { $0.key != "Authorization" }.map { ($0.key, $0.value) })
        #expect(hexadecimal(Hasher.digest(.sha256, of: Array(text.utf8))) == vector.canonical)
    }

    @Test("V4 covers further headers if requested")
    func covered() throws {
        let headers: [(String, String)] = [
            ("Content-Length", "1048576"), ("Host", "outin-test-bucket.oss-cn-shanghai.aliyuncs.com"),
            ("Content-Type", "application/octet-stream"),
        ]
        let message = S3Message(
            method: "PUT", host: "", path: "", query: [("partNumber", "2"), ("uploadId", "U1")], headers: headers,
            payload: S3Message.unsignedPayload, bucket: "outin-test-bucket", key: "a/b.mp4")
        let signature = OSSSignature(
            key: Self.own, region: "cn-shanghai", version: .v4, covered: ["content-length", "host"])
        let signed = signature.headers(of: message, at: try #require(Self.time))
        let text = signature.canonical(message, signed.filter { $0.0 != "Authorization" })
        #expect(
            hexadecimal(Hasher.digest(.sha256, of: Array(text.utf8)))
                == "9b86bc32c545f781d8f7b9ba161473d52adec184c0e8c3079998bdd25b12e7fc")
        #expect(
            signed.last?.1
                == "OSS4-HMAC-SHA256 Credential=\(Self.own.id)/20240713/cn-shanghai/oss/aliyun_v4_request, AdditionalHeaders=content-length;host, Signature=485c20c8af705df3278fbe29236116421c083f3e727f677a8447e5cb427ab3c8"
        )
    }

    @Test(
        "V4 has a key for each day and region",
        arguments: [
            (lent, "ac1f4ec8bac76d044e5072f1ee00b38acaad94317bc6756d129cfd59057860be"),
            (own, "27712fb63ce201c9c5ce8346e93edcbbfd987e5ff1bae22c3ef02bcd251e9a66"),
        ])
    func key(_ key: S3Key, _ digits: String) {
        let signature = OSSSignature(key: key, region: "cn-shanghai", version: .v4)
        #expect(hexadecimal(signature.signingKey("20240713")) == digits)
    }

    @Test("a date is written as it is parsed")
    func date() throws {
        let time = try #require(Self.time)
        #expect(httpDate(httpDate(time)) == time)
        for (milliseconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_868_799_999, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (-1000, "Wed, 31 Dec 1969 23:59:59 GMT"),
        ] { #expect(httpDate(WallTime(milliseconds: Int64(milliseconds))) == text) }
    }

    @Test(
        "a region is read from an address of the service, and from no other",
        arguments: [
            ("oss-cn-shanghai.aliyuncs.com", "cn-shanghai"),
            ("oss-ap-southeast-5-internal.aliyuncs.com", "ap-southeast-5"),
            ("oss-accelerate.aliyuncs.com", nil), ("oss-accelerate-overseas.aliyuncs.com", nil),
            ("cdn.example.com", nil), ("oss-.aliyuncs.com", nil), ("oss-a.b.aliyuncs.com", nil),
        ])
    func region(_ host: String, _ region: String?) { #expect(OSS.region(ofHost: host) == region) }
}
