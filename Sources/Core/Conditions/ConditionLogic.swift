/// Finds conditions that no facts can make true, or none false.
///
/// What it reports is proven. It does not find everything: only what lines about one subject (the time, the size, the
/// cost …) say about each other.
package struct ConditionLogic: Sendable {
    /// A line of a condition, or its opposite.
    package struct Literal: Hashable, Sendable {
        package var predicate: Condition.Predicate
        package var isNegated: Bool

        package var words: String { isNegated ? "not (\(predicate.words))" : predicate.words }
    }

    /// Why a condition is never true.
    package enum Conflict: Hashable, Sendable {
        /// These lines exclude each other; one line excludes itself.
        case lines([Literal])
        /// Each of its alternatives has such a conflict.
        case everywhere
    }

    /// Names of folders that stand for cards: a card has a name of its own besides.
    private let patterns: Set<String>
    /// Every file has facts: requests that send no file are not judged.
    private let concernsFiles: Bool

    /// A condition with more alternatives is not examined.
    private static let limit = 512

    package init(patterns: Set<String> = [], concernsFiles: Bool = false) {
        self.patterns = patterns
        self.concernsFiles = concernsFiles
    }

    /// Why it is never true; `nil` where it may be.
    package func conflict(in condition: Condition) -> Conflict? {
        guard let clauses = Self.clauses(condition, isNegated: false) else { return nil }
        let found = clauses.compactMap { conflict(among: $0) }
        guard found.count == clauses.count, let first = found.first else { return nil }
        return clauses.count == 1 ? .lines(first) : .everywhere
    }

    /// Whether it is never false.
    package func isAlwaysTrue(_ condition: Condition) -> Bool { conflict(in: .not(condition)) != nil }

    /// The condition as alternatives, each of lines that all hold; `nil` where there are too many.
    private static func clauses(_ condition: Condition, isNegated: Bool) -> [[Literal]]? {
        let parts: [Condition]
        let isUnion: Bool
        switch condition {
        case .fact(let predicate): return [[Literal(predicate: predicate, isNegated: isNegated)]]
        case .not(let part): return clauses(part, isNegated: !isNegated)
        case .all(let all): (parts, isUnion) = (all, isNegated)
        case .any(let any): (parts, isUnion) = (any, !isNegated)
        }
        var result: [[Literal]] = isUnion ? [] : [[]]
        for part in parts {
            guard let inner = clauses(part, isNegated: isNegated) else { return nil }
            result = isUnion ? result + inner : result.flatMap { left in inner.map { left + $0 } }
            if result.count > limit { return nil }
        }
        return result
    }

    /// Lines that exclude each other; `nil` where all may hold together.
    private func conflict(among lines: [Literal]) -> [Literal]? {
        flags(lines) ?? time(lines) ?? file(lines) ?? amounts(lines) ?? names(lines)
    }

    // MARK: Subjects

    /// Facts that are true or false.
    private func flags(_ lines: [Literal]) -> [Literal]? {
        var seen: [String: (value: Bool, line: Literal)] = [:]
        for line in lines {
            let fact: (name: String, value: Bool)
            switch line.predicate {
            case .metered(let value): fact = ("metered", value)
            case .roaming(let value): fact = ("roaming", value)
            case .lan(let value): fact = ("lan", value)
            case .onBattery(let value): fact = ("on_battery", value)
            default: continue
            }
            let value = fact.value != line.isNegated
            if let other = seen[fact.name], other.value != value { return [other.line, line] }
            seen[fact.name] = (value, line)
        }
        return nil
    }

    /// Minutes of the week. On an excluded day, a window may be open or not.
    private func time(_ lines: [Literal]) -> [Literal]? {
        var (open, closed): ([[Window]], [Window]) = ([], [])
        var timed: [Literal] = []
        for line in lines {
            guard case .between(let windows) = line.predicate else { continue }
            timed.append(line)
            if line.isNegated { closed += windows.filter(\.except.isEmpty) } else { open.append(windows) }
        }
        return timed.isEmpty || Window.overlap(open, outside: closed) ? nil : timed
    }

    private func file(_ lines: [Literal]) -> [Literal]? {
        var asked: [Literal] = []
        // The least and the greatest size and length that all lines allow, and the kinds.
        var (smallest, largest) = (Int64(0), Int64.max)
        var (longerThan, atMost): (Int64?, Int64) = (nil, .max)
        var kinds = Set(FileKind.allCases)
        for line in lines {
            guard case .file(let question) = line.predicate else { continue }
            asked.append(line)
            switch (question, line.isNegated) {
            case (.largerThan(let bytes), false): smallest = max(smallest, bytes == .max ? .max : bytes + 1)
            case (.largerThan(let bytes), true): largest = min(largest, bytes)
            case (.smallerThan(let bytes), false): largest = min(largest, bytes - 1)
            case (.smallerThan(let bytes), true): smallest = max(smallest, bytes)
            case (.kind(let some), false): kinds.formIntersection(some)
            case (.kind(let some), true): kinds.subtract(some)
            case (.longerThan(let length), false):
                longerThan = max(longerThan ?? length, length)
                // Only recordings have a length.
                kinds.formIntersection([.video, .audio])
            case (.longerThan(let length), true): atMost = min(atMost, length)
            }
        }
        // A request that sends no file is not larger than anything, and of no kind.
        if !concernsFiles, asked.allSatisfy(\.isNegated) { return nil }
        let isPossible = smallest <= largest && !kinds.isEmpty && longerThan.map { $0 < atMost } ?? true
        return isPossible ? nil : narrowed(asked)
    }

    /// Two of the lines that exclude each other, where two are enough.
    private func narrowed(_ lines: [Literal]) -> [Literal] {
        if lines.count <= 2 { return lines }
        for (index, one) in lines.enumerated() {
            for other in lines.dropFirst(index + 1) where file([one, other]) != nil { return [one, other] }
        }
        return lines
    }

    /// Charge and temperature: below one limit, and not below a higher one.
    private func amounts(_ lines: [Literal]) -> [Literal]? {
        var (below, notBelow, above, notAbove): (Literal?, Literal?, Literal?, Literal?)
        var (lowest, highest) = (Int.max, Int.max)
        var (charge, heat) = (Int.min, Int.min)
        for line in lines {
            switch (line.predicate, line.isNegated) {
            case (.batteryBelow(let limit), false) where limit < lowest: (lowest, below) = (limit, line)
            case (.batteryBelow(let limit), true) where limit > charge: (charge, notBelow) = (limit, line)
            case (.hotterThan(let limit), false) where limit > heat: (heat, above) = (limit, line)
            case (.hotterThan(let limit), true) where limit < highest: (highest, notAbove) = (limit, line)
            default: continue
            }
        }
        if let below, let notBelow, charge >= lowest { return [below, notBelow] }
        if let above, let notAbove, heat >= highest { return [above, notAbove] }
        return nil
    }

    /// Names: one of a list, and none of a list that contains it. A route may run over several interfaces, so two lists
    /// of those exclude each other never; an upload has one destination and one folder.
    private func names(_ lines: [Literal]) -> [Literal]? {
        for line in lines where !line.isNegated {
            for other in lines where other != line {
                if other.isNegated
                    ? isWithin(line.predicate, other.predicate) : excludes(line.predicate, other.predicate)
                {
                    return [line, other]
                }
            }
        }
        return nil
    }

    private func isWithin(_ one: Condition.Predicate, _ wide: Condition.Predicate) -> Bool {
        switch (one, wide) {
        case (.network(let names), .network(let all)), (.ssid(let names), .ssid(let all)),
            (.folder(let names), .folder(let all)), (.destination(let names), .destination(let all)):
            Set(names).isSubset(of: all)
        case (.gateway(let addresses), .gateway(let all)): Set(addresses).isSubset(of: all)
        case (.interface(let globs), .interface(let all)):
            globs.allSatisfy { glob in all.contains { GlobComparison.coversInterfaces($0, glob) } }
        default: false
        }
    }

    private func excludes(_ one: Condition.Predicate, _ other: Condition.Predicate) -> Bool {
        switch (one, other) {
        case (.destination(let names), .destination(let others)): Set(names).isDisjoint(with: others)
        case (.folder(let names), .folder(let others)):
            Set(names).isDisjoint(with: others) && patterns.isDisjoint(with: names + others)
        default: false
        }
    }

    // MARK: Interfaces

    /// Lines that hold together only on a route that runs over several interfaces, as a tunnel may: each interface that
    /// one of them means is none that the other means.
    ///
    /// - Parameter networks: The interfaces of the items with each name under `networks`; `nil` for an item without.
    package func separateInterfaces(
        in condition: Condition, networks: [String: [String?]]
    ) -> (one: Literal, other: Literal)? {
        guard let clauses = Self.clauses(condition, isNegated: false) else { return nil }
        var found: (one: Literal, other: Literal)?
        for clause in clauses {
            guard let pair = pair(in: clause, networks) else { return nil }
            found = found ?? pair
        }
        return found
    }

    private func pair(in clause: [Literal], _ networks: [String: [String?]]) -> (one: Literal, other: Literal)? {
        let meant = clause.filter { !$0.isNegated }.compactMap { line in
            Self.interfaces(line.predicate, networks).map { (line: line, globs: $0) }
        }
        for (index, one) in meant.enumerated() {
            for other in meant.dropFirst(index + 1) {
                let mayMeet = one.globs.contains { glob in
                    other.globs.contains { GlobComparison.mayOverlap(glob.loweredInASCII, $0.loweredInASCII) }
                }
                if !mayMeet { return (one.line, other.line) }
            }
        }
        return nil
    }

    /// The interfaces that a line means; `nil` where it may mean any.
    private static func interfaces(_ predicate: Condition.Predicate, _ networks: [String: [String?]]) -> [String]? {
        switch predicate {
        case .interface(let globs): return globs
        case .network(let names):
            let items = names.flatMap { networks[$0] ?? [nil] }
            let globs = items.compactMap { $0 }
            return globs.count == items.count && !globs.isEmpty ? globs : nil
        default: return nil
        }
    }
}
