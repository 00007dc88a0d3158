internal import Core

/// The rules of a configuration as sentences, place by place.
package struct PolicyExplanation: Sendable {
    package struct Rule: Hashable, Sendable {
        /// `policy.pause[0]`: folders are identified by name.
        package var key: String
        /// For a rule that has one.
        package var name: String?
        package var text: String
        /// `FILE:LINE`, or `default`.
        package var from: String
    }

    package struct Place: Hashable, Sendable {
        /// `policy`, `destinations.nas`, `folder door`.
        package var name: String
        /// What its rules are about.
        package var about: String
        package var rules: [Rule]
    }

    /// Those with rules.
    package private(set) var places: [Place] = []

    package init(_ loaded: LoadedSettings) {
        let settings = loaded.settings
        let origins = loaded.origins
        var policy = PlaceSentences(path: "policy", subject: "", origins: origins)
        policy.concurrency(settings.policy)
        policy.order(settings.policy.order)
        policy.retry(settings.policy.retry)
        policy.beforeUpload(settings.policy.beforeUpload)
        policy.rules(settings.policy.rules)
        places.append(Place(name: "policy", about: "every upload", rules: policy.found))
        for destination in settings.destinations {
            var own = PlaceSentences(
                path: "destinations.\(destination.name)", subject: " to \(destination.name)", origins: origins)
            own.overrides(destination.policy)
            places.append(
                Place(
                    name: "destinations.\(destination.name)", about: "uploads to \(destination.name)",
                    rules: own.found))
        }
        for folder in settings.writtenFolders {
            let name = folder.watch.name
            var own = PlaceSentences(path: "folders.\(name)", subject: " from \(name)", origins: origins)
            own.overrides(folder.policy)
            places.append(
                Place(
                    name: "folder \(name)",
                    about: "uploads from \(name), which go to \(listed(folder.routes.map(\.words)))",
                    rules: own.found))
        }
        places.removeAll { $0.rules.isEmpty }
    }
}

/// Collects the sentences of one place.
private struct PlaceSentences {
    let path: String
    /// Which uploads: ` to nas`; empty for all.
    let subject: String
    let origins: [String: String]
    var found: [PolicyExplanation.Rule] = []

    private mutating func say(_ key: String, _ text: String, name: String? = nil) {
        let whole = "\(path).\(key)"
        // An item of a list that came from a shorter form has the line of its key.
        let outer = String(whole.prefix { $0 != "[" })
        found.append(
            PolicyExplanation.Rule(
                key: whole, name: name, text: printable(text), from: origins[whole] ?? origins[outer] ?? "default"))
    }

    /// The numbers of the items of a list of limits, as the configuration has them.
    ///
    /// - Parameter areConditional: Those with a condition. The others set the number of the place together.
    private func limits(_ key: String, areConditional: Bool) -> [Int] {
        (0...).lazy.map { (number: $0, item: "\(path).\(key)[\($0)]") }
            .prefix { one in origins.keys.contains { $0.hasPrefix(one.item) } }
            .filter { one in origins.keys.contains { $0.hasPrefix("\(one.item).when") } == areConditional }
            .map(\.number)
    }

    mutating func overrides(_ policy: PolicyOverrides) {
        if let most = policy.concurrency {
            let plain = limits("concurrency", areConditional: false).first
            say(
                plain.map { "concurrency[\($0)]" } ?? "concurrency",
                "at most \(uploads(most))\(subject) at the same time")
        }
        if let order = policy.order { self.order(order) }
        if let retry = policy.retry { self.retry(retry) }
        beforeUpload(policy.beforeUpload)
        if let rate = policy.requests { say("requests", "at most \(rate.words)\(subject), evenly spread") }
        if let mark = policy.trafficClass { say("dscp", "packets\(subject) are marked as \(mark.written)") }
        rules(policy.rules)
    }

    mutating func rules(_ rules: PolicyRules) {
        if !rules.windows.isEmpty {
            say(
                "windows", "nothing\(subject) is sent outside \(listed(rules.windows.map(\.fullWords), "or"))",
                name: rules.windowRule?.name)
        }
        for (index, rule) in rules.pauses.enumerated() { pause(rule, index) }
        for (index, rule) in rules.bandwidth.enumerated() { bandwidth(rule, index) }
        if let rule = rules.meteredRule {
            say("metered", "nothing\(subject) is sent over metered networks", name: rule.name)
        }
        if let unknown = rules.meteredUnknown {
            say(
                "metered_unknown",
                "a network of unknown cost counts as \(unknown == .metered ? "metered" : "not metered")")
        }
        for (index, rule) in rules.networks.enumerated() { network(rule, index) }
        for (index, quota) in rules.quotas.enumerated() {
            say("quotas[\(index)]", "at most \(quota.words)\(subject)\(quota.period.begin)", name: quota.name)
        }
        for (index, rule) in zip(limits("concurrency", areConditional: true), rules.concurrency) {
            say(
                "concurrency[\(index)]",
                "at most \(uploads(rule.atMost))\(subject) at the same time while \(rule.when.words)")
        }
        if let age = rules.expiresAfter {
            say(
                "expires_after",
                "files\(subject) that were found more than \(writtenTime(age)) ago are not sent any more")
        }
        if let busy = rules.busy {
            let says = busy.source.isFile ? "\(busy.source.name) exists" : "\(busy.source.name) says that it is busy"
            say("busy", "nothing\(subject) is sent while \(says)")
        }
    }

    mutating func concurrency(_ policy: PolicySettings) {
        let plain = limits("concurrency", areConditional: false).first
        say(
            plain.map { "concurrency[\($0)]" } ?? "concurrency.total",
            "at most \(uploads(policy.total)) at the same time")
        say("concurrency.per_destination", "at most \(uploads(policy.perDestination)) to one destination")
    }

    mutating func order(_ order: UploadOrdering) {
        let files = subject.isEmpty ? " of a folder" : subject
        let text =
            switch order {
            case .newestFirst: "the newest file\(files) goes first"
            case .oldestFirst: "the oldest file\(files) goes first"
            case .smallestFirst: "the smallest file\(files) goes first"
            case .largestFirst: "the largest file\(files) goes first"
            case .mixed: "files\(files) of less than 16 MB and all others take turns, the newest first"
            }
        say("order", text)
    }

    mutating func retry(_ retry: Backoff) {
        var text =
            "after a failure an upload\(subject) waits \(writtenTime(retry.first)), then twice as long each time, at most "
            + writtenTime(retry.ceiling)
        if let attempts = retry.attempts { text += "; it fails when it was refused \(times(attempts))" }
        if let end = retry.giveUpAfter { text += "; it fails when nothing was accepted for \(writtenTime(end))" }
        say("retry", text)
    }

    mutating func beforeUpload(_ rule: BeforeUpload?) {
        guard let rule else { return }
        say("before_upload", "the program \(rule.command.first ?? "") is asked before each upload\(subject)")
    }

    private mutating func pause(_ rule: PauseRule, _ index: Int) {
        let never = rule.override == .never ? "; `sluice allow` makes no exception" : ""
        say("pause[\(index)]", "nothing\(subject) is sent while \(rule.when.words)\(never)", name: rule.name)
    }

    private mutating func bandwidth(_ rule: RateRule, _ index: Int) {
        let time = rule.when.map { " while \($0.words)" } ?? ""
        let text =
            switch rule.limit {
            case nil: "no limit of the speed\(subject)"
            case 0: "nothing\(subject) is sent"
            case let rate?: "at most \(WrittenValue.rate(rate).text)\(subject) together"
            }
        say("bandwidth[\(index)]", text + time, name: rule.name)
    }

    private mutating func network(_ rule: NetworkRule, _ index: Int) {
        var marks: [String] = []
        if let name = rule.interface { marks.append("interface \(name)") }
        if let name = rule.ssid { marks.append("Wi-Fi \(name)") }
        if let address = rule.gateway { marks.append("gateway \(address)") }
        if let subnet = rule.subnet { marks.append("an address in \(subnet)") }
        if let isRoaming = rule.isRoaming { marks.append(isRoaming ? "a modem that roams" : "no roaming") }
        var facts: [String] = []
        if let name = rule.name { facts.append("is called \(name)") }
        if let isMetered = rule.isMetered { facts.append(isMetered ? "is metered" : "is not metered") }
        if let isAllowed = rule.isAllowed { facts.append(isAllowed ? "may be used" : "is never used") }
        let which = marks.isEmpty ? "every network" : "a network with \(listed(marks))"
        say(
            "networks[\(index)]", "\(which)\(subject.isEmpty ? "" : ", for uploads\(subject),") \(listed(facts))",
            name: rule.name)
    }

    private func uploads(_ count: Int) -> String { count == 1 ? "1 upload runs" : "\(count) uploads run" }
    private func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }
}

extension Period {
    /// `, from the 15th`, where it is not the usual day.
    fileprivate var begin: String {
        switch self {
        case .week(let day) where day != .mon: ", in weeks from \(day.rawValue)"
        case .month(let day) where day != 1: ", in months from day \(day)"
        case .hour, .day, .week, .month: ""
        }
    }
}
