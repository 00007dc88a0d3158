internal import Config
internal import Core
internal import Staging
internal import Store

extension StagingArea {
    init(_ settings: StagingSettings) { self.init(folder: settings.path, method: Method(settings.copy)) }
}

extension StagingArea.Method {
    init(_ copy: StagingSettings.Copy) {
        switch copy {
        // An asset that is uploaded in place has no copy; one that was recorded before the setting changed has one.
        case .auto, .inPlace: self = .auto
        case .copy: self = .copy
        case .reflink: self = .reflink
        }
    }
}

extension UploadSort {
    init(_ settings: Settings) {
        func own(_ all: [(name: String, policy: PolicyOverrides)]) -> [String: UploadOrdering] {
            Dictionary(all.compactMap { one in one.policy.order.map { (one.name, $0) } }, uniquingKeysWith: { $1 })
        }
        self.init(
            settings.policy.order, destinations: own(settings.destinations.map { ($0.name, $0.policy) }),
            folders: own(settings.folders.map { ($0.watch.name, $0.policy) }))
    }
}
