import Core
import Credentials
import TestKit
import Testing
import Transport

@testable import Destinations

/// Settings of ApsaraVideo VOD, and their consequences.
@Suite("apsara-vod: settings")
struct ApsaraConfigTests {
    @Test(
        "mistakes are reported with their keys",
        arguments: [
            (["region": .text("Shanghai")], "region"), (["region": .text("oss-cn-shanghai")], "region"),
            (["endpoint": .text("https://vod.example/x")], "endpoint"),
            (["authorisation.url": .text("https://a.example")], "endpoint"),
            (["access_key": nil], "secret_key"), (["access_key": nil, "secret_key": nil], "authorisation"),
            (["sts.url": .text("https://a.example")], "sts"),
            (["credentials": .secret(.environment("A"))], "credentials"),
            (["upload_endpoint": .text("https://a.example"), "endpoint_kind": .text("internal")], "endpoint_kind"),
            (["part_size": .bytes(1000)], "part_size"),
            (
                [
                    "sts.url": .text("https://a.example"), "sts.token": .secret(.literal("a\r\nb")), "access_key": nil,
                    "secret_key": nil,
                ], "sts.token"
            ), (["profile": .text("a")], "profile"),
            (["media.category": .template(template("x"))], "media.category"),
            (["media.user_data": .template(template("{{\"a\""))], "media.user_data"),
            (["media.user_data": .template(template("{{}}")), "media.priority": .whole(1)], "media.priority"),
            (["media.cover": .template(template("cover.jpg"))], "media.cover"),
            (["media.title": .template(template(String(repeating: "x", count: 129)))], "media.title"),
            (["media.tags": .template(template(String(repeating: "x,", count: 17)))], "media.tags"),
            (["media.transcode": .flag(false), "media.template_group": .template(template("a"))], "media.transcode"),
        ] as [([String: SettingValue?], String)])
    func mistakes(_ more: [String: SettingValue?], _ key: String) {
        let objections = Apsara.objections(ApsaraEnd.values("http://127.0.0.1:1", .key, more))
        #expect(objections.first?.key == key, "\(objections)")
        for way in ApsaraEnd.Authorization.allCases {
            #expect(Apsara.objections(ApsaraEnd.values("http://127.0.0.1:1", way)).isEmpty)
        }
    }

    private static func template(_ text: String) -> Template {
        guard let template = try? Template(text) else { preconditionFailure("no template: \(text)") }
        return template
    }

    @Test(
        "the upload host follows from address, endpoint kind and override",
        arguments: [
            ([:], "https://oss-cn-shanghai.aliyuncs.com", "https://abc.oss-cn-shanghai.aliyuncs.com/a.mp4", "v4"),
            (
                ["endpoint_kind": .text("internal")], "https://oss-cn-shanghai.aliyuncs.com",
                "https://abc.oss-cn-shanghai-internal.aliyuncs.com/a.mp4", "v4"
            ),
            (
                ["endpoint_kind": .text("accelerate")], "https://oss-cn-shanghai.aliyuncs.com",
                "https://abc.oss-accelerate.aliyuncs.com/a.mp4", "v1"
            ),
            (
                ["upload_endpoint": .text("https://up.example")], "https://oss-cn-shanghai.aliyuncs.com",
                "https://abc.up.example/a.mp4", "v1"
            ),
            ([:], "http://127.0.0.1:8000", "http://127.0.0.1:8000/abc/a.mp4", "v1"),
            (["signature": .text("v4")], "http://127.0.0.1:8000", "http://127.0.0.1:8000/abc/a.mp4", "v4"),
        ] as [([String: SettingValue], String, String, String)])
    func places(_ more: [String: SettingValue], _ endpoint: String, _ url: String, _ signing: String) throws {
        let values = ApsaraEnd.values("http://127.0.0.1:1", .key, more.mapValues { $0 })
        let transport = Transport()
        let apsara = try Apsara(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: ManualClocks(), name: "vod", log: { _ in }))
        let keys = ApsaraKeys(
            ApsaraGrant(key: S3Key(id: "", secret: "")), left: .zero, clocks: ManualClocks(), clock: ServiceClock()
        ) { _, _ in throw CancellationError() }
        let medium = ApsaraMedium(sort: .video, endpoint: endpoint, bucket: "abc", key: "a.mp4", region: "cn-shanghai")
        let settings = apsara.dialect(of: medium, keys, isSingle: true, nil, .open) { nil }.settings
        #expect(settings.place(of: "a.mp4", in: settings.region).url == url)
        #expect(settings.signing.rawValue == signing)
        #expect(settings.region == "cn-shanghai")
    }
}
