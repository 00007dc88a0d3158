internal import Core
internal import Store
internal import Transport

/// The transfers that run now, and the uploads that each of them carries.
struct RunningTransfers: Sendable, RecordsChanges {
    /// A running transfer to a destination: one file, or a bundle of small files.
    struct Transfer: Sendable {
        let destination: String
        /// The route that it uses.
        let route: Admission.Route
        /// The folder of each upload, by its id.
        let folders: [String: String]
        /// What conditions ask of the file of each upload, by its id.
        var files: [String: FileFacts] = [:]
        /// Uploads that read their sources in place.
        let inPlace: Set<String>
        /// Uploads that end when another destination has the file.
        var alternatives: Set<String> = []
        /// The account of each upload, by its id.
        let accounts: [String: QuotaAccount]
        /// The limits of the rules that apply to it.
        var ruleLimit = Throttle(members: [])
        let task: Task<Void, Never>
    }

    var changes: FactChanges = []
    private var byNumber: [Int: Transfer] = [:]
    /// The transfer of each running upload.
    private var numbers: [String: Int] = [:]
    /// The uploads of running transfers whose attempts have ended.
    private var ended: Set<String> = []
    private var lastNumber = 0

    /// The number of a transfer that is about to start.
    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ transfer: Transfer, _ number: Int) {
        byNumber[number] = transfer
        for id in transfer.folders.keys { numbers[id] = number }
        ended.subtract(transfer.folders.keys)
    }

    /// Records that a transfer has ended: others may be sent in its place, and its leftovers may be removed.
    mutating func remove(_ number: Int) {
        changes.formUnion([.scheduling, .removals])
        for id in byNumber.removeValue(forKey: number)?.folders.keys ?? [String: String]().keys
        where numbers[id] == number {
            numbers[id] = nil
            ended.remove(id)
        }
    }

    /// Records that the attempts of these uploads have ended: nothing more is sent for them.
    mutating func attemptsEnded(_ ids: some Sequence<String>) { ended.formUnion(ids) }

    /// The transfers that may still send something.
    var underWay: [Transfer] { byNumber.values.filter { !ended.isSuperset(of: $0.folders.keys) } }

    subscript(number: Int) -> Transfer? { byNumber[number] }

    /// The transfer that carries an upload.
    func carrying(_ upload: String) -> Transfer? { numbers[upload].flatMap { byNumber[$0] } }

    /// The uploads that are being sent to a destination.
    func uploads(to destination: String) -> [String] {
        byNumber.values.filter { $0.destination == destination }.flatMap(\.folders.keys)
    }

    var all: [Transfer] { Array(byNumber.values) }
    var isEmpty: Bool { byNumber.isEmpty }
    var count: Int { byNumber.count }
    func count(to destination: String) -> Int { byNumber.values.count { $0.destination == destination } }

    /// Stops transfers. They end later, by themselves.
    func cancel(where isMeant: (Transfer) -> Bool) {
        for transfer in byNumber.values where isMeant(transfer) { transfer.task.cancel() }
    }

    /// The folders that send as many files as their `concurrency` allows.
    func full(_ most: [String: Int]) -> Set<String> {
        Set(
            most.filter { folder, most in
                byNumber.values.count { $0.folders.values.contains(folder) } >= most
            }.keys)
    }

    /// The classes of the running uploads.
    func classes(_ questions: FileQuestions) -> Set<UploadClass> {
        Set(
            byNumber.values.flatMap { transfer in
                transfer.folders.map { id, folder in
                    UploadClass(
                        folder: folder, destination: transfer.destination,
                        mask: transfer.files[id].map { questions.mask(of: $0) } ?? .unknown)
                }
            })
    }

    /// The interfaces of transfers that may still send something and are not being stopped.
    var interfaces: Set<String> { Set(underWay.filter { !$0.task.isCancelled }.compactMap(\.route.interface)) }
}

extension RunningTransfers.Transfer {
    init(
        _ claims: [Claim], to destination: String, over route: Admission.Route, _ permit: TransferPermit,
        by task: Task<Void, Never>
    ) {
        self.init(
            destination: destination, route: route,
            folders: Dictionary(
                claims.map { ($0.upload.id, $0.upload.folder) }, uniquingKeysWith: { first, _ in first }),
            files: Dictionary(claims.map { ($0.upload.id, $0.file) }, uniquingKeysWith: { first, _ in first }),
            inPlace: Set(claims.filter { $0.asset.stagingMode == .inPlace }.map(\.upload.id)),
            alternatives: Set(claims.filter { $0.upload.choice != nil }.map(\.upload.id)),
            accounts: permit.accounts,
            ruleLimit: permit.ruleLimit, task: task)
    }
}
