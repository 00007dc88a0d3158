package import Core

/// All settings of a configuration, checked and with defaults filled in. Modules receive the part that they need.
package struct Settings: Hashable, Sendable {
    /// The state folder: database and lock. Absolute.
    package var state: FilePath
    package var staging: StagingSettings
    /// Those with a path of their own, followed by those of known cards.
    package var folders: [FolderSettings]
    /// In the order of the file; names are unique.
    package var destinations: [DestinationSettings]
    package var policy: PolicySettings
    package var control: ControlSettings
    package var metrics = MetricsSettings()
    /// How long a finished upload stays visible.
    package var lists = ListRetention()
    /// In the order of the file; names are unique.
    package var hooks: [Hook] = []
    /// Folders whose path is a ``MountPattern``. They are watched as one folder for each card: see ``add(cards:)``.
    package var patternFolders: [FolderSettings] = []

    package func folder(named name: String) -> FolderSettings? { folders.first { $0.watch.name == name } }
    package func destination(named name: String) -> DestinationSettings? { destinations.first { $0.name == name } }
    package func hook(named name: String) -> Hook? { hooks.first { $0.name == name } }
}

package struct StagingSettings: Hashable, Sendable {
    package enum Copy: String, Hashable, Sendable, CaseIterable {
        /// Reflink where the file system supports it, otherwise copy.
        case auto
        case copy
        /// Reflink, or an error.
        case reflink
        /// No copy: the source itself is uploaded.
        case inPlace = "in-place"
    }

    /// Whether staging may be on a file system in memory, where a power cut takes copies that exist nowhere else.
    package enum Memory: String, Hashable, Sendable, CaseIterable { case refuse, allow }

    package var path: FilePath
    package var copy = Copy.auto
    /// The maximum total size of staged copies in bytes; `nil` for no limit.
    package var maxSize: Int64?
    /// Bytes that stay free on the file system.
    package var keepFree: Int64 = 1_000_000_000
    /// Number of copies made in parallel.
    package var concurrency = 2
    package var memory = Memory.refuse
}

/// A command that makes the uploaded file from a source, instead of a copy.
package struct ExportSettings: Hashable, Sendable {
    package var command: CommandWords
    /// The name of its output; the remote name is made from this and not from the source's.
    package var output: Template
    /// Time limit.
    package var timeout: Duration
    /// Its output must have at least this many bytes, and is never empty.
    package var minSize: Int64
    /// With `network: policy`, the servers that the command may connect to through its proxy; `nil`: policy does not
    /// apply to it.
    package var servers: ProgramServers?
}

package struct FolderSettings: Hashable, Sendable {
    package enum Empty: String, Hashable, Sendable, CaseIterable { case skip, upload }
    package enum Duplicates: String, Hashable, Sendable, CaseIterable { case upload, skip }
    /// Whether the folder's disk is removable, so that a person has to know when it may be removed.
    package enum Removable: String, Hashable, Sendable, CaseIterable {
        /// As reported by the kernel: card readers, memory cards, disks on USB.
        case auto
        /// For every mount, except the root file system.
        case always
        case never
    }

    package var watch: WatchRule
    /// Where its files go. No destination is named twice.
    package var routes: [UploadRoute]
    package var afterUpload = SourceAction.keep
    /// With ``SourceAction/keep``.
    package var retention = Retention()
    /// Files that are uploaded together; `nil` where each is uploaded alone.
    package var group: GroupRule?
    /// The treatment of files of 0 bytes.
    package var empty = Empty.skip
    package var duplicates = Duplicates.upload
    /// Higher is sent first.
    package var priority = 0
    /// The remote name.
    package var name = Template.builtIn("{folder}/{relative}")
    /// Sent to the destination with the file.
    package var metadata: [String: Template] = [:]
    /// The key of its uploads; `nil` for none.
    package var key: Template?
    /// Kept with the uploads and shown with them.
    package var context: [String: Template] = [:]
    package var policy = PolicyOverrides()
    /// How copies are made; `nil` for ``StagingSettings/copy``.
    package var copy: StagingSettings.Copy?
    package var export: ExportSettings?
    package var removable = Removable.auto
    /// `nil`: depends on the file system of the source.
    package var releaseUnsure: UnsureReleaseRule?
    /// For a folder that was made from a pattern.
    package var card: Card?

    /// The pattern of its path.
    package var pattern: MountPattern? {
        watch.requirement.mount.flatMap { MountPattern(path: watch.path, mount: $0) }
    }

    /// The names of the destinations of its routes, at least one.
    package var uploadTo: [String] {
        get { routes.flatMap(\.destinations) }
        set { routes = newValue.map { UploadRoute(to: $0) } }
    }

    /// The routes that take a file.
    package func routes(for file: FileFacts) -> [UploadRoute] { routes.filter { $0.takes(file) } }

    /// The routes of a file that is recorded for these destinations: alternatives stay alternatives.
    package func routes(to names: [String]) -> [UploadRoute] {
        let known = routes.compactMap { route -> UploadRoute? in
            var route = route
            route.destinations.removeAll { !names.contains($0) }
            return route.destinations.isEmpty ? nil : route
        }
        let others = names.filter { !uploadTo.contains($0) }
        return known + others.map { UploadRoute(to: $0) }
    }

    /// Whether it has to be known how long a recording is.
    package var routesByLength: Bool {
        routes.contains {
            $0.when?.fileQuestions.contains { if case .longerThan = $0 { true } else { false } } ?? false
        }
    }

    /// Whether it is the folder of a card that is not mounted. The path that it had may be another card's now.
    package var isCardAway: Bool { card.map { !$0.isMounted } ?? false }

    /// Whether verified sources leave the folder, at once or later.
    package var removesSources: Bool {
        switch afterUpload {
        case .delete, .move: true
        case .keep: retention.isLimited
        case .leave: false
        }
    }
}

package struct DestinationSettings: Hashable, Sendable {
    package var name: String
    /// A ``DestinationSchema/name``.
    package var type: String
    /// The type's own keys, checked against its ``DestinationSchema``.
    package var values: [String: SettingValue]
    package var policy: PolicyOverrides
    /// `file:line:column`, for messages that come up later (a secret that cannot be read).
    package var place: String
    /// The place of each value.
    package var places = Places()

    /// Equal to all others, because a moved setting is not a change.
    package struct Places: Hashable, Sendable {
        package var byKey: [String: String] = [:]
        package static func == (a: Places, b: Places) -> Bool { true }
        package func hash(into hasher: inout Hasher) {}
        package init() {}
    }

    /// The configured keys with the access credentials, in order. `password` is the one for viewers.
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

    /// Templates that are filled for each file, by the full names of their keys.
    package var templates: [String: Template] {
        values.compactMapValues { if case .template(let template) = $0 { template } else { nil } }
    }
}

/// Global policy, defaults filled in.
package struct PolicySettings: Hashable, Sendable {
    /// Parallel uploads, over all destinations.
    package var total = 3
    /// Parallel uploads to one destination.
    package var perDestination = 2
    package var order = UploadOrdering.newestFirst
    package var retry = Backoff()
    /// Run before every upload, after those of its folder and its destination.
    package var beforeUpload: BeforeUpload?
    package var rules = PolicyRules()
}

/// Policy keys that a folder or destination sets for itself; `nil` where it does not.
package struct PolicyOverrides: Hashable, Sendable {
    /// For a destination: parallel uploads to it. For a folder: parallel uploads from it.
    package var concurrency: Int?
    package var retry: Backoff?
    /// A folder's own value overrides a destination's.
    package var order: UploadOrdering?
    package var beforeUpload: BeforeUpload?
    /// Of a destination.
    package var requests: RequestRate?
    /// Of a destination.
    package var trafficClass: TrafficClass?
    package var rules = PolicyRules()
}

package struct ControlSettings: Hashable, Sendable {
    package var socket: FilePath
    /// `nil`: requests come only over the socket.
    package var remote: RemoteControlSettings?
    /// Whether small pictures of videos and photos are made.
    package var thumbnails = true
}

/// The API over TCP.
package struct RemoteControlSettings: Hashable, Sendable {
    package var listen: ListenAddress
    /// At least one.
    package var tokens: [ControlToken]
    /// Names and addresses that requests may use with any port, besides those that are listened on; in lower case.
    package var hosts: [String] = []
    /// Proxies whose `X-Forwarded-For` is trusted.
    package var trustedProxies: [IPSubnet] = []
    /// PEM files; `nil`: without TLS.
    package var tls: TLSFiles?
    /// Whether the web page is served.
    package var servesPage = true
    /// Whether other machines may send tokens without TLS.
    package var allowsPlainHTTP = false

    package struct TLSFiles: Hashable, Sendable {
        /// The certificate, followed by those that lead to the authority.
        package var chain: FilePath
        package var key: FilePath
    }
}

/// A token for the API over TCP, which a person or a program has.
package struct ControlToken: Hashable, Sendable {
    /// Who has it, for the log; unique.
    package var name: String
    package var role: ControlRole
    package var secret: SecretSource
}

/// Files with the daemon's state, for programs that read files instead of asking.
package struct MetricsSettings: Hashable, Sendable {
    /// The content of `/metrics`; `nil` for none.
    package var textfile: FilePath?
    /// The content of `/v1/status`; `nil` for none.
    package var statusFile: FilePath?
    /// Time between two writes.
    package var every: Duration = .seconds(30)

    /// Whether any file is written.
    package var isWritten: Bool { textfile != nil || statusFile != nil }
}

extension Settings {
    /// Folders whose path is their own now: all except those of cards that are not mounted.
    package var presentFolders: [FolderSettings] { folders.filter { !$0.isCardAway } }

    /// Those of the file: patterns in place of the folders of cards.
    package var writtenFolders: [FolderSettings] { folders.filter { $0.card == nil } + patternFolders }

    /// Patterns of which no card is mounted.
    package var foldersWithoutCard: [FolderSettings] {
        let mounted = Set(presentFolders.compactMap(\.card?.pattern))
        return patternFolders.filter { !mounted.contains($0.watch.name) }
    }

    /// Replaces the folders of cards. Each gets the settings of its pattern, with a name and a path of its own.
    package mutating func add(cards: [Card]) {
        folders.removeAll { $0.card != nil }
        for template in patternFolders {
            guard let pattern = template.pattern else { continue }
            let own = cards.filter { $0.pattern == template.watch.name }
            for card in own {
                var folder = template
                folder.watch.name = card.name
                folder.watch.path = pattern.folder(at: card.point)
                folder.watch.requirement.mount = card.point
                folder.card = card
                folders.append(folder)
            }
            for index in hooks.indices where hooks[index].folders.contains(template.watch.name) {
                let missing = own.map(\.name).filter { !hooks[index].folders.contains($0) }
                hooks[index].folders += missing
            }
        }
    }

    /// Including the patterns, whose rules hold for a card as soon as it is mounted.
    var allFolders: [FolderSettings] { folders + patternFolders }

    /// Whether a quota counts the bytes of every program.
    package var countsInterfaces: Bool { policy.rules.quotas.contains { $0.count == .interface } }

    /// Whether there is any quota.
    package var hasQuotas: Bool { allRules.contains { !$0.quotas.isEmpty } }

    /// Whether a program is run before uploads.
    package var hasBeforeUploadRules: Bool { !beforeUploads.isEmpty }

    /// Each `before_upload`, with its place.
    package var beforeUploads: [(place: String, rule: BeforeUpload)] {
        let places =
            [("policy", policy.beforeUpload)] + allFolders.map { ("folder \($0.watch.name)", $0.policy.beforeUpload) }
            + destinations.map { ("destinations.\($0.name)", $0.policy.beforeUpload) }
        return places.compactMap { place, rule in rule.map { (place, $0) } }
    }

    /// Each list of `networks`, with its place.
    package var networkRules: [(place: String, rules: [NetworkRule])] {
        let places =
            [("policy", policy.rules)] + destinations.map { ("destinations.\($0.name)", $0.policy.rules) }
            + allFolders.map { ("folder \($0.watch.name)", $0.policy.rules) }
        return places.filter { !$1.networks.isEmpty }.map { (place: $0, rules: $1.networks) }
    }

    /// The rules of `policy`, of every destination and of every folder.
    package var allRules: [PolicyRules] {
        rulesByPlace.map(\.rules)
    }

    /// The same with the keys of their places.
    var rulesByPlace: [(place: String, rules: PolicyRules)] {
        [("policy", policy.rules)] + destinations.map { ("destinations.\($0.name)", $0.policy.rules) }
            + allFolders.map { ("folders.\($0.watch.name)", $0.policy.rules) }
    }

    /// The distinct questions of all conditions and of a mixed order about files, in a fixed order.
    package var fileQuestions: [FilePredicate] {
        let orders = [policy.order] + (destinations.map(\.policy) + allFolders.map(\.policy)).compactMap(\.order)
        let shares = orders.contains(.mixed) ? [UploadOrdering.isSmall] : []
        return Set(shares + allRules.flatMap { $0.conditions.flatMap(\.fileQuestions) }).sorted { $0.code < $1.code }
    }
}
