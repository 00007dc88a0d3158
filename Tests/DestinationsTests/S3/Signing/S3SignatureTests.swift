import Core
import Digests
import Testing

@testable import Destinations

/// The vectors were computed with botocore's own signer.
@Suite("Signature version 4 for S3")
struct S3SignatureTests {
    private static let key = S3Key(
        id: "AKIDEXAMPLES3TEST0001", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token: nil)
    private static let token = "FwoGZXIvYXdzEXAMPLE//token+with/slash=="
    private static let hosts = (
        far: "examplebucket.s3.eu-central-1.amazonaws.com", near: "127.0.0.1:9000"
    )
    private static let name: FilePath = "cams/front door/2024-07-13 08-30 é視頻+(1).mp4"
    private static let upload = "VXBsb2FkIElEIGZvciA2aWWpbmcncyBteS1tb3ZpZS5tMnRzIHVwbG9hZA"
    private static let time = CivilTime(year: 2024, month: 7, day: 13, hour: 8, minute: 30, second: 5)?.moment()
    private static let complete =
        #"<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Part><PartNumber>1</PartNumber><ETag>"ca1cbcd002dab00dec368b46958ae4bd"</ETag></Part></CompleteMultipartUpload>"#

    struct Vector: Sendable, CustomTestStringConvertible {
        var number: Int
        var isFar = true
        var isTemporary = false
        var method: String
        var path: String?
        var query: [(String, String)] = []
        var headers: [(String, String)] = []
        var payload = S3Message.emptyPayload
        var request: String
        var signature: String
        var testDescription: String { "vector \(number)" }
    }

    static let vectors = [
        Vector(
            number: 1, isTemporary: true, method: "POST", query: [("uploads", "")],
            headers: [
                ("Content-Type", "video/mp4"), ("x-amz-checksum-algorithm", "CRC64NVME"),
                ("x-amz-checksum-type", "FULL_OBJECT"), ("x-amz-meta-cam", "Front  Door "),
            ], request: "d4077b51e292f8611c407567a6665777ff3e12588b08539bfd70562187e58702",
            signature: "708b792239300ccefa2c4f1da61f34962b2aeec02592292721810e854d4da9de"),
        Vector(
            number: 2, isTemporary: true, method: "PUT", query: [("uploadId", upload), ("partNumber", "1")],
            headers: [("Content-MD5", "yhy80ALasA3sNotGlYrkvQ=="), ("x-amz-checksum-crc64nvme", "fB2tV1zv23A=")],
            payload: S3Message.unsignedPayload,
            request: "4c1e09dc91b3ce7a620ebbfd5daf8630dd3b0c11a516653d2d77f76e5dd207ae",
            signature: "a92ff3724928cd90f52760645a7799560da5717c1dbf04670aa9b13efd800aa0"),
        Vector(
            number: 3, isFar: false, method: "PUT", query: [("partNumber", "1"), ("uploadId", upload)],
            payload: "6691280657d690cb0dbe8e2f765584be97abdf639db6b907da79b06e35a15f8d",
            request: "1d5100cbede02ec942ff345da0202bca20890981d34dd84801a598cbca14e8fc",
            signature: "e12eda2af06cebb089a0d5c4231db3dea76ddf34373a841bcbe15e0055f756e0"),
        Vector(
            number: 4, method: "GET",
            query: [("uploadId", upload), ("max-parts", "1000"), ("part-number-marker", "2")],
            request: "b38b93f920fc0a23f861d679bec9b3c40b81d8589205f56e41a965f4923c3fcd",
            signature: "75d9aec51ff772047abb21067dabee8f2ae485fccd3715987ddf85d1965d142a"),
        Vector(
            number: 5, isTemporary: true, method: "POST", query: [("uploadId", upload)],
            headers: [("If-None-Match", "*"), ("Content-Type", "application/xml")],
            payload: hexadecimal(Hasher.digest(.sha256, of: Array(complete.utf8))),
            request: "90a494dc67a53364d07b027081bcf5203ae3d81cae0b14a87628f8e236513209",
            signature: "575f13d6ba2ae2ba8820984fe91f3d48bceff7cfd4226138f95867015d1ca017"),
        Vector(
            number: 6, method: "GET", path: "/",
            query: [("uploads", ""), ("prefix", "cams/front door/"), ("max-uploads", "50")],
            request: "00591d076bdd840769bcc8ebfad72babe6d4b96edd42a4827dd309cff1916f17",
            signature: "7feea9c65cb28ee19f8862d0f76b2f5547cdbfa5c381314f1a64e59e0b28a019"),
        Vector(
            number: 7, isFar: false, method: "PUT", path: "/examplebucket/a/b.txt",
            headers: [("Content-Type", "text/plain")], payload: S3Message.unsignedPayload,
            request: "85e568b2a5f284621f121c3883832c35259e0faee7428a7da1330180627461f4",
            signature: "3c34d1a45e5c346029f009c82f6d4061b6e56b2f75b3add241639841e339ec8e"),
        Vector(
            number: 8, method: "DELETE", query: [("uploadId", upload)],
            request: "fdd1142ae965f7531774519e83a109f9511962750911ee26e0cfd6a7517f6e03",
            signature: "4eb153fd84ee661b1fb9d6eea9e51719bd7ab61a3931b50cb235f73c82aaffe5"),
    ]

    @Test("signature and signed text match botocore", arguments: vectors)
    func vector(_ vector: Vector) throws {
        let path = vector.path ?? (vector.isFar ? "/" : "/examplebucket/") + S3Message.path(of: Self.name)
        let message = S3Message(
            method: vector.method, host: vector.isFar ? Self.hosts.far : Self.hosts.near, path: path,
            query: vector.query.map { (name: $0.0, value: $0.1) },
            headers: vector.headers.map { (name: $0.0, value: $0.1) }, payload: vector.payload)
        var key = Self.key
        key.token = vector.isTemporary ? Self.token : nil
        let signature = S3Signature(key: key, region: vector.isFar ? "eu-central-1" : "us-east-1")
        let headers = signature.headers(of: message, at: try #require(Self.time))
        let authorization = try #require(headers.last { $0.0 == "Authorization" }?.1)
        let request = S3Signature.canonical(message, Array(headers.dropLast())).text
        #expect(hexadecimal(Hasher.digest(.sha256, of: Array(request.utf8))) == vector.request, "\(request)")
        #expect(authorization.hasSuffix("Signature=" + vector.signature))
    }

    @Test("each day and region has its key")
    func keys() {
        func signingKey(_ region: String) -> String {
            hexadecimal(S3Signature(key: Self.key, region: region).signingKey("20240713"))
        }
        #expect(
            signingKey("eu-central-1") == "e8c89cee2fd12d42dd1bebf88b04582e6f5596af8a9b71f335622cced519476b")
        #expect(signingKey("us-east-1") == "1b7c493d852c68023a5fd5b56e2f317b22d550a2c980af3e4f6288c9dd8f1399")
    }

    @Test("the body of a completion is signed by its digest")
    func body() {
        #expect(Self.complete.utf8.count == 185)
        #expect(
            hexadecimal(Hasher.digest(.sha256, of: Array(Self.complete.utf8)))
                == "9c9fb01cfff76312131681cd59dbb141968fc3bc7c453c388ed181c8306fb309")
    }

    @Test("keys are encoded once: unreserved characters and slashes stay, without normalisation")
    func paths() {
        #expect(
            S3Message.path(of: Self.name)
                == "cams/front%20door/2024-07-13%2008-30%20%C3%A9%E8%A6%96%E9%A0%BB%2B%281%29.mp4")
        #expect(S3Message.path(of: "a//b/../c/./~_-.!'*%2F") == "a//b/../c/./~_-.%21%27%2A%252F")
        #expect(S3Message.path(of: FilePath(bytes: [0xFF, 0x0A])) == "%FF%0A")
    }
}
