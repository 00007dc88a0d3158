import Core
import Store
import Testing

@testable import Daemon

@Suite("Running transfers")
struct RunningTransfersTests {
    private func transfer(
        _ destination: String, _ folders: [String: String], over interface: String? = nil
    ) -> RunningTransfers.Transfer {
        var route = Admission.Route.any
        route.interface = interface
        return RunningTransfers.Transfer(
            destination: destination, route: route, folders: folders, inPlace: [], accounts: [:], task: Task {})
    }

    @Test("a transfer is found by each of its uploads, until it ends")
    func carrying() {
        var transfers = RunningTransfers()
        let number = transfers.nextNumber()
        transfers.add(transfer("nas", ["a": "cam", "b": "door"]), number)
        #expect(transfers.carrying("a")?.destination == "nas")
        #expect(transfers.carrying("b")?.destination == "nas")
        #expect(transfers.carrying("c") == nil)
        transfers.remove(number)
        #expect(transfers.carrying("a") == nil)
        #expect(transfers.isEmpty)
    }

    @Test("the end of an earlier transfer does not hide a later one of the same upload")
    func again() {
        var transfers = RunningTransfers()
        let (first, second) = (transfers.nextNumber(), transfers.nextNumber())
        transfers.add(transfer("nas", ["a": "cam"]), first)
        transfers.add(transfer("cloud", ["a": "cam"]), second)
        transfers.remove(first)
        #expect(transfers.carrying("a")?.destination == "cloud")
    }

    @Test("a transfer is under way until the attempts of all its uploads have ended")
    func underWay() {
        var transfers = RunningTransfers()
        let number = transfers.nextNumber()
        transfers.add(transfer("nas", ["a": "cam", "b": "door"], over: "wwan0"), number)
        transfers.attemptsEnded(["a"])
        #expect(transfers.underWay.count == 1)
        #expect(transfers.interfaces == ["wwan0"])
        transfers.attemptsEnded(["b"])
        #expect(transfers.underWay.isEmpty)
        // Nothing holds its interface open any more.
        #expect(transfers.interfaces.isEmpty)
        #expect(transfers.count == 1)
        transfers.remove(number)
        transfers.add(transfer("nas", ["a": "cam"]), transfers.nextNumber())
        #expect(transfers.underWay.count == 1)
    }

    @Test("slots count transfers, and a folder is full at its own limit")
    func counts() {
        var transfers = RunningTransfers()
        transfers.add(transfer("nas", ["a": "cam", "b": "cam"]), transfers.nextNumber())
        transfers.add(transfer("cloud", ["c": "cam"]), transfers.nextNumber())
        #expect(transfers.count == 2)
        #expect(transfers.count(to: "nas") == 1)
        #expect(transfers.full(["cam": 2, "door": 1]) == ["cam"])
        #expect(transfers.full(["cam": 3]) == [])
        #expect(
            transfers.classes(FileQuestions()) == [
                UploadClass(folder: "cam", destination: "nas"), UploadClass(folder: "cam", destination: "cloud"),
            ])
    }
}
