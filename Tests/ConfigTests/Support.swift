import Core

@testable import Config

/// Types of destination, as their modules declare them.
let types: [DestinationSchema] = [
    DestinationSchema(
        name: "tus", summary: "a tus 1.0 server",
        keys: [
            SettingKey("url", .url, required: true, "The address that creates uploads."),
            SettingKey("allow_origins", .origins, "other origins"),
            SettingKey("token", .secret, "sent as a bearer token"),
            SettingKey("headers", .headers, "sent with every request"),
            SettingKey("checksum", .choice(["none", "sha1", "sha256"]), "digest of each chunk"),
            SettingKey("chunk_size", .size, "the most bytes of one request"),
            SettingKey("timeout", .duration, "without progress"),
            SettingKey("verify_tls", .flag, "whether the certificate is checked"),
            SettingKey("parallel", .whole(1...8), "partial uploads"),
            SettingKey("note", .text, "for people"),
            SettingKey("title", .template, "the title"),
            SettingKey(
                "http",
                .section([
                    SettingKey("headers", .headers, "more headers"),
                    SettingKey("auth", .choice(["basic", "bearer", "digest"]), "how requests are authorised"),
                    SettingKey("user", .text, "who asks"),
                ]), "how requests connect"),
        ]),
    DestinationSchema(
        name: "directory", summary: "a folder of this machine",
        keys: [
            SettingKey("path", .path, required: true, "the folder"), SettingKey("mount", .path, "must be mounted"),
            SettingKey("marker", .text, "must be there"),
            SettingKey("taken", .choice(["suffix", "replace", "fail"]), "when the name is held"),
        ], sendsRequests: false),
]

/// Reads texts as files `a.yaml`, then `config.d/1.yaml` …, without a disk.
func read(
    _ texts: String..., environment: [String: String] = [:]
) throws(ConfigErrors) -> LoadedSettings {
    let files = texts.enumerated().map { number, text in
        (file: number == 0 ? FilePath("a.yaml") : FilePath("config.d/\(number).yaml"), bytes: Array(text.utf8))
    }
    return try Settings.read(files, types: types, disk: .unchecked) { environment[$0] }
}

/// The loader's errors for a text, or nothing.
func objections(to text: String) -> String {
    do throws(ConfigErrors) {
        _ = try read(text)
        return ""
    } catch { return error.description }
}

/// A small configuration without a mistake.
let minimal = """
    version: 1
    folders:
      - name: door
        path: /srv/camera
        upload_to: [nas]
    destinations:
      nas: {type: tus, url: "https://nas.example/files"}
    """
