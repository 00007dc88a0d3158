internal import API
internal import Config
internal import Core
internal import Store
internal import Watch

/// Explains uploads and watched folders, as of one moment. It makes no query.
struct WhyAnswers {
    /// The decisions of policy at that moment.
    let now: PolicySnapshot

    /// - Parameter settling: The hold of an upload whose file settles again.
    func answer(_ view: UploadView, of upload: UploadRecord, settling: Hold?) -> WhyAnswer {
        let choice = view.list.known == .ongoing ? now.routeChoice(of: upload) : nil
        return WhyAnswer(
            id: view.id, destination: view.destination, folder: view.folder, path: view.path, state: view.state,
            text: sentence(view, upload.files) + loss(of: upload, view),
            holds: view.holds + [settling].compactMap { $0.map(HoldView.init) },
            exceptions: now.exceptions(id: view.id, folder: view.folder),
            way: RouteView(choice), otherWays: choice.flatMap { RouteView.others($0) })
    }

    /// What follows if the destination drops the unfinished upload before it can continue.
    private func loss(of upload: UploadRecord, _ view: UploadView) -> String {
        guard view.state == .waiting, let expires = upload.expires else { return "" }
        let moment = now.inputs.now
        if expires < moment {
            return "; the destination may have dropped the unfinished upload since \(expires): if so, it starts again"
        }
        // A hold without an end ends with an event, which may come in time.
        let ends = view.holds.compactMap(\.until).compactMap { WallTime(described: $0) }
        guard let next = ends.max(), expires < next else { return "" }
        return
            "; the destination drops the unfinished upload at \(expires), which is before \(next): it starts again then"
    }

    private func sentence(_ view: UploadView, _ files: FileClass) -> String {
        if view.state.stored == nil {
            return
                "only a newer version of Sluice knows the state `\(view.state.rawValue)`: the upload stays as it is until that version runs"
        }
        if let text = view.explanation { return text }
        if view.state == .queued { return now.queueSentence(of: view.destination, files) }
        let done = Int(view.progress.fraction * 100)
        let limit = now.slowest(of: view.id, to: view.destination, from: view.folder)
        return "it is being sent now: \(view.state.rawValue), \(done) %"
            + (limit.map { "; \($0.what) limits it to \(shownBytes($0.rate))/s" } ?? "")
    }

    /// - Parameter destinations: Where the files of the folder go.
    func answer(_ state: WatchState, uploadTo destinations: [String]) -> WhyAnswer {
        let condition =
            switch state.condition {
            case .watching: "it is watched"
            case .scanning: "it is being scanned"
            case .absent(let reason): "it is absent: \(reason)"
            case .failed(let reason): "it cannot be watched: \(reason)"
            }
        let files = state.settling == 0 ? "" : "; \(state.settling) of its files are settling"
        var holds: [Hold] = []
        for destination in destinations {
            let more = now.holds(folder: state.folder, destination: destination)
            holds += more.filter { !holds.contains($0) }
        }
        return WhyAnswer(
            folder: state.folder, path: state.path.display, state: .folder,
            text:
                "it is the folder \(state.folder), whose files go to \(destinations.joined(separator: ", ")): "
                + condition + files,
            holds: holds.map(HoldView.init), exceptions: now.exceptions(id: nil, folder: state.folder))
    }
}

extension RouteView {
    /// - Returns: `nil` where no way may be used.
    init?(_ choice: Admission.RouteChoice?) {
        guard let choice, choice.interface != nil || choice.reason == Admission.kernelsChoice else { return nil }
        self.init(interface: choice.interface, address: choice.source?.description, text: choice.reason)
    }

    /// Those that are not used; `nil` for none, and for the only one: the upload has its holds.
    static func others(_ choice: Admission.RouteChoice) -> [RouteView]? {
        if choice.refused.isEmpty || choice.interface == nil && choice.refused.count == 1 { return nil }
        return choice.refused.map { RouteView(interface: $0.interface, text: $0.reason) }
    }
}

extension UploadView {
    /// One sentence about its state; `nil` where that takes facts that the view does not contain: its place in the
    /// queue, or its speed limit.
    var explanation: String? {
        switch state {
        case .completed:
            guard let remote else { return "it was uploaded" }
            return "it was uploaded to \(remote.url ?? remote.id ?? destination)"
                + (remote.verifiedBy.map { ", verified by \($0)" } ?? "")
                // Only with a reason: a source may simply be configured to be kept.
                + (["kept: ", "pending: "].contains { sourceState.hasPrefix($0) }
                    ? "; its source is \(sourceState)" : "")
        case .failed:
            return "it was refused: \(error?.message ?? "the reason is unknown"); `sluice retry \(id)` tries again"
        case .cancelled where error?.cause == .rejection:
            return "\(error?.message ?? "it was skipped"); `sluice retry \(id)` asks the program again"
        case .superseded:
            return (error?.message ?? "another destination has the file")
                + (remoteDelete.flatMap { ["none", "done"].contains($0) ? nil : "; removal there: \($0)" } ?? "")
        case .cancelled where error?.cause == .newerSource:
            return error?.message ?? "a newer version of its source was found"
        case .cancelled: return "it was cancelled by command; `sluice retry \(id)` queues it again"
        case .expired:
            return "\(error?.message ?? "it waited for too long"); `sluice retry \(id)` queues it again"
        case .settling: return "it changed after it was found, and waits until it settles again"
        case .staging:
            return staging == nil ? "it waits for its turn to be copied" : "it is being copied into staging"
        case .waiting: return holds.first?.text ?? "it waits"
        default: return nil
        }
    }
}
