internal import Config
internal import Core
internal import Linux
internal import Store
internal import Synchronization

/// Gives each card its own folder, where the path of a folder is a pattern.
///
/// A card is known by its file system. Its name is on disk before a file of it is recorded under that name.
final class CardFolders: Sendable {
    private let store: Store
    private let log: Log
    /// Those that were reported and are still left out.
    private let reported = Mutex<Set<CardAssignment.LeftOut>>([])

    /// The cards that are in the settings besides those that are mounted: the ones that were mounted last.
    private static let mostKnown = 1_000

    init(store: Store, log: Log) {
        self.store = store
        self.log = log
    }

    /// The settings with a folder for each card that is mounted now or was mounted before. ``remember(_:)`` has to
    /// follow before they are in force.
    func expand(_ settings: Settings) async throws -> Settings {
        if settings.patternFolders.isEmpty { return settings }
        let known = try await store.read { try $0.folders.cards() }
        let (expanded, leftOut) = try await blocking { Self.expand(settings, known: known) }
        report(leftOut)
        return expanded
    }

    /// Stores the names of cards that are new or at another place.
    func remember(_ settings: Settings) async throws {
        if settings.patternFolders.isEmpty { return }
        let stored = Set(try await store.read { try $0.folders.cards() })
        let changed = settings.presentFolders.filter { folder in
            guard var card = folder.card else { return false }
            card.isMounted = false
            return !stored.contains(card)
        }
        if changed.isEmpty { return }
        try await store.write { tx in
            for folder in changed {
                if let card = folder.card { try tx.folders.remember(card, folderAt: folder.watch.path) }
            }
        }
    }

    /// - Parameter known: The cards that were mounted before.
    /// - Returns: Also the file systems that have no folder.
    static func expand(
        _ settings: Settings, known: [Card]
    ) -> (settings: Settings, leftOut: [CardAssignment.LeftOut]) {
        let patterns = settings.patternFolders.compactMap(\.pattern)
        let mounted = FileSystems.cards { point in patterns.contains { $0.matches(point) } }
        var assignment = CardAssignment(known: known, fixed: Set(settings.writtenFolders.map(\.watch.name)))
        for folder in settings.patternFolders {
            if let pattern = folder.pattern { assignment.add(mounted, to: folder.watch.name, pattern) }
        }
        var expanded = settings
        let away = assignment.cards.filter { !$0.isMounted }.prefix(mostKnown)
        expanded.add(cards: assignment.cards.filter(\.isMounted) + away)
        return (expanded, assignment.leftOut)
    }

    /// Logs the cards that were mounted or unmounted between two settings.
    func logChange(from old: Settings, to new: Settings) {
        func mounted(_ settings: Settings) -> Set<Card> { Set(settings.presentFolders.compactMap(\.card)) }
        let (before, after) = (mounted(old), mounted(new))
        for card in after.subtracting(before).sorted(by: { $0.name < $1.name }) {
            log.notice("a card was mounted", ["folder": card.name, "path": card.point.display])
        }
        for card in before.subtracting(after).sorted(by: { $0.name < $1.name }) {
            log.notice("a card was unmounted", ["folder": card.name, "path": card.point.display])
        }
    }

    private func report(_ leftOut: [CardAssignment.LeftOut]) {
        let new = reported.withLock { reported in
            defer { reported = Set(leftOut) }
            return leftOut.filter { !reported.contains($0) }
        }
        for card in new {
            log.warning("a card is not watched: \(card.words)", ["path": card.point.display])
        }
    }
}
