package import Core

/// Everything that a configuration says, checked and with defaults filled in. Rooms receive the part they need.
package struct Settings: Hashable, Sendable {
    /// The state folder: database and lock. Absolute.
    package var state: FilePath
    package var staging: StagingSettings
    package var folders: [FolderSettings]
    /// In the order of the file; names are unique.
    package var destinations: [DestinationSettings]
    package var policy: PolicySettings
    package var control: ControlSettings
    package var metrics = MetricsSettings()
    /// For how long what is over is shown.
    package var lists = ListRetention()
    /// In the order of the file; names are unique.
    package var hooks: [Hook] = []
}

package struct StagingSettings: Hashable, Sendable {
    package enum Copy: String, Hashable, Sendable, CaseIterable {
        /// Reflink where the file system can, else copy.
        case auto
        case copy
        /// Reflink or not at all.
        case reflink
        /// No copy: the source itself is uploaded.
        case inPlace = "in-place"
    }

    package var path: FilePath
    package var copy: Copy
    /// The most bytes that staged copies may take together; `nil` for no cap.
    package var maxSize: Int64?
    /// Bytes that stay free on the file system.
    package var keepFree: Int64
    /// Copies that are made at the same time.
    package var concurrency = 2
}

/// A command that makes what is uploaded out of a source, in place of a copy.
package struct ExportSettings: Hashable, Sendable {
    package var command: CommandWords
    /// The name of what it makes; the remote name is made of this and not of the source's.
    package var output: Template
    /// How long it may take.
    package var timeout: Duration
    /// What it makes has at least so many bytes, and never none.
    package var minSize: Int64
}

package struct FolderSettings: Hashable, Sendable {
    package enum Empty: String, Hashable, Sendable, CaseIterable { case skip, upload }
    package enum Duplicates: String, Hashable, Sendable, CaseIterable { case upload, skip }
    /// Whether somebody waits for a word that its disk may be pulled out.
    package enum Removable: String, Hashable, Sendable, CaseIterable {
        /// As the kernel tells: card readers, memory cards, disks on USB.
        case auto
        /// Whatever is mounted there, but for the root file system.
        case always
        case never
    }

    package var watch: WatchRule
    /// Names of destinations, without repeats, at least one.
    package var uploadTo: [String]
    package var afterUpload: SourceAction
    /// With ``SourceAction/keep``.
    package var retention = Retention()
    /// Files that travel together; `nil` where each goes alone.
    package var group: GroupRule?
    /// What to do with files of 0 bytes.
    package var empty: Empty
    package var duplicates: Duplicates
    /// Higher goes first.
    package var priority: Int
    /// The remote name; default `{folder}/{relative}`.
    package var name: Template
    /// Sent to the destination with the file.
    package var metadata: [String: Template]
    /// The key of its uploads; `nil` for none.
    package var key: Template?
    /// Kept with the uploads and shown with them.
    package var context: [String: Template]
    package var policy: PolicyOverrides
    /// How copies are made; `nil` for ``StagingSettings/copy``.
    package var copy: StagingSettings.Copy?
    package var export: ExportSettings?
    package var removable = Removable.auto
    /// `nil`: as the file system of the source has it.
    package var releaseUnsure: ReleaseUnsure?
}

package struct DestinationSettings: Hashable, Sendable {
    package var name: String
    /// A ``DestinationType/name``.
    package var type: String
    /// The type's own keys, checked against its ``DestinationType``.
    package var values: [String: SettingValue]
    package var policy: PolicyOverrides
    /// `file:line:column`, for messages that come up later (a secret that cannot be read).
    package var place: String
    /// The same of each value.
    package var places = Places()

    /// Where something stands changes nothing.
    package struct Places: Hashable, Sendable {
        package var byKey: [String: String] = [:]
        package static func == (a: Places, b: Places) -> Bool { true }
        package func hash(into hasher: inout Hasher) {}
        package init() {}
    }

    /// The keys that are set and say by what right it is used, in order. `password` is what viewers are asked for.
    package var credentialKeys: [String] {
        values.flatMap { key, value -> [String] in
            switch value {
            case .secret: key == "password" ? [] : [key]
            case .map(let map):
                map.filter { name, source in
                    if case .literal = source { name.lowercased() == "authorization" } else { true }
                }.map { "\(key).\($0.key)" }
            default: []
            }
        }.sorted()
    }

    /// What is filled for each file, by the whole names of their keys.
    package var templates: [String: Template] {
        values.compactMapValues { if case .template(let template) = $0 { template } else { nil } }
    }
}

/// Global policy, defaults filled in.
package struct PolicySettings: Hashable, Sendable {
    /// Uploads at the same time, over all destinations.
    package var total: Int
    /// Uploads at the same time to one destination.
    package var perDestination: Int
    package var order: UploadOrdering
    package var retry: Backoff
    /// Asked before every upload, behind those of its folder and its destination.
    package var beforeUpload: BeforeUpload?
    package var rules = PolicyRules()
}

/// Policy keys that a folder or destination sets for itself; `nil` where it does not.
package struct PolicyOverrides: Hashable, Sendable {
    /// For a destination: uploads to it at the same time. For a folder: uploads from it at the same time.
    package var concurrency: Int?
    package var retry: Backoff?
    /// A folder's own counts before a destination's.
    package var order: UploadOrdering?
    package var beforeUpload: BeforeUpload?
    package var rules = PolicyRules()
}

package struct ControlSettings: Hashable, Sendable {
    package var socket: FilePath
    /// `nil`: nobody asks but over the socket.
    package var remote: RemoteControlSettings?
}

/// The API over TCP.
package struct RemoteControlSettings: Hashable, Sendable {
    package var listen: ListenAddress
    /// Who knows it may do everything.
    package var token: SecretSource
    /// Names of this machine under which it may be asked, besides `localhost` and numeric addresses; in lower case.
    package var hosts: [String] = []
    /// Proxies whose `X-Forwarded-For` is believed.
    package var trustedProxies: [IPSubnet] = []
    /// PEM files; `nil`: without TLS.
    package var certificate: TLSFiles?

    package struct TLSFiles: Hashable, Sendable {
        /// The certificate, and behind it those that lead to the authority.
        package var chain: FilePath
        package var key: FilePath
    }
}

/// Files that say how the daemon is doing, for those who do not ask.
package struct MetricsSettings: Hashable, Sendable {
    /// What `/metrics` says; `nil` for none.
    package var textfile: FilePath?
    /// What `/v1/status` says; `nil` for none.
    package var statusFile: FilePath?
    /// Between two of them.
    package var every: Duration = .seconds(30)

    /// Any is to be written.
    package var isWritten: Bool { textfile != nil || statusFile != nil }
}

extension Settings {
    /// Something is counted.
    package var hasQuotas: Bool { allRules.contains { !$0.quotas.isEmpty } }

    /// Some program is asked before uploads.
    package var asksBeforeUploads: Bool { !beforeUploads.isEmpty }

    /// Each `before_upload`, with its place.
    package var beforeUploads: [(place: String, rule: BeforeUpload)] {
        let places =
            [("policy", policy.beforeUpload)] + folders.map { ("folder \($0.watch.name)", $0.policy.beforeUpload) }
            + destinations.map { ("destinations.\($0.name)", $0.policy.beforeUpload) }
        return places.compactMap { place, rule in rule.map { (place, $0) } }
    }

    /// Each list of `networks`, with its place.
    package var networkRules: [(place: String, rules: [NetworkRule])] {
        let places =
            [("policy", policy.rules)] + destinations.map { ("destinations.\($0.name)", $0.policy.rules) }
            + folders.map { ("folder \($0.watch.name)", $0.policy.rules) }
        return places.filter { !$1.networks.isEmpty }.map { (place: $0, rules: $1.networks) }
    }

    /// Of `policy`, of every destination and of every folder.
    package var allRules: [PolicyRules] {
        [policy.rules] + destinations.map(\.policy.rules) + folders.map(\.policy.rules)
    }
}
