internal import API
internal import Config
internal import Core
internal import Store
internal import Watch

/// Maps facts about the daemon to the parts of its status, as of one moment. It makes no query.
struct StatusParts {
    /// The decisions of policy at that moment.
    let now: PolicySnapshot

    /// The uploads that wait for a slot or for the end of their holds, or to be staged.
    static func queue(_ tallies: [Tally]) -> [QueuedView] {
        var views: [QueuedView] = []
        // In their order two of one folder and destination are neighbours.
        for tally in tallies where (tally.state == .queued || tally.state == .staging) && tally.uploads > 0 {
            if let last = views.indices.last, views[last].folder == tally.folder,
                views[last].destination == tally.destination
            {
                views[last].waiting += tally.uploads
                views[last].bytes += tally.bytes
            } else {
                views.append(
                    QueuedView(
                        folder: tally.folder, destination: tally.destination, waiting: tally.uploads,
                        bytes: tally.bytes))
            }
        }
        return views
    }

    /// The classes whose uploads wait.
    ///
    /// - Parameter begun: How many of them have begun; needed only where the hold spares those.
    func classes(
        _ held: [HeldUploads], begun: [UploadClass: Int]
    ) -> [ClassView] {
        var views: [ClassView] = []
        for (one, count, hold) in held.map({ ($0.upload, $0.count, $0.hold) }) {
            // Uploads that have begun continue nevertheless.
            let waiting = hold.holdsOnlyNewUploads ? count - (begun[one] ?? 0) : count
            if waiting == 0 { continue }
            let view = ClassView(
                folder: one.folder, destination: one.destination, waiting: waiting, hold: HoldView(hold))
            // Files that conditions tell apart may have one hold.
            let same = views.firstIndex {
                $0.folder == view.folder && $0.destination == view.destination && $0.hold == view.hold
            }
            if let same { views[same].waiting += waiting } else { views.append(view) }
        }
        return views
    }

    /// - Parameters:
    ///   - held: The files that wait for others to travel with.
    ///   - limit: In bytes a second.
    func folder(
        _ state: WatchState, held: GroupWaits?, card: CardView?, limit: Int64?, retention: RetentionView?
    ) -> FolderView {
        var view = FolderView(state)
        view.settling += held?.files ?? 0
        view.gathering = held?.first.map { GatheringView(path: $0.file.path.display, reason: $0.reason) }
        view.card = card
        view.hold = now.hold(ofFolder: state.folder).map(HoldView.init)
        view.limit = limit
        view.retention = retention
        return view
    }

    /// - Parameters:
    ///   - today: Sent to it and received from it since midnight.
    ///   - limit: In bytes a second.
    func destination(
        _ settings: DestinationSettings, _ tallies: [Tally], today: Spending, limit: Int64?
    ) -> DestinationView {
        let name = settings.name
        let hold = now.hold(of: name)
        let waiting = tallies.filter { $0.destination == name && ($0.state == .queued || $0.state == .staging) }
        return DestinationView(
            name: name, type: settings.type, state: hold.map { ShownDestinationState.held($0.text) } ?? .up,
            hold: hold.map(HoldView.init),
            running: now.transfers.count(to: name), waiting: waiting.reduce(0) { $0 + $1.uploads },
            sentToday: today.bytes, receivedToday: today.received, limit: limit, space: now.space(at: name))
    }
}

extension FolderView {
    init(_ state: WatchState) {
        let shown: ShownFolderState =
            switch state.condition {
            case .watching: .watching
            case .scanning: .scanning
            case .absent(let reason): .absent(reason)
            case .failed(let reason): .failed(reason)
            }
        self.init(
            name: state.folder, path: state.path.display, state: shown, settling: state.settling,
            polled: state.polled, unwatched: state.unwatched)
    }
}

extension HookView {
    init(_ line: HookQueue, _ hold: Hold?) {
        self.init(
            name: line.hook.name, target: line.hook.target.shown, waiting: line.waiting.count,
            oldest: line.oldest?.description, hold: hold.map(HoldView.init), delivered: line.deliveredCount,
            givenUp: line.abandonedCount, dropped: line.droppedCount, lastDelivered: line.lastDelivered?.description)
    }
}
