import TestKit
import Testing

@testable import Core

@Suite("StagingAdmission")
struct StagingAdmissionTests {
    typealias Candidate = StagingAdmission.Candidate
    typealias Reservation = StagingBudget.Reservation

    private func budget(used: Int64 = 0, free: Int64 = 1000, cap: Int64? = nil, keepFree: Int64 = 0) -> StagingBudget {
        StagingBudget(folder: "/s", used: used, free: free, cap: cap, keepFree: keepFree)
    }

    private func file(_ id: Int64, _ size: Int64, inPlace: Bool = false) -> Candidate {
        Candidate(id: id, path: FilePath("/f/\(id)"), size: size, needsSpace: !inPlace)
    }

    /// An admission to which the space is known.
    private func admission(_ budget: StagingBudget) -> StagingAdmission {
        var admission = StagingAdmission()
        let query = admission.beginSpaceQuery()
        admission.endSpaceQuery(query, budget)
        return admission
    }

    /// Runs a whole pass of a worker; each measured file needs half of its size.
    private func run(
        _ admission: inout StagingAdmission, _ files: [Candidate], exports: Bool = false, maxSize: Int64? = nil
    ) -> (steps: [StagingAdmission.Step], result: StagingAdmission.Result) {
        var pass = StagingAdmission.Pass(files, isForExports: exports)
        var steps: [StagingAdmission.Step] = []
        while let step = admission.advance(&pass, maxSize: maxSize) {
            steps.append(step)
            switch step {
            case .refuse: admission.endRefusal(&pass)
            case .measure(let id): admission.endMeasuring((files.first { $0.id == id }?.size ?? 0) / 2, &pass)
            case .admit: break
            }
        }
        return (steps, admission.finish(pass))
    }

    @Test("several small files are copied together, a large one alone, an export alone")
    func batches() {
        let large = StagingAdmission.smallFile + 1
        var space = admission(budget(free: 1 << 40))
        #expect(run(&space, [file(1, 1), file(2, large), file(3, 2)]).result.batch.map(\.id) == [1, 3])
        #expect(run(&space, [file(1, 1), file(2, large), file(4, 2)]).result.batch.map(\.id) == [2])
        #expect(run(&space, [file(5, 1), file(6, 1)], exports: true).result.batch.map(\.id) == [5])
        #expect(space.copying == [1, 2, 3, 5])
    }

    @Test("a file that does not fit keeps all behind it waiting, except those that need no space")
    func order() {
        var space = admission(budget(free: 100))
        let (steps, result) = run(&space, [file(1, 400), file(2, 10), file(3, 500, inPlace: true)])
        #expect(steps == [.measure(1), .admit(3)])
        #expect(result.batch.map(\.id) == [3] && result.obstacle?.changeKey == "keep_free" && space.isShort)
    }

    @Test("a copy that needs less than its size is admitted with that need")
    func measured() {
        var space = admission(budget(free: 100))
        let result = run(&space, [file(1, 150)]).result
        #expect(result.batch.map(\.reservation) == [Reservation(size: 150, need: 75)])
    }

    @Test("a file that is larger than the staging folder may ever be is refused, and those behind it are copied")
    func refused() {
        var space = admission(budget(cap: 100))
        let (steps, result) = run(&space, [file(1, 101), file(2, 100)], maxSize: 100)
        #expect(steps == [.refuse(1, maxSize: 100), .admit(2)])
        #expect(result.batch.map(\.id) == [2] && space.copying == [2])
    }

    @Test("the shortage ends when every file fits")
    func shortage() {
        var space = admission(budget(used: 100, cap: 100))
        #expect(run(&space, [file(1, 10)]).result.obstacle?.changeKey == "max_size" && space.isShort)
        let query = space.beginSpaceQuery()
        space.endSpaceQuery(query, budget(used: 0, cap: 100))
        let result = run(&space, [file(1, 10)]).result
        #expect(result.endsShortage && !space.isShort)
    }

    @Test("files behind one that another worker examines stay, and a worker is woken after the decision")
    func left() {
        var space = admission(budget(free: 100))
        let files = [file(1, 150), file(2, 50)]
        var first = StagingAdmission.Pass(files, isForExports: false)
        #expect(space.advance(&first, maxSize: nil) == .measure(1))
        let other = run(&space, files)
        #expect(other.steps.isEmpty && other.result == StagingAdmission.Result())
        space.endMeasuring(60, &first)
        #expect(space.advance(&first, maxSize: nil) == .admit(1))
        while space.advance(&first, maxSize: nil) != nil {}
        #expect(space.takeWake() == false)
        _ = space.finish(first)
        #expect(space.takeWake() == true)
        #expect(space.takeWake() == false)
    }

    @Test("the end of a copy and a released reservation wake the workers, a pass that failed does not")
    func wakes() {
        var space = admission(budget(free: 100))
        let copied = run(&space, [file(1, 10)]).result.batch
        #expect(space.takeWake() == false)
        for ticket in copied { space.end(ticket) }
        #expect(space.takeWake() == true)
        var pass = StagingAdmission.Pass([file(2, 10)], isForExports: false)
        #expect(space.advance(&pass, maxSize: nil) == .admit(2))
        space.cancel(&pass)
        #expect(space.takeWake() == false)
        #expect(space.isIdle)
        space.release(StagingBudget.Reservation())
        #expect(space.takeWake() == true)
    }

    @Test("an answer does not replace that of a later query")
    func answers() {
        var space = StagingAdmission()
        let (early, late) = (space.beginSpaceQuery(), space.beginSpaceQuery())
        space.endSpaceQuery(late, budget(free: 0, keepFree: 1))
        space.endSpaceQuery(early, budget(free: 1000))
        #expect(run(&space, [file(1, 10)]).result.obstacle != nil)
    }

    @Test("the files of a cancelled pass wait again")
    func cancelled() {
        var space = admission(budget(free: 100))
        let files = [file(1, 10), file(2, 140)]
        var pass = StagingAdmission.Pass(files, isForExports: false)
        #expect(space.advance(&pass, maxSize: nil) == .admit(1))
        #expect(space.advance(&pass, maxSize: nil) == .measure(2))
        space.cancel(&pass)
        #expect(space.isIdle)
        #expect(run(&space, files).result.batch.map(\.id) == [1, 2])
    }

    /// Workers that run at random, and the disk that they fill.
    private struct Model {
        var dice: Dice
        var space = StagingAdmission()
        var waiting: [Candidate] = []
        /// The bytes on the disk that a file's copy takes.
        var needs: [Int64: Int64] = [:]
        var passes: [(pass: StagingAdmission.Pass, step: StagingAdmission.Step?)] = []
        var copying: [StagingAdmission.Ticket] = []
        /// Copies whose uploads have not ended.
        var copies: [Int64: Reservation] = [:]

        let disk: Int64 = 8_000_000
        let cap: Int64 = 6_000_000
        let keepFree: Int64 = 1_000_000
        let largest: Int64 = 2_300_000

        var used: Reservation { copies.values.reduce(Reservation(), +) }
        var booked: Reservation { copying.map(\.reservation).reduce(Reservation(), +) }

        mutating func roll(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &dice) }
    }

    @Test(
        "space is never overbooked, no file is copied twice at once, and every file is copied in the end",
        arguments: 0..<200)
    func model(_ seed: UInt64) {
        var model = Model(dice: Dice(seed: seed))
        for id: Int64 in 1...40 {
            let size = model.roll(1...2_400_000)
            model.waiting.append(file(id, size, inPlace: model.roll(0...9) == 0))
            model.needs[id] = model.roll(0...size)
        }
        var steps = 0
        while !model.waiting.isEmpty || !model.copying.isEmpty || !model.passes.isEmpty {
            switch model.roll(0...3) {
            case 0 where model.passes.count < 3: begin(&model)
            case 1, 2: advance(&model)
            default: end(&model)
            }
            #expect(model.used.size + model.booked.size <= model.cap)
            #expect(model.disk - model.used.need - model.booked.need >= model.keepFree)
            steps += 1
            guard steps < 20_000 else { return #expect(Bool(false), "\(model.waiting.count) files never get a copy") }
        }
        #expect(model.space.isIdle)
        let query = model.space.beginSpaceQuery()
        #expect(model.space.reserved(since: query) == Reservation())
    }

    /// A worker reads the waiting files and the space.
    private func begin(_ model: inout Model) {
        let files = model.waiting.filter { !model.space.copying.contains($0.id) }.prefix(8)
        if files.isEmpty { return }
        let query = model.space.beginSpaceQuery()
        model.space.endSpaceQuery(
            query,
            budget(
                used: model.used.size, free: model.disk - model.used.need, cap: model.cap, keepFree: model.keepFree))
        model.passes.append((StagingAdmission.Pass(Array(files), isForExports: false), nil))
    }

    /// A worker continues its pass.
    private func advance(_ model: inout Model) {
        guard !model.passes.isEmpty else { return }
        let index = Int(model.roll(0...Int64(model.passes.count - 1)))
        switch model.passes[index].step {
        case .measure(let id)?: model.space.endMeasuring(model.needs[id] ?? 0, &model.passes[index].pass)
        case .refuse(let id, _)?:
            model.waiting.removeAll { $0.id == id }
            model.space.endRefusal(&model.passes[index].pass)
        case .admit?, nil: break
        }
        model.passes[index].step = model.space.advance(&model.passes[index].pass, maxSize: model.largest)
        if model.passes[index].step != nil { return }
        let (pass, _) = model.passes.remove(at: index)
        for ticket in model.space.finish(pass).batch {
            #expect(!model.copying.contains { $0.id == ticket.id })
            model.copying.append(ticket)
        }
    }

    /// A copy ends, or the uploads of one are done.
    private func end(_ model: inout Model) {
        if !model.copying.isEmpty {
            let ticket = model.copying.remove(at: Int(model.roll(0...Int64(model.copying.count - 1))))
            model.space.end(ticket)
            // A copy that fails is made again. A pass that began before may copy a file again, in the same place.
            if model.roll(0...4) > 0, model.waiting.contains(where: { $0.id == ticket.id }) {
                model.waiting.removeAll { $0.id == ticket.id }
                let need = min(ticket.reservation.need, model.needs[ticket.id] ?? 0)
                model.copies[ticket.id] = Reservation(size: ticket.reservation.size, need: need)
            }
        } else if let done = model.copies.keys.min() {
            model.copies[done] = nil
        }
    }
}
