internal import Core
internal import Transport

// A person's settings for the signer.

extension S3Presigner {
    static let section = "presign"

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all = CredentialHelper.objections(values, in: section, lacking: "names no signer")
        if let hosts = values.texts("\(section).hosts") {
            for host in hosts
            where WebAddress("https://\(host)").authority != host || host.isEmpty || host.contains("@") {
                all.append(
                    SettingObjection(
                        key: "\(section).hosts",
                        problem: "takes hosts, like `s3.amazonaws.com` or `nas.example:9000`, not `\(host)`"))
            }
        }
        return all
    }
}
