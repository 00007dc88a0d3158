import Core
import Digests
import Testing

@testable import Destinations

/// The vectors were computed with the vendor's own packages, and again by a second implementation.
@Suite("Signatures of calls to ApsaraVideo VOD")
struct ApsaraSignatureTests {
    private static let key = S3Key(
        id: "STS.NTestAccessKeyId0001", secret: "TestAccessKeySecret0123456789abcdef",
        token: "CAISfakeSecurityToken/with+plus==")
    private static let parameters: [(name: String, value: String)] = [
        ("Title", "front door 視頻 * ~ (1)"), ("FileName", "cam one/2024-07-13_08-30.mp4"), ("FileSize", "10485760"),
        ("Tags", "cam1,night"), ("CateId", "19"),
    ]

    private func signature(
        _ version: ApsaraSignature.Version, _ action: String = "CreateUploadVideo",
        _ parameters: [(name: String, value: String)] = Self.parameters
    ) -> ApsaraSignature {
        ApsaraSignature(
            key: Self.key, version: version, action: action, parameters: parameters,
            host: "vod.cn-shanghai.aliyuncs.com", nonce: "15215528852396c1-fixed-nonce")
    }

    private func now() throws -> WallTime {
        try #require(CivilTime(year: 2024, month: 7, day: 13, hour: 8, minute: 30, second: 5)?.moment())
    }

    private func proof(_ query: String) -> String? {
        query.split(separator: "&").first { $0.hasPrefix("Signature=") }.flatMap {
            PercentCoding.text(decoding: $0.dropFirst("Signature=".count))
        }
    }

    @Test(
        "the older signature matches the vendor's packages",
        arguments: [
            ("GET", [], "FK7kxsCd2d950/4uPl80ALRMfdA="), ("POST", [], "uo5CV2z2uk+XBCjthqENArZnatM="),
            ("GET", ["RegionId", "SignatureType"], "BWyV/Faj37+EEf/e5M/0hNnPnws="),
            ("POST", ["RegionId", "SignatureType"], "FsPuribr7bAN1cxWaLwpEWF5OV8="),
        ])
    func older(_ method: String, _ more: [String], _ right: String) throws {
        let further = more.map { (name: $0, value: $0 == "RegionId" ? "cn-shanghai" : "") }
        let signed = signature(.rpc, "CreateUploadVideo", Self.parameters + further).signed(method, at: try now())
        #expect(proof(signed.query) == right)
        #expect(signed.headers.isEmpty)
    }

    @Test("the older signature of a renewal matches the vendor's packages", arguments: [false, true])
    func renewal(_ hasType: Bool) throws {
        let parameters =
            [(name: "VideoId", value: "93ab850b4f6f44eab54b6e91d24d81d4")]
            + (hasType ? [(name: "SignatureType", value: "")] : [])
        let signed = signature(.rpc, "RefreshUploadVideo", parameters).signed("GET", at: try now())
        #expect(proof(signed.query) == (hasType ? "XoqfCnwcuUPj2ygxE9tq1/Kovw8=" : "qkh6plv1XI/aNwY/Exbj9rvHwfU="))
    }

    @Test("values under the older signature are encoded twice")
    func text() throws {
        let all =
            Self.parameters + [
                ("Action", "CreateUploadVideo"), ("Version", "2017-03-21"), ("Format", "JSON"),
                ("AccessKeyId", Self.key.id), ("SecurityToken", Self.key.token ?? ""),
                ("SignatureMethod", "HMAC-SHA1"), ("SignatureVersion", "1.0"),
                ("SignatureNonce", "15215528852396c1-fixed-nonce"), ("Timestamp", "2024-07-13T08:30:05Z"),
            ]
        #expect(
            ApsaraSignature.text("GET", all)
                == "GET&%2F&AccessKeyId%3DSTS.NTestAccessKeyId0001%26Action%3DCreateUploadVideo%26CateId%3D19%26FileName%3Dcam%2520one%252F2024-07-13_08-30.mp4%26FileSize%3D10485760%26Format%3DJSON%26SecurityToken%3DCAISfakeSecurityToken%252Fwith%252Bplus%253D%253D%26SignatureMethod%3DHMAC-SHA1%26SignatureNonce%3D15215528852396c1-fixed-nonce%26SignatureVersion%3D1.0%26Tags%3Dcam1%252Cnight%26Timestamp%3D2024-07-13T08%253A30%253A05Z%26Title%3Dfront%2520door%2520%25E8%25A6%2596%25E9%25A0%25BB%2520%252A%2520~%2520%25281%2529%26Version%3D2017-03-21"
        )
    }

    @Test("the newer signature matches the vendor's packages")
    func newer() throws {
        let signed = signature(.acs3).signed("POST", at: try now())
        let headers = Dictionary(signed.headers.map { ($0.name, $0.value) }) { $1 }
        #expect(
            headers["Authorization"]
                == "ACS3-HMAC-SHA256 Credential=STS.NTestAccessKeyId0001,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-security-token;x-acs-signature-nonce;x-acs-version,Signature=12db25ddfb1e9b945bf274f3d19a0475110733680616b660540af79e22f560bd"
        )
        #expect(headers["x-acs-security-token"] == Self.key.token)
        let named = signed.headers.filter { $0.name != "Authorization" } + [("host", "vod.cn-shanghai.aliyuncs.com")]
        let request = ApsaraSignature.canonical(
            "POST", signed.query, named, hexadecimal(Hasher.digest(.sha256, of: []))
        ).request
        #expect(
            hexadecimal(Hasher.digest(.sha256, of: Array(request.utf8)))
                == "53292464cf227c5c2e59bd2906b9e020a07666a6058a49e9b0d071853ac352a1")
    }

    @Test("no two requests have the same nonce")
    func nonces() {
        let nonces = (0..<100).map { _ in
            ApsaraSignature(key: Self.key, version: .acs3, action: "A", parameters: [], host: "h").nonce
        }
        #expect(Set(nonces).count == 100)
    }
}
